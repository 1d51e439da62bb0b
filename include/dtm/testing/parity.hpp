#pragma once
// The parity harness: runs a sharded module beside its serial oracle and checks by itself what a
// test must not forget. For a module of one's own as for the library's:
//
//   context<host, grid> ctx(world, {1, 2, 3});
//   transition<space<double, grid>, 8, 16> module(ctx);
//   serial_oracle const oracle([](auto t) { return serial::transition<decltype(t)>(8, 16); });
//   auto const bound = extents{bind<batch>(1), bind<tokens>(12)};
//   auto const report = testing::parity(ctx, module, oracle, bound);
//
// Collective over the context's mesh; the report is the same on all ranks; rank 0 prints one line.
// What is checked:
//
//   outputs, input gradients (complete) and every parameter's gradient (synchronised) against fp64
//   serial names, order and extents of the parameters; none stays at its zero or one
//   one random upstream gradient per output; uneven values, masks and scales; padding, masked rows
//   sharding is active; inputs, parameters and upstream gradients keep their bits
//   replicas are equal bit for bit; nothing compared is all zero
//   the collectives of the contract are the ones that ran, forward and backward
//   saved bytes by the contract's formula, by the tensors kept, and by the memory account
//   the same run gives the same bits; parameter gradients add, cotangents assign
//   padding filled with other garbage gives the same bits elsewhere
//   central differences of the sharded module along a random direction of every input and parameter
//
// Tolerances: fp64 scaled error 1e-12, differences 1e-7; fp32 scaled error 1e-5, no upward shift of
// the error quantiles against serial fp32 (report.hpp), differences 1e-2; bf16 storage:
// plan.roundings * 2^-8, one unit roundoff of bf16 for every tensor stored on the longest way from
// an input to a result (sums themselves are fp32).

#include "dtm/testing/parity_run.hpp"

