#pragma once
// Initial parameters as a function of (seed, parameter name, element): the serial and the sharded
// program start from the same numbers on every mesh, and no rank needs to see another's.
//
// Boltz's initialisers: layer norms one and zero; lecun (truncated normal) for p_in, fc1, fc2; normal
// for an attention's bias, glorot (uniform) for its q, k and v, which are square; zero for g_in, g_out,
// p_out, fc3, linear_o and linear_g, so that every block starts as the identity; U(+-1/sqrt(fan_in)) for
// plain linear layers and their biases. A parameter that no rule knows is an error, not a default.

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include <dtm/core/errors.hpp>

namespace example {

enum class initialiser { zero, one, uniform, glorot, normal, lecun };

/// The rule for a parameter by its dotted name, such as "layers.0.tri_mul_out.p_in.weight".
inline initialiser initialiser_of(std::string_view name) {
  std::size_t const last = name.rfind('.');
  std::string_view const kind = last == name.npos ? name : name.substr(last + 1);
  std::string_view owner = last == name.npos ? std::string_view() : name.substr(0, last);
  if (std::size_t const dot = owner.rfind('.'); dot != owner.npos) owner = owner.substr(dot + 1);
  bool const weight = kind == "weight", bias = kind == "bias";
  if (owner == "norm_in" || owner == "norm_out" || owner == "norm" || owner == "layer_norm") {
    if (weight) return initialiser::one;
    if (bias) return initialiser::zero;
  }
  if (weight && (owner == "p_in" || owner == "fc1" || owner == "fc2")) return initialiser::lecun;
  if (weight && owner == "linear") return initialiser::normal;
  if (weight && (owner == "linear_q" || owner == "linear_k" || owner == "linear_v"))
    return initialiser::glorot;
  if (weight && (owner == "g_in" || owner == "g_out" || owner == "p_out" || owner == "fc3" ||
                 owner == "linear_o" || owner == "linear_g")) {
    return initialiser::zero;
  }
  bool const plain = owner == "res_type_encoding" || owner == "z_init_1" || owner == "z_init_2" ||
                     owner == "linear_layer" || owner == "distogram";
  if (plain && (weight || bias)) return initialiser::uniform;
  throw dtm::argument_error("no initialiser is known for the parameter " + std::string(name));
}

namespace detail {

inline std::uint64_t mix(std::uint64_t x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline std::uint64_t hash(std::string_view text) {  // FNV-1a
  std::uint64_t result = 0xcbf29ce484222325u;
  for (char const letter : text) result = (result ^ std::uint8_t(letter)) * 0x100000001b3u;
  return result;
}

/// Uniform in (0, 1), a function of its arguments alone.
inline double uniform(std::uint64_t key, std::uint64_t index, std::uint64_t draw) {
  std::uint64_t const bits = mix(mix(key + (index + 1) * 0x9e3779b97f4a7c15u) + draw);
  return (double(bits >> 11) + 0.5) * 0x1p-53;
}

/// A normal variate of two uniform ones, by Box and Muller.
inline double normal(double first, double second) {
  return std::sqrt(-2 * std::log(first)) * std::cos(6.283185307179586 * second);
}

}  // namespace detail

/// Element `index` (row-major) of the parameter `name`. `fan_in` is the last extent of the layer's
/// weight.
inline double initial_value(std::uint64_t seed, std::string_view name, std::int64_t index,
                            std::int64_t fan_in) {
  std::uint64_t const key = detail::mix(seed ^ detail::hash(name));
  auto const draw = [&](std::uint64_t which) {
    return detail::uniform(key, std::uint64_t(index), which);
  };
  switch (initialiser_of(name)) {
    case initialiser::zero:
      return 0;
    case initialiser::one:
      return 1;
    case initialiser::uniform:
      return (2 * draw(0) - 1) / std::sqrt(double(fan_in));
    case initialiser::glorot:
      return (2 * draw(0) - 1) * std::sqrt(3 / double(fan_in));
    case initialiser::normal:
      return detail::normal(draw(0), draw(1)) / std::sqrt(double(fan_in));
    case initialiser::lecun:
      break;
  }
  for (std::uint64_t attempt = 0;; attempt += 2) {  // again while outside two standard deviations
    double const normal = detail::normal(draw(attempt), draw(attempt + 1));
    if (std::abs(normal) <= 2) return normal / 0.87962566103423978 / std::sqrt(double(fan_in));
  }
}

/// Fills one parameter of `count` elements; T is a floating type or converts from double by a named
/// type's constructor.
template <class T>
void fill_initial(T* values, std::int64_t count, std::uint64_t seed, std::string_view name,
                  std::int64_t fan_in) {
  for (std::int64_t index = 0; index < count; ++index) {
    values[index] = static_cast<T>(initial_value(seed, name, index, fan_in));
  }
}

}  // namespace example
