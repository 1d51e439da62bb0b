#pragma once
// The step of Adam (see train/adam.hpp) with its counter and rates in device memory, so that a
// recorded sequence of launches may be replayed: adam_rates counts the step, adam_update reads what
// it wrote.

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"

namespace dtm::kernels {

/// rates = {rate / (1 - beta1^t), sqrt(1 - beta2^t)} for t = *step, after adding 1 to it where
/// `counts`: groups of parameters share one counter, the first of them counts. One index.
template <class A>
struct adam_rates {
  std::int64_t* step;
  bool counts;
  double learning_rate, beta1, beta2;
  A* rates;
  DTM_HD void operator()(std::int64_t) const {
    using std::pow;
    using std::sqrt;
    if (counts) ++*step;
    double const t = double(*step);
    rates[0] = A(learning_rate / (1 - pow(beta1, t)));
    rates[1] = A(sqrt(1 - pow(beta2, t)));
  }
};

/// One parameter's step. `master` is where its value is kept in the accumulation type: the
/// parameter itself, or a copy of which the parameter is the rounding. Reads 4, writes 3 (and the
/// rounded parameter); 15 flops with a root and two divisions; memory.
template <class T>
struct adam_update {
  using A = accumulate_t<T>;
  T* parameter;
  A* master;  // null: the parameter is of type A and its own master
  A const* gradient;
  A* first;
  A* second;
  A const* rates;  // of adam_rates
  A beta1, beta2, keep1, keep2, epsilon;
  A weight_decay, decoupled_decay;
  bool decoupled;

  /// The constants as train/adam.hpp forms them, from doubles.
  static adam_update of(T* parameter, A* master, A const* gradient, A* first, A* second,
                        A const* rates, double learning_rate, double beta1, double beta2,
                        double epsilon, double weight_decay, bool decoupled) {
    return {parameter,
            master,
            gradient,
            first,
            second,
            rates,
            A(beta1),
            A(beta2),
            A(1 - beta1),
            A(1 - beta2),
            A(epsilon),
            A(weight_decay),
            A(learning_rate * weight_decay),
            decoupled};
  }
  DTM_HD void operator()(std::int64_t i) const {
    using std::sqrt;
    A p = master != nullptr ? master[i] : A(parameter[i]);
    A g = gradient[i];
    if (decoupled)
      p -= decoupled_decay * p;
    else
      g += weight_decay * p;
    A const m = beta1 * first[i] + keep1 * g;
    first[i] = m;
    A const v = beta2 * second[i] + keep2 * g * g;
    second[i] = v;
    A const below = sqrt(v) / rates[1] + epsilon;
    p -= rates[0] * m / below;
    if (master != nullptr) master[i] = p;
    parameter[i] = T(p);
  }
};

}  // namespace dtm::kernels
