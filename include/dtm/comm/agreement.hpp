#pragma once
// Agreements: values that are the same on every rank because one rank said so (law L9), and errors
// that are everyone's because everyone asked. Both are collective over the world.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dtm/core/type_list.hpp>

#include "world.hpp"

namespace dtm::comm {

class planned_world;  // comm/planned_world.hpp

/// A run-time value that is the same on every rank. Only agree_on makes one, so a loop bound of
/// this type cannot differ; in a plan planned_agreement does.
template <class T>
class agreed {
 public:
  constexpr T const& get() const noexcept { return value_; }
  constexpr operator T const&() const noexcept { return value_; }

 private:
  explicit agreed(T value) : value_(std::move(value)) {}
  template <class U>
  friend agreed<U> agree_on(world&, U, int, call_site);
  template <class U>
  friend agreed<U> planned_agreement(planned_world&, U, call_site);
  T value_;
};

/// The value of `root`, on every rank.
template <class T>
agreed<T> agree_on(world& ranks, T value, int root = 0, call_site where = call_site::current()) {
  static_assert(std::is_trivially_copyable_v<T>,
                "dtm comm: only trivially copyable values are agreed on");
  if (root < 0 || root >= ranks.size())
    throw argument_error("agree_on: root " + std::to_string(root) + " is not one of " +
                         std::to_string(ranks.size()) + " ranks");
  auto& all = *ranks.all();
  auto const what = all.open({"agree_on", "", 0, where}, "world", mpi::name_of<T>(), 1, "", root);
  std::vector<std::byte> mine(sizeof(T));
  std::memcpy(mine.data(), &value, sizeof(T));
  auto const everyone = all.template gather<std::byte>(mine, what);
  std::memcpy(&value, everyone.data() + std::size_t(root) * sizeof(T), sizeof(T));
  all.close(what);
  return agreed<T>(std::move(value));
}

namespace detail {

/// Every rank throws the error of the lowest rank that has one; nothing happens when all are well.
inline void share_failure(world& ranks, failure const& mine, call_site where) {
  struct letter {
    failure_kind kind;
    char text[1020];
  };
  auto& all = *ranks.all();
  auto const what = all.open({"agree", "", 0, where}, "world", "", 0);
  if (ranks.size() == 1) {
    all.close(what);
    if (mine.kind != failure_kind::none) throw_same(mine);
    return;
  }
  std::int64_t const bad =
      mine.kind != failure_kind::none ? std::int64_t(ranks.size() - ranks.rank()) : 0;
  auto const flags = all.gather<std::int64_t>(std::span(&bad, 1), what);
  if (std::count(flags.begin(), flags.end(), 0) == ranks.size()) return all.close(what);

  letter own{mine.kind, ""};
  mine.text.copy(own.text, sizeof own.text - 1);
  auto const letters = all.gather<letter>(std::span(&own, 1), what);
  all.close(what);
  std::vector<int> failed;
  for (int r = 0; r < ranks.size(); ++r)
    if (letters[std::size_t(r)].kind != failure_kind::none) failed.push_back(r);
  letter const& first = letters[std::size_t(failed.front())];
  bool const everywhere = int(failed.size()) == ranks.size() &&
                          std::all_of(letters.begin(), letters.end(), [&](letter const& l) {
                            return std::strcmp(l.text, first.text) == 0;
                          });
  std::string text = first.text;
  if (!everywhere) text += " (" + ranks_text(failed) + " of " + std::to_string(ranks.size()) + ")";
  throw_same({first.kind, failed.front(), text});
}

}  // namespace detail

/// If `ok` is false on any rank, all ranks throw dtm::error with the text of the lowest such rank.
inline void agree(world& ranks, bool ok, std::string const& text,
                  call_site where = call_site::current()) {
  detail::share_failure(ranks, ok ? failure{} : failure{failure_kind::plain, ranks.rank(), text},
                        where);
}

/// Runs `risky`, which may fail on one rank and must not communicate; all ranks then return, or all
/// throw the same error of the lowest rank that failed. The world stays usable.
template <std::invocable F>
auto agree(world& ranks, F&& risky, call_site where = call_site::current())
    -> std::invoke_result_t<F> {
  using result = std::invoke_result_t<F>;
  failure mine;
  if constexpr (std::is_void_v<result>) {
    try {
      std::forward<F>(risky)();
    } catch (...) {
      mine = current_failure(ranks.rank());
    }
    detail::share_failure(ranks, mine, where);
  } else {
    std::optional<result> value;
    try {
      value.emplace(std::forward<F>(risky)());
    } catch (...) {
      mine = current_failure(ranks.rank());
    }
    detail::share_failure(ranks, mine, where);
    return std::move(*value);
  }
}

// ---- the same for the planner, defined in comm/planned_world.hpp ----
/// Refused: of ranks that have no values none can say one. `planned_agreement` names it.
template <class T>
agreed<T> agree_on(planned_world&, T, int = 0, call_site = call_site::current()) {
  static_assert(
      dtm::detail::false_for<T>,
      "dtm planner: a planned tensor has no values, so there is none to agree on; say for "
      "which value to plan: comm::planned_agreement(world, value)");
  __builtin_unreachable();
}
inline void agree(planned_world& ranks, bool ok, std::string const& text,
                  call_site where = call_site::current());
template <std::invocable F>
auto agree(planned_world& ranks, F&& risky, call_site where = call_site::current())
    -> std::invoke_result_t<F>;

}  // namespace dtm::comm
