#pragma once
// A 64-bit hash of bytes: XXH64 with seed 0, as its public specification defines it, so that other
// programs can compute the same number. It finds accidents (a stale copy on one machine, a flipped
// bit), not attacks.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace dtm::io {

/// Hash of the concatenation of everything added.
class content_hash {
 public:
  void add(std::span<std::byte const> bytes) {
    total_ += bytes.size();
    while (!bytes.empty()) {
      if (filled_ == 0 && bytes.size() >= stripe) {
        take_stripe(bytes.data());
        bytes = bytes.subspan(stripe);
        continue;
      }
      std::size_t const count = std::min(stripe - filled_, bytes.size());
      std::memcpy(pending_.data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ == stripe) {
        take_stripe(pending_.data());
        filled_ = 0;
      }
    }
  }

  std::uint64_t value() const {
    std::uint64_t hash = prime5;
    if (total_ >= stripe) {
      hash = std::rotl(lane_[0], 1) + std::rotl(lane_[1], 7) + std::rotl(lane_[2], 12) +
             std::rotl(lane_[3], 18);
      for (std::uint64_t lane : lane_) hash = (hash ^ round(0, lane)) * prime1 + prime4;
    }
    hash += total_;
    std::size_t i = 0;
    for (; i + 8 <= filled_; i += 8)
      hash = std::rotl(hash ^ round(0, load<std::uint64_t>(&pending_[i])), 27) * prime1 + prime4;
    for (; i + 4 <= filled_; i += 4)
      hash = std::rotl(hash ^ (load<std::uint32_t>(&pending_[i]) * prime1), 23) * prime2 + prime3;
    for (; i < filled_; ++i)
      hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(pending_[i]) * prime5), 11) * prime1;
    hash = (hash ^ (hash >> 33)) * prime2;
    hash = (hash ^ (hash >> 29)) * prime3;
    return hash ^ (hash >> 32);
  }

 private:
  static constexpr std::size_t stripe = 32;
  static constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu,
                                 prime3 = 0x165667B19E3779F9u, prime4 = 0x85EBCA77C2B2AE63u,
                                 prime5 = 0x27D4EB2F165667C5u;

  template <class T>
  static std::uint64_t load(std::byte const* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
  static std::uint64_t round(std::uint64_t lane, std::uint64_t input) {
    return std::rotl(lane + input * prime2, 31) * prime1;
  }
  void take_stripe(std::byte const* from) {
    for (std::size_t i = 0; i < 4; ++i)
      lane_[i] = round(lane_[i], load<std::uint64_t>(from + 8 * i));
  }

  std::array<std::uint64_t, 4> lane_ = {prime1 + prime2, prime2, 0, 0 - prime1};
  std::array<std::byte, stripe> pending_{};
  std::size_t filled_ = 0;
  std::uint64_t total_ = 0;
};

inline std::uint64_t hash_of(std::span<std::byte const> bytes) {
  content_hash hash;
  hash.add(bytes);
  return hash.value();
}

/// 16 hexadecimal digits.
inline std::string hash_text(std::uint64_t hash) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace dtm::io
