#pragma once
// The library's kernels, made by nvcc in one unit of a program that a host compiler compiles:
//
//   #include <dtm/backend/cuda/kernels.cuh>
//   template struct dtm::gpu::kernels_in<dtm::gpu::library_kernels<float>>;
//
// An element type more is a type more; so are kernels of one's own, those over an index as the
// block kernels that run them:
//
//   template struct dtm::gpu::kernels_in<
//       dtm::kernels::kernel_list<dtm::kernels::device_kernel_t<my_kernel<float>>>>;
//
// A kernel that is missing here is an undefined reference to launch_kernel<Kernel>.

#include "dtm/backend/cuda/launch.cuh"
#include "dtm/kernels/all.hpp"

namespace dtm::gpu {

/// Its explicit instantiation makes the launches of all kernels of a list. In a function: nvcc
/// makes no kernel that only the initialiser of a variable names.
template <class List>
struct kernels_in;
template <class... Kernel>
struct kernels_in<kernels::kernel_list<Kernel...>> {
  using any_function = void (*)();
  static void launches(any_function* to) {
    ((*to++ = reinterpret_cast<any_function>(&launch_kernel<Kernel>)), ...);
  }
};

namespace detail {

template <class T>
struct library_kernels_of {
  using type =
      typename kernels::detail::joined<kernels::all_kernels<T>, kernels::own_products<T>>::type;
};
template <>
struct library_kernels_of<bf16> {  // sums are formed in float
  using type =
      typename kernels::detail::joined<kernels::all_kernels<bf16>, kernels::own_products<bf16>,
                                       library_kernels_of<float>::type>::type;
};

}  // namespace detail

/// Everything that a program whose tensors are of these types may launch.
template <class... T>
using library_kernels =
    typename kernels::detail::joined<typename detail::library_kernels_of<T>::type...,
                                     kernels::shared_kernels>::type;

}  // namespace dtm::gpu
