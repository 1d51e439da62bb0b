#pragma once
// The placement algebra of local operations (law L3): what an operation accepts and what its
// result's layout is. None of these communicates.
//
//   linear maps, addition of equal layouts   keep shard, replicate and partial<sum>
//   non-linear maps, "+ constant"            refuse partial
//   sum over dimension d                     shard<d> -> partial<sum>; later dimensions are renumbered
//   maximum over dimension d                 shard<d> -> partial<max>; refuses partial
//   contraction "ik,jk->ij"                  per axis: a label of the result -> shard; a contracted one -> partial<sum>

#include <type_traits>

#include "dtm/contract/diagnose.hpp"

namespace dtm {

namespace contract {

template <class Operation, class Axis, class Got>
struct operation_on_partial {
  static_assert(dtm::detail::false_for<Operation, Axis, Got>,
                "dtm contract: the operand is a pending reduction that this operation does not "
                "pass: only linear maps pass a sum, none passes a maximum; all_reduce or "
                "reduce_scatter the axis first; Operation, Axis and Got stand in the line that "
                "names operation_on_partial");
};

template <class Operation, class Axis, class Left, class Right>
struct operands_disagree {
  static_assert(dtm::detail::false_for<Operation, Axis, Left, Right>,
                "dtm contract: the operands' placements on this axis cannot be combined; "
                "Operation, Axis, Left and Right stand in the line that names operands_disagree");
};

template <class Operation, char Label, class Left, class Right>
struct labelled_dimension {
  static_assert(dtm::detail::false_for<Operation, Left, Right>,
                "dtm contract: one label of a contraction names two different dimensions; "
                "Operation, Label, Left and Right stand in the line that names labelled_dimension");
};

template <class Operation, int Expected, int Got>
struct labels_of_operand {
  static_assert(dtm::detail::false_for<Operation>,
                "dtm contract: a contraction has one label per dimension; Operation, Expected and "
                "Got stand in the line that names labels_of_operand");
};

template <class Operation>
struct contraction_formula {
  static_assert(
      dtm::detail::false_for<Operation>,
      "dtm contract: a contraction is written \"ik,jk->ij\": labels once per operand, every label "
      "of the result in an operand; Operation stands in the line that names contraction_formula");
};

template <class Operation, class Axis, int Dimension>
struct dimension_is_sharded {
  static_assert(
      dtm::detail::false_for<Operation, Axis>,
      "dtm contract: this operation needs the whole dimension on each rank and an axis shards it; "
      "Operation, Axis and Dimension stand in the line that names dimension_is_sharded");
};

}  // namespace contract

/// Names of operations, for messages.
namespace operation {
struct add;
struct multiply;
struct add_constant;
struct sigmoid;
struct silu;
struct gate;
struct layer_norm;
struct linear;
struct bias;
struct maximum;
struct sum;
struct log_softmax;
struct outer_sum;
struct permute;
struct scale;
template <text Formula>
struct contraction;
}  // namespace operation

namespace operand {
struct right;
struct weight;
}  // namespace operand

namespace detail {

template <class Operation, class Layout, class Indices>
struct pending_checks;
template <class Operation, class Mesh, class Shape, class... P, std::size_t... I>
struct pending_checks<Operation, layout<Mesh, Shape, P...>, std::index_sequence<I...>> {
  using complete = first_error<unless<
      !is_partial<P>,
      contract::operation_on_partial<Operation, typename Mesh::template axis_at<int(I)>, P>>...>;
  using linear = first_error<unless<
      !std::is_same_v<P, partial<dtm::max>>,
      contract::operation_on_partial<Operation, typename Mesh::template axis_at<int(I)>, P>>...>;
};

template <class Layout>
using axis_indices = std::make_index_sequence<std::size_t(Layout::mesh_type::rank)>;

template <class Operation, class Layout, int Dimension,
          int Axis = innermost_axis<Layout>(Dimension)>
struct whole {
  using check =
      contract::dimension_is_sharded<Operation, typename Layout::mesh_type::template axis_at<Axis>,
                                     Dimension>;
};
template <class Operation, class Layout, int Dimension>
struct whole<Operation, Layout, Dimension, -1> {
  using check = passed<void>;
};

// Checks of operands as types: an operation joins its own with first_error, instantiates them once
// in its body, and goes on only where they hold, so that nothing follows the one error.
template <class Operation, class Tensor>
using complete_check =
    typename pending_checks<Operation, typename Tensor::layout_type,
                            axis_indices<typename Tensor::layout_type>>::complete;
template <class Operation, class Tensor>
using linear_check = typename pending_checks<Operation, typename Tensor::layout_type,
                                             axis_indices<typename Tensor::layout_type>>::linear;
template <class Operation, class Tensor, int Dimension>
using whole_check = typename whole<Operation, typename Tensor::layout_type, Dimension>::check;
template <class Where, class Want, class Have>
using same_check = unless<std::is_same_v<Want, Have>, contract::differ::tensors<Where, Want, Have>>;
template <class Where, class T, class U>
using element_check = unless<std::is_same_v<T, U>, contract::element_type<Where, T, U>>;
template <class Where, int Position, class Want, class Have>
using dimension_check =
    unless<std::is_same_v<Want, Have>, contract::dimension_at<Where, Position, Want, Have>>;

// sum or maximum over a dimension
template <class Layout, int Dimension, class Pending, class Operation>
struct reduced;
template <class Mesh, class Shape, class... P, int Dimension, class Pending, class Operation>
struct reduced<layout<Mesh, Shape, P...>, Dimension, Pending, Operation> {
  template <class Placement>
  using after =
      std::conditional_t<shard_dimension<Placement> == Dimension, Pending,
                         typename renumber_placement<Placement, renumber_erase<Dimension>>::type>;
  using type = layout<Mesh, erase_dimension_t<Shape, Dimension>, after<P>...>;
};

}  // namespace detail

/// Refuses a pending reduction: for every operation that is not linear.
template <class Operation, any_tensor Tensor>
constexpr void require_complete() {
  (void)sizeof(detail::complete_check<Operation, Tensor>);
}

/// Refuses a dimension that an axis shards: for every operation that needs all of it on one rank.
template <class Operation, any_tensor Tensor, int Dimension>
constexpr void require_whole() {
  (void)sizeof(detail::whole_check<Operation, Tensor, Dimension>);
}

/// Refuses operands of different types.
template <class Operation, any_tensor Left, any_tensor Right>
constexpr void require_same() {
  diagnose_tensor<at<Operation, operand::right>, Left, Right>();
}

/// Layout of the sum over a dimension.
template <class Layout, int Dimension>
using sum_layout_t =
    typename detail::reduced<Layout, Dimension, partial<sum>, operation::sum>::type;
/// Layout of the maximum over a dimension.
template <class Layout, int Dimension>
using max_layout_t =
    typename detail::reduced<Layout, Dimension, partial<max>, operation::maximum>::type;

// ---- contraction ----

namespace detail {

struct labels {
  char letter[8] = {};
  int count = 0;
  constexpr int find(char wanted) const {
    for (int i = 0; i < count; ++i)
      if (letter[i] == wanted) return i;
    return -1;
  }
  constexpr void append(char value) { letter[count++] = value; }
  constexpr bool distinct() const {
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < i; ++j)
        if (letter[i] == letter[j]) return false;
    return true;
  }
};

struct formula {
  labels left, right, result;
  bool valid = true;
};

template <text Source>
constexpr formula parse_formula() {
  formula parsed;
  int part = 0;
  for (std::size_t i = 0; i < Source.size; ++i) {
    char const letter = Source[i];
    if (letter == ',' && part == 0) {
      part = 1;
    } else if (letter == '-' && part == 1 && Source[i + 1] == '>') {
      part = 2;
      ++i;
    } else if (letter >= 'a' && letter <= 'z') {
      labels& target = part == 0 ? parsed.left : part == 1 ? parsed.right : parsed.result;
      if (target.count == 8) return {{}, {}, {}, false};
      target.append(letter);
    } else {
      parsed.valid = false;
    }
  }
  parsed.valid = parsed.valid && part == 2 && parsed.left.distinct() && parsed.right.distinct() &&
                 parsed.result.distinct();
  for (int i = 0; i < parsed.result.count; ++i)
    if (parsed.left.find(parsed.result.letter[i]) < 0 &&
        parsed.right.find(parsed.result.letter[i]) < 0)
      parsed.valid = false;
  return parsed;
}

enum class after_contraction { replicate, partial_sum, shard, refused };

template <text Source, class Left, class Right>
struct contracted {
  static constexpr formula parsed = parse_formula<Source>();
  using operation_type = operation::contraction<Source>;
  using mesh_type = typename Left::mesh_type;

