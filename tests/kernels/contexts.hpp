#pragma once
// Kernels against the host's version of the same operation, without a mesh. A test says once what
// is run, over any context and element type; it runs
//
//   - on the host in fp64, which is the reference,
//   - on the host in T,
//   - on the emulator in T, in four orders of threads and blocks, with equal bits in all of them;
//     or, with DTM_TEST_ON_GPU, twice on a GPU with equal bits.
//
// Every difference to the reference stays below a bound that counts roundings: `roundings` of
// values up to `magnitude` in the accumulation type, and one of the result in the storage type. The
// table at the end says how near the worst ones come.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "dtm/backend/device/operations.hpp"
#include "dtm/backend/emulated/launch.hpp"
#include "dtm/backend/host/gemm.hpp"
#include "dtm/backend/host/rows.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/kernels/random.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

#ifdef DTM_TEST_ON_GPU
#include "dtm/backend/cuda/launch.hpp"
#include "dtm/backend/cuda/status.hpp"

namespace dtm::local {

/// The library's own kernels: modules' tests have products by cuBLAS.
template <>
struct gemm_impl<cuda> {
  template <class Context, class T, class Result>
  static void run(Context& ctx, gemm_shape const& shape, T const* left, T const* right,
                  Result* result) {
    device_product(ctx, shape, left, right, result);
  }
};

}  // namespace dtm::local
#endif

namespace dtm::kernel_test {

/// Fresh memory is NaN, so that reading before writing is seen.
inline dtm::memory host_memory() {
  dtm::memory memory;
  memory.allocate = [](void*, std::size_t bytes) {
    void* const pointer = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (pointer == nullptr) throw std::bad_alloc();
    return std::memset(pointer, 0xff, bytes);
  };
  memory.release = [](void*, void* pointer, std::size_t) noexcept { std::free(pointer); };
  return memory;
}

inline dtm::memory emulated_memory() {
  dtm::memory memory;
  memory.allocate = [](void*, std::size_t bytes) {
    return std::memset(emulation::allocate(bytes), 0xff, bytes);
  };
  memory.release = [](void*, void* pointer, std::size_t bytes) noexcept {
    emulation::release(pointer, bytes);
  };
  return memory;
}

struct host_context {
  using device_type = host;
  struct host_device {
    static instruction_set instructions() { return widest_instructions(); }
  };
  host_device device() const { return {}; }
  dtm::memory storage = host_memory();
  dtm::memory& memory() { return storage; }
};

/// What a planted fault leaves out of every launch.
struct fault {
  int barrier = -1;       // this call of sync(), counted from 0
  int warp_barrier = -1;  // this call of sync_warp()
  bool last_block = false;
};

template <class Block>
struct faulty_block : Block {
  fault const* left_out;
  int barriers = 0, warp_barriers = 0;
  faulty_block(Block const& block, fault const& which) : Block(block), left_out(&which) {}
  void sync() {
    if (barriers++ != left_out->barrier) Block::sync();
  }
  void sync_warp() {
    if (warp_barriers++ != left_out->warp_barrier) Block::sync_warp();
  }
};

template <class Kernel>
struct faulty_kernel {
  static constexpr int threads = Kernel::threads;
  Kernel kernel;
  fault left_out;
  template <class Block>
  void operator()(Block& block) const {
    if (left_out.last_block && block.index() + 1 == block.grid()) return;
    faulty_block<Block> other(block, left_out);
    kernel(other);
  }
};

struct emulated_context {
  using device_type = emulated;
  emulation::settings how;
  fault left_out = {};
  bool is_faulty = false;
  dtm::memory storage = emulated_memory();
  dtm::memory& memory() { return storage; }
  template <class Kernel>
  void launch(std::int64_t blocks, Kernel const& kernel) {
    if (!is_faulty) return emulation::launch(blocks, kernel, how);
    emulation::launch(blocks, faulty_kernel<Kernel>{kernel, left_out}, how);
  }
};

#ifdef DTM_TEST_ON_GPU
/// Memory that the host reaches as well, and a wait after every launch: tests read and write their
/// arrays where they lie.
inline dtm::memory managed_memory() {
  dtm::memory memory;
  memory.allocate = [](void*, std::size_t bytes) {
    void* pointer = nullptr;
    gpu::check(cudaMallocManaged(&pointer, bytes, cudaMemAttachGlobal), "cudaMallocManaged");
    return std::memset(pointer, 0xff, bytes);
  };
  memory.release = [](void*, void* pointer, std::size_t) noexcept {
    gpu::forget(cudaFree(pointer));
  };
  return memory;
}

struct gpu_context {
  using device_type = cuda;
  dtm::memory storage = managed_memory();
  dtm::memory& memory() { return storage; }
  template <class Kernel>
  void launch(std::int64_t blocks, Kernel const& kernel) {
    if (blocks == 0) return;
    gpu::check(gpu::launch_kernel(nullptr, blocks, kernel), "the launch of a kernel");
    gpu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
};
#endif

// ---- arrays ----

/// An array of a context's memory, `skew` elements behind what is aligned.
template <class T>
struct array {
  scratch<T> storage;
  std::int64_t skew;

