#pragma once
// The block context of kernels/block.hpp on a GPU, for nvcc and sm_80 or newer: every operation is
// an instruction or two. Launched with Kernel::threads threads in x and nothing in y and z.
//
// Where code of both sides is compiled for the host, a kernel is never called with this block, so
// there it only has to exist.

#if !defined(__CUDACC__)
#error "dtm: backend/cuda/block.cuh is device code; nvcc compiles it"
#endif

#include <cstdint>
#include <type_traits>

#include "dtm/kernels/block.hpp"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "dtm: kernels copy asynchronously and multiply bf16, which needs sm_80 or newer"
#endif

namespace dtm::gpu {

class cuda_block {
 public:
  __device__ std::int64_t index() const { return blockIdx.x; }
  __device__ std::int64_t grid() const { return gridDim.x; }
  __device__ int thread() const { return int(threadIdx.x); }
  __device__ int size() const { return int(blockDim.x); }
  __device__ int lane() const { return thread() % kernels::warp_size; }
  __device__ int warp() const { return thread() / kernels::warp_size; }
  __device__ std::int64_t first() const { return index() * size() + thread(); }
  __device__ std::int64_t stride() const { return grid() * size(); }

  __device__ void sync() const { __syncthreads(); }
  __device__ void sync_warp() const { __syncwarp(); }
  __device__ bool any(bool value) const { return __syncthreads_or(value) != 0; }

  // Bytes, since an element type may initialise itself, which shared memory cannot.
  template <class T, int N, class Tag>
  __device__ T (&shared() const)[N] {
    static_assert(std::is_trivially_copyable_v<T>, "dtm kernel: shared memory holds plain data");
    static_assert(alignof(T) <= 16, "dtm kernel: shared memory is aligned to 16 bytes");
    __shared__ alignas(16) unsigned char bytes[N * sizeof(T)];
    return reinterpret_cast<T(&)[N]>(bytes);
  }

  template <class T>
  __device__ T shuffle_xor(T value, int mask) const {
    return exchange(value, [mask](unsigned word) {
      return __shfl_xor_sync(whole_warp, word, mask, kernels::warp_size);
    });
  }
  template <class T>
  __device__ T shuffle_down(T value, int delta) const {
    return exchange(value, [delta](unsigned word) {
      return __shfl_down_sync(whole_warp, word, unsigned(delta), kernels::warp_size);
    });
  }

  template <class T>
  __device__ void atomic_add(T* p, std::type_identity_t<T> value) const {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "dtm kernel: atomic_add is for integers of 4 or 8 bytes; the order of a "
                  "floating-point sum would change its bits");
    using bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    ::atomicAdd(reinterpret_cast<bits*>(p), bits(value));  // two's complement: signs do not matter
  }

  template <int N, class T>
  __device__ kernels::vector<std::remove_const_t<T>, N> load(T* p) const {
    using element = std::remove_const_t<T>;
    using word = word_of<N * sizeof(T)>;
    word const all = *reinterpret_cast<word const*>(p);
    kernels::vector<element, N> value;
    __builtin_memcpy(&value, &all, sizeof value);
    return value;
  }
  template <class T, int N>
  __device__ void store(T* p, kernels::vector<T, N> const& value) const {
    using word = word_of<N * sizeof(T)>;
    word all;
    __builtin_memcpy(&all, &value, sizeof all);
    *reinterpret_cast<word*>(p) = all;
  }

  template <int N, class T, int Count>
  __device__ void copy_async(T (&a)[Count], std::int64_t i, T const* p) const {
    static_assert(N * sizeof(T) == 4 || N * sizeof(T) == 8 || N * sizeof(T) == 16,
                  "dtm kernel: an asynchronous copy moves 4, 8 or 16 bytes");
    auto const to = unsigned(__cvta_generic_to_shared(&a[i]));
    auto const from = __cvta_generic_to_global(p);
    if constexpr (N * sizeof(T) == 16)  // past the first cache: nobody else of the block reads it
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from),
                   "n"(int(N * sizeof(T)))
                   : "memory");
  }
  __device__ void commit() const { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <int Pending>
  __device__ void wait() const {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
  }

  __device__ void mma(kernels::mma_tile::sum& d, kernels::mma_tile::left const& a,
                      kernels::mma_tile::right const& b) const {
    unsigned x[4], y[2];  // pairs of neighbours along the inner index, the lower half first
    __builtin_memcpy(x, &a, sizeof x);
    __builtin_memcpy(y, &b, sizeof y);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d.element[0]), "+f"(d.element[1]), "+f"(d.element[2]), "+f"(d.element[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }

  __device__ float exp(float x) const { return ::expf(x); }
  __device__ double exp(double x) const { return ::exp(x); }
  __device__ float log(float x) const { return ::logf(x); }
  __device__ double log(double x) const { return ::log(x); }
  __device__ float rsqrt(float x) const { return ::rsqrtf(x); }
  __device__ double rsqrt(double x) const { return ::rsqrt(x); }

 private:
  static constexpr unsigned whole_warp = 0xffffffffu;

  template <std::size_t Bytes>
  static auto some_word() {
    static_assert(Bytes <= 16 && (Bytes & (Bytes - 1)) == 0,
                  "dtm kernel: what moves at once is 1, 2, 4, 8 or 16 bytes");
    if constexpr (Bytes == 16)
      return uint4{};
    else if constexpr (Bytes == 8)
      return uint2{};
    else if constexpr (Bytes == 4)
      return 0u;
    else if constexpr (Bytes == 2)
      return static_cast<unsigned short>(0);
    else
      return static_cast<unsigned char>(0);
  }
  template <std::size_t Bytes>
  using word_of = decltype(some_word<Bytes>());

  // In registers throughout: an array of words would be put into memory.
  template <class T, class Move>
  __device__ static T exchange(T value, Move move) {
    static_assert(std::is_trivially_copyable_v<T>, "dtm kernel: a shuffle moves plain values");
    auto all = __builtin_bit_cast(word_of<sizeof(T)>, value);
    if constexpr (sizeof(T) > 4) {
      all.x = move(all.x);
      all.y = move(all.y);
      if constexpr (sizeof(T) == 16) {
        all.z = move(all.z);
        all.w = move(all.w);
      }
    } else {
      all = decltype(all)(move(all));
    }
    return __builtin_bit_cast(T, all);
  }
};

}  // namespace dtm::gpu
