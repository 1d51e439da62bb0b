// What the host's loops do on small sizes, for a count of their instructions: work NAME runs one of
// them between calls of `measured`, with AVX2 whatever else the processor has, for valgrind knows no
// more.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dtm/backend/host/products.hpp"

using namespace dtm;

namespace {

constexpr std::int64_t channels = 64, hidden = 256, side = 24, positions = side * side;
using numbers = std::vector<float>;

numbers values(std::int64_t count) {
  numbers made(std::size_t(count), 0.0f);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = float(int(i * 37 % 101) - 50) / 50;
  return made;
}

memory plain_memory() {
  memory storage;
  storage.allocate = [](void*, std::size_t bytes) {
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  };
  storage.release = [](void*, void* pointer, std::size_t) noexcept { std::free(pointer); };
  return storage;
}

struct buffers {
  numbers x = values(positions * channels), y = x, o = x, a = x, b = x, mask = values(positions),
          mean = mask, rstd = mask, gamma = values(channels), beta = gamma,
          w1 = values(channels * hidden), w2 = w1, w3 = w1, g1 = w1, g2 = w1, g3 = w1,
          dgamma = gamma, dbeta = gamma, max = values(2 * positions), sum = max, bias = max,
          dbias = max, dq = x, dk = x, dv = x;
  memory storage = plain_memory();

  local::attention_input<float> attention() {
    return {heads(), 0.2f, x.data(), a.data(), b.data(), bias.data(), mask.data()};
  }
  local::attention_shape heads() { return {1, side, side, side, 2, channels / 2}; }
  local::normalised_rows<float> rows() {
    return {
        x.data(), 1, positions, channels, {gamma.data(), beta.data()}, {mean.data(), rstd.data()}};
  }
  local::attended_rows<float> attended() {
    return {
        rows(),      rows(),      heads(),  {w1.data(), w2.data(), w3.data(), w1.data(), w2.data()},
        bias.data(), mask.data(), o.data(), {max.data(), sum.data()},
        y.data()};
  }
};

}  // namespace

/// Counted are the instructions inside.
extern "C" __attribute__((noinline)) void measured(std::function<void()> const& work) {
  work();
}

int main(int arguments, char** argument) {
  if (arguments != 2) return std::fprintf(stderr, "usage: work NAME\n"), 2;
  buffers m;
  auto const set = std::min(instruction_set::avx2, widest_instructions());
  auto const product = [&](bool left, bool right) {
    local::detail::host_product<float, float>(set, {8, side, side, side, left, right}, m.a.data(),
                                              m.b.data(), m.o.data(), m.storage);
  };
  auto const fused = [&](auto const& operation) {
    local::detail::host_fused(set, operation, m.storage);
  };
  std::map<std::string, std::function<void()>> const all{
      {"attention",
       [&] {
         fused(local::attention_rows<float>{
             m.attention(), m.o.data(), {m.max.data(), m.sum.data()}, false});
       }},
      {"attention_backward",
       [&] {
         fused(local::attention_rows_backward<float>{m.attention(),
                                                     m.o.data(),
                                                     {m.max.data(), m.sum.data()},
                                                     m.y.data(),
                                                     m.dq.data(),
                                                     m.dk.data(),
                                                     m.dv.data(),
                                                     m.dbias.data(),
                                                     false});
       }},
      {"attended_rows", [&] { fused(m.attended()); }},
      {"attended_rows_backward",
       [&] {
         auto const f = m.attended();
         fused(local::attended_rows_backward<float>{
             f.in,
             f.keys,
             f.shape,
             f.weights,
             f.bias,
             f.mask,
             f.o,
             {f.statistics.max, f.statistics.sum},
             m.y.data(),
             m.a.data(),
             nullptr,
             {m.g1.data(), m.g2.data(), m.g3.data(), m.g1.data(), m.g2.data()},
             m.dbias.data()});
       }},
      {"norm_to_planes",
       [&] {
         fused(local::norm_to_planes<float>{m.rows(), m.w1.data(), 2, 1e-5f, m.bias.data()});
       }},
      {"norm_to_planes_backward",
       [&] {
         fused(local::norm_to_planes_backward<float>{m.rows(),
                                                     m.w1.data(),
                                                     2,
                                                     m.bias.data(),
                                                     m.a.data(),
                                                     m.y.data(),
                                                     m.g1.data(),
                                                     {m.dgamma.data(), m.dbeta.data()}});
       }},
      {"product_nt", [&] { product(false, true); }},
      {"product_tn", [&] { product(true, false); }},
      {"product_nn", [&] { product(false, false); }},
      {"gated_to_planes",
       [&] {
         fused(local::gated_to_planes<float>{m.rows(), m.w1.data(), m.w2.data(), m.mask.data(),
                                             1e-5f, 0, channels, m.a.data(), m.b.data()});
       }},
      {"gated_to_planes_backward",
       [&] {
         fused(local::gated_to_planes_backward<float>{m.rows(),
                                                      m.w1.data(),
                                                      m.w2.data(),
                                                      m.mask.data(),
                                                      m.a.data(),
                                                      m.b.data(),
                                                      m.y.data(),
                                                      m.y.data(),
                                                      m.g1.data(),
                                                      m.g2.data(),
                                                      {m.dgamma.data(), m.dbeta.data()}});
       }},
      {"gated_output",
       [&] {
         fused(local::gated_output<float>{m.rows(),
                                          m.a.data(),
                                          {m.gamma.data(), m.beta.data()},
                                          {nullptr, nullptr},
                                          m.w1.data(),
                                          m.w2.data(),
                                          1e-5f,
                                          m.o.data(),
                                          m.y.data()});
       }},
      {"gated_output_backward",
       [&] {
         fused(local::gated_output_backward<float>{m.rows(),
                                                   m.o.data(),
                                                   {m.gamma.data(), m.beta.data()},
                                                   {m.mean.data(), m.rstd.data()},
                                                   m.w1.data(),
                                                   m.w2.data(),
                                                   m.y.data(),
                                                   m.a.data(),
                                                   m.b.data(),
                                                   m.g1.data(),
                                                   m.g2.data(),
                                                   {m.dgamma.data(), m.dbeta.data()}});
       }},
      {"swiglu",
       [&] {
         fused(local::swiglu_rows<float>{m.rows(), hidden, m.w1.data(), m.w2.data(), m.w3.data(),
                                         1e-5f, m.y.data()});
       }},
      {"swiglu_backward", [&] {
         fused(local::swiglu_rows_backward<float>{m.rows(),
                                                  hidden,
                                                  m.w1.data(),
                                                  m.w2.data(),
                                                  m.w3.data(),
                                                  m.y.data(),
                                                  m.o.data(),
                                                  m.g1.data(),
                                                  m.g2.data(),
                                                  m.g3.data(),
                                                  {m.dgamma.data(), m.dbeta.data()}});
       }}};
  auto const found = all.find(argument[1]);
  if (found == all.end()) {
    for (auto const& [name, run] : all) std::printf("%s\n", name.c_str());
    return std::strcmp(argument[1], "--list") != 0;
  }
  found->second();  // what the first use of a library costs is not counted
  measured(found->second);
}
