#pragma once
// A space says what a module is made of: element type, mesh and device. It also says what role a
// parameter plays, so that one module template gives the parameter tree, the tree of pending
// gradients and the tree of complete ones:
//
//   space<float, grid>                       weights: T, replicated
//   pending_gradients<space<float, grid>>    gradients in backward: accumulate_t, partial on every axis (law L6)
//   complete_gradients<space<float, grid>>   what synchronise yields and optimisers accept: replicated
//   optimiser_state<space<float, grid>>      moments: accumulate_t, replicated

#include "dtm/core/tensor.hpp"

namespace dtm {

template <class T, class Mesh, class Device = host>
struct space {
  static_assert(floating_element<T>, "dtm space: parameters are float, double or dtm::bf16");
  static_assert(Mesh::rank == 3,
                "dtm space: the modules need a mesh of three axes: data parallel, rows, columns");
  using element = T;
  using mesh_type = Mesh;
  using device = Device;
  template <class... D>
  using parameter = tensor<T, uniform_layout_t<Mesh, shape<D...>, replicate>, Device>;
};

namespace detail {

template <class Space, class Placement>
struct accumulated_space {
  using element = typename Space::element;
  using mesh_type = typename Space::mesh_type;
  using device = typename Space::device;
  template <class... D>
  using parameter =
      tensor<accumulate_t<element>, uniform_layout_t<mesh_type, shape<D...>, Placement>, device>;
};

}  // namespace detail

template <class Space>
struct pending_gradients : detail::accumulated_space<Space, partial<sum>> {
  using of = Space;
};
template <class Space>
struct complete_gradients : detail::accumulated_space<Space, replicate> {
  using of = Space;
};
template <class Space>
struct optimiser_state : detail::accumulated_space<Space, replicate> {
  using of = Space;
};

/// The same module in another role: gradients_of_t<M>, complete_gradients_of_t<M>, state_of_t<M>.
template <class Module>
using gradients_of_t = typename Module::template in<pending_gradients<typename Module::space_type>>;
template <class Module>
using complete_gradients_of_t =
    typename Module::template in<complete_gradients<typename Module::space_type>>;
template <class Module>
using state_of_t = typename Module::template in<optimiser_state<typename Module::space_type>>;

// ---- the layouts of the trunk ----

template <class Space, int Index>
using axis_of_t = typename Space::mesh_type::template axis_at<Index>;
template <class Space>
using data_axis = axis_of_t<Space, 0>;
template <class Space>
using row_axis = axis_of_t<Space, 1>;
template <class Space>
using column_axis = axis_of_t<Space, 2>;

/// z [batch, tokens, tokens, channels]: rows over cp0, columns over cp1.
template <class Space, class... Channels>
using pair_tensor =
    tensor<typename Space::element,
           layout<typename Space::mesh_type, shape<batch, tokens, tokens, Channels...>, shard<0>,
                  shard<1>, shard<2>>,
           typename Space::device>;

/// s [batch, tokens, channels]: tokens over cp0, the same on every cp1.
template <class Space, class... Channels>
using single_tensor = tensor<typename Space::element,
                             layout<typename Space::mesh_type, shape<batch, tokens, Channels...>,
                                    shard<0>, shard<1>, replicate>,
                             typename Space::device>;

/// s in column form: tokens over cp1, the same on every cp0.
template <class Space, class... Channels>
using single_column_tensor =
    tensor<typename Space::element,
           layout<typename Space::mesh_type, shape<batch, tokens, Channels...>, shard<0>, replicate,
                  shard<1>>,
           typename Space::device>;

}  // namespace dtm
