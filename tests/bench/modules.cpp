// One module of the library, forward or forward and backward, on one rank or several.
//
//   bench_modules MODULE PASS TOKENS SECONDS [SAMPLES] [--messages] [--planted]
//
//   MODULE      triangle_outgoing, triangle_incoming, triangle_attention_starting,
//               triangle_attention_ending, transition, pair_block; barrier is one of all ranks
//   PASS        forward, both; infer, of modules that have it: forward without anything kept;
//               serial for the numbers of the serial module in fp64, without times
//   SECONDS     that a sample lasts at least
//   SAMPLES     how many are taken; without it, one for every line of standard input
//   --messages  exchanges by messages where ranks could read each other's memory
//   --planted   computes a wrong formula, which the check must find
//
// fp32, 128 channels, batch 1. Two ranks are a mesh of 1x2, four of 2x2. The first line says what a
// rank sends and keeps, and has the digest of every result: size, norm and eight of its elements.
// Inputs and parameters are functions of their names and indices, which peer.py computes too.

#include <array>
#include <chrono>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "dtm/comm/environment.hpp"
#include "dtm/host.hpp"
#include "dtm/modules/pairformer_noseq_layer.hpp"
#include "dtm/parameters/gradients.hpp"
#include "dtm/serial/pairformer_noseq_layer.hpp"
#include "dtm/testing/draw.hpp"
#include "dtm/testing/full_tensor.hpp"
#include "measure.hpp"

namespace dtm::bench {
namespace {

constexpr std::int64_t channels = 128, hidden = 4 * channels, heads = 4, width = 32;

using grid = mesh<dp, cp0, cp1>;
using on_host = space<float, grid>;
using bench_context = context<host, grid>;
using pair = pair_tensor<on_host, c<channels>>;
using pair_mask = pair_tensor<on_host>;
using testing::key_of;
using testing::place;

struct request {
  std::string module, pass;
  std::int64_t tokens = 0;
  double seconds = 0;
  int samples = 0;  // 0: as standard input asks
  bool planted = false;
  comm::transport transport = comm::transport::by_topology;
};

// ---- inputs -------------------------------------------------------------------------------------
double draw_uniform(std::uint64_t key, place const& p) {
  return testing::uniform(key, p.linear);
}
/// One position in ten is masked.
double draw_mask(std::uint64_t key, place const& p) {
  return testing::uniform(key, p.linear) < -0.8 ? 0 : 1;
}

/// The name under which a parameter is drawn. Planted: what a gate opens and the gate itself are
/// exchanged.
std::string drawn_name(std::string const& name, bool planted) {
  static constexpr std::pair<char const*, char const*> sides[] = {
      {"fc1", "fc2"}, {"p_in", "g_in"}, {"mha.linear_v", "mha.linear_g"}};
  if (planted)
    for (auto const& [one, other] : sides) {
      if (name.starts_with(one)) return other + name.substr(std::string(one).size());
      if (name.starts_with(other)) return one + name.substr(std::string(other).size());
    }
  return name;
}

// ---- digests ------------------------------------------------------------------------------------
/// The size of a tensor, its norm, and eight of its elements.
std::vector<double> digest(serial::array<double> const& a) {
  double squares = 0;
  for (double const value : a.values) squares += value * value;
  std::vector<double> result{double(a.size()), std::sqrt(squares)};
  for (std::uint64_t sample = 0; sample < 8; ++sample)
    result.push_back(a.values[testing::bits(key_of(0, "sample"), sample) % a.values.size()]);
  return result;
}

// ---- ranks that wait for the driver -------------------------------------------------------------
/// Whether there is another sample, as rank 0 reads it. The other ranks look only every
/// millisecond: meanwhile another program is measured.
class commands {
 public:
  commands(comm::world& world, int samples) : world_(world), samples_(samples) {}

  bool next() {
    int go = 0;
    if (world_.rank() == 0) {
      std::string text;
      go = samples_ > 0 ? taken_ < samples_ : bool(std::getline(std::cin, text));
    }
    ++taken_;
    MPI_Request sent;
    comm::mpi::check(MPI_Ibcast(&go, 1, MPI_INT, 0, world_.native(), &sent), "a command");
    for (int done = 0; !done;) {
      comm::mpi::check(MPI_Test(&sent, &done, MPI_STATUS_IGNORE), "a command");
      if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return go != 0;
  }

 private:
  comm::world& world_;
  int samples_, taken_ = 0;
};

// ---- measuring ----------------------------------------------------------------------------------
class bench {
 public:
  bench(comm::world& world, request const& what)
      : world_(world), what_(what), ctx_(world, mesh_sizes(world.size()), 0, options(what)) {}

  bench_context& ctx() { return ctx_; }

  /// The largest of all ranks.
  template <std::size_t Count>
  std::array<double, Count> largest(std::array<double, Count> values) {
    ctx_.groups()
        .along_all()
        .all_reduce(values.data(), values.data(), Count, comm::reduction::max,
                    comm::call{"all_reduce", "times", 0, comm::call_site::current()})
        .wait();
    return values;
  }
  void barrier() { ctx_.along_all().barrier({"barrier"}).wait(); }

