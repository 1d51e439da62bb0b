#pragma once
// One run of a sharded module under the eyes of the harness: draws its tensors, runs both
// directions, checks what concerns this run alone (unchanged inputs, contract, saved bytes,
// replicas) and gathers the rest. parity.hpp compares.

#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dtm/testing/collectives.hpp"
#include "dtm/testing/full_tensor.hpp"
#include "dtm/testing/oracle.hpp"
#include "dtm/testing/report.hpp"
#include "dtm/testing/subject.hpp"

namespace dtm::testing {

enum class mask_values { binary, weights };

/// What a parity run does beside the usual; everything has a default.
struct parity_plan {
  std::string title = "";  // instead of the module's name
  std::uint64_t seed = 1;
  mask_values masks = mask_values::binary;
  std::map<std::string, draw_function> draws = {};  // by input name, instead of the usual draw
  std::set<std::string> may_vanish = {};    // "y", "dx", "norm.bias": zero in exact arithmetic
  std::set<std::string> whole_inputs = {};  // inputs that every rank holds whole
  int roundings = 0;                    // bf16: stored tensors on the longest way, see parity.hpp
  std::int64_t independent_errors = 0;  // fp32: of a tensor, where elements share a rounded factor
  double tolerance = 0;                 // instead of the element type's
  bool repeat = true, padding = true, differences = true;
  std::function<void(std::string const&)> print = [](std::string const& line) {  // on rank 0
    std::puts(line.c_str());
    std::fflush(stdout);
  };
};

namespace detail {

template <class Module>
std::string module_name() {
  if constexpr (requires { Module::tag::name; })
    return Module::tag::name;
  else
    return "module";
}

inline draw_function draw_for(parity_plan const& plan, std::string const& name, bool integer) {
  if (auto const found = plan.draws.find(name); found != plan.draws.end()) return found->second;
  if (integer) return draw_small_integer;
  if (is_mask_name(name))
    return plan.masks == mask_values::binary ? draw_binary_mask : draw_weight_mask;
  return draw_activation;
}

/// Failures of all ranks, in rank order, each kind and sentence once; the same list on every rank.
template <class Context>
std::vector<failure> agree(Context& ctx, std::vector<failure> const& own) {
  constexpr std::size_t limit = 4000;
  auto& all = everyone(ctx);
  std::int64_t const mine = std::int64_t(own.size());
  std::int64_t any = 0;
  comm::call const what{"all_reduce", "failures", 0, comm::call_site::current()};
  all.all_reduce(&mine, &any, 1, comm::reduction::max, what).wait();
  if (any == 0) return {};
  std::string letter;
  for (auto const& f : own)
    if (letter.size() + f.text.size() + 3 < limit)
      letter += char('A' + int(f.about)) + f.text + '\n';
  letter.resize(limit, '\0');
  std::vector<std::uint8_t> letters(limit * std::size_t(all.size()));
  all.all_gather(reinterpret_cast<std::uint8_t const*>(letter.data()), letters.data(),
                 std::int64_t(limit), what)
      .wait();
  std::vector<failure> result;
  for (int rank = 0; rank < all.size(); ++rank) {
    std::string rest(reinterpret_cast<char const*>(letters.data()) + std::size_t(rank) * limit);
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      failure f{check(rest[0] - 'A'), rest.substr(1, end - 1), rank};
      if (std::none_of(result.begin(), result.end(),
                       [&](failure const& g) { return g.about == f.about && g.text == f.text; }))
        result.push_back(std::move(f));
    }
  }
  return result;
}

}  // namespace detail

template <class Context, class Module, class Bound>
class parity_run {
 public:
  using module_subject = subject<Module>;
  using inputs = typename module_subject::inputs;
  using outputs = typename module_subject::outputs;
  using T = typename module_subject::element;
  using upstream_type = typename module_subject::template upstream<Context>;
  static constexpr bool has_parameters = module_subject::has_parameters;

