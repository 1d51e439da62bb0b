#pragma once
// Whole tensors for the serial reference: a list of extents and the values in row-major order.
// Nothing here is sharded, typed by layout or tuned; the reference is read beside the formulas and
// trusted because it is plain.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "dtm/core/errors.hpp"

namespace dtm::serial {

using extent_list = std::vector<std::int64_t>;

inline std::string to_string(extent_list const& extents) {
  std::string text = "(";
  for (std::size_t d = 0; d < extents.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(extents[d]);
  return text + ")";
}

/// A whole tensor. Default constructed it is *absent*: no extents and no value (a bias that does
/// not exist). A scalar has no extents and one value.
template <class T>
struct array {
  extent_list extents;
  std::vector<T> values;

  array() = default;
  explicit array(extent_list extents_, T fill_value = T(0))
      : extents(std::move(extents_)), values(count(extents), fill_value) {}
  array(extent_list extents_, std::vector<T> values_)
      : extents(std::move(extents_)), values(std::move(values_)) {
    if (values.size() != count(extents))
      throw layout_error("an array of extents " + serial::to_string(extents) + " needs " +
                         std::to_string(count(extents)) + " values, given are " +
                         std::to_string(values.size()));
  }

  std::int64_t size() const { return static_cast<std::int64_t>(values.size()); }
  std::int64_t rank() const { return static_cast<std::int64_t>(extents.size()); }
  std::int64_t extent(std::int64_t d) const { return extents[static_cast<std::size_t>(d)]; }
  bool absent() const { return values.empty() && extents.empty(); }

  /// The last extent, and the number of positions that each carry so many values.
  std::int64_t channels() const { return extents.empty() ? 1 : extents.back(); }
  std::int64_t positions() const { return channels() == 0 ? 0 : size() / channels(); }

  void fill(T value) { values.assign(values.size(), value); }

  /// One element by all its indices.
  template <class... Index>
  T& operator()(Index... index) {
    assert(sizeof...(index) == extents.size());
    return *row(index...);
  }
  template <class... Index>
  T const& operator()(Index... index) const {
    assert(sizeof...(index) == extents.size());
    return *row(index...);
  }

  /// The contiguous values behind the given leading indices: row(b, i, j) of a pair are its
  /// channels.
  template <class... Index>
  T* row(Index... index) {
    return values.data() + offset({static_cast<std::int64_t>(index)...});
  }
  template <class... Index>
  T const* row(Index... index) const {
    return values.data() + offset({static_cast<std::int64_t>(index)...});
  }

  /// The channels of position p, counted over all leading dimensions.
  T* position(std::int64_t p) { return values.data() + p * channels(); }
  T const* position(std::int64_t p) const { return values.data() + p * channels(); }

  array& operator+=(array const& other) {
    if (other.extents != extents)
      throw layout_error("cannot add an array of extents " + serial::to_string(other.extents) +
                         " to one of extents " + serial::to_string(extents));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += other.values[i];
    return *this;
  }

 private:
  static std::size_t count(extent_list const& extents) {
    std::size_t product = 1;
    for (std::int64_t extent : extents) product *= static_cast<std::size_t>(extent);
    return product;
  }

  std::ptrdiff_t offset(std::initializer_list<std::int64_t> index) const {
    assert(index.size() <= extents.size());
    std::int64_t result = 0;
    auto extent = extents.begin();
    for (std::int64_t i : index) {
      assert(i >= 0 && i < *extent);
      result = result * *extent++ + i;
    }
    for (; extent != extents.end(); ++extent) result *= *extent;
    return static_cast<std::ptrdiff_t>(result);
  }
};

template <class T>
array<T> zeros_like(array<T> const& a) {
  return array<T>(a.extents);
}

/// Throws a layout_error that names `what` unless the array has exactly these extents.
template <class T>
void expect_extents(array<T> const& a, extent_list const& expected, char const* what) {
  if (a.extents != expected)
    throw layout_error(std::string(what) + " has extents " + to_string(a.extents) +
                       ", expected are " + to_string(expected));
}

/// Throws a layout_error that names `what` unless the array has this number of dimensions.
template <class T>
void expect_rank(array<T> const& a, std::int64_t expected, char const* what) {
  if (a.rank() != expected)
    throw layout_error(std::string(what) + " has " + std::to_string(a.rank()) +
                       " dimensions, expected are " + std::to_string(expected));
}

/// The same extents with another last one.
template <class T>
extent_list with_channels(array<T> const& a, std::int64_t channels) {
  extent_list extents = a.extents;
  if (extents.empty()) throw layout_error("an array without dimensions has no channels");
  extents.back() = channels;
  return extents;
}

}  // namespace dtm::serial