  /// `about` is printed first, with what one run of `work` sends and takes.
  template <class Work>
  void measure(line about, Work const& work) {
    work();
    barrier();
    ctx_.ledger().clear();
    ctx_.memory().restart_peak();
    std::int64_t const held = ctx_.memory().together.current_bytes;
    double const begin = now();
    work();
    auto const seen = largest(std::array{now() - begin, double(ctx_.ledger().sent_bytes()),
                                         double(ctx_.memory().together.peak_bytes - held)});
    int const runs = runs_to_fill(what_.seconds, seen[0]);
    if (world_.rank() == 0)
      about.number("sent_bytes", seen[1]).number("extra_bytes", seen[2]).print();
    forget_peak();
    for (commands asked(world_, what_.samples); asked.next();) sample(work, runs);
  }

 private:
  static bench_context::options options(request const& what) {
    bench_context::options chosen;
    chosen.transport = what.transport;
    return chosen;
  }
  static std::vector<int> mesh_sizes(int ranks) {
    int rows = 1;
    for (int r = 1; r * r <= ranks; ++r)
      if (ranks % r == 0) rows = r;
    return {1, rows, ranks / rows};
  }

  template <class Work>
  void sample(Work const& work, int runs) {
    if (runs > 1) work();  // a short one finds caches as in a model
    barrier();
    double const faults = page_faults(), begin = now(), cpu_begin = cpu_now();
    for (int run = 0; run < runs; ++run) work();
    barrier();
    double const end = now(), cpu_end = cpu_now();
    auto const seen = largest(std::array{(end - begin) / runs, (cpu_end - cpu_begin) / runs,
                                         (page_faults() - faults) / runs, peak_resident_bytes()});
    if (world_.rank() == 0)
      line()
          .number("seconds", seen[0])
          .number("cpu_seconds", seen[1])
          .number("page_faults", seen[2])
          .number("resident_bytes", seen[3])
          .print();
    ctx_.ledger().clear();
  }

