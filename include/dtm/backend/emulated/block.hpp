#pragma once
// The block context of kernels/block.hpp on the CPU. Shared arrays are handed out as proxies whose
// elements record who reads and writes them; barriers hand over to the other fibers of the block.
// Where a GPU would compute something arbitrary, the launch ends with a sentence instead: see
// docs/kernels.md for what is found.
//
// An element is a proxy too: write `float const v = a[i];`, not `auto`.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "dtm/backend/emulated/scheduler.hpp"
#include "dtm/kernels/block.hpp"

namespace dtm::emulation {

namespace detail {

inline void check_index(scheduler& run, shadowed_array& array, std::int64_t i) {
  if (i >= 0 && i < array.count) return;
  run.record("touches element " + std::to_string(i) + " of shared array " + array.tag() +
             ", which has " + std::to_string(array.count));
  run.abandon();
}

inline std::string conflict_text(scheduler const& run, shadowed_array const& array, int i,
                                 conflict const& found) {
  std::string const element = "element " + std::to_string(i) + " of shared array " + array.tag();
  std::string const threads =
      "threads " + std::to_string(found.other) + " and " + std::to_string(run.thread());
  std::string const interval = " in barrier interval " + std::to_string(run.barrier_interval());
  std::string const remedy = found.other / kernels::warp_size == run.thread() / kernels::warp_size
                                 ? "; sync_warp() or sync() belongs between"
                                 : "; sync() belongs between";
  switch (found.kind) {
    case conflict_kind::both_write:
      return "write/write race on " + element + ": " + threads + interval + remedy;
    case conflict_kind::write_after_read:
      return "read/write race on " + element + ": " + threads + " (it reads, this one writes)" +
             interval + remedy;
    case conflict_kind::read_after_write:
      return "read/write race on " + element + ": " + threads + " (it writes, this one reads)" +
             interval + remedy;
    case conflict_kind::unwritten:
      return "reads " + element + ", which no thread of the block has written" + interval;
    default:
      return "touches " + element + interval + " while an asynchronous copy of thread " +
             std::to_string(found.other) + " may still fill it; wait() and sync() come first";
  }
}

inline void check_conflict(scheduler& run, shadowed_array const& array, int i,
                           conflict const& found) {
  if (found.kind == conflict_kind::none) return;
  run.record(conflict_text(run, array, i, found));
  run.abandon();
}

/// &a[i] of a shared array.
template <class T>
struct shared_pointer {
  shadowed_array* array;
  int index;
};

/// a[i] of a shared array.
template <class T>
class shared_element {
 public:
  shared_element(scheduler& run, shadowed_array& array, int index)
      : run_(&run), array_(&array), index_(index) {}
  shared_element(shared_element const&) = default;

  operator T() const {
    check_conflict(*run_, *array_, index_, cell().read(run_->now()));
    T value;
    std::memcpy(&value, array_->at(index_), sizeof(T));
    return value;
  }
  template <class U>  // an explicit conversion of T, such as bf16 to float
  explicit operator U() const
      requires(!std::is_arithmetic_v<T> && requires(T const& v) { static_cast<U>(v); }) {
    T const value = *this;
    return static_cast<U>(value);
  }
  auto operator[](int i) const requires requires(T const& v) { v[i]; }
  {
    T const value = *this;
    return value[i];
  }

  shared_element& operator=(T const& value) {
    check_conflict(*run_, *array_, index_, cell().write(run_->now()));
    std::memcpy(array_->at(index_), &value, sizeof(T));
    return *this;
  }
  shared_element& operator=(shared_element const& other) {
    T const value = other;
    return *this = value;
  }
  shared_element& operator+=(T const& value) { return *this = T(T(*this) + value); }
  shared_element& operator-=(T const& value) { return *this = T(T(*this) - value); }
  shared_element& operator*=(T const& value) { return *this = T(T(*this) * value); }

  shared_pointer<T> operator&() const { return {array_, index_}; }

 private:
  shadow_cell& cell() const { return array_->cells[std::size_t(index_)]; }

  scheduler* run_;
  shadowed_array* array_;
  int index_;
};

template <class T>
struct shared_array {
  scheduler* run;
  shadowed_array* array;

  shared_element<T> operator[](std::int64_t i) const {
    check_index(*run, *array, i);
    return {*run, *array, int(i)};
  }
};

template <class T, int N, class Tag>
struct shared_key {
  static inline char here = 0;  // its address
};

}  // namespace detail

class block {
  using site = detail::site;
  using operation = detail::operation;

