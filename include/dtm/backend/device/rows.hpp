#pragma once
// Row reductions and sums on devices that launch kernels over blocks. Which thread adds what
// follows from shapes and alignment alone (law L13).

#include <cstdint>
#include <type_traits>

#include "dtm/backend/device/for_each.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/kernels/column_sum.hpp"
#include "dtm/kernels/layer_norm.hpp"
#include "dtm/kernels/layer_norm_wide.hpp"
#include "dtm/kernels/norm.hpp"
#include "dtm/kernels/relative_position.hpp"

namespace dtm::local {

namespace detail {

/// result[j] += sum over rows of x[row, j]; chunks first where there are many rows.
template <class Context, class T, class A>
void add_columns(Context& ctx, std::int64_t rows, std::int64_t columns, T const* x, A* result) {
  if (rows == 0 || columns == 0) return;
  auto const launch = [&](auto const& kernel) { ctx.launch(kernel.blocks(), kernel); };
  auto const chunks = kernels::row_chunks::of(rows, 256, 512);
  if (chunks.count == 1)
    return launch(kernels::column_sums<T>{x, rows, columns, rows, result, true});
  scratch<A> partial(ctx.memory(), chunks.count * columns);
  launch(kernels::column_sums<T>{x, rows, columns, chunks.rows_each, partial.data(), false});
  launch(
      kernels::column_sums<A>{partial.data(), chunks.count, columns, chunks.count, result, true});
}

// At most this many elements of a row in the registers of a lane.
template <class T>
inline constexpr int most_held = sizeof(T) == 8 ? 16 : 32;

/// visit(vector length, vectors a lane holds) as types, or false where a warp cannot hold the row.
template <class T, int Held = 1, class Visit>
bool with_held_row(std::int64_t channels, Visit const& visit) {
  constexpr int length = kernels::vector_length<T>;
  if constexpr (Held * length > most_held<T>) {
    return false;
  } else {
    if (channels > Held * length * kernels::warp_size)
      return with_held_row<T, 2 * Held>(channels, visit);
    visit(std::integral_constant<int, length>{}, std::integral_constant<int, Held>{});
    return true;
  }
}

template <class Kernel>
std::int64_t blocks_of_warp_rows(std::int64_t rows) {
  return kernels::blocks_for(rows, Kernel::threads / kernels::warp_size);
}

}  // namespace detail

template <device_like Device>
struct column_sum_impl<Device> {
  template <class Context, class T, class A>
  static void run(Context& ctx, std::int64_t rows, std::int64_t columns, T const* x, A* result) {
    static_assert(std::is_same_v<A, accumulate_t<T>>);
    detail::add_columns(ctx, rows, columns, x, result);
  }
};

template <device_like Device>
struct square_sum_impl<Device> {
  template <class Context, class T, class A>
  static void run(Context& ctx, std::int64_t count, T const* x, A* result) {
    static_assert(std::is_same_v<A, accumulate_t<T>>);
    if (count == 0) return;
    auto const chunks = kernels::row_chunks::of(count, 4096, 1024);
    scratch<A> term(ctx.memory(), chunks.count);
    ctx.launch(chunks.count, kernels::square_sums<T>{x, count, chunks.rows_each, term.data()});
    ctx.launch(1, kernels::add_terms<A>{term.data(), chunks.count, result});
  }
};

template <device_like Device>
struct selected_columns_impl<Device> {
  template <class Context, class T, class A>
  static void run(Context& ctx, std::int64_t pairs, std::int64_t width, std::int64_t channels,
                  std::int32_t const* selected, T const* dz, A* gradient) {
    static_assert(std::is_same_v<A, accumulate_t<T>>);
    std::int64_t const count = width * channels;
    if (pairs == 0 || count == 0) return;
    auto const chunks = kernels::row_chunks::of(pairs, 64, 256);
    scratch<A> term(ctx.memory(), chunks.count * count);
    kernels::selected_column_sums<T> const kernel{
        selected, dz, pairs, width, channels, chunks.rows_each, term.data()};
    ctx.launch(kernel.blocks(), kernel);
    detail::add_columns(ctx, chunks.count, count, term.data(), gradient);
  }
};

template <device_like Device>
struct layer_norm_impl<Device> {
  template <class Context, class T, class A>
  static void forward(Context& ctx, std::int64_t rows, std::int64_t channels, A eps, T const* x,
                      T const* gamma, T const* beta, T* y, A* mean, A* rstd) {
    if (rows == 0 || channels == 0) return;
    auto const in_warps = [&]<int Length, int Held>(std::integral_constant<int, Length>,
                                                    std::integral_constant<int, Held>) {
      using kernel = kernels::layer_norm_rows<T, Length, Held>;
      ctx.launch(detail::blocks_of_warp_rows<kernel>(rows),
                 kernel{rows, channels, eps, x, gamma, beta, y, mean, rstd});
    };
    if (vectors<T>(channels, x, gamma, beta, y) && detail::with_held_row<T>(channels, in_warps))
      return;
    ctx.launch(kernels::blocks_for(rows, 1),
               kernels::layer_norm_wide<T>{rows, channels, eps, x, gamma, beta, y, mean, rstd});
  }

