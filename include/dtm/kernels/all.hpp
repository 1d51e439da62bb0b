#pragma once
// Every kernel that a device launches, as types, so that a device's compiler can make them in one
// place: kernels over an index stand here as the block kernels that run them.
//
//   all_kernels<T>        of one element type, float, double or bf16
//   shared_kernels        of no floating type: copies of boxes, relative positions
//   own_products<T>       the library's matrix products
//
// Kernels of a program's own, and draw_uniform, whose ranks are the program's, are not here.

#include "dtm/kernels/adam.hpp"
#include "dtm/kernels/attention.hpp"
#include "dtm/kernels/attention_backward.hpp"
#include "dtm/kernels/box.hpp"
#include "dtm/kernels/channels.hpp"
#include "dtm/kernels/column_sum.hpp"
#include "dtm/kernels/distogram_loss.hpp"
#include "dtm/kernels/dropout.hpp"
#include "dtm/kernels/elementwise.hpp"
#include "dtm/kernels/layer_norm.hpp"
#include "dtm/kernels/layer_norm_wide.hpp"
#include "dtm/kernels/masked_gate.hpp"
#include "dtm/kernels/norm.hpp"
#include "dtm/kernels/pairs.hpp"
#include "dtm/kernels/product_mma.hpp"
#include "dtm/kernels/relative_position.hpp"

namespace dtm::kernels {

/// A list of kernels over blocks.
template <class... Kernel>
struct kernel_list {};

namespace detail {

template <class... List>
struct joined;
template <class... A>
struct joined<kernel_list<A...>> {
  using type = kernel_list<A...>;
};
template <class... A, class... B, class... Rest>
struct joined<kernel_list<A...>, kernel_list<B...>, Rest...>
    : joined<kernel_list<A..., B...>, Rest...> {};

// Block kernels of kernels over an index.
template <class... Kernel>
using on_device = kernel_list<device_kernel_t<Kernel>...>;

template <class T, int Held>
using norm_kernels = kernel_list<layer_norm_rows<T, vector_length<T>, Held>,
                                 layer_norm_apply_rows<T, vector_length<T>, Held>,
                                 layer_norm_backward_rows<T, vector_length<T>, Held>>;
template <class T>
using wide_norm_kernels =
    kernel_list<layer_norm_wide<T>, layer_norm_backward_wide<T>, layer_norm_parameter_sums<T>,
                device_kernel_t<layer_norm_apply_each<T>>>;

template <class A>
using numbers_of =
    on_device<sum_in_order<A>, distogram_finish<A>, distogram_weights<A>, adam_rates<A>,
              clip_factor<A>, draw_dropout_factors<A>, dropout_factors_of<A>>;

template <class T, class Result, int Width>
using attention_to =
    kernel_list<attention_forward<T, Result, Width>, attention_backward_queries<T, Result, Width>,
                attention_backward_keys<T, Result, Width>>;
// Keys in several calls leave sums in the accumulation type.
template <class T, int Width>
using attention_of_width =
    typename joined<attention_to<T, T, Width>, attention_to<T, accumulate_t<T>, Width>,
                    kernel_list<attention_backward_bias<T, Width>>>::type;

template <class T, class A = accumulate_t<T>>
struct kernels_of {
  using elementwise = on_device<set_zero<T>, add<T>, scale<T>, scale_by<T>, add_bias<T>, gate<T>,
                                gate_backward<T>, swiglu<T>, swiglu_backward<T>, additive_mask<T>,
                                scale_pairs<T, true>, scale_pairs<T, false>>;
  using arrangement =
      on_device<permute<T, 2>, permute<T, 3>, permute<T, 4>, permute<T, 5>, outer_sum<T>,
                outer_product<T>, sum_middle<T>, transpose_matrices<T>, swap_pairs<T>,
                masked_gate_to_planes<T>, masked_gate_from_planes_backward<T>>;
  using rows =
      typename joined<norm_kernels<T, 1>, norm_kernels<T, 2>, norm_kernels<T, 4>,
                      wide_norm_kernels<T>, kernel_list<column_sums<T>, square_sums<T>>>::type;
  using modules = on_device<distogram_row_terms<T>, distogram_loss_backward<T>,
                            add_selected_columns<T>, adam_update<T>>;
  using adds = on_device<unpack_box_add<T, 0>, unpack_box_add<T, 1>, unpack_box_add<T, 2>,
                         unpack_box_add<T, 3>, unpack_box_add<T, 4>, unpack_box_add<T, 5>>;
  using attention =
      typename joined<attention_of_width<T, 16>, attention_of_width<T, 32>,
                      attention_of_width<T, 64>, on_device<attention_query_constants<T>>>::type;
  using type = typename joined<elementwise, arrangement, rows, modules, attention, adds,
                               kernel_list<selected_column_sums<T>>>::type;
};

// What an element type has beside the rest.
template <class T>
struct further_kernels;
template <>
struct further_kernels<bf16> {  // to and from its accumulation type; sums are the float ones
  using type = on_device<convert<bf16, bf16>, convert<bf16, float>, convert<float, bf16>>;
};
template <>
struct further_kernels<float> {
  using type =
      typename joined<norm_kernels<float, 8>, numbers_of<float>, kernel_list<add_terms<float>>,
                      on_device<convert<float, float>, convert<float, double>>>::type;
};
template <>
struct further_kernels<double> {
  using type =
      typename joined<norm_kernels<double, 8>, numbers_of<double>, kernel_list<add_terms<double>>,
                      on_device<convert<double, double>, convert<double, float>,
                                convert<double, bf16>, convert<bf16, double>>>::type;
};

template <int Bytes>
using box_copies =
    on_device<pack_box<piece<Bytes>, 0>, pack_box<piece<Bytes>, 1>, pack_box<piece<Bytes>, 2>,
              pack_box<piece<Bytes>, 3>, pack_box<piece<Bytes>, 4>, pack_box<piece<Bytes>, 5>,
              unpack_box<piece<Bytes>, 0>, unpack_box<piece<Bytes>, 1>, unpack_box<piece<Bytes>, 2>,
              unpack_box<piece<Bytes>, 3>, unpack_box<piece<Bytes>, 4>,
              unpack_box<piece<Bytes>, 5>>;

template <class T>
struct products_of {
  using type = kernel_list<product_tiles<T>, device_kernel_t<finish_product<T>>>;
};
template <>
struct products_of<bf16> {
  using type =
      kernel_list<product_mma<bf16>, product_mma<float>, device_kernel_t<finish_product<bf16>>>;
};

}  // namespace detail

template <class T>
using all_kernels = typename detail::joined<typename detail::kernels_of<T>::type,
                                            typename detail::further_kernels<T>::type>::type;

using shared_kernels = typename detail::joined<
    detail::box_copies<1>, detail::box_copies<2>, detail::box_copies<4>, detail::box_copies<8>,
    detail::box_copies<16>,
    detail::on_device<any_positive, relative_position_columns, set_zero<std::int32_t>>>::type;

template <class T>
using own_products = typename detail::products_of<T>::type;

}  // namespace dtm::kernels
