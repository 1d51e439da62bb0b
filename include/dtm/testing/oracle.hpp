#pragma once
// The other side of a parity test: a serial module on whole arrays. dtm::serial's modules fit as
// they are:
//
//   serial_oracle const oracle([](auto t) { return serial::transition<decltype(t)>(8, 16); });
//
// called with a double for the reference and, for an fp32 module, with a float as well. A serial
// module has
//
//   forward(array<T> const& ...inputs) -> {y, kept}           inputs in the order of the contract
//   backward(kept, dy, gradients) -> dx, or nothing
//   each_parameter(f)                                         f(dotted name, array<T>&)
//
// Another shape is served by a second function, which runs both directions itself:
//
//   serial_oracle const oracle(make, [](auto& module, auto const& request, auto& gradients) {
//     using T = typename std::remove_cvref_t<decltype(module)>::value_type;
//     auto [a, b, kept] = module.forward(request.real(0), request.integer(1));
//     auto dx = module.backward(kept, request.upstream[0], request.upstream[1], gradients);
//     return serial_outcome<T>{{a, b}, {dx}};
//   });

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtm/serial/array.hpp"
#include "dtm/serial/parameters.hpp"

namespace dtm::testing {

template <class To, class From>
serial::array<To> convert(serial::array<From> const& a) {
  serial::array<To> result;
  result.extents = a.extents;
  result.values.assign(a.values.begin(), a.values.end());
  return result;
}

/// A whole input: whole numbers are kept in a double exactly.
struct whole_input {
  std::string name;
  bool is_integer = false;
  serial::array<double> values;
};

/// Everything a serial run needs, in the order of the contract.
template <class T>
struct serial_request {
  std::vector<whole_input> const& inputs;
  std::vector<serial::array<T>> upstream;

  serial::array<T> real(std::size_t i) const { return convert<T>(inputs[i].values); }
  serial::array<std::int64_t> integer(std::size_t i) const {
    return convert<std::int64_t>(inputs[i].values);
  }
};

template <class T>
struct serial_outcome {
  std::vector<serial::array<T>> outputs, input_gradients;
};

struct named_whole {
  std::string name;
  serial::array<double> values;
};

/// An outcome in double, with the parameters' gradients in registration order.
struct reference {
  std::vector<serial::array<double>> outputs, input_gradients;
  std::vector<named_whole> parameter_gradients;
};

/// For modules with one output and the usual shape.
struct usual_calls {
  template <class Integers, class Module, class T, class Gradients>
  static serial_outcome<T> run(Module& module, serial_request<T> const& request,
                               Gradients& gradients) {
    return call(module, request, gradients, Integers{},
                std::make_index_sequence<Integers::size()>{});
  }

 private:
  template <class Module, class T, class Gradients, bool... IsInteger, std::size_t... I>
  static serial_outcome<T> call(Module& module, serial_request<T> const& request,
                                Gradients& gradients, std::integer_sequence<bool, IsInteger...>,
                                std::index_sequence<I...>) {
    auto [y, kept] = module.forward(pick<IsInteger>(request, I)...);
    serial_outcome<T> outcome;
    outcome.outputs.push_back(std::move(y));
    if constexpr (std::is_void_v<decltype(module.backward(kept, request.upstream[0], gradients))>)
      module.backward(kept, request.upstream[0], gradients);
    else
      outcome.input_gradients.push_back(module.backward(kept, request.upstream[0], gradients));
    return outcome;
  }
  template <bool IsInteger, class T>
  static auto pick(serial_request<T> const& request, std::size_t i) {
    if constexpr (IsInteger)
      return request.integer(i);
    else
      return request.real(i);
  }
};

template <class Make, class Calls = usual_calls>
class serial_oracle {
 public:
  explicit serial_oracle(Make make, Calls calls = {})
      : make_(std::move(make)), calls_(std::move(calls)) {}

  /// Runs a serial module of element type T. `Integers` says of each input whether it holds whole
  /// numbers. Parameters are matched by position; a name or extents that differ are reported in
  /// `complaint`.
  template <class T, class Integers>
  reference run(std::vector<named_whole> const& parameters, std::vector<whole_input> const& inputs,
                std::vector<serial::array<double>> const& upstream, std::string& complaint) const {
    auto module = make_(T{});
    load(module, parameters, complaint);
    if (!complaint.empty()) return {};
    auto gradients = module;
    walk(gradients, [](std::string const&, serial::array<T>& values) { values.fill(T(0)); });
    serial_request<T> request{inputs, {}};
    for (auto const& dy : upstream) request.upstream.push_back(convert<T>(dy));
    serial_outcome<T> const outcome = run_calls<T, Integers>(module, request, gradients);
    reference result;
    for (auto const& y : outcome.outputs) result.outputs.push_back(convert<double>(y));
    for (auto const& dx : outcome.input_gradients)
      result.input_gradients.push_back(convert<double>(dx));
    walk(gradients, [&](std::string const& name, serial::array<T>& values) {
      result.parameter_gradients.push_back({name, convert<double>(values)});
    });
    return result;
  }

 private:
  template <class T, class Integers, class Module>
  serial_outcome<T> run_calls(Module& module, serial_request<T> const& request,
                              Module& gradients) const {
    if constexpr (std::is_same_v<Calls, usual_calls>)
      return Calls::template run<Integers>(module, request, gradients);
    else
      return calls_(module, request, gradients);
  }

  template <class Module, class F>
  static void walk(Module& module, F f) {
    if constexpr (requires { module.each_parameter(f, std::string()); })
      module.each_parameter(f, std::string());
  }

  template <class Module>
  static void load(Module& module, std::vector<named_whole> const& parameters,
                   std::string& complaint) {
    std::size_t at = 0;
    walk(module, [&]<class T>(std::string const& name, serial::array<T>& values) {
      if (!complaint.empty()) return;
      if (at == parameters.size()) {
        complaint =
            "the serial module has " + name + " after the last parameter of the sharded one";
      } else if (parameters[at].name != name || parameters[at].values.extents != values.extents) {
        complaint = "parameter " + std::to_string(at) + " is " + parameters[at].name +
                    serial::to_string(parameters[at].values.extents) + ", serially " + name +
                    serial::to_string(values.extents);
      } else {
        values = convert<T>(parameters[at++].values);
      }
    });
    if (complaint.empty() && at != parameters.size())
      complaint =
          "the serial module has no " + parameters[at].name + " at position " + std::to_string(at);
  }

  Make make_;
  Calls calls_;
};

}  // namespace dtm::testing