  parity_run(Context& ctx, Module& module, Bound const& bound, parity_plan const& plan)
      : ctx_(ctx),
        module_(module),
        bound_(bound),
        plan_(plan),
        x_(inputs::make(ctx, bound)),
        dy_(make_upstream(std::type_identity<upstream_type>{})),
        input_names_(inputs::names()),
        output_names_(outputs::names()) {
    each_of(dy_, [&](auto const& dy, std::size_t) {
      using layout_type = typename std::remove_cvref_t<decltype(dy)>::layout_type;
      upstream_draws_.push_back(layout_type::any_partial ? draw_cotangent : draw_activation);
    });
    draw_parameters();
    draw_inputs(1);
    draw_upstream(1);
  }

  parity_report report;

  void fail(check about, std::string text) {
    report.failures.push_back({about, std::move(text), everyone(ctx_).rank()});
  }

  Context& ctx() { return ctx_; }
  Module& module() { return module_; }
  parity_plan const& plan() const { return plan_; }
  typename inputs::tensors& x() { return x_; }
  upstream_type& dy() { return dy_; }
  std::vector<std::string> const& input_names() const { return input_names_; }
  std::vector<std::string> const& output_names() const { return output_names_; }

  /// Real inputs are `garbage` times random where they are padded; upstream gradients are zero
  /// there for garbage 0. The usual draws have garbage 1.
  void draw_inputs(double garbage) {
    each_of(x_, [&](auto& x, std::size_t i) {
      fill(x, input_draw(x, i, garbage), key_of(plan_.seed, input_names_[i]));
    });
  }
  void draw_upstream(double garbage) {
    each_of(dy_, [&](auto& dy, std::size_t i) {
      auto const draw =
          garbage == 1 ? upstream_draws_[i] : with_padding(upstream_draws_[i], garbage);
      fill(dy, draw, key_of(plan_.seed, "d_" + output_names_[i]));
    });
  }

  /// Runs both directions and gathers everything; measures and checks what concerns this one run.
  reference measured_run() {
    auto const before_x = all_bytes_of(x_), before_dy = all_bytes_of(dy_);
    auto const before_parameters = parameter_bytes();
    auto& book = ctx_.ledger().entries;
    auto& memory = ctx_.memory();

    std::size_t mark = book.size();
    std::int64_t held = memory.current_bytes;
    memory.restart_peak();
    auto [y, kept] = module_subject::forward(ctx_, module_, x_);
    report.forward_peak_bytes = memory.peak_bytes - held;
    check_collectives<typename Module::contract::forward>("forward", mark,
                                                          report.forward_sent_elements);
    check_saved(kept, memory.current_bytes - held - size_in_bytes(y));

    auto gradients = module_subject::zero_gradients(ctx_, module_);
    mark = book.size();
    held = memory.current_bytes;
    memory.restart_peak();
    auto const dx = module_subject::backward(ctx_, module_, std::move(kept), dy_, gradients);
    report.backward_peak_bytes = memory.peak_bytes - held;
    check_collectives<typename Module::contract::backward>("backward", mark,
                                                           report.backward_sent_elements);

    if (all_bytes_of(x_) != before_x) fail(check::inputs_unmodified, "an input changed");
    if (all_bytes_of(dy_) != before_dy)
      fail(check::inputs_unmodified, "an upstream gradient changed");
    if (parameter_bytes() != before_parameters)
      fail(check::inputs_unmodified, "a parameter changed");
    return gather_all(y, dx, std::move(gradients));
  }

  /// Both directions again, `times` times into the same gradients; nothing is measured.
  reference plain_run(int times = 1) {
    auto gradients = module_subject::zero_gradients(ctx_, module_);
    for (; times > 1; --times) {
      auto [y, kept] = module_subject::forward(ctx_, module_, x_);
      (void)module_subject::backward(ctx_, module_, std::move(kept), dy_, gradients);
    }
    auto [y, kept] = module_subject::forward(ctx_, module_, x_);
    auto const dx = module_subject::backward(ctx_, module_, std::move(kept), dy_, gradients);
    return gather_all(y, dx, std::move(gradients));
  }