 public:
  explicit block(detail::scheduler& run)
      : run_(&run),
        index_(run.block()),
        grid_(run.blocks()),
        thread_(run.thread()),
        size_(run.threads()) {}

  std::int64_t index() const { return index_; }
  std::int64_t grid() const { return grid_; }
  int thread() const { return thread_; }
  int size() const { return size_; }
  int lane() const { return thread_ % kernels::warp_size; }
  int warp() const { return thread_ / kernels::warp_size; }
  std::int64_t first() const { return index_ * size_ + thread_; }
  std::int64_t stride() const { return grid_ * size_; }

  void sync(call_site where = call_site::current()) {
    run_->wait_block({operation::sync, where}, false);
  }
  void sync_warp(call_site where = call_site::current()) {
    run_->wait_warp({operation::sync_warp, where}, true);
  }
  bool any(bool value, call_site where = call_site::current()) {
    return run_->wait_block({operation::any, where}, value);
  }

  template <class T, int N, class Tag>
  detail::shared_array<T> shared() {
    static_assert(std::is_trivially_copyable_v<T>, "dtm kernel: shared memory holds plain data");
    static_assert(alignof(T) <= 16, "dtm kernel: shared memory is aligned to 16 bytes");
    return {run_, &run_->shared(&detail::shared_key<T, N, Tag>::here, &detail::type_name<Tag>, N,
                                sizeof(T))};
  }

  template <class T>
  T shuffle_xor(T value, int mask, call_site where = call_site::current()) {
    if (mask < 0 || mask >= kernels::warp_size) refuse_lane("shuffle_xor", mask);
    return exchange(value, lane() ^ mask, {operation::shuffle_xor, where});
  }
  template <class T>
  T shuffle_down(T value, int delta, call_site where = call_site::current()) {
    if (delta < 0 || delta >= kernels::warp_size) refuse_lane("shuffle_down", delta);
    int const from = lane() + delta;
    return exchange(value, from < kernels::warp_size ? from : lane(),
                    {operation::shuffle_down, where});
  }

  template <class T>
  T shuffle_xor(detail::shared_element<T> const& a, int mask,
                call_site where = call_site::current()) {
    return shuffle_xor(T(a), mask, where);
  }
  template <class T>
  T shuffle_down(detail::shared_element<T> const& a, int delta,
                 call_site where = call_site::current()) {
    return shuffle_down(T(a), delta, where);
  }

  template <class T>
  void atomic_add(T* p, std::type_identity_t<T> value) {
    *p = sum_of(*p, value);
  }
  template <class T>
  void atomic_add(detail::shared_pointer<T> p, std::type_identity_t<T> value) {
    detail::check_conflict(*run_, *p.array, p.index, cell(p, 0).update_atomically(run_->now()));
    T old;
    std::memcpy(&old, p.array->at(p.index), sizeof(T));
    old = sum_of(old, value);
    std::memcpy(p.array->at(p.index), &old, sizeof(T));
  }

  template <int N, class T>
  kernels::vector<std::remove_const_t<T>, N> load(T* p) {
    check_vector<T, N>("load", reinterpret_cast<std::uintptr_t>(p));
    kernels::vector<std::remove_const_t<T>, N> value;
    for (int i = 0; i < N; ++i) value[i] = p[i];
    return value;
  }
  template <class T, int N>
  void store(T* p, kernels::vector<T, N> const& value) {
    check_vector<T, N>("store", reinterpret_cast<std::uintptr_t>(p));
    for (int i = 0; i < N; ++i) p[i] = value[i];
  }
  template <int N, class T>
  kernels::vector<T, N> load(detail::shared_pointer<T> p) {
    check_shared<T, N>("load", p);
    kernels::vector<T, N> value;
    for (int i = 0; i < N; ++i) value[i] = detail::shared_element<T>(*run_, *p.array, p.index + i);
    return value;
  }
  template <class T, int N>
  void store(detail::shared_pointer<T> p, kernels::vector<T, N> const& value) {
    check_shared<T, N>("store", p);
    for (int i = 0; i < N; ++i) detail::shared_element<T>(*run_, *p.array, p.index + i) = value[i];
  }

