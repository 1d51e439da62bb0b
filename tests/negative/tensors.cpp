// Laws L1, L2, L8, L11: what a tensor is made of, and that tensors of different types do not mix.
#include "negative/vocabulary.hpp"

using z_type = tensor<float, pair_layout>;
using site_type = site<grid>;
using halves = mesh<dp, sized<cp0, 2>, sized<cp1, 2>>;
template <class Rows,
          class Layout = layout<halves, shape<batch, Rows, c<8>>, shard<0>, shard<1>, replicate>>
using pinned_rows = tensor<float, Layout>;
using mask_layout = layout<grid, shape<batch, tokens, tokens>, shard<0>, shard<1>, shard<2>>;

struct host_context {
  using device_type = host;
  site_type const& where() const;
};

void takes_tokens(on_line<shape<tokens, c<8>>, shard<0>> const& x);

#if DTM_CASE == 0
void program(site_type const& here, z_type& z, z_type& other,
             on_line<shape<tokens, c<8>>, shard<0>>& x) {
  z_type made(here, extents{bind<batch>(1), bind<tokens>(4)});
  made = z.clone();
  other = std::move(z);
  takes_tokens(x);
  z_type in_context(host_context{}, extents{bind<batch>(1), bind<tokens>(4)});
  z.to_local()(0, 0, 0, 0) = 1;
}
static_assert(sizeof(pinned_rows<pinned<tokens, 4>>) > 0);
static_assert(sizeof(tensor<bf16, pair_layout>) + sizeof(tensor<std::int64_t, mask_layout>) > 0);
#endif

// case 1: error: static.assert.*dtm tensor: the element type is
// case 1: tensor<short( int)?, .*layout<
#if DTM_CASE == 1
static_assert(sizeof(tensor<short, pair_layout>) > 0);
#endif

// case 2: error: static.assert.*dtm tensor: the element type is
// case 2: tensor<const float, .*layout<
#if DTM_CASE == 2
static_assert(sizeof(tensor<float const, pair_layout>) > 0);
#endif

// case 3: error: static.assert.*dtm tensor: a run-time dimension of the shape has no extent
// case 3: extent_is_bound<.*tokens>
#if DTM_CASE == 3
void program(site_type const& here) {
  z_type made(here, extents{bind<batch>(1)});
}
#endif

// case 4: error: static.assert.*dtm tensor: a run-time dimension of the shape has no extent
// case 4: extent_is_bound<.*tokens>
#if DTM_CASE == 4
void program(site_type const& here) {
  z_type made(here, extents{bind<batch>(1), bind<atoms>(4)});
}
#endif

// case 5: error: static.assert.*dtm tensor: the context has another mesh than the tensor
// case 5: mesh_is<.*mesh<.*cp0> ?> ?, .*mesh<.*dp, .*cp0, .*cp1> ?>
#if DTM_CASE == 5
void program(site<line> const& here) {
  z_type made(here, extents{bind<batch>(1), bind<tokens>(4)});
}
#endif

// case 6: error: static.assert.*dtm tensor: the context has another mesh than the tensor
// case 6: mesh_is<.*mesh<.*dp, .*cp0, .*cp1> ?> ?, .*mesh<.*dp, .*sized<.*cp0, 2>, .*sized<.*cp1, 2
#if DTM_CASE == 6
void program(site_type const& here) {
  pinned_rows<tokens> made(here, extents{bind<batch>(1), bind<tokens>(4)});
}
#endif

// case 7: error: static.assert.*dtm layout: the extent does not divide
// case 7: shard_is_even<.*pinned<.*tokens, 5>, .*cp0, 2>
#if DTM_CASE == 7
static_assert(sizeof(pinned_rows<pinned<tokens, 5>>) > 0);
#endif

// case 8: error: static.assert.*dtm layout: the extent does not divide
// case 8: shard_is_even<.*c<9>, .*cp1, 2>
#if DTM_CASE == 8
using odd = layout<halves, shape<batch, tokens, c<9>>, shard<0>, shard<1>, shard<2>>;
static_assert(sizeof(tensor<float, odd>) > 0);
#endif

// case 9: error: (use of deleted function .*::tensor\(const |call to deleted constructor)
#if DTM_CASE == 9
void program(z_type& z) {
  z_type copy = z;
}
#endif

// case 10: error: (use of deleted function .*operator=|.*selected deleted operator)
#if DTM_CASE == 10
void program(z_type& z, z_type& other) {
  other = z;
}
#endif

// case 11: error: no (match for 'operator=|viable overloaded '=')
// case 11: replicate
#if DTM_CASE == 11
void program(z_type& z, pair_placed<shard<0>, shard<1>, replicate>& other) {
  other = std::move(z);
}
#endif

// case 12: error: no (match for 'operator=|viable overloaded '=')
#if DTM_CASE == 12
void program(z_type& z, tensor<float, mask_layout>& other) {
  other = std::move(z);
}
#endif

// case 13: error: no (match for 'operator=|viable overloaded '=')
// case 13: cuda
#if DTM_CASE == 13
void program(z_type& z, tensor<float, pair_layout, cuda>& other) {
  other = std::move(z);
}
#endif

// case 14: error: no (match for 'operator=|viable overloaded '=')
// case 14: double
#if DTM_CASE == 14
void program(z_type& z, tensor<double, pair_layout>& other) {
  other = std::move(z);
}
#endif

// case 15: error: (invalid initialization of ref|no matching function for call to 'takes_tokens')
// case 15: atoms
#if DTM_CASE == 15
void program(on_line<shape<atoms, c<8>>, shard<0>>& x) {
  takes_tokens(x);
}
#endif

// case 16: error: (invalid initialization of ref|no matching function for call to 'takes_tokens')
// case 16: pinned<.*tokens, 4>
#if DTM_CASE == 16
void program(on_line<shape<pinned<tokens, 4>, c<8>>, shard<0>>& x) {
  takes_tokens(x);
}
#endif

// case 17: error: static.assert.*dtm view: one index per dimension
#if DTM_CASE == 17
void program(z_type& z) {
  z.to_local()(0, 0, 0) = 1;
}
#endif

// case 18: error: (assignment of read-only location|cannot assign to return value)
#if DTM_CASE == 18
void program(z_type const& z) {
  z.to_local()(0, 0, 0, 0) = 1;
}
#endif

// case 19: error: (no match for 'operator\+'|invalid operands to binary expression)
// case 19: bf16
#if DTM_CASE == 19
auto added = bf16(1.0f) + bf16(2.0f);
#endif

// case 20: error: .*bf16.*float
#if DTM_CASE == 20
float widened = bf16(1.0f);
#endif

// case 21: error: (no matching function for call to 'bind|cannot call function)
// case 21: run_time_dimension
#if DTM_CASE == 21
auto bound = bind<pinned<tokens, 4>>(4);
#endif

// case 22: error: static.assert.*dtm tensor: the context has another device than the tensor
// case 22: device_is<(dtm::)?cuda, (dtm::)?host>
#if DTM_CASE == 22
void program(host_context const& ctx) {
  tensor<float, pair_layout, cuda> z(ctx, extents{bind<batch>(1), bind<tokens>(4)});
}
#endif