  /// Forward alone: the sum over outputs of <upstream, output>, on every rank.
  double loss() {
    auto const [y, kept] = module_subject::forward(ctx_, module_, x_);
    double sum = 0;
    each_of(y, [&](auto const& output, std::size_t i) { sum += dot_with_upstream(output, i); });
    comm::call const what{"all_reduce", "loss", 0, comm::call_site::current()};
    everyone(ctx_).all_reduce(&sum, &sum, 1, comm::reduction::sum, what).wait();
    return sum;
  }

  void check_sharding_active() {
    each_of(x_, [&](auto const& x, std::size_t i) {
      using layout_type = typename std::remove_cvref_t<decltype(x)>::layout_type;
      for (int axis = 0; axis < layout_type::mesh_type::rank; ++axis) {
        int const d = layout_type::sharded_by(axis);
        if (d >= 0 && x.where().sizes[axis] > 1 && x.to_local().extent[d] >= x.global_extent(d))
          fail(check::sharding,
               input_names_[i] + " is whole on axis " + layout_type::mesh_type::axis_name(axis));
      }
      bool sharded = plan_.whole_inputs.count(input_names_[i]) > 0;
      for (int axis = 0; axis < layout_type::mesh_type::rank; ++axis)
        sharded |= layout_type::sharded_by(axis) >= 0;
      if (!sharded) fail(check::sharding, input_names_[i] + " is sharded by no axis of the mesh");
    });
  }

  // ---- the serial side ----
  std::vector<whole_input> whole_inputs() const {
    std::vector<whole_input> all;
    each_of(x_, [&](auto const& x, std::size_t i) {
      bool const integer =
          !floating_element<typename std::remove_cvref_t<decltype(x)>::element_type>;
      all.push_back({input_names_[i], integer,
                     fill_whole(x, input_draw(x, i, 1), key_of(plan_.seed, input_names_[i]))});
    });
    return all;
  }
  std::vector<serial::array<double>> whole_upstream() const {
    std::vector<serial::array<double>> all;
    each_of(dy_, [&](auto const& dy, std::size_t i) {
      all.push_back(
          fill_whole(dy, upstream_draws_[i], key_of(plan_.seed, "d_" + output_names_[i])));
    });
    return all;
  }
  std::vector<named_whole> whole_parameters() const {
    std::vector<named_whole> all;
    if constexpr (has_parameters)
      for (auto const& p : named_parameters(std::as_const(module_))) {
        serial::array<double> values(p.extents);
        auto const read = p.values();
        for (std::size_t i = 0; i < read.size(); ++i) values.values[i] = to_double(read[i]);
        all.push_back({p.name, std::move(values)});
      }
    return all;
  }

 private:
  template <class... D>
  std::tuple<D...> make_upstream(std::type_identity<std::tuple<D...>>) {
    return std::tuple<D...>{D(ctx_, bound_)...};
  }

  template <class X>
  draw_function input_draw(X const&, std::size_t i, double garbage) const {
    constexpr bool integer = !floating_element<typename X::element_type>;
    auto draw = detail::draw_for(plan_, input_names_[i], integer);
    if (integer || garbage == 1 || is_mask_name(input_names_[i])) return draw;
    return with_padding(std::move(draw), garbage);
  }

  void draw_parameters() {
    if constexpr (has_parameters)
      each_parameter(module_, [&](std::string const& name, auto& parameter) {
        using element = typename std::remove_cvref_t<decltype(parameter)>::element_type;
        serial::extent_list extents;
        for (int d = 0; d < std::remove_cvref_t<decltype(parameter)>::rank; ++d)
          extents.push_back(parameter.global_extent(d));
        std::vector<element> values;
        for (std::int64_t i = 0; i < parameter.size(); ++i)
          values.push_back(to_element<element>(
              draw_parameter(name, key_of(plan_.seed, name), extents, std::uint64_t(i))));
        parameter.copy_from_host(values.data());
      });
  }

