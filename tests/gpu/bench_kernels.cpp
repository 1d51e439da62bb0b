// Kernels beside the bandwidth of a copy, products beside the rate of a large one. The bytes are
// what a kernel must read and write once, not what it does.

#include "bench.hpp"

#include "dtm/backend/boxes.hpp"
#include "dtm/backend/device/product.hpp"
#include "dtm/kernels/adam.hpp"
#include "dtm/kernels/channels.hpp"
#include "dtm/kernels/distogram_loss.hpp"
#include "dtm/kernels/elementwise.hpp"
#include "dtm/kernels/masked_gate.hpp"

namespace dtm::bench {
namespace {

template <class T>
class kernel_table {
  using A = accumulate_t<T>;

 public:
  kernel_table(gpu_context& ctx, plan const& how, floors const& most, std::int64_t tokens)
      : ctx_(ctx),
        watch_(ctx, how.rounds),
        most_(most),
        tokens_(tokens),
        pairs_(tokens * tokens),
        n_(pairs_ * channels) {}

  void elementwise() {
    auto const x = numbers<T>(ctx_, n_), g = numbers<T>(ctx_, n_), dy = numbers<T>(ctx_, n_),
               mask = numbers<T>(ctx_, pairs_);
    scratch<T> y(ctx_.memory(), n_), z(ctx_.memory(), n_);
    each("gate", n_, of(3 * n_), kernels::gate<T>{x.data(), g.data(), y.data()});
    each("gate backward", n_, of(5 * n_),
         kernels::gate_backward<T>{dy.data(), x.data(), g.data(), y.data(), z.data()});
    each("swiglu", n_, of(3 * n_), kernels::swiglu<T>{x.data(), g.data(), y.data()});
    each("swiglu backward", n_, of(5 * n_),
         kernels::swiglu_backward<T>{dy.data(), x.data(), g.data(), y.data(), z.data()});
    each("channels to planes", n_, of(2 * n_),
         kernels::transpose_matrices<T>{x.data(), pairs_, channels, y.data()});
    each("channels from planes", n_, of(2 * n_),
         kernels::transpose_matrices<T>{x.data(), channels, pairs_, y.data()});
    each("masked gate to planes", n_, of(3 * n_ + pairs_),
         kernels::masked_gate_to_planes<T>{x.data(), g.data(), mask.data(), pairs_, channels / 2,
                                           y.data(), y.data() + n_ / 2});
    each("masked gate from planes, backward", n_, of(5 * n_ + pairs_),
         kernels::masked_gate_from_planes_backward<T>{dy.data(), dy.data() + n_ / 2, x.data(),
                                                      g.data(), mask.data(), pairs_, channels / 2,
                                                      y.data(), z.data()});
  }

  void rows() {
    auto const x = numbers<T>(ctx_, n_), dy = numbers<T>(ctx_, n_),
               gamma = numbers<T>(ctx_, channels), beta = numbers<T>(ctx_, channels);
    scratch<T> y(ctx_.memory(), n_);
    scratch<A> mean(ctx_.memory(), pairs_), rstd(ctx_.memory(), pairs_);
    auto dgamma = numbers<A>(ctx_, channels), dbeta = numbers<A>(ctx_, channels),
         total = numbers<A>(ctx_, 1);
    double const statistics = 2 * double(pairs_) * sizeof(A);
    add("layer norm", of(2 * n_) + statistics, [&] {
      local::layer_norm_forward(ctx_, pairs_, channels, A(1e-5), x.data(), gamma.data(),
                                beta.data(), y.data(), mean.data(), rstd.data());
    });
    add("layer norm backward", of(3 * n_) + statistics, [&] {
      local::layer_norm_backward(
          ctx_, pairs_, channels, dy.data(), x.data(), static_cast<A const*>(mean.data()),
          static_cast<A const*>(rstd.data()), gamma.data(), y.data(), dgamma.data(), dbeta.data());
    });
    add("column sum", of(n_),
        [&] { local::add_column_sum(ctx_, pairs_, channels, x.data(), dgamma.data()); });
    add("square sum", of(n_), [&] { local::sum_of_squares(ctx_, n_, x.data(), total.data()); });
  }

  void loss() {
    auto const pred = numbers<T>(ctx_, pairs_ * bins, 4), target = numbers<T>(ctx_, pairs_ * bins),
               mask = numbers<T>(ctx_, tokens_);
    scratch<T> dpred(ctx_.memory(), pairs_ * bins);
    scratch<A> terms(ctx_.memory(), tokens_ * 2);
    auto const weight = numbers<A>(ctx_, 1);
    scratch<std::int64_t> attaining(ctx_.memory(), 1);
    ctx_.memory().fill_bytes(attaining.data(), 0, sizeof(std::int64_t));
    kernels::distogram_target<T> const aggregated{target.data(), 1, bins, true};
    each("distogram loss, rows", tokens_, of(2 * pairs_ * bins),
         kernels::distogram_row_terms<T>{pred.data(), aggregated, mask.data(), mask.data(), tokens_,
                                         tokens_, 0, 0, 1, 1, terms.data()});
    each("distogram loss backward", pairs_, of(3 * pairs_ * bins),
         kernels::distogram_loss_backward<T>{pred.data(), aggregated, mask.data(), mask.data(),
                                             tokens_, tokens_, 0, 0, 1, 1, weight.data(),
                                             attaining.data(), dpred.data()});
  }

