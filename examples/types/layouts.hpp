#pragma once
// The vocabulary of this example, and what the compiler knows about it. Nothing here runs:
// including this file is the check. Needs no MPI.

#include <dtm/dtm.hpp>

#include <type_traits>

namespace example {

using namespace dtm;

// Three mesh axes: samples over dp, rows of a pair over cp0, its columns over cp1. Sizes are given
// when the program runs.
using grid = mesh<dp, cp0, cp1>;

// A pair z[sample, i, j, channel] in blocks; a single s[sample, i, channel] in row form, the same
// on every cp1; and in column form, tokens over cp1, the same on every cp0.
template <int C>
using pair = layout<grid, shape<batch, tokens, tokens, c<C>>, shard<0>, shard<1>, shard<2>>;
template <int C>
using row_form = layout<grid, shape<batch, tokens, c<C>>, shard<0>, shard<1>, replicate>;
template <int C>
using column_form = layout<grid, shape<batch, tokens, c<C>>, shard<0>, replicate, shard<1>>;

using z_type = tensor<float, pair<16>>;
using s_type = tensor<float, row_form<16>>;

// A name of one's own. The numbers may be equal; the dimensions are not.
struct ligands : dim<"L"> {};
static_assert(!std::is_same_v<shape<tokens, c<16>>, shape<ligands, c<16>>>);
static_assert(!std::is_same_v<row_form<16>, column_form<16>>);

// The type after a collective is computed; what a collective does not accept is known too.
static_assert(std::is_same_v<after_t<transpose<cp0, cp1>, s_type>, tensor<float, column_form<16>>>);
static_assert(std::is_same_v<after_t<all_gather<cp1>, z_type>::layout_type,
                             pair<16>::with_placements<shard<0>, shard<1>, replicate>>);
static_assert(!detail::accepts<all_reduce<cp1>,
                               s_type>);  // nothing is pending: the reduction would be doubled

// So is the type of a cotangent: shards stay; where s is replicated every rank holds a term of its
// gradient.
static_assert(std::is_same_v<cotangent_t<z_type>, z_type>);
static_assert(std::is_same_v<cotangent_t<s_type>::layout_type,
                             row_form<16>::with_placements<shard<0>, shard<1>, partial<sum>>>);

// A function that takes exactly a row form. The second overload is chosen on a mismatch only and
// says what differs.
namespace module {
struct attention_bias {};
}  // namespace module
inline void attention_bias(s_type const&) {}
template <class Got>
void attention_bias(Got const&) {
  diagnose_tensor<at<module::attention_bias, arg::s>, s_type, Got>();
}

// A question, not an error.
static_assert(conforms_to<s_type, tensor<float, row_form<16>>>);
static_assert(!conforms_to<s_type, tensor<float, column_form<16>>>);

#ifdef DTM_EXAMPLE_MISTAKE
// Both have 16 channels and as many tokens; the ranks hold other rows. g++ 12 says, in one error:
//
//   error: static assertion failed: dtm contract: placement differs on one mesh axis; Where, Axis,
//   Expected and Got stand in the line that names placement_on; redistribute with a named
//   collective first
//
// and in its first line
//
//   placement_on<dtm::at<example::module::attention_bias, dtm::arg::s>, dtm::cp0, dtm::shard<1>,
//   dtm::replicate>
//
// The remedy is a collective that the program names: apply<transpose<cp0, cp1>>(ctx, s).
inline void mistake(tensor<float, column_form<16>> const& s) {
  attention_bias(s);
}
#endif

}  // namespace example
