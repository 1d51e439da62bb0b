#pragma once
// A module's contract is a nested struct of type lists: inputs, outputs, the collectives of
// forward and backward, what is saved for backward, and the memory budget. docs/module_map.md is
// printed from it, and tests compare it with what ran.
//
//   struct contract {
//     using inputs = dtm::inputs<named<arg::x, pair>, named<arg::mask, pair_mask>>;
//     using outputs = dtm::outputs<named<arg::y, pair>>;
//     using forward = collectives<on_tensor<arg::a, all_to_all<...>>, ...>;
//     using backward = collectives<...>;
//     using saved = dtm::saved<named<arg::x, pair>, ...>;
//     using budget = pair_budget<T bytes per position>;
//   };

#include "dtm/contract/budget.hpp"
#include "dtm/contract/transitions.hpp"

namespace dtm {

/// One collective of a contract and the tensor it moves.
template <class Name, class Collective>
struct on_tensor {};
/// In place of a collective: it runs once for each panel of its tensor, of which the number of tokens and
/// the mesh decide.
template <class Collective>
struct by_panels {};
template <class... OnTensor>
struct collectives {
  static constexpr int count = sizeof...(OnTensor);
};

namespace detail {

template <class... List>
struct joined_lists;
template <template <class...> class List, class... A>
struct joined_lists<List<A...>> {
  using type = List<A...>;
};
template <template <class...> class List, class... A, class... B, class... Rest>
struct joined_lists<List<A...>, List<B...>, Rest...> : joined_lists<List<A..., B...>, Rest...> {};

}  // namespace detail

/// Lists of a contract one after another: what a module does that is made of others.
template <class... List>
using joined_t = typename detail::joined_lists<List...>::type;

/// Names of arguments and tensors, for messages, ledgers and the module map.
namespace arg {
#define DTM_NAME(name_)                         \
  struct name_ {                                \
    static constexpr char const* name = #name_; \
  }
DTM_NAME(x);
DTM_NAME(y);
DTM_NAME(z);
DTM_NAME(s);
DTM_NAME(a);
DTM_NAME(b);
DTM_NAME(o);
DTM_NAME(u);
DTM_NAME(bias);
DTM_NAME(mask);
DTM_NAME(dx);
DTM_NAME(dy);
DTM_NAME(dz);
DTM_NAME(ds);
DTM_NAME(da);
DTM_NAME(db);
DTM_NAME(d_o);
DTM_NAME(du);
DTM_NAME(d_bias);
DTM_NAME(mean);
DTM_NAME(rstd);
DTM_NAME(score_max);
DTM_NAME(score_sum);
DTM_NAME(mean_in);
DTM_NAME(rstd_in);
DTM_NAME(mean_out);
DTM_NAME(rstd_out);
DTM_NAME(column);
DTM_NAME(d_column);
DTM_NAME(features);
DTM_NAME(cyclic);
DTM_NAME(z_transposed);
DTM_NAME(dz_transposed);
DTM_NAME(logits);
DTM_NAME(d_logits);
DTM_NAME(target);
DTM_NAME(pred);
DTM_NAME(sums);
DTM_NAME(denominator);
DTM_NAME(attaining);
DTM_NAME(loss);
DTM_NAME(batch_loss);
DTM_NAME(d_loss);
DTM_NAME(gradients);
#undef DTM_NAME
}  // namespace arg

}  // namespace dtm