  template <int N, class T>
  void copy_async(detail::shared_array<T> const& a, std::int64_t i, T const* p) {
    static_assert(N * sizeof(T) == 4 || N * sizeof(T) == 8 || N * sizeof(T) == 16,
                  "dtm kernel: an asynchronous copy moves 4, 8 or 16 bytes");
    detail::check_index(*run_, *a.array, i);
    detail::shared_pointer<T> const to{a.array, int(i)};
    check_shared<T, N>("copy_async", to);
    check_vector<T, N>("copy_async", reinterpret_cast<std::uintptr_t>(p));
    for (int j = 0; j < N; ++j)
      detail::check_conflict(*run_, *a.array, int(i) + j, cell(to, j).begin_copy(run_->now()));
    auto& mine = run_->copies();
    mine.copies.push_back({a.array, int(i), N, p, mine.batch});
  }
  void commit() { ++run_->copies().batch; }
  template <int Pending>
  void wait() {
    auto& mine = run_->copies();
    std::size_t kept = 0;
    for (detail::pending_copy const& copy : mine.copies)
      if (copy.batch < mine.batch - Pending)
        complete(copy);
      else
        mine.copies[kept++] = copy;
    mine.copies.resize(kept);
  }

  /// Each element of d is the sum d + a[0] b[0] + a[1] b[1] + ..., from left to right in float.
  void mma(kernels::mma_tile::sum& d, kernels::mma_tile::left const& a,
           kernels::mma_tile::right const& b, call_site where = call_site::current()) {
    using tile = kernels::mma_tile;
    auto& factors = run_->tiles(run_->exchange());
    for (int i = 0; i < 8; ++i)
      factors.a[tile::a_row(lane(), i)][tile::a_inner(lane(), i)] = float(a[i]);
    for (int i = 0; i < 4; ++i)
      factors.b[tile::b_inner(lane(), i)][tile::b_column(lane(), i)] = float(b[i]);
    run_->wait_warp({operation::mma, where}, false);
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < tile::inner; ++k)
        d.element[i] +=
            factors.a[tile::d_row(lane(), i)][k] * factors.b[k][tile::d_column(lane(), i)];
  }

  float exp(float x) const { return std::exp(x); }
  double exp(double x) const { return std::exp(x); }
  float log(float x) const { return std::log(x); }
  double log(double x) const { return std::log(x); }
  float rsqrt(float x) const { return 1 / std::sqrt(x); }
  double rsqrt(double x) const { return 1 / std::sqrt(x); }

 private:
  template <class T>
  T exchange(T const& value, int from, site const& at) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= detail::most_exchanged_bytes &&
                      (sizeof(T) & (sizeof(T) - 1)) == 0,
                  "dtm kernel: a shuffle moves plain values of 1, 2, 4, 8 or 16 bytes");
    auto const turn = run_->exchange();
    std::memcpy(run_->exchanged(turn, thread_), &value, sizeof(T));
    run_->wait_warp(at, false);
    T other;
    std::memcpy(&other, run_->exchanged(turn, thread_ - lane() + from), sizeof(T));
    return other;
  }
  void refuse_lane(char const* operation, int argument) {
    run_->record(std::string(operation) + "(value, " + std::to_string(argument) +
                 ") leaves the warp; 0 to 31 is possible");
    run_->abandon();
  }

  template <class T>
  static T sum_of(T a, T b) {
    static_assert(std::is_integral_v<T> && sizeof(T) >= 4,
                  "dtm kernel: atomic_add is for integers of 4 or 8 bytes; the order of a "
                  "floating-point sum would change its bits");
    using bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;  // may wrap
    return T(bits(a) + bits(b));
  }

  template <class T>
  static shadow_cell& cell(detail::shared_pointer<T> p, int offset) {
    return p.array->cells[std::size_t(p.index + offset)];
  }
  template <class T, int N>
  void check_vector(char const* operation, std::uintptr_t address) {
    constexpr std::size_t bytes = N * sizeof(T);
    static_assert(bytes <= 16 && (bytes & (bytes - 1)) == 0,
                  "dtm kernel: what moves at once is 1, 2, 4, 8 or 16 bytes");
    if (address % bytes == 0) return;
    run_->record(std::string(operation) + " of " + std::to_string(bytes) + " bytes, " +
                 std::to_string(address % bytes) + " off their alignment");
    run_->abandon();
  }
  template <class T, int N>
  void check_shared(char const* operation, detail::shared_pointer<T> p) {
    detail::check_index(*run_, *p.array, std::int64_t(p.index) + N - 1);
    check_vector<T, N>(operation, std::uintptr_t(p.index) * sizeof(T));
  }
  void complete(detail::pending_copy const& copy) {
    std::memcpy(copy.array->at(copy.index), copy.source,
                std::size_t(copy.elements) * copy.array->element_bytes);
    for (int i = 0; i < copy.elements; ++i)
      copy.array->cells[std::size_t(copy.index + i)].end_copy(run_->now());
  }

 private:
  detail::scheduler* run_;
  std::int64_t index_, grid_;
  int thread_, size_;
};

}  // namespace dtm::emulation