  struct placed {
    after_contraction kind = after_contraction::replicate;
    int dimension = 0;
  };

  template <class L, class R>
  static constexpr placed combine() {
    if constexpr (std::is_same_v<L, partial<dtm::max>> || std::is_same_v<R, partial<dtm::max>>) {
      return {after_contraction::refused};
    } else if constexpr (is_partial<L> || is_partial<R>) {
      // a product of a term with a complete value is a term; of two terms it is nothing
      return {is_replicate<L> || is_replicate<R> ? after_contraction::partial_sum
                                                 : after_contraction::refused};
    } else {
      constexpr int l = shard_dimension<L>, r = shard_dimension<R>;
      if constexpr (l < 0 && r < 0) {
        return {after_contraction::replicate};
      } else {
        constexpr char label = l >= 0 ? parsed.left.letter[l] : parsed.right.letter[r];
        constexpr int in_left = parsed.left.find(label), in_right = parsed.right.find(label);
        constexpr bool agree = (in_left < 0 || in_left == l) && (in_right < 0 || in_right == r) &&
                               (in_left >= 0 || l < 0) && (in_right >= 0 || r < 0);
        if constexpr (!agree) return {after_contraction::refused};
        constexpr int out = parsed.result.find(label);
        if constexpr (out < 0)
          return {after_contraction::partial_sum};
        else
          return {after_contraction::shard, out};
      }
    }
  }

