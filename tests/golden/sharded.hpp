#pragma once
// Sharded modules on golden files: parameters are copied to every rank, tiles are filled from the
// file's whole tensors, results are gathered. Any batch and any number of tokens: where the tokens
// do not divide by the mesh they are padded with zeros, whose upstream gradients are zero, and the
// results are cut to the file's extents.

#include <numeric>
#include <string>
#include <vector>

#include "dtm/testing/full_tensor.hpp"
#include "dtm/testing/subject.hpp"
#include "golden.hpp"
#include "support/backend.hpp"

namespace dtm::golden {

using sharded_context = testing::test_context;
using fp64 = testing::space_of<double>;

/// Thrown on all ranks where this build has no module of the file's sizes.
struct not_here {
  std::string reason;
};

/// How a file's tensors are a module's: in the order of the contract.
struct binding {
  std::vector<whole> inputs;
  std::vector<std::string> outputs;    // names in the file
  std::vector<std::string> gradients;  // of the inputs that have one
};

inline std::int64_t padded_tokens(sharded_context& ctx, std::int64_t n) {
  std::int64_t const parts = std::lcm(ctx.size<cp0>(), ctx.size<cp1>());
  return (n + parts - 1) / parts * parts;
}

/// This rank's tile of a whole tensor, zero beyond its extents.
template <class X>
void fill_from(whole const& values, X& x) {
  using element = typename X::element_type;
  std::vector<element> tile(std::size_t(x.size()));
  testing::each_place<X>(x.global(), x.tile(), [&](testing::place const& p, std::int64_t offset) {
    std::int64_t at = 0;
    bool inside = true;
    for (std::size_t d = 0; d < p.index.size(); ++d) {
      inside = inside && p.index[d] < values.extents[d];
      at = at * values.extents[d] + p.index[d];
    }
    tile[std::size_t(offset)] =
        inside ? testing::to_element<element>(values.values[std::size_t(at)]) : element(0);
  });
  x.copy_from_host(tile.data());
}

inline whole cut(whole const& padded, serial::extent_list const& extents) {
  if (padded.extents.size() != extents.size() || padded.extents == extents) return padded;
  whole result(extents);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    std::int64_t rest = std::int64_t(i), at = 0, stride = 1;
    for (std::size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      at += rest % extents[d] * stride;
      stride *= padded.extents[d];
    }
    result.values[i] = padded.values[std::size_t(at)];
  }
  return result;
}

/// Forward and backward of a module on a file. Collective; the same outcome on every rank.
template <class Module>
outcome run_sharded(sharded_context& ctx, Module& module, case_file const& file,
                    binding const& tensors, std::int64_t samples, std::int64_t n,
                    std::int64_t conformer_count = 1) {
  using subject = testing::subject<Module>;
  auto const bound = extents{bind<batch>(samples), bind<tokens>(padded_tokens(ctx, n)),
                             bind<conformers>(conformer_count)};
  if constexpr (subject::has_parameters)
    each_parameter(module, [&](std::string const& name, auto& parameter) {
      whole const& stored = file.real("param." + name);
      if (stored.size() != parameter.size())
        throw not_here{"param." + name + " has " + std::to_string(stored.size()) +
                       " elements, this build's module " + std::to_string(parameter.size())};
      parameter.copy_from_host(stored.values.data());
    });
  auto x = subject::inputs::make(ctx, bound);
  testing::each_of(x, [&](auto& input, std::size_t i) { fill_from(tensors.inputs[i], input); });
  auto [y, kept] = subject::forward(ctx, module, x);

  auto dy = [&]<class... D>(std::type_identity<std::tuple<D...>>) {
    return std::tuple<D...>{D(ctx, bound)...};
  }(std::type_identity<typename subject::template upstream<sharded_context>>{});
  testing::each_of(dy, [&](auto& upstream, std::size_t i) {
    std::string const name = "grad_output." + tensors.outputs[i];
    if (file.has(name))
      fill_from(file.real(name), upstream);
    else
      ctx.memory().fill_bytes(upstream.data(), 0, std::size_t(upstream.bytes()));
  });
  auto gradients = subject::zero_gradients(ctx, module);
  auto const dx = subject::backward(ctx, module, std::move(kept), dy, gradients);

  outcome result;
  auto const store = [&](std::string const& name, whole values) {
    if (file.has(name)) result[name] = cut(values, file.real(name).extents);
  };
  testing::each_of(y, [&](auto const& output, std::size_t i) {
    store("output." + tensors.outputs[i], testing::full_tensor(ctx, output));
  });
  testing::each_of(dx, [&](auto const& gradient, std::size_t i) {
    store("grad_input." + tensors.gradients[i],
          testing::full_tensor(ctx, testing::complete(ctx, gradient)));
  });
  if constexpr (subject::has_parameters) {
    auto const complete_gradients = synchronise(ctx, std::move(gradients));
    each_parameter(complete_gradients, [&](std::string const& name, auto const& gradient) {
      store("grad_param." + name, testing::full_tensor(ctx, gradient));
    });
  }
  return result;
}

using sharded_runner = std::function<outcome(sharded_context&, case_file const&)>;

/// Modules with two schedules; `by_ring` chooses the one that needs a square mesh.
outcome run_triangle_sharded(sharded_context&, case_file const&, bool is_outgoing, bool by_ring);
outcome run_attention_sharded(sharded_context&, case_file const&, bool is_starting, bool by_ring);
outcome run_noseq_layer_sharded(sharded_context&, case_file const&, bool by_ring);
/// The pair track of a layer with given draws of dropout: what its sequence track does not touch.
outcome run_pair_dropout_sharded(sharded_context&, case_file const&, bool by_ring);
/// The runner of any other module, or an empty function.
sharded_runner find_sharded(std::string const& module);

}  // namespace dtm::golden
