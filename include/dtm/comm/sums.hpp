#pragma once
// Reductions over ranks, in the order of the ranks: the same bits by messages and by shared memory, with
// every MPI and every choice of its algorithms (law L13).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dtm/comm/call_site.hpp>

namespace dtm::comm::detail {

/// An all_reduce by shared memory of more bytes is combined in slices, one a rank.
inline constexpr std::size_t worth_sharing = 8192;

template <class T>
void combine_into(T* total, T const* part, std::int64_t count, reduction how) {
  if (how == reduction::sum)
    for (std::int64_t i = 0; i < count; ++i) total[i] = T(total[i] + part[i]);
  else if (how == reduction::max)
    for (std::int64_t i = 0; i < count; ++i) total[i] = total[i] < part[i] ? part[i] : total[i];
  else
    for (std::int64_t i = 0; i < count; ++i) total[i] = part[i] < total[i] ? part[i] : total[i];
}

/// out = the parts combined, first to last; it may be one of them.
template <class T>
void combine(void* out, std::span<std::byte const* const> parts, std::int64_t count,
             reduction how) {
  constexpr std::int64_t most = 1024;
  T total[most];
  for (std::int64_t begin = 0; begin < count; begin += most) {
    std::int64_t const here = std::min(most, count - begin);
    std::copy_n(reinterpret_cast<T const*>(parts[0]) + begin, here, total);
    for (auto const* part : parts.subspan(1))
      combine_into(total, reinterpret_cast<T const*>(part) + begin, here, how);
    std::copy_n(total, here, static_cast<T*>(out) + begin);
  }
}

/// Blocks of so many bytes that lie back to back.
inline std::vector<std::byte const*> blocks_of(std::byte const* first, std::size_t bytes,
                                               int count) {
  std::vector<std::byte const*> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(first + bytes * std::size_t(i));
  return blocks;
}

}  // namespace dtm::comm::detail
