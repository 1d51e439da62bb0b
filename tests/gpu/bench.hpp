#pragma once
// Measurements on one GPU, and the table they make. A time is the median of some rounds after
// warm-up, between two events; before each round more memory is written than the caches hold, so
// that a kernel finds its operands where a model would leave them.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "dtm/core/space.hpp"
#include "dtm/cuda.cuh"

namespace dtm::bench {

using grid = mesh<dp, cp0, cp1>;
using gpu_context = context<cuda, grid>;
template <class T>
using on_gpu = space<T, grid, cuda>;

/// Of the pair representation, as AlphaFold3 and Boltz-2 have it.
inline constexpr std::int64_t channels = 128, bins = 64;

struct plan {
  std::vector<std::int64_t> tokens;
  std::int64_t square = 8192;  // side of the products that are the floor
  int rounds = 9;
  std::string torch_file;  // times of PyTorch, or empty
};

/// What the GPU can do at most: the floors of everything else.
struct floors {
  double copied_per_second = 0;         // bytes read and written by a copy of 1 GiB
  double fp32_rate = 0, bf16_rate = 0;  // flops a second of a large square product by cuBLAS
};

/// An event of CUDA.
class moment {
 public:
  moment() { gpu::check(cudaEventCreate(&event_), "cudaEventCreate"); }
  moment(moment const&) = delete;
  moment& operator=(moment const&) = delete;
  ~moment() { gpu::forget(cudaEventDestroy(event_)); }
  void record(cudaStream_t stream) {
    gpu::check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  /// Both have passed.
  double milliseconds_to(moment const& later) const {
    float result = 0;
    gpu::check(cudaEventElapsedTime(&result, event_, later.event_), "cudaEventElapsedTime");
    return double(result);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class stopwatch {
 public:
  stopwatch(gpu_context& ctx, int rounds)
      : ctx_(ctx), rounds_(rounds), cold_(ctx.memory(), std::int64_t(256) << 20) {}

  /// Milliseconds that work(prepare()) takes, without prepare().
  template <class Prepare, class Work>
  double median(Prepare&& prepare, Work&& work) {
    constexpr int warm_up = 2;
    std::vector<double> times;
    for (int round = -warm_up; round < rounds_; ++round) {
      auto prepared = prepare();
      ctx_.memory().fill_bytes(cold_.data(), 0, std::size_t(cold_.size()));
      begin_.record(ctx_.device().compute());
      work(std::move(prepared));
      end_.record(ctx_.device().compute());
      ctx_.finish();
      if (round >= 0) times.push_back(begin_.milliseconds_to(end_));
    }
    std::nth_element(times.begin(), times.begin() + rounds_ / 2, times.end());
    return times[std::size_t(rounds_ / 2)];
  }
  template <class Work>
  double median(Work&& work) {
    return median([] { return 0; }, [&](int) { work(); });
  }

 private:
  gpu_context& ctx_;
  int rounds_;
  scratch<char> cold_;
  moment begin_, end_;
};

/// Numbers in [-1, 1), since a product of zeros takes less power and less time than it should.
template <class T>
void fill_numbers(gpu_context& ctx, T* data, std::int64_t count, double scale = 1) {
  using A = accumulate_t<T>;
  std::int64_t const some = std::min(count, std::int64_t(1) << 18);
  std::vector<T> values;
  values.reserve(std::size_t(some));
  std::uint64_t state = 88172645463325252u + std::uint64_t(count);
  for (std::int64_t i = 0; i < some; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    values.push_back(T(A(scale * (double(state >> 11) * 0x1p-52 - 1))));
  }
  ctx.memory().copy_from_host(data, values.data(), std::size_t(some) * sizeof(T));
  for (std::int64_t done = some; done < count;) {
    std::int64_t const next = std::min(done, count - done);
    ctx.memory().copy_within(data + done, data, std::size_t(next) * sizeof(T));
    done += next;
  }
}
template <class T>
scratch<T> numbers(gpu_context& ctx, std::int64_t count, double scale = 1) {
  scratch<T> result(ctx.memory(), count);
  fill_numbers(ctx, result.data(), count, scale);
  return result;
}

template <class T>
char const* name_of() {
  return element_name<T>();
}

/// What is too large for this GPU is left out with a line; everything else is measured.
template <class Work>
void unless_it_is_full(gpu_context& ctx, std::string const& what, Work&& work) {
  try {
    work();
  } catch (device_error const& e) {
    if (std::string(e.what()).find("out of memory") == std::string::npos) throw;
    std::printf("%-34s left out: %s\n", what.c_str(), e.what());
  }
  ctx.finish();
  ctx.device().pool().trim();
}

void measure_kernels(gpu_context& ctx, plan const& how, floors const& most);
void measure_products(gpu_context& ctx, plan const& how, floors const& most);
void measure_modules(gpu_context& ctx, plan const& how);

}  // namespace dtm::bench