  template <class Context>
  array(Context& ctx, std::int64_t count, std::int64_t skewed = 0)
      : storage(ctx.memory(), count + skewed), skew(skewed) {}
  template <class Context>
  array(Context& ctx, std::vector<double> const& values, std::int64_t skewed = 0)
      : array(ctx, std::int64_t(values.size()), skewed) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, bf16>)
        data()[i] = bf16(float(values[i]));
      else
        data()[i] = T(values[i]);
    }
  }
  T* data() { return storage.data() + skew; }
  void add_to(std::vector<double>& values) {
    for (std::int64_t i = skew; i < storage.size(); ++i)
      values.push_back(double(storage.data()[i]));
  }
};

/// `count` numbers in [-1, 1) that T holds exactly; another `draw`, other numbers.
template <class T>
std::vector<double> numbers(std::int64_t count, std::uint32_t draw, double scale = 1) {
  std::vector<double> values(std::size_t(count < 0 ? 0 : count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const words = kernels::random_stream{7, draw, 0}.at(i);
    float const value = float(scale) * (2 * kernels::uniform<float>::of(words) - 1);
    values[i] = double(bf16(value));  // every type holds a bf16
    if constexpr (!std::is_same_v<T, bf16>) values[i] = double(value);
  }
  return values;
}

// ---- comparison ----

/// Half the distance of neighbours of 1.
template <class T>
constexpr double roundoff() {
  return std::is_same_v<T, double> ? 0x1p-53 : std::is_same_v<T, float> ? 0x1p-24 : 0x1p-8;
}

/// As magnitude: a sum of positive terms is as large as they are.
inline constexpr double own_value = -1;

/// A part of the results with one bound; none of the roundings where it is a copy.
struct part {
  char const* name;
  std::int64_t count;
  double roundings, magnitude;
  double stores = 1;  // roundings to T; none where the result is of the accumulation type
};

/// Roundings of a long sum go either way: n of them amount to a few sqrt(n). Source: Higham, Mary,
/// "A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41 (2019).
inline double effective(double roundings) {
  return std::min(roundings, 4 * std::sqrt(roundings));
}

/// As roundings, where n of them go the same way: all count.
inline double all_of(double n) {
  return std::max(n, n * n / 16);
}

/// The largest of |difference| / bound over a part.
template <class T>
double worst_ratio(double const* got, double const* expected, part const& of) {
  using A = accumulate_t<T>;
  double const roundings = effective(of.roundings) * roundoff<A>();
  double const of_type = std::is_same_v<T, A> ? 0 : roundoff<T>();
  double const last = of.stores > 0 ? of_type : 0,
               earlier = of.stores > 1 ? (of.stores - 1) * of_type * of.magnitude : 0;
  double worst = 0;
  for (std::int64_t i = 0; i < of.count; ++i) {
    double const in_sums =
        roundings * (of.magnitude == own_value ? std::abs(expected[i]) : of.magnitude);
    double const bound = in_sums + earlier + last * (std::abs(expected[i]) + in_sums + earlier);
    double const error = std::abs(got[i] - expected[i]);
    if (error == 0) continue;
    double const ratio = bound > 0 ? error / bound : INFINITY;
    worst = ratio <= worst ? worst : ratio;  // NaN stays
    if (std::isnan(ratio)) return ratio;
  }
  return worst;
}

/// The worst ratios of every kind of test and part, printed when the program ends.
struct ratio_table {
  struct row {
    double roundings = 0, device = 0, host = 0;
    int comparisons = 0;
  };
  std::map<std::string, row> rows;
  void add(std::string const& key, double roundings, double device, double host) {
    row& of = rows[key];
    of.roundings = std::max(of.roundings, roundings);
    of.device = std::max(of.device, device);
    of.host = std::max(of.host, host);
    ++of.comparisons;
  }
  ~ratio_table() {
    std::printf("%-40s %5s  roundings up to, worst error / bound on device and host\n", "",
                "cases");
    for (auto const& [key, of] : rows)
      std::printf("%-40s %5d %8.0f %7.3f %7.3f\n", key.c_str(), of.comparisons, of.roundings,
                  of.device, of.host);
  }
};
inline ratio_table& ratios() {
  static ratio_table table;
  return table;
}

template <class T>
struct type_is {
  using type = T;
};

/// run(context, type_is<T>) returns all results as doubles, in the order of the parts.
template <class T, class Run>
void compare(std::string const& what, std::vector<part> const& parts, Run const& run) {
  INFO(what << " " << element_name<T>());
  host_context host_64, host_t;
  std::vector<double> const expected = run(host_64, type_is<double>{});
  std::vector<double> const on_host = run(host_t, type_is<T>{});
#ifdef DTM_TEST_ON_GPU
  constexpr double allowed = 2;  // its exponential and roots are off by an ulp more than the host's
  auto const gpu_run = [&] {
    gpu_context ctx;
    return std::vector<double>(run(ctx, type_is<T>{}));
  };
  std::vector<double> const on_device = gpu_run(), again = gpu_run();
  CHECK((on_device.size() == again.size() &&
         std::memcmp(on_device.data(), again.data(), again.size() * sizeof(double)) == 0));
#else
  constexpr double allowed = 1;
  auto const emulated_run = [&](emulation::settings const& how) {
    emulated_context ctx{how};
    return std::vector<double>(run(ctx, type_is<T>{}));
  };
  std::vector<double> const on_device = emulation::run_all_schedules(emulated_run);
#endif
  std::int64_t total = 0;
  for (part const& of : parts) total += of.count;
  REQUIRE(std::int64_t(expected.size()) == total);
  REQUIRE(on_host.size() == expected.size());
  REQUIRE(on_device.size() == expected.size());
  std::int64_t at = 0;
  for (part const& of : parts) {
    double const device = worst_ratio<T>(on_device.data() + at, expected.data() + at, of);
    double const host = worst_ratio<T>(on_host.data() + at, expected.data() + at, of);
    ratios().add(
        what.substr(0, what.find_first_of("0123456789")) + of.name + " " + element_name<T>(),
        of.roundings, device, host);
    INFO(of.name);
    CHECK(device <= allowed);
    CHECK(host <= 1);
    at += of.count;
  }
}

/// Does the fault show, as a broken rule or as other bits than without it?
template <class Run>
bool is_caught(fault const& left_out, Run const& run) {
  std::vector<double> right, wrong;
  emulated_context sound{{emulation::schedule::ascending, 1}};
  run(sound, right);
  try {
    emulated_context broken{{emulation::schedule::ascending, 1}, left_out, true};
    run(broken, wrong);
  } catch (kernel_error const&) {
    return true;
  }
  return right.size() != wrong.size() ||
         std::memcmp(right.data(), wrong.data(), right.size() * sizeof(double)) != 0;
}

inline std::string size_text(char const* name, std::initializer_list<std::int64_t> sizes) {
  std::string text = name;
  for (std::int64_t const size : sizes) text += " " + std::to_string(size);
  return text;
}

}  // namespace dtm::kernel_test
