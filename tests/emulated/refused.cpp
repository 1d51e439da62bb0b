// Kernels that must not compile.

#include "dtm/backend/emulated/launch.hpp"

struct tag {};
using dtm::emulation::block;

template <int Threads>
struct kernel {
  static constexpr int threads = Threads;
  void operator()(block&) const {}
};

struct three {
  float x[3];
};

struct owns {
  static constexpr int threads = 32;
  std::string text;
  void operator()(block&) const {}
};

void refused(block& b) {
  dtm::emulation::launch(1, kernel<64>{});
  auto&& a = b.shared<float, 64, tag>();
  static_cast<void>(a);
// case 1: threads of a block are a multiple of 32
#if DTM_CASE == 1
  dtm::emulation::launch(1, kernel<48>{});
#endif
// case 2: atomic_add is for integers
#if DTM_CASE == 2
  float x = 0;
  b.atomic_add(&x, 1.0f);
#endif
// case 3: an asynchronous copy moves 4, 8 or 16 bytes
#if DTM_CASE == 3
  dtm::bf16 x[8];
  b.copy_async<1>(b.shared<dtm::bf16, 64, tag>(), 0, x);
#endif
// case 4: what moves at once is 1, 2, 4, 8 or 16 bytes
#if DTM_CASE == 4
  float x[8];
  b.load<8>(x);
#endif
// case 5: a shuffle moves plain values of 1, 2, 4, 8 or 16 bytes
#if DTM_CASE == 5
  b.shuffle_xor(three{}, 1);
#endif
// case 6: its members are plain data
#if DTM_CASE == 6
  dtm::emulation::launch(1, owns{});
#endif
}
