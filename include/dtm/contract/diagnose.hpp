#pragma once
// The differ: says in one compile error what disagrees between the tensors a module declares and
// the ones it got.
//
// How it is used: a module has an overload with the exact types, and an unconstrained one that is
// chosen only on a mismatch and instantiates diagnose<Module, inputs<...>, Got...>. The class that
// fails is named like the beginning of a sentence, its arguments are empty structs and integers
// (all compilers print those short), and the text says what to do. The valid path instantiates
// nothing of this header.

#include <cstddef>
#include <type_traits>
#include <utility>

#include "dtm/core/tensor.hpp"

namespace dtm {

/// Where in a program: a module and one of its arguments.
template <class Module, class Argument>
struct at {};

/// A tensor with a name, in the lists of a contract.
template <class Name, class Tensor>
struct named {
  using name = Name;
  using type = Tensor;
};

template <class... Named>
struct inputs {};
template <class... Named>
struct outputs {};

namespace contract {

using dtm::detail::false_for;

template <class Where, class Axis, class Expected, class Got>
struct placement_on {
  static_assert(false_for<Where, Axis, Expected, Got>,
                "dtm contract: placement differs on one mesh axis; Where, Axis, Expected and Got "
                "stand in the line that names placement_on; redistribute with a named collective "
                "first");
};
template <class Where, class Axis, class P>
struct placement_on<Where, Axis, P, P> {};

template <class Where, int Position, class Expected, class Got>
struct dimension_at {
  static_assert(false_for<Where, Expected, Got>,
                "dtm contract: a dimension differs; Where, Position, Expected and Got stand in "
                "the line that names dimension_at; equal numbers do not make one dimension into "
                "another");
};
template <class Where, int Position, class D>
struct dimension_at<Where, Position, D, D> {};

template <class Where, int Expected, int Got>
struct rank {
  static_assert(false_for<Where>,
                "dtm contract: the number of dimensions differs; Where, Expected and Got stand in "
                "the line that names rank");
};
template <class Where, int R>
struct rank<Where, R, R> {};

template <class Where, class Expected, class Got>
struct element_type {
  static_assert(false_for<Where, Expected, Got>,
                "dtm contract: the element type differs; Where, Expected and Got stand in the "
                "line that names element_type; convert with a named cast first");
};
template <class Where, class T>
struct element_type<Where, T, T> {};

template <class Where, class Expected, class Got>
struct mesh_is {
  static_assert(false_for<Where, Expected, Got>,
                "dtm contract: the mesh differs; Where, Expected and Got stand in the line that "
                "names mesh_is");
};
template <class Where, class M>
struct mesh_is<Where, M, M> {};

template <class Where, class Expected, class Got>
struct device_is {
  static_assert(false_for<Where, Expected, Got>,
                "dtm contract: the tensor lives on another device; Where, Expected and Got stand "
                "in the line that names device_is");
};
template <class Where, class D>
struct device_is<Where, D, D> {};

template <class Where, class Got>
struct is_a_tensor {
  static_assert(false_for<Where, Got>,
                "dtm contract: this argument is not a dtm::tensor; Where and Got stand in the "
                "line that names is_a_tensor; from_local makes a tensor of a local block");
};

template <class Module, int Expected, int Got>
struct takes {
  static_assert(false_for<Module>,
                "dtm contract: wrong number of tensors; Module, Expected and Got stand in the "
                "line that names takes");
};
template <class Module, int N>
struct takes<Module, N, N> {};

namespace differ {

using dtm::detail::first_error;
using dtm::detail::unless;

template <class Where, class Want, class Have, class Indices>
struct dimensions;
template <class Where, class... W, class... H, std::size_t... I>
struct dimensions<Where, shape<W...>, shape<H...>, std::index_sequence<I...>>
    : first_error<unless<std::is_same_v<W, H>, dimension_at<Where, int(I), W, H>>...> {};

template <class Where, class Want, class Have>
struct placements;
template <class Where, class... A, class WS, class HS, class... W, class... H>
struct placements<Where, layout<mesh<A...>, WS, W...>, layout<mesh<A...>, HS, H...>>
    : first_error<unless<std::is_same_v<W, H>,
                         placement_on<Where, typename dtm::detail::mesh_axis<A>::type, W, H>>...> {
};

// Outer disagreements first: where the mesh or the rank differs, placements cannot be compared and
// would only repeat the news. Two exchanged axes are one mistake: the first speaks.
template <class Where, class Want, class Have>
using same_rank =
    std::conditional_t<std::is_same_v<typename Want::shape_type, typename Have::shape_type>,
                       placements<Where, Want, Have>,
                       dimensions<Where, typename Want::shape_type, typename Have::shape_type,
                                  std::make_index_sequence<std::size_t(Want::shape_type::rank)>>>;

template <class Where, class Want, class Have>
struct layouts : std::conditional_t<
                     !std::is_same_v<typename Want::mesh_type, typename Have::mesh_type>,
                     mesh_is<Where, typename Want::mesh_type, typename Have::mesh_type>,
                     std::conditional_t<(Want::shape_type::rank != Have::shape_type::rank),
                                        rank<Where, Want::shape_type::rank, Have::shape_type::rank>,
                                        same_rank<Where, Want, Have>>> {};

template <class Where, class Want, class Have>
struct tensors : is_a_tensor<Where, Have> {};
template <class Where, class T, class L, class D, class U, class M, class E>
struct tensors<Where, tensor<T, L, D>, tensor<U, M, E>>
    : element_type<Where, T, U>, device_is<Where, D, E>, layouts<Where, L, M> {};

template <class Module, bool SameCount, class Inputs, class Got>
struct arguments;
template <class... Got>
struct given {};
template <class Module, class... Names, class... Tensors, class... Got>
struct arguments<Module, true, inputs<named<Names, Tensors>...>, given<Got...>>
    : tensors<at<Module, Names>, Tensors, Got>... {};
template <class Module, class... Wanted, class... Got>
struct arguments<Module, false, inputs<Wanted...>, given<Got...>>
    : takes<Module, int(sizeof...(Wanted)), int(sizeof...(Got))> {};

}  // namespace differ
}  // namespace contract

/// Says what differs between one declared and one given tensor; fails to compile unless they are
/// the same.
template <class Where, class Want, class Have>
constexpr void diagnose_tensor() {
  (void)sizeof(contract::differ::tensors<Where, Want, std::remove_cvref_t<Have>>);
}

/// The same for backward, whose other arguments the compiler has found wrong when the cotangent is
/// right.
template <class Where, class Want, class Got>
constexpr void diagnose_backward() {
  diagnose_tensor<Where, Want, Got>();
  static_assert(!std::is_same_v<Want, Got>,
                "dtm contract: backward takes what forward of the same module saved, moved, and "
                "the pending gradients that zero_gradients(ctx, module) makes");
}

/// Says what differs between a module's declared tensors and the given ones: diagnose<module,
/// inputs<...>, Got...>{}.
template <class Module, class Inputs, class... Got>
struct diagnose;
template <class Module, class... Wanted, class... Got>
struct diagnose<Module, inputs<Wanted...>, Got...>
    : contract::differ::arguments<Module, sizeof...(Wanted) == sizeof...(Got), inputs<Wanted...>,
                                  contract::differ::given<std::remove_cvref_t<Got>...>> {};

/// Asks without failing.
template <class Want, class Have>
concept conforms_to = std::is_same_v<Want, std::remove_cvref_t<Have>>;

}  // namespace dtm
