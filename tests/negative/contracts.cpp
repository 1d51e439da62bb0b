// Law L1: an argument of a module that does not have its declared type is one error that names
// the module, the argument, and what differs. `sample` stands for any module.
#include "negative/vocabulary.hpp"

namespace module {
struct sample;
}
namespace arg {
struct z;
struct mask;
}  // namespace arg

using z_type = tensor<float, pair_layout>;
using mask_type =
    tensor<float, layout<grid, shape<batch, tokens, tokens>, shard<0>, shard<1>, shard<2>>>;

struct sample {
  using takes = inputs<named<arg::z, z_type>, named<arg::mask, mask_type>>;
  void forward(z_type const&, mask_type const&) const {}
  template <class... Got>
  void forward(Got const&...) const {
    (void)sizeof(diagnose<module::sample, takes, Got...>);
  }
};

template <class Z, class Mask = mask_type>
void call(Z const& z, Mask const& mask) {
  sample{}.forward(z, mask);
}
template <class D, class E>
using other_dims =
    tensor<float, layout<grid, shape<batch, D, E, c<8>>, shard<0>, shard<1>, shard<2>>>;

#if DTM_CASE == 0
void program(z_type const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 1: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 1: placement_on<.*at<module::sample, arg::z>, .*cp1, .*shard<2>, .*replicate>
#if DTM_CASE == 1
void program(pair_placed<shard<0>, shard<1>, replicate> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 2: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 2: placement_on<.*at<module::sample, arg::z>, .*dp, .*shard<0>, .*replicate>
#if DTM_CASE == 2
void program(pair_placed<replicate, shard<1>, shard<2>> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 3: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 3: placement_on<.*at<module::sample, arg::z>, .*cp0, .*shard<1>, .*partial<.*sum
#if DTM_CASE == 3
void program(pair_placed<shard<0>, partial<sum>, shard<2>> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 4: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 4: placement_on<.*at<module::sample, arg::z>, .*cp0, .*shard<1>, .*shard<3>
#if DTM_CASE == 4
void program(pair_placed<shard<0>, shard<3>, shard<2>> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 5: error: static.assert.*dtm contract: the element type differs
// case 5: element_type<.*at<module::sample, arg::z>, float, double>
#if DTM_CASE == 5
void program(tensor<double, pair_layout> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 6: error: static.assert.*dtm contract: the element type differs
// case 6: element_type<.*at<module::sample, arg::z>, float, .*bf16>
#if DTM_CASE == 6
void program(tensor<bf16, pair_layout> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 7: error: static.assert.*dtm contract: the number of dimensions differs
// case 7: rank<.*at<module::sample, arg::z>, 4, 3>
#if DTM_CASE == 7
void program(mask_type const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 8: error: static.assert.*dtm contract: the number of dimensions differs
// case 8: rank<.*at<module::sample, arg::mask>, 3, 4>
#if DTM_CASE == 8
void program(z_type const& z) {
  call(z, z);
}
#endif

// case 9: error: static.assert.*dtm contract: a dimension differs
// case 9: dimension_at<.*at<module::sample, arg::z>, 2, .*tokens, .*atoms>
#if DTM_CASE == 9
void program(other_dims<tokens, atoms> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 10: error: static.assert.*dtm contract: a dimension differs
// case 10: dimension_at<.*at<module::sample, arg::z>, 1, .*tokens, .*pinned<.*tokens, 4>
#if DTM_CASE == 10
void program(other_dims<pinned<tokens, 4>, tokens> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 11: error: static.assert.*dtm contract: a dimension differs
// case 11: dimension_at<.*at<module::sample, arg::z>, 3, .*c<8>, .*c<16>
#if DTM_CASE == 11
using wide =
    tensor<float, layout<grid, shape<batch, tokens, tokens, c<16>>, shard<0>, shard<1>, shard<2>>>;
void program(wide const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 12: error: static.assert.*dtm contract: a dimension differs
// case 12: dimension_at<.*at<module::sample, arg::z>, 3, .*c<8>, .*planes<8>
#if DTM_CASE == 12
using dealt =
    tensor<float,
           layout<grid, shape<batch, tokens, tokens, planes<8>>, shard<0>, shard<1>, shard<2>>>;
void program(dealt const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 13: error: static.assert.*dtm contract: the mesh differs
// case 13: mesh_is<.*arg::z>, .*mesh<.*dp, .*cp0, .*cp1> ?, .*mesh<.*dp, .*cp1, .*cp0>
#if DTM_CASE == 13
using turned = tensor<float, layout<mesh<dp, cp1, cp0>, pair_shape, shard<0>, shard<1>, shard<2>>>;
void program(turned const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 14: error: static.assert.*dtm contract: the mesh differs
// case 14: mesh_is<.*at<module::sample, arg::z>, .*mesh<.*dp, .*cp0, .*cp1> ?, .*mesh<.*cp0, .*cp1>
#if DTM_CASE == 14
using plane = tensor<float, layout<mesh<cp0, cp1>, pair_shape, shard<1>, shard<2>>>;
void program(plane const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 15: error: static.assert.*dtm contract: the tensor lives on another device
// case 15: device_is<.*at<module::sample, arg::z>, .*host, .*cuda>
#if DTM_CASE == 15
void program(tensor<float, pair_layout, cuda> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 16: error: static.assert.*dtm contract: this argument is not a dtm::tensor
// case 16: is_a_tensor<.*at<module::sample, arg::z>, double>
#if DTM_CASE == 16
void program(double const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 17: error: static.assert.*dtm contract: this argument is not a dtm::tensor
// case 17: is_a_tensor<.*at<module::sample, arg::z>, .*view<(const float|float const), 4>
#if DTM_CASE == 17
void program(view<float const, 4> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 18: error: static.assert.*dtm contract: wrong number of tensors
// case 18: takes<.*module::sample, 2, 1>
#if DTM_CASE == 18
void program(z_type const& z) {
  sample{}.forward(z);
}
#endif

// case 19: error: static.assert.*dtm contract: wrong number of tensors
// case 19: takes<.*module::sample, 2, 3>
#if DTM_CASE == 19
void program(z_type const& z, mask_type const& mask) {
  sample{}.forward(z, mask, mask);
}
#endif

// case 20: error: static.assert.*dtm contract: wrong number of tensors
// case 20: takes<.*module::sample, 2, 0>
#if DTM_CASE == 20
void program() {
  sample{}.forward();
}
#endif

// case 21: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 21: placement_on<.*at<module::sample, arg::z>, .*cp0, .*shard<1>, .*shard<2> ?>
#if DTM_CASE == 21
void program(pair_placed<shard<0>, shard<2>, shard<1>> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif

// case 22: error: static.assert.*dtm contract: a dimension differs
// case 22: dimension_at<.*at<module::sample, arg::z>, 1, .*tokens, .*atoms>
#if DTM_CASE == 22
void program(other_dims<atoms, atoms> const& z, mask_type const& mask) {
  call(z, mask);
}
#endif
