#pragma once
// The same work measured on a context of the backend under test and on a planned one.

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "dtm/planned.hpp"
#include "support/backend.hpp"
#include "support/catch.hpp"
#include "support/meshes.hpp"
#include "support/runner.hpp"

namespace dtm::testing {

using planned_context = context<planned<device>, grid>;

/// A plan that knows of the context what its options cannot say.
inline planned_context::options as_planned(test_context& ctx) {
  planned_context::options options;
  (void)ctx;
#if DTM_TEST_IS(DTM_TEST_BACKEND) == 1
  options.instructions = ctx.device().instructions();
  options.transport = test_options().transport;
  options.ranks_per_node = test_options().ranks_per_node;
#elif DTM_TEST_IS(DTM_TEST_BACKEND) == 3
  options.staged_mpi = ctx.device().chosen().transport == gpu::transport::staged_mpi;
#endif
  return options;
}

/// What a context was asked for, piece by piece.
template <class Context>
class costs {
 public:
  explicit costs(Context& ctx) : ctx_(ctx) {}

  template <class Work>
  void add(std::string name, Work const& work) {
    entries.push_back({std::move(name), measure(ctx_, work)});
  }
  Context& ctx() { return ctx_; }

  struct entry {
    std::string name;
    measurement cost;
  };
  std::vector<entry> entries;

 private:
  Context& ctx_;
};

/// One line for every number in which a plan differs from the run.
template <class Run, class Plan>
std::vector<std::string> differences(Run const& run, Plan const& plan) {
  std::vector<std::string> found;
  auto const compare = [&](std::string const& what, std::int64_t ran, std::int64_t planned) {
    if (ran != planned)
      found.push_back(what + ": run " + std::to_string(ran) + ", plan " + std::to_string(planned));
  };
  compare("pieces", std::int64_t(run.entries.size()), std::int64_t(plan.entries.size()));
  for (std::size_t i = 0; i < run.entries.size() && i < plan.entries.size(); ++i) {
    auto const& name = run.entries[i].name;
    auto const &r = run.entries[i].cost, &p = plan.entries[i].cost;
    compare(name + ", peak of tensors and scratch", r.peak.peak_bytes, p.peak.peak_bytes);
    compare(name + ", peak of communication", r.peak.communication_bytes,
            p.peak.communication_bytes);
    compare(name + ", peak of both", r.peak.together_bytes, p.peak.together_bytes);
    compare(name + ", kept", r.kept_bytes, p.kept_bytes);
    compare(name + ", bytes sent", r.sent_bytes(), p.sent_bytes());
    if (!(r.volumes == p.volumes)) found.push_back(name + ": other collectives");
  }
  return found;
}

/// And entries of the ledgers, but for call sites.
inline std::vector<std::string> ledger_differences(comm::ledger const& run,
                                                   comm::ledger const& plan) {
  std::vector<std::string> found;
  if (run.entries.size() != plan.entries.size())
    found.push_back("run has " + std::to_string(run.entries.size()) + " operations, plan " +
                    std::to_string(plan.entries.size()));
  for (std::size_t i = 0; i < run.entries.size() && i < plan.entries.size(); ++i) {
    auto const &r = run.entries[i], &p = plan.entries[i];
    if (r.operation != p.operation || r.axes != p.axes || r.tensor != p.tensor ||
        r.count != p.count || r.sent_bytes() != p.sent_bytes() ||
        r.self_elements != p.self_elements)
      found.push_back("operation " + std::to_string(i) + ": run " + r.operation + " of " +
                      r.tensor + ", plan " + p.operation + " of " + p.tensor);
  }
  return found;
}

/// work(costs) on both; all that differs.
template <class Work>
std::vector<std::string> plan_against_run(std::vector<int> const& sizes, Work const& work) {
  test_context ctx(world(), sizes, 0, test_options());
  costs<test_context> run(ctx);
  work(run);
  comm::planned_world as_this(ranks(), rank());
  planned_context planned(as_this, sizes, 0, as_planned(ctx));
  costs<planned_context> plan(planned);
  work(plan);
  auto found = differences(run, plan);
  for (auto& line : ledger_differences(ctx.ledger(), planned.ledger()))
    found.push_back(std::move(line));
  if (rank() == 0)
    for (auto const& [name, cost] : run.entries)
      std::printf("%dx%dx%d %-52s peak %9lld + %9lld  kept %9lld  sent %8lld in %lld\n", sizes[0],
                  sizes[1], sizes[2], name.c_str(), static_cast<long long>(cost.peak.peak_bytes),
                  static_cast<long long>(cost.peak.communication_bytes),
                  static_cast<long long>(cost.kept_bytes),
                  static_cast<long long>(cost.sent_bytes()),
                  static_cast<long long>(cost.collectives()));
  return found;
}

template <class Work>
void plan_is_run(Work const& work) {
  for (auto const& sizes : meshes()) {
    auto const found = plan_against_run(sizes, work);
    for (auto const& line : found) UNSCOPED_INFO(line);
    CHECK(found.empty());
  }
}

/// A tensor of zeros, made with a call that a plan may make as well.
template <class X, class Context, class Extents>
X zero_tensor(Context& ctx, Extents const& bound) {
  X x(ctx, bound);
  ctx.memory().fill_bytes(x.data(), 0, std::size_t(x.bytes()));
  return x;
}

}  // namespace dtm::testing