  std::vector<std::string> parameter_bytes() const {
    std::vector<std::string> all;
    if constexpr (has_parameters)
      each_parameter(std::as_const(module_),
                     [&](std::string const&, auto const& p) { all.push_back(bytes_of(p)); });
    return all;
  }

  template <class Collectives>
  void check_collectives(char const* direction, std::size_t mark, double& sent) {
    auto const& book = ctx_.ledger().entries;
    std::vector<comm::ledger::entry> const ran(book.begin() + std::ptrdiff_t(mark), book.end());
    for (auto const& fault :
         compare_collectives(expected_collectives<typename Context::mesh_type, Collectives>(), ran))
      fail(check::collectives, std::string(direction) + ": " + fault);
    double elements = 0;
    for (auto const& e : ran) elements += double(e.sent_elements);
    comm::call const what{"all_reduce", "volume", 0, comm::call_site::current()};
    everyone(ctx_).all_reduce(&elements, &sent, 1, comm::reduction::sum, what).wait();
    sent /= everyone(ctx_).size();
  }

  template <class Kept>
  void check_saved(Kept const& kept, std::int64_t measured) {
    std::int64_t const formula =
        saved_bytes<typename Module::contract::saved>::at(ctx_.where(), bound_);
    report.saved_bytes = measured;
    if (kept.bytes() != formula || measured != formula)
      fail(check::saved_bytes, "the contract's formula gives " + std::to_string(formula) +
                                   " bytes, the tensors kept have " + std::to_string(kept.bytes()) +
                                   ", the memory account says " + std::to_string(measured));
  }

  template <class Outputs, class Cotangents, class Gradients>
  reference gather_all(Outputs const& y, Cotangents const& dx, Gradients gradients) {
    reference all;
    each_of(y, [&](auto const& output, std::size_t i) {
      all.outputs.push_back(whole(output, output_names_[i]));
    });
    each_of(dx, [&](auto const& cotangent, std::size_t i) {
      all.input_gradients.push_back(whole(complete(ctx_, cotangent), "d" + input_names_[i]));
    });
    if constexpr (has_parameters) {
      auto const complete_gradients = synchronise(ctx_, std::move(gradients));
      each_parameter(complete_gradients, [&](std::string const& name, auto const& gradient) {
        all.parameter_gradients.push_back({name, whole(gradient, name)});
      });
    }
    return all;
  }

  template <class X>
  serial::array<double> whole(X const& x, std::string const& name) {
    auto result = gather(ctx_, x);
    for (int rank : result.deviating)
      fail(check::replicas,
           name + " of rank " + std::to_string(rank) + " differs from its replica");
    return convert<double>(result.values);
  }

  /// The tile's part of <dy, y>; a tile with replicas counts once in all.
  template <class Y>
  double dot_with_upstream(Y const& y, std::size_t i) {
    using layout_type = typename Y::layout_type;
    double replicas = 1;
    for (int axis = 0; axis < layout_type::mesh_type::rank; ++axis)
      if (layout_type::sharded_by(axis) < 0) replicas *= y.where().sizes[axis];
    std::uint64_t const key = key_of(plan_.seed, "d_" + output_names_[i]);
    double sum = 0;
    auto const values = on_host(y);
    each_place<Y>(y.global(), y.tile(), [&](place const& p, std::int64_t offset) {
      sum += to_double(to_element<typename Y::element_type>(upstream_draws_[i](key, p))) *
             to_double(values[offset]);
    });
    return sum / replicas;
  }

  Context& ctx_;
  Module& module_;
  Bound const& bound_;
  parity_plan const& plan_;
  typename inputs::tensors x_;
  upstream_type dy_;
  std::vector<std::string> input_names_, output_names_;
  std::vector<draw_function> upstream_draws_;
};

}  // namespace dtm::testing