  comm::world& world_;
  request const& what_;
  bench_context ctx_;
};

template <class Module, class... More>
void measure_module(bench& all, request const& what, More const&... more) {
  auto& ctx = all.ctx();
  auto const sizes = extents{bind<batch>(1), bind<tokens>(what.tokens)};
  Module module(ctx);
  each_parameter(module, [&](std::string const& name, auto& parameter) {
    std::string const drawn = drawn_name(name, what.planted);
    testing::fill(
        parameter,
        [&](std::uint64_t key, place const& p) {
          return testing::draw_parameter(drawn, key, p.extent, p.linear);
        },
        key_of(0, drawn));
  });
  pair x(ctx, sizes);
  testing::fill(x, draw_uniform, key_of(0, "x"));
  cotangent_t<pair> dy(ctx, sizes);
  testing::fill(dy, draw_uniform, key_of(0, "dy"));

  line about;
  about.text("instructions", name_of(ctx.device().instructions()));
  about.number("shard_bytes", double(x.bytes()));
  if (what.pass == "infer") {
    if constexpr (requires { module.infer(ctx, x, more...); }) {
      about.numbers("y", digest(testing::full_tensor(ctx, module.infer(ctx, x, more...))));
      return all.measure(about, [&] { (void)module.infer(ctx, x, more...); });
    }
    throw std::invalid_argument(what.module + " has no infer");
  }
  bool const both = what.pass == "both";
  {
    auto gradients = zero_gradients(ctx, module);
    auto result = module.forward(ctx, x, more...);
    about.numbers("y", digest(testing::full_tensor(ctx, result.y)));
    if (both) {
      auto const dx = module.backward(ctx, std::move(result.saved), dy, gradients);
      about.numbers("dx", digest(testing::full_tensor(ctx, dx)));
      each_parameter(gradients, [&](std::string const& name, auto const& gradient) {
        about.numbers(("d " + name).c_str(),
                      digest(testing::full_tensor(ctx, testing::complete(ctx, gradient))));
      });
    }
  }
  if (!both) return all.measure(about, [&] { (void)module.forward(ctx, x, more...); });
  auto gradients = zero_gradients(ctx, module);
  all.measure(about, [&] {
    auto result = module.forward(ctx, x, more...);
    (void)module.backward(ctx, std::move(result.saved), dy, gradients);
  });
}

template <class Module>
void measure_masked(bench& all, request const& what) {
  pair_mask mask(all.ctx(), extents{bind<batch>(1), bind<tokens>(what.tokens)});
  testing::fill(mask, draw_mask, key_of(0, "mask"));
  measure_module<Module>(all, what, mask);
}

// ---- the serial modules -------------------------------------------------------------------------
serial::array<double> drawn_array(serial::extent_list extents, char const* name) {
  serial::array<double> a(std::move(extents));
  for (std::size_t i = 0; i < a.values.size(); ++i)
    a.values[i] = double(float(testing::uniform(key_of(0, name), i)));
  return a;
}

template <class Module, class... More>
void print_serial(Module module, std::int64_t n, More const&... more) {
  for (auto& [name, values] : serial::named_parameters(module))
    for (std::size_t i = 0; i < values->values.size(); ++i)
      values->values[i] =
          double(float(testing::draw_parameter(name, key_of(0, name), values->extents, i)));
  auto gradients = serial::zero_gradients(module);
  auto const result = module.forward(drawn_array({1, n, n, channels}, "x"), more...);
  auto const dx = module.backward(result.kept, drawn_array({1, n, n, channels}, "dy"), gradients);
  line about;
  about.numbers("y", digest(result.y)).numbers("dx", digest(dx));
  for (auto const& [name, values] : serial::named_parameters(gradients))
    about.numbers(("d " + name).c_str(), digest(*values));
  about.print();
}

void print_serial(request const& what) {
  std::int64_t const n = what.tokens;
  if (what.module == "transition")
    return print_serial(serial::transition<double>(channels, hidden), n);
  serial::array<double> mask({1, n, n});
  for (std::size_t i = 0; i < mask.values.size(); ++i)
    mask.values[i] = draw_mask(key_of(0, "mask"), {{}, {}, {}, i});
  using serial::triangle_direction, serial::triangle_node;
  if (what.module == "pair_block")
    return print_serial(serial::pairformer_noseq_layer<double>(channels, width, heads), n, mask);
  if (what.module.starts_with("triangle_attention"))
    return print_serial(
        serial::triangle_attention<double>(
            what.module.ends_with("starting") ? triangle_node::starting : triangle_node::ending,
            channels, width, heads),
        n, mask);
  print_serial(serial::triangle_multiplication<double>(what.module == "triangle_outgoing"
                                                           ? triangle_direction::outgoing
                                                           : triangle_direction::incoming,
                                                       channels),
               n, mask);
}

// ---- the program --------------------------------------------------------------------------------
void run(comm::world& world, request const& what) {
  if (what.pass == "serial") return print_serial(what);
  bench all(world, what);
  if (what.module == "barrier")
    all.measure(line(), [&] { all.barrier(); });
  else if (what.module == "transition")
    measure_module<transition<on_host, channels, hidden>>(all, what);
  else if (what.module == "triangle_outgoing")
    measure_masked<triangle_multiplication<outgoing, on_host, channels>>(all, what);
  else if (what.module == "triangle_incoming")
    measure_masked<triangle_multiplication<incoming, on_host, channels>>(all, what);
  else if (what.module == "triangle_attention_starting")
    measure_masked<triangle_attention<starting, on_host, channels, heads, width>>(all, what);
  else if (what.module == "triangle_attention_ending")
    measure_masked<triangle_attention<ending, on_host, channels, heads, width>>(all, what);
  else
    measure_masked<pairformer_noseq_layer<on_host, channels, heads, width>>(all, what);
}

/// False where the arguments are not understood.
bool parse(std::vector<std::string> words, request& what) {
  if (!words.empty() && words.back() == "--planted") {
    what.planted = true;
    words.pop_back();
  }
  if (!words.empty() && words.back() == "--messages") {
    what.transport = comm::transport::messages;
    words.pop_back();
  }
  if (words.size() < 4 || words.size() > 5) return false;
  what.module = words[0];
  what.pass = words[1];
  what.tokens = std::atoll(words[2].c_str());
  what.seconds = std::strtod(words[3].c_str(), nullptr);
  if (words.size() == 5) what.samples = std::atoi(words[4].c_str());
  auto const one_of = [](std::string const& word, std::vector<std::string> const& known) {
    return std::find(known.begin(), known.end(), word) != known.end();
  };
  return one_of(what.module,
                {"triangle_outgoing", "triangle_incoming", "triangle_attention_starting",
                 "triangle_attention_ending", "transition", "pair_block", "barrier"}) &&
         one_of(what.pass, {"forward", "infer", "both", "serial"}) && what.tokens > 0;
}

}  // namespace
}  // namespace dtm::bench

int main(int argc, char** argv) {
  dtm::comm::environment mpi(argc, argv);
  dtm::bench::request what;
  if (!dtm::bench::parse({argv + 1, argv + argc}, what)) {
    std::fprintf(stderr,
                 "usage: bench_modules MODULE forward|infer|both|serial TOKENS SECONDS [SAMPLES] "
                 "[--messages] [--planted]\n");
    return 2;
  }
  try {
    // checks cost time that is not the modules'
    dtm::comm::world world(MPI_COMM_WORLD, {600, dtm::comm::check_level::cheap});
    world.run([&] { dtm::bench::run(world, what); });
  } catch (std::exception const& e) {
    std::fprintf(stderr, "bench_modules: %s\n", e.what());
    return 1;
  }
}