namespace dtm::testing {

namespace detail {

template <class T>
double tolerance_for(parity_plan const& plan) {
  if (plan.tolerance > 0) return plan.tolerance;
  if constexpr (std::is_same_v<T, double>)
    return 1e-12;
  else if constexpr (std::is_same_v<T, float>)
    return 1e-5;
  else
    return plan.roundings * 0x1p-8;
}

/// The tensors of two runs side by side: visit(list of the report, name, a, b).
template <class Run, class Visit>
void each_pair(Run& run, reference const& a, reference const& b, Visit visit) {
  auto const side_by_side = [&](auto const& left, auto const& right, auto& list, char const* what,
                                auto const& name_of_one, auto const& values) {
    if (left.size() != right.size())
      run.fail(check::values, std::string(what) + ": " + std::to_string(left.size()) +
                                  " from the sharded module, " + std::to_string(right.size()) +
                                  " serially");
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
      visit(list, name_of_one(i), values(left[i]), values(right[i]));
  };
  auto const plain = [](serial::array<double> const& v) -> auto const& {
    return v;
  };
  auto const inside = [](named_whole const& v) -> auto const& {
    return v.values;
  };
  side_by_side(
      a.outputs, b.outputs, run.report.outputs, "outputs",
      [&](std::size_t i) { return run.output_names()[i]; }, plain);
  side_by_side(
      a.input_gradients, b.input_gradients, run.report.input_gradients, "input gradients",
      [&](std::size_t i) { return "d" + run.input_names()[i]; }, plain);
  side_by_side(
      a.parameter_gradients, b.parameter_gradients, run.report.parameter_gradients,
      "parameter gradients", [&](std::size_t i) { return a.parameter_gradients[i].name; }, inside);
}

template <class Run, class Oracle>
void compare_with_oracle(Run& run, Oracle const& oracle, reference const& sharded) {
  using T = typename Run::T;
  using integers = typename Run::inputs::integers;
  auto const parameters = run.whole_parameters();
  auto const inputs = run.whole_inputs();
  auto const upstream = run.whole_upstream();
  std::string complaint;
  reference const expected =
      oracle.template run<double, integers>(parameters, inputs, upstream, complaint);
  reference in_fp32;
  if constexpr (std::is_same_v<T, float>)
    in_fp32 = oracle.template run<float, integers>(parameters, inputs, upstream, complaint);
  if (!complaint.empty()) return run.fail(check::parameter_names, complaint);

  std::size_t at = 0;
  std::vector<serial::array<double> const*> serial_fp32;
  for (auto const& v : in_fp32.outputs) serial_fp32.push_back(&v);
  for (auto const& v : in_fp32.input_gradients) serial_fp32.push_back(&v);
  for (auto const& v : in_fp32.parameter_gradients) serial_fp32.push_back(&v.values);
  error_sample small;
  double const tolerance = tolerance_for<T>(run.plan());
  each_pair(run, sharded, expected,
            [&](auto& list, std::string const& name, auto const& value, auto const& wanted) {
              comparison c{name, scaled_error(value, wanted), tolerance, largest(wanted)};
              bool const zero = !(c.largest > vanishing);
              if (zero && run.plan().may_vanish.count(name) == 0)
                run.fail(check::all_zero, name + " is zero everywhere; nothing is compared");
              if (!(c.error <= tolerance))
                run.fail(check::values, name + " is off by " + number(c.error) + ", tolerance " +
                                            number(tolerance));
              if (at < serial_fp32.size() && value.extents == wanted.extents && !zero) {
                if (wanted.values.size() < smallest_sample) {
                  small.add(value, *serial_fp32[at], wanted, c.largest);
                } else {
                  error_sample sample;
                  sample.add(value, *serial_fp32[at], wanted);
                  run.report.shifts.push_back(
                      compare_quantiles(name, std::move(sample), run.plan().independent_errors));
                }
              }
              ++at;
              list.push_back(std::move(c));
            });
  if (!small.size.empty())
    run.report.shifts.push_back(compare_quantiles("small tensors", std::move(small)));
  for (auto const& shift : run.report.shifts) {
    if (!shift.upward) continue;
    std::string text = shift.name + ": error quantiles over serial fp32";
    for (std::size_t q = 0; q < shift.ratio.size(); ++q)
      text += " " + ratio(shift.ratio[q]) + " (allowed " + ratio(shift.allowed[q]) + ")";
    run.fail(check::precision, text);
  }
}

/// The same bits again; gradients of parameters add, cotangents assign.
template <class Run>
void check_repetition(Run& run, reference const& first) {
  each_pair(run, run.plain_run(), first,
            [&](auto&, std::string const& name, auto const& again, auto const& before) {
              if (again.values != before.values)
                run.fail(check::determinism, name + " has other bits in a second run");
            });
  double const tolerance = std::is_same_v<typename Run::T, double> ? 1e-12 : 1e-5;
  each_pair(run, run.plain_run(2), first,
            [&](auto& list, std::string const& name, auto const& twice, auto const& once) {
              if (&list != &run.report.parameter_gradients) {
                if (twice.values != once.values)
                  run.fail(check::gradients_add,
                           name + " depends on what the gradients held before");
                return;
              }
              serial::array<double> doubled = once;
              for (double& value : doubled.values) value *= 2;
              if (!(scaled_error(twice, doubled) <= tolerance))
                run.fail(check::gradients_add, name + " is not added to what is there");
            });
}

inline bool same_outside_padding(std::span<dimension_kind const> kind,
                                 serial::array<double> const& a, serial::array<double> const& b) {
  serial::extent_list index(a.extents.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    std::int64_t rest = std::int64_t(i);
    for (std::size_t d = index.size(); d-- > 0; rest /= a.extents[d])
      index[d] = rest % a.extents[d];
    if (!(a.values[i] == b.values[i]) && !is_padding({index, a.extents, kind, i})) return false;
  }
  return true;
}

template <class... X>
std::vector<std::span<dimension_kind const>> kinds_of_all(std::tuple<X...>*) {
  return {std::span<dimension_kind const>(kinds<X>)...};
}

/// Two fills of the padding; upstream gradients are zero there, as they are behind a masked loss.
template <class Run>
void check_padding(Run& run) {
  run.draw_upstream(0);
  run.draw_inputs(8);
  auto const one = run.plain_run();
  run.draw_inputs(1000);
  auto const other = run.plain_run();
  run.draw_inputs(1);
  run.draw_upstream(1);
  auto const of_outputs = kinds_of_all(static_cast<typename Run::outputs::tensors*>(nullptr));
  auto const of_inputs = kinds_of_all(static_cast<typename Run::inputs::tensors*>(nullptr));
  std::size_t output = 0, input = 0;
  each_pair(
      run, one, other, [&](auto& list, std::string const& name, auto const& a, auto const& b) {
        bool const same =
            &list == &run.report.outputs ? same_outside_padding(of_outputs[output++], a, b)
            : &list == &run.report.input_gradients ? same_outside_padding(of_inputs[input++], a, b)
                                                   : a.values == b.values;
        if (!same) run.fail(check::padding, name + " depends on what the padding holds");
      });
}

/// d loss / d step at 0 from four points, error of order step^4.
template <class F>
double central_difference(double step, F&& loss) {
  return (8 * (loss(step) - loss(-step)) - (loss(2 * step) - loss(-2 * step))) / (12 * step);
}

template <class Run>
void check_differences(Run& run, reference const& gradients) {
  using T = typename Run::T;
  constexpr double step = std::is_same_v<T, double> ? 2e-3 : 5e-2;
  constexpr double tolerance = std::is_same_v<T, double> ? 1e-7 : 1e-2;
  auto const judge = [&](std::string const& name, serial::array<double> const& gradient,
                         double length, std::uint64_t key, auto&& loss) {
    double along = 0, square = 0;
    for (std::size_t i = 0; i < gradient.values.size(); ++i) {
      along += gradient.values[i] * uniform(key, i) / length;
      square += gradient.values[i] * gradient.values[i];
    }
    double const measured = central_difference(step, loss), size = std::sqrt(square);
    comparison c{name, std::abs(measured - along) / (size > vanishing ? size : 1), tolerance, size};
    if (!(c.error <= tolerance))
      run.fail(check::differences, name + ": central differences give " + number(measured) +
                                       ", the gradient " + number(along) + ", scaled error " +
                                       number(c.error));
    run.report.differences.push_back(std::move(c));
  };
  auto const length_of = [](std::uint64_t key, std::size_t count) {
    double square = 0;
    for (std::size_t i = 0; i < count; ++i) square += uniform(key, i) * uniform(key, i);
    return std::sqrt(square);
  };
  each_of(run.x(), [&](auto& x, std::size_t i) {
    if (i >= gradients.input_gradients.size()) return;
    auto const& gradient = gradients.input_gradients[i];
    std::uint64_t const key = key_of(run.plan().seed, "direction d" + run.input_names()[i]);
    double const length = length_of(key, gradient.values.size());
    using X = std::remove_cvref_t<decltype(x)>;
    using element = typename X::element_type;
    auto const kept = x.clone();
    auto const before = on_host(kept);
    std::vector<element> moved(std::size_t(x.size()));
    judge("d" + run.input_names()[i], gradient, length, key, [&](double s) {
      each_place<X>(x.global(), x.tile(), [&](place const& p, std::int64_t offset) {
        moved[std::size_t(offset)] = to_element<element>(to_double(before[offset]) +
                                                         s * uniform(key, p.linear) / length);
      });
      x.copy_from_host(moved.data());
      return run.loss();
    });
    x.copy_from_host(before.data());
  });
  if constexpr (Run::has_parameters) {
    std::size_t at = 0;
    each_parameter(run.module(), [&](std::string const& name, auto& parameter) {
      auto const& gradient = gradients.parameter_gradients[at++].values;
      std::uint64_t const key = key_of(run.plan().seed, "direction " + name);
      double const length = length_of(key, gradient.values.size());
      auto const kept = parameter.clone();
      auto const before = on_host(kept);
      std::vector<T> moved(std::size_t(parameter.size()));
      judge(name, gradient, length, key, [&](double s) {
        for (std::size_t i = 0; i < moved.size(); ++i)
          moved[i] = to_element<T>(to_double(before[std::int64_t(i)]) +
                                   s * uniform(key, i) / length);
        parameter.copy_from_host(moved.data());
        return run.loss();
      });
      parameter.copy_from_host(before.data());
    });
  }
}

template <class Run>
std::string title_of(Run& run) {
  using mesh_type = typename std::remove_cvref_t<decltype(run.ctx())>::mesh_type;
  std::string title = run.plan().title.empty()
                          ? module_name<std::remove_cvref_t<decltype(run.module())>>()
                          : run.plan().title;
  using device_type = typename std::remove_cvref_t<decltype(run.ctx())>::device_type;
  if (!std::is_same_v<device_type, host>) title += std::string(" on ") + device_type::name;
  title += std::string(" ") + element_name<typename Run::T>() + ",";
  for (int axis = 0; axis < mesh_type::rank; ++axis)
    title += std::string(" ") + mesh_type::axis_name(axis) + "=" +
             std::to_string(run.ctx().where().sizes[axis]);
  return title + ":";
}

}  // namespace detail

/// Runs a module and its oracle and compares. The module's parameters are overwritten. Throws what
/// the module throws.
template <class Context, class Module, class Oracle, class... D>
parity_report parity(Context& ctx, Module& module, Oracle const& oracle, extents<D...> const& bound,
                     parity_plan const& plan = {}) {
  parity_run<Context, Module, extents<D...>> run(ctx, module, bound, plan);
  run.report.title = detail::title_of(run);
  run.check_sharding_active();
  reference const sharded = run.measured_run();
  detail::compare_with_oracle(run, oracle, sharded);
  if (plan.repeat) detail::check_repetition(run, sharded);
  if (plan.padding) detail::check_padding(run);
  if constexpr (!std::is_same_v<typename subject<Module>::element, bf16>)
    if (plan.differences) detail::check_differences(run, sharded);
  run.report.failures = detail::agree(ctx, run.report.failures);
  if (everyone(ctx).rank() == 0 && plan.print) plan.print(run.report.text());
  return std::move(run.report);
}

}  // namespace dtm::testing
