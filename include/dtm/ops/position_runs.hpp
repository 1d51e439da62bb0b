#pragma once
// Some positions of every sequence as a tensor's data of their own, and back. Local.

#include <cstdint>

#include "dtm/comm/exchange.hpp"
#include "dtm/core/tile.hpp"

namespace dtm {

/// Of sequences of `count` parts of `step` positions each: positions [first, first + length) of every part.
struct position_runs {
  std::int64_t count, step, first, length;
  constexpr std::int64_t size() const { return count * length; }
};

namespace detail {

inline box<4> box_of(position_runs const& runs, std::int64_t sequences, std::int64_t width,
                     std::int64_t first, std::int64_t length) {
  box<4> result;
  std::int64_t const end[] = {sequences, runs.count, first + length, width};
  for (int d = 0; d < 4; ++d) result.end[d] = end[d];
  result.begin[2] = first;
  return result;
}
inline box<4> whole_box(position_runs const& runs, std::int64_t sequences, std::int64_t width) {
  return box_of(runs, sequences, width, 0, runs.step);
}
inline box<4> part_box(position_runs const& runs, std::int64_t sequences, std::int64_t width) {
  return box_of(runs, sequences, width, runs.first, runs.length);
}

}  // namespace detail

/// part [sequences, size, width] = the runs of whole [sequences, count step, width].
template <class Context, class T>
void take_positions(Context& ctx, position_runs const& runs, std::int64_t sequences,
                    std::int64_t width, T const* whole, T* part) {
  comm::box_copy<typename Context::device_type>::pack(
      ctx, whole, detail::whole_box(runs, sequences, width),
      detail::part_box(runs, sequences, width), part);
}
/// The runs of whole = part.
template <class Context, class T>
void put_positions(Context& ctx, position_runs const& runs, std::int64_t sequences,
                   std::int64_t width, T const* part, T* whole) {
  comm::box_copy<typename Context::device_type>::unpack(ctx, part, whole,
                                                        detail::whole_box(runs, sequences, width),
                                                        detail::part_box(runs, sequences, width));
}
/// The runs of whole += part.
template <class Context, class T>
void add_positions(Context& ctx, position_runs const& runs, std::int64_t sequences,
                   std::int64_t width, T const* part, T* whole) {
  comm::box_copy<typename Context::device_type>::unpack_add(
      ctx, part, whole, detail::whole_box(runs, sequences, width),
      detail::part_box(runs, sequences, width));
}

}  // namespace dtm
