#pragma once
// What a kernel sees: the block context. A kernel is a function object whose plain data members are
// its arguments:
//
//   struct scale_rows {
//     static constexpr int threads = 128;            // of one block, a multiple of 32
//     float const* x; float* y; float factor; std::int64_t count;
//     template <class Block> DTM_HD void operator()(Block& block) const {
//       for (std::int64_t i = block.first(); i < count; i += block.stride()) y[i] = factor * x[i];
//     }
//   };
//   ctx.launch(blocks, scale_rows{...});
//
// The same source runs on a GPU (backend/cuda/block.cuh) and on the CPU, where the emulator runs
// one fiber a thread and reports races and skipped barriers (backend/emulated/block.hpp). So a
// kernel uses its block's operations and nothing else: no standard containers, no device headers,
// no lockstep of a warp. The list is closed:
//
//   index() grid()          number of this block, number of blocks (std::int64_t)
//   thread() size()         number of this thread in its block, threads of the block (int)
//   lane() warp()           thread() % 32, thread() / 32
//   first() stride()        index() * size() + thread(), grid() * size(): a loop over a whole grid
//   sync() sync_warp()      barriers of the block, of a warp; no thread may skip one, and all come
//                           to the same one, not to two in different branches
//   any(bool)               true on all threads of the block where it is true on one; a barrier
//   shared<T, N, Tag>()     N elements that the block shares, indexed by []; fresh content is
//                           unspecified. One array for each Tag, so two uses need two tags
//   shuffle_xor(v, mask)    v of lane() ^ mask; every lane of the warp takes part
//   shuffle_down(v, delta)  v of lane() + delta, own v beyond the end; every lane takes part. v has
//                           1, 2, 4, 8 or 16 bytes; a shuffle orders no accesses to memory
//   atomic_add(p, v)        *p += v for integers, whose order cannot matter (law L13)
//   load<N>(p)              N neighbouring elements at once, 16 bytes at most; p is aligned to
//                           N * sizeof(*p). p is a pointer or &a[i] of a shared array
//   store(p, vector)        the same, writing
//   copy_async<N>(a, i, p)  a[i .. i+N) = p[0 .. N) of a shared array, N * sizeof = 4, 8 or 16 and
//                           aligned; readable after commit(), wait<pending>() and sync()
//   commit() wait<P>()      closes a batch of this thread's copies; waits until at most P batches
//                           are pending
//   mma(d, a, b)            d += a b, a 16 x 16 and b 16 x 8 of bf16, d 16 x 8 of float: one
//                           product of a warp, see mma_tile
//   exp(x) log(x) rsqrt(x)  in float or double
//
// Sums and maxima of a block stand below, written with these operations, so their order is the
// same everywhere (law L13).

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"

/// For a device compiler: before a loop whose index picks registers, which must be unrolled; and
/// before a loop of few steps whose copies would only cost registers.
#if defined(__CUDACC__)
#define DTM_UNROLL _Pragma("unroll")
#define DTM_KEEP_LOOP _Pragma("unroll 1")
#else
#define DTM_UNROLL
#define DTM_KEEP_LOOP
#endif

namespace dtm::kernels {

inline constexpr int warp_size = 32;

/// Blocks of a kernel that a multiprocessor is to hold at least, for the launch bounds: what a
/// kernel says as `resident`, or 0, the compiler's choice. A compiler spills a register or two to
/// get one more block in than it was asked for; a kernel that says less keeps them.
template <class Kernel>
constexpr int resident_blocks() {
  if constexpr (requires { Kernel::resident; })
    return Kernel::resident;
  else
    return 0;
}

/// N neighbouring elements that move together.
template <class T, int N>
struct alignas(sizeof(T) * N) vector {
  T element[N];
  DTM_HD T& operator[](int i) { return element[i]; }
  DTM_HD T const& operator[](int i) const { return element[i]; }
};

/// Which element of a 16 x 16 (a), 16 x 8 (b) and 16 x 8 (d) tile a lane holds, as
/// mma.sync.m16n8k16 of PTX has it: element i of lane l is a[a_row(l, i)][a_inner(l, i)],
/// b[b_inner(l, i)][b_column(l, i)], d[d_row(l, i)][d_column(l, i)].
struct mma_tile {
  static constexpr int rows = 16, columns = 8, inner = 16;
  using left = vector<bf16, 8>;
  using right = vector<bf16, 4>;
  struct sum {
    float element[4];
  };
  DTM_HD static constexpr int a_row(int lane, int i) { return lane / 4 + i / 2 % 2 * 8; }
  DTM_HD static constexpr int a_inner(int lane, int i) { return lane % 4 * 2 + i % 2 + i / 4 * 8; }
  DTM_HD static constexpr int b_inner(int lane, int i) { return lane % 4 * 2 + i % 2 + i / 2 * 8; }
  DTM_HD static constexpr int b_column(int lane, int) { return lane / 4; }
  DTM_HD static constexpr int d_row(int lane, int i) { return lane / 4 + i / 2 * 8; }
  DTM_HD static constexpr int d_column(int lane, int i) { return lane % 4 * 2 + i % 2; }
};

namespace detail {

template <class T>
struct add_values {
  DTM_HD static T apply(T a, T b) { return a + b; }
  DTM_HD static T neutral() { return T(0); }
};
template <class T>
struct larger_value {
  DTM_HD static T apply(T a, T b) { return a < b ? b : a; }
  DTM_HD static T neutral() { return T(-__builtin_huge_val()); }
};

template <class Operation, class Block, class T>
DTM_HD T reduce_warp(Block& block, T value) {
  for (int mask = warp_size / 2; mask > 0; mask /= 2)
    value = Operation::apply(value, block.shuffle_xor(value, mask));
  return value;
}

// The warps' values are combined in their order, by every thread alike.
template <class Operation, class Block, class T>
DTM_HD T reduce_block(Block& block, T value) {
  constexpr int most_warps = 32;
  auto&& of_warp = block.template shared<T, most_warps, Operation>();
  value = reduce_warp<Operation>(block, value);
  block.sync();  // an earlier reduction may still be read
  if (block.lane() == 0) of_warp[block.warp()] = value;
  block.sync();
  T total = Operation::neutral();
  for (int warp = 0; warp < block.size() / warp_size; ++warp)
    total = Operation::apply(total, of_warp[warp]);
  return total;
}

}  // namespace detail

/// The sum over a warp, over the block; every thread takes part and gets it.
template <class Block, class T>
DTM_HD T warp_sum(Block& block, T value) {
  return detail::reduce_warp<detail::add_values<T>>(block, value);
}
template <class Block, class T>
DTM_HD T block_sum(Block& block, T value) {
  return detail::reduce_block<detail::add_values<T>>(block, value);
}
template <class Block, class T>
DTM_HD T warp_max(Block& block, T value) {
  return detail::reduce_warp<detail::larger_value<T>>(block, value);
}
template <class Block, class T>
DTM_HD T block_max(Block& block, T value) {
  return detail::reduce_block<detail::larger_value<T>>(block, value);
}

/// A kernel over an index as a kernel over blocks: every thread takes an index of its own, then
/// the next one a grid further.
template <class Kernel>
struct each_index {
  static constexpr int threads = 256;
  static constexpr int resident = resident_blocks<Kernel>();
  Kernel kernel;
  std::int64_t count;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    for (std::int64_t i = block.first(); i < count; i += block.stride()) kernel(i);
  }
};

}  // namespace dtm::kernels