  void adam() {
    constexpr bool has_master = !std::is_same_v<T, A>;
    auto parameter = numbers<T>(ctx_, n_);
    auto const gradient = numbers<A>(ctx_, n_);
    auto first = numbers<A>(ctx_, n_), second = numbers<A>(ctx_, n_),
         master = numbers<A>(ctx_, has_master ? n_ : 1);
    std::vector<A> const values{A(1e-3), A(1)};
    scratch<A> rates(ctx_.memory(), 2);
    ctx_.memory().copy_from_host(rates.data(), values.data(), 2 * sizeof(A));
    each("Adam", n_, 7 * double(n_) * sizeof(A) + (has_master ? of(n_) : 0),
         kernels::adam_update<T>::of(parameter.data(), has_master ? master.data() : nullptr,
                                     gradient.data(), first.data(), second.data(), rates.data(),
                                     1e-3, 0.9, 0.999, 1e-8, 0, false));
  }

  void boxes() {  // what a rank of 2x2 sends to another
    std::int64_t const half = tokens_ / 2;
    auto const x = numbers<T>(ctx_, n_);
    scratch<T> packed(ctx_.memory(), n_ / 4);
    box<4> const tile{{0, 0, 0, 0}, {1, tokens_, tokens_, channels}},
        part{{0, half, half, 0}, {1, tokens_, tokens_, channels}};
    add("pack box", of(n_ / 2),
        [&] { local::pack_box(ctx_, x.data(), tile, part, packed.data()); });
  }

 private:
  static double of(std::int64_t elements) { return double(elements) * sizeof(T); }

  template <class Kernel>
  void each(char const* what, std::int64_t count, double bytes, Kernel const& kernel) {
    add(what, bytes, [&] { local::for_each(ctx_, count, kernel); });
  }
  template <class Work>
  void add(char const* what, double bytes, Work const& work) {
    double const time = watch_.median(work), rate = bytes / (time * 1e-3);
    std::printf("%-34s %4lld  %-5s %9.1f %9.3f %8.0f %7.0f%%\n", what,
                static_cast<long long>(tokens_), name_of<T>(), bytes * 1e-6, time, rate * 1e-9,
                100 * rate / most_.copied_per_second);
  }

  gpu_context& ctx_;
  stopwatch watch_;
  floors const& most_;
  std::int64_t tokens_, pairs_, n_;
};

template <class T>
void measure_kernels_of(gpu_context& ctx, plan const& how, floors const& most,
                        std::int64_t tokens) {
  using part = void (kernel_table<T>::*)();
  std::pair<char const*, part> const parts[] = {{"element-wise", &kernel_table<T>::elementwise},
                                                {"rows", &kernel_table<T>::rows},
                                                {"loss", &kernel_table<T>::loss},
                                                {"Adam", &kernel_table<T>::adam},
                                                {"boxes", &kernel_table<T>::boxes}};
  for (auto const& [what, measure] : parts)
    unless_it_is_full(ctx, what, [&, measure = measure] {
      kernel_table<T> table(ctx, how, most, tokens);
      (table.*measure)();
    });
}

template <class T>
void measure_products_of(gpu_context& ctx, plan const& how, floors const& most,
                         std::int64_t tokens) {
  std::int64_t const pairs = tokens * tokens, hidden = 4 * channels;
  struct shape {
    char const* what;
    local::gemm_shape sizes;
  };
  shape const shapes[] = {
      {"linear 128 to 512", {1, pairs, hidden, channels, false, true}},
      {"linear 512 to 128", {1, pairs, channels, hidden, false, true}},
      {"its weight gradient", {1, channels, hidden, pairs, true, false}},
      {"triangle, 128 planes", {channels, tokens, tokens, tokens, false, true}},
  };
  double const most_rate = std::is_same_v<T, bf16> ? most.bf16_rate : most.fp32_rate;
  for (auto const& [what, s] : shapes)
    unless_it_is_full(ctx, what, [&, what = what, s = s] {
      stopwatch watch(ctx, how.rounds);
      auto const left = numbers<T>(ctx, s.batch * s.m * s.k),
                 right = numbers<T>(ctx, s.batch * s.k * s.n);
      scratch<T> result(ctx.memory(), s.batch * s.m * s.n);
      double const flops = 2 * double(s.batch) * double(s.m) * double(s.n) * double(s.k);
      auto const add = [&](char const* by, double time) {
        double const rate = flops / (time * 1e-3);
        std::printf("%-34s %4lld  %-5s %9s %9.3f %8.1f %7.0f%%\n", what,
                    static_cast<long long>(tokens), name_of<T>(), by, time, rate * 1e-12,
                    100 * rate / most_rate);
      };
      add("cuBLAS",
          watch.median([&] { local::gemm(ctx, s, left.data(), right.data(), result.data()); }));
      add("own", watch.median([&] {
        local::device_product(ctx, s, left.data(), right.data(), result.data());
      }));
    });
}

}  // namespace

void measure_kernels(gpu_context& ctx, plan const& how, floors const& most) {
  std::printf("\n%-34s %4s  %-5s %9s %9s %8s %8s\n", "kernel, 128 channels", "N", "type", "MB",
              "ms", "GB/s", "of copy");
  for (std::int64_t const tokens : how.tokens) {
    measure_kernels_of<float>(ctx, how, most, tokens);
    measure_kernels_of<bf16>(ctx, how, most, tokens);
  }
}

void measure_products(gpu_context& ctx, plan const& how, floors const& most) {
  std::printf("\n%-34s %4s  %-5s %9s %9s %8s %8s\n", "product", "N", "type", "by", "ms", "TFLOP/s",
              "of large");
  for (std::int64_t const tokens : how.tokens) {
    measure_products_of<float>(ctx, how, most, tokens);
    measure_products_of<bf16>(ctx, how, most, tokens);
  }
}

}  // namespace dtm::bench