  template <int Axis>
  struct on_axis {
    using left = typename Left::template placement_at<Axis>;
    using right = typename Right::template placement_at<Axis>;
    static constexpr placed value = combine<left, right>();
    using check =
        unless<value.kind != after_contraction::refused,
               contract::operands_disagree<
                   operation_type, typename mesh_type::template axis_at<Axis>, left, right>>;
    using type = std::conditional_t<value.kind == after_contraction::shard, shard<value.dimension>,
                                    std::conditional_t<value.kind == after_contraction::partial_sum,
                                                       partial<dtm::sum>, replicate>>;
  };

  template <int Position>
  struct result_dimension {
    static constexpr int in_left = parsed.left.find(parsed.result.letter[Position]);
    static constexpr int in_right = parsed.right.find(parsed.result.letter[Position]);
    static auto choose() {
      if constexpr (in_left >= 0)
        return slot<0, dimension_t<typename Left::shape_type, in_left>>{};
      else
        return slot<0, dimension_t<typename Right::shape_type, in_right>>{};
    }
    using type = typename decltype(choose())::type;
  };

  template <int Position, int Other = parsed.right.find(parsed.left.letter[Position])>
  struct label_check {
    using type =
        unless<std::is_same_v<dimension_t<typename Left::shape_type, Position>,
                              dimension_t<typename Right::shape_type, Other>>,
               contract::labelled_dimension<operation_type, parsed.left.letter[Position],
                                            dimension_t<typename Left::shape_type, Position>,
                                            dimension_t<typename Right::shape_type, Other>>>;
  };
  template <int Position>
  struct label_check<Position, -1> {
    using type = passed<void>;
  };

  template <class Dimensions, class Axes>
  struct operands_agree;
  template <int... D, int... A>
  struct operands_agree<std::integer_sequence<int, D...>, std::integer_sequence<int, A...>> {
    using check = first_error<typename label_check<D>::type..., typename on_axis<A>::check...>;
  };

  static constexpr bool formed = parsed.valid && parsed.left.count == Left::rank &&
                                 parsed.right.count == Right::rank &&
                                 std::is_same_v<mesh_type, typename Right::mesh_type>;

  template <bool Formed, class Unused>
  struct verdict {
    using check = first_error<
        unless<parsed.valid, contract::contraction_formula<operation_type>>,
        unless<parsed.left.count == Left::rank,
               contract::labels_of_operand<operation_type, Left::rank, parsed.left.count>>,
        unless<parsed.right.count == Right::rank,
               contract::labels_of_operand<operation_type, Right::rank, parsed.right.count>>,
        contract::mesh_is<operation_type, mesh_type, typename Right::mesh_type>>;
  };
  template <class Unused>
  struct verdict<true, Unused> : operands_agree<std::make_integer_sequence<int, Left::rank>,
                                                std::make_integer_sequence<int, mesh_type::rank>> {
  };

  template <bool Formed, class Unused>
  struct build {
    using type = Left;
  };
  template <class Unused>
  struct build<true, Unused> {
    template <int... A, int... D>
    static auto make(std::integer_sequence<int, A...>, std::integer_sequence<int, D...>)
        -> layout<mesh_type, shape<typename result_dimension<D>::type...>,
                  typename on_axis<A>::type...>;
    using type = decltype(make(std::make_integer_sequence<int, mesh_type::rank>{},
                               std::make_integer_sequence<int, parsed.result.count>{}));
  };

  using check = typename verdict<formed, void>::check;
  using type = typename build<formed, void>::type;
};

}  // namespace detail

/// Layout of a contraction, derived from its operands; an impossible one is one compile error.
template <text Formula, class Left, class Right>
using contraction_layout_t =
    typename detail::checked_type<detail::contracted<Formula, Left, Right>>::type;

}  // namespace dtm
