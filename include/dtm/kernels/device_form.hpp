#pragma once
// How a kernel over an index runs on a device: as which kernel over blocks, and on how many of
// them. Modules say for_each(ctx, count, kernel) and know none of this; the author of a kernel who
// has a better block kernel specialises device_form beside the kernel.
//
//   device_form<Kernel>::of(kernel, count)   {blocks, block kernel}; no blocks where count is 0
//
// The default gives every index to a thread. A kernel that has `neighbours` and `many` moves that
// many indices at once where its pointers are aligned, 16 bytes a thread: what it takes to fill
// the memory bus with 16-bit elements.
//
// Costs in the docstrings of kernels are a line such as "reads 2, writes 1; 12 flops; memory": in
// elements, per index, and what bounds it on a GPU. They are planned, not measured.

#include <cstdint>

#include "dtm/kernels/block.hpp"

namespace dtm::kernels {

/// A grid that keeps a large GPU busy; loops take a stride of the whole grid beyond it. A constant:
/// which thread adds what may not depend on the device (law L13).
inline constexpr std::int64_t most_blocks = 2048;

DTM_HD constexpr std::int64_t ceil_divide(std::int64_t count, std::int64_t part) {
  return (count + part - 1) / part;
}
/// Blocks for `count` pieces of work of which a block takes `part` at once.
constexpr std::int64_t blocks_for(std::int64_t count, std::int64_t part) {
  std::int64_t const blocks = count > 0 ? ceil_divide(count, part) : 0;
  return blocks < most_blocks ? blocks : most_blocks;
}

/// What is launched.
template <class BlockKernel>
struct launch_form {
  std::int64_t blocks;
  BlockKernel kernel;
};

/// Elements in 16 bytes, the widest access of a thread.
template <class T>
inline constexpr int vector_length = int(16 / sizeof(T));

/// May all pointers be read `Length` elements at a time?
template <int Length, class... T>
bool are_aligned(T const*... pointer) {
  return ((reinterpret_cast<std::uintptr_t>(pointer) % (Length * sizeof(T)) == 0) && ...);
}

/// A kernel over an index with a form for neighbours: kernel.many(block, i) does the indices
/// [i, i + neighbours). What is left over, or everything where `vectors` is 0, goes one by one.
template <class Kernel>
struct each_vector {
  static constexpr int threads = 256;
  Kernel kernel;
  std::int64_t count, vectors;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    for (std::int64_t i = block.first(); i < vectors; i += block.stride())
      kernel.many(block, i * Kernel::neighbours);
    for (std::int64_t i = vectors * Kernel::neighbours + block.first(); i < count;
         i += block.stride())
      kernel(i);
  }
};

template <class Kernel>
concept has_vector_form = Kernel::neighbours >
0;

template <class Kernel>
struct device_form {
  static launch_form<each_index<Kernel>> of(Kernel const& kernel, std::int64_t count) {
    return {blocks_for(count, each_index<Kernel>::threads), {kernel, count}};
  }
};

template <has_vector_form Kernel>
struct device_form<Kernel> {
  static launch_form<each_vector<Kernel>> of(Kernel const& kernel, std::int64_t count) {
    std::int64_t const vectors = kernel.may_vector() ? count / Kernel::neighbours : 0;
    std::int64_t const work = vectors > 0 ? vectors : count;
    return {blocks_for(work, each_vector<Kernel>::threads), {kernel, count, vectors}};
  }
};

/// The block kernel that runs a kernel over an index.
template <class Kernel>
using device_kernel_t =
    decltype(device_form<Kernel>::of(*static_cast<Kernel const*>(nullptr), std::int64_t{}).kernel);

}  // namespace dtm::kernels
