#pragma once
// The ledger of a mesh: one entry for every operation, in order. Tests compare it with the contract
// of a module and with the formulas of the communication volume.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtm::comm {

struct ledger {
  struct entry {
    std::string operation;  // "all_to_all"
    std::string axes;       // "cp0*cp1"
    std::string tensor;     // as the caller named it, may be empty
    std::int64_t count;     // what the caller passed; the elements given, for all_to_all
    std::int64_t bytes_per_element;
    std::int64_t
        sent_elements;  // leave this rank; for all_reduce and broadcast the mean over ranks
    std::int64_t self_elements;  // of an all_to_all or shift: stay here
    char const* file;
    unsigned line;

    std::int64_t sent_bytes() const { return sent_elements * bytes_per_element; }
    friend bool operator==(entry const&, entry const&) = default;
  };

  std::vector<entry> entries;

  void clear() { entries.clear(); }

  std::int64_t sent_bytes() const {
    std::int64_t sum = 0;
    for (auto const& e : entries) sum += e.sent_bytes();
    return sum;
  }
  std::int64_t sent_elements() const {
    std::int64_t sum = 0;
    for (auto const& e : entries) sum += e.sent_elements;
    return sum;
  }
  std::int64_t count(std::string_view operation) const {
    std::int64_t sum = 0;
    for (auto const& e : entries) sum += e.operation == operation;
    return sum;
  }
};

}  // namespace dtm::comm