  template <class Context, class T, class A>
  static void apply(Context& ctx, std::int64_t rows, std::int64_t channels, T const* x,
                    A const* mean, A const* rstd, T const* gamma, T const* beta, T* y) {
    if (rows == 0 || channels == 0) return;
    auto const in_warps = [&]<int Length, int Held>(std::integral_constant<int, Length>,
                                                    std::integral_constant<int, Held>) {
      using kernel = kernels::layer_norm_apply_rows<T, Length, Held>;
      ctx.launch(detail::blocks_of_warp_rows<kernel>(rows),
                 kernel{rows, channels, x, mean, rstd, gamma, beta, y});
    };
    if (vectors<T>(channels, x, gamma, beta, y) && detail::with_held_row<T>(channels, in_warps))
      return;
    for_each_impl<Device>::run(
        ctx, rows * channels,
        kernels::layer_norm_apply_each<T>{channels, x, mean, rstd, gamma, beta, y});
  }

  template <class Context, class T, class A>
  static void backward(Context& ctx, std::int64_t rows, std::int64_t channels, T const* dy,
                       T const* x, A const* mean, A const* rstd, T const* gamma, T* dx, A* dgamma,
                       A* dbeta) {
    if (rows == 0 || channels == 0) return;
    auto const in_warps = [&]<int Length, int Held>(std::integral_constant<int, Length>,
                                                    std::integral_constant<int, Held>) {
      using kernel = kernels::layer_norm_backward_rows<T, Length, Held>;
      constexpr std::int64_t warps_each = kernel::threads / kernels::warp_size;
      // a warp has eight rows at least, so that its sums are few beside them
      std::int64_t const wanted = kernels::ceil_divide(rows, 8 * warps_each);
      std::int64_t const blocks = wanted < most_backward_blocks ? wanted : most_backward_blocks;
      std::int64_t const warps = blocks * warps_each;
      scratch<A> of_gamma(ctx.memory(), warps * channels), of_beta(ctx.memory(), warps * channels);
      ctx.launch(blocks, kernel{rows, channels, dy, x, mean, rstd, gamma, dx, of_gamma.data(),
                                of_beta.data()});
      detail::add_columns(ctx, warps, channels, of_gamma.data(), dgamma);
      detail::add_columns(ctx, warps, channels, of_beta.data(), dbeta);
    };
    if (vectors<T>(channels, dy, x, gamma, dx) && detail::with_held_row<T>(channels, in_warps))
      return;
    backward_wide(ctx, rows, channels, dy, x, mean, rstd, gamma, dx, dgamma, dbeta);
  }

 private:
  static constexpr std::int64_t most_backward_blocks = 512;

  template <class T, class... P>
  static bool vectors(std::int64_t channels, P const*... pointer) {
    constexpr int length = kernels::vector_length<T>;
    return channels % length == 0 && kernels::are_aligned<length>(pointer...);
  }

  template <class Context, class T, class A>
  static void backward_wide(Context& ctx, std::int64_t rows, std::int64_t channels, T const* dy,
                            T const* x, A const* mean, A const* rstd, T const* gamma, T* dx,
                            A* dgamma, A* dbeta) {
    // the sums first: dx may be dy's storage
    auto const chunks = kernels::row_chunks::of(rows, 256, 512);
    scratch<A> of_gamma(ctx.memory(), chunks.count * channels),
        of_beta(ctx.memory(), chunks.count * channels);
    ctx.launch(chunks.count * kernels::ceil_divide(channels, kernels::warp_size),
               kernels::layer_norm_parameter_sums<T>{rows, channels, chunks.rows_each, dy, x, mean,
                                                     rstd, of_gamma.data(), of_beta.data()});
    detail::add_columns(ctx, chunks.count, channels, of_gamma.data(), dgamma);
    detail::add_columns(ctx, chunks.count, channels, of_beta.data(), dbeta);
    ctx.launch(kernels::blocks_for(rows, 1),
               kernels::layer_norm_backward_wide<T>{rows, channels, dy, x, mean, rstd, gamma, dx});
  }
};

}  // namespace dtm::local
