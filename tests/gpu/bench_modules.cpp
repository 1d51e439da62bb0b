// Modules, forward and backward, with the host launching every kernel and as captured graphs, and
// beside PyTorch where its times are given.

#include "bench.hpp"

#include <fstream>
#include <map>
#include <sstream>

#include "dtm/modules/losses/distogram_loss.hpp"
#include "dtm/modules/pairformer_noseq_layer.hpp"
#include "dtm/parameters/gradients.hpp"
#include "dtm/parameters/walk.hpp"

namespace dtm::bench {
namespace {

/// Milliseconds; `both` is forward and backward.
struct module_times {
  double forward = 0, backward = 0, both = 0;      // the host launches
  double forward_captured = 0, both_captured = 0;  // one launch for all
};

/// Times of PyTorch by module, size and element type: forward, and forward and backward.
using torch_times = std::map<std::string, std::pair<double, double>>;

std::string key(std::string const& module, std::int64_t tokens, std::string const& element) {
  return module + ' ' + std::to_string(tokens) + ' ' + element;
}

torch_times read_torch(std::string const& path) {
  torch_times times;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string module, element;
    std::int64_t tokens = 0;
    double forward = 0, both = 0;
    if (words >> module >> tokens >> element >> forward >> both)
      times[key(module, tokens, element)] = {forward, both};
  }
  return times;
}

template <class Forward, class Backward>
module_times times_of(gpu_context& ctx, plan const& how, Forward const& forward,
                      Backward const& backward) {
  stopwatch watch(ctx, how.rounds);
  auto const both = [&] { backward(forward()); };
  module_times times;
  times.forward = watch.median([&] { (void)forward(); });
  times.backward = watch.median(forward, backward);
  times.both = watch.median(both);
  {
    auto graph = capture(ctx, [&] { (void)forward(); });
    times.forward_captured = watch.median([&] { graph.replay(); });
  }
  auto graph = capture(ctx, both);
  times.both_captured = watch.median([&] { graph.replay(); });
  return times;
}

class module_table {
 public:
  module_table(gpu_context& ctx, plan const& how, std::int64_t tokens, torch_times const& torch)
      : ctx_(ctx), how_(how), tokens_(tokens), torch_(torch) {}

  template <class T>
  void measure() {
    add<T>("transition", [&] {
      transition<on_gpu<T>, channels, 4 * channels> module(ctx_);
      return pair_module<T>(module);
    });
    add<T>("triangle_outgoing", [&] {
      triangle_multiplication<outgoing, on_gpu<T>, channels> module(ctx_);
      return pair_module<T>(module, pair<T>());
    });
    add<T>("triangle_incoming", [&] {
      triangle_multiplication<incoming, on_gpu<T>, channels> module(ctx_);
      return pair_module<T>(module, pair<T>());
    });
    add<T>("attention_starting", [&] {
      triangle_attention<starting, on_gpu<T>, channels, 4, 32> module(ctx_);
      return pair_module<T>(module, pair<T>());
    });
    add<T>("attention_ending", [&] {
      triangle_attention<ending, on_gpu<T>, channels, 4, 32> module(ctx_);
      return pair_module<T>(module, pair<T>());
    });
    add<T>("pair_block", [&] {
      pairformer_noseq_layer<on_gpu<T>, channels, 4, 32> module(ctx_);
      return pair_module<T>(module, pair<T>());
    });
    add<T>("distogram_loss", [&] { return loss<T>(); });
  }

 private:
  auto sizes() const { return extents{bind<batch>(1), bind<tokens>(tokens_), bind<conformers>(1)}; }

  template <class Tensor>
  Tensor drawn(double scale = 1) {
    Tensor x(ctx_, sizes());
    fill_numbers(ctx_, x.data(), x.size(), scale);
    return x;
  }
  template <class T, class... Channels>
  pair_tensor<on_gpu<T>, Channels...> pair() {
    return drawn<pair_tensor<on_gpu<T>, Channels...>>();
  }

  /// A module from a pair to a pair, with `more` beside the first input.
  template <class T, class Module, class... More>
  module_times pair_module(Module& module, More const&... more) {
    each_parameter(module,
                   [&](auto const&, auto& p) { fill_numbers(ctx_, p.data(), p.size(), 0.1); });
    auto gradients = zero_gradients(ctx_, module);
    auto const x = pair<T, c<channels>>(), dy = pair<T, c<channels>>();
    return times_of(
        ctx_, how_, [&] { return module.forward(ctx_, x, more...); },
        [&](auto result) { (void)module.backward(ctx_, std::move(result.saved), dy, gradients); });
  }

  template <class T>
  module_times loss() {
    using module_type = distogram_loss<on_gpu<T>, bins>;
    module_type const module{};
    auto const pred = drawn<typename module_type::Pred>(4);
    auto const target = drawn<typename module_type::Target>();
    auto const mask = drawn<typename module_type::Mask>();
    auto const d_loss = drawn<typename module_type::Loss>();
    return times_of(
        ctx_, how_, [&] { return module.forward(ctx_, pred, target, mask); },
        [&](auto result) { (void)module.backward(ctx_, std::move(result.saved), d_loss); });
  }

  template <class T, class Measure>
  void add(char const* what, Measure const& measure) {
    unless_it_is_full(ctx_, what, [&] {
      module_times const t = measure();
      std::printf("%-18s %4lld  %-5s %8.3f %8.3f %8.3f %8.3f %8.3f", what,
                  static_cast<long long>(tokens_), name_of<T>(), t.forward, t.forward_captured,
                  t.backward, t.both, t.both_captured);
      auto const found = torch_.find(key(what, tokens_, name_of<T>()));
      if (found != torch_.end())
        std::printf(" %8.3f %8.3f %7.2f", found->second.first, found->second.second,
                    found->second.second / t.both);
      std::printf("\n");
      std::fflush(stdout);
    });
  }

  gpu_context& ctx_;
  plan const& how_;
  std::int64_t tokens_;
  torch_times const& torch_;
};

}  // namespace

void measure_modules(gpu_context& ctx, plan const& how) {
  auto const torch = how.torch_file.empty() ? torch_times{} : read_torch(how.torch_file);
  std::printf("\n%-18s %4s  %-5s %8s %8s %8s %8s %8s", "module, ms", "N", "type", "forward",
              "captured", "backward", "both", "captured");
  if (!torch.empty()) std::printf(" %8s %8s %7s", "PyTorch", "both", "ratio");
  std::printf("\n");
  for (std::int64_t const tokens : how.tokens) {
    module_table table(ctx, how, tokens, torch);
    table.measure<float>();
    table.measure<bf16>();
  }
}

}  // namespace dtm::bench
