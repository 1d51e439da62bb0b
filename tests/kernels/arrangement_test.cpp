// What moves elements: equal bits, no bound.

#include "contexts.hpp"
#include "dtm/backend/boxes.hpp"
#include "dtm/comm/exchange.hpp"
#include "dtm/kernels/channels.hpp"
#include "dtm/kernels/elementwise.hpp"
#include "dtm/kernels/masked_gate.hpp"

namespace dtm::kernel_test {
namespace {

template <class T>
void compare_channels(std::int64_t batch, std::int64_t positions, std::int64_t channels) {
  std::int64_t const n = batch * positions * channels;
  auto const values = numbers<T>(n, 1);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    array<Element> x(ctx, values), front(ctx, n), back(ctx, n);
    local::for_each(
        ctx, n, kernels::transpose_matrices<Element>{x.data(), positions, channels, front.data()});
    local::for_each(
        ctx, n,
        kernels::transpose_matrices<Element>{front.data(), channels, positions, back.data()});
    std::vector<double> results;
    front.add_to(results);
    back.add_to(results);
    return results;
  };
  compare<T>(size_text("channels", {batch, positions, channels}),
             {{"front", n, 0, 0, 0}, {"back", n, 0, 0, 0}}, run);
  // element by element
  host_context ctx;
  array<T> x(ctx, values), front(ctx, n);
  local::for_each(ctx, n,
                  kernels::transpose_matrices<T>{x.data(), positions, channels, front.data()});
  bool moved = true;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t ch = 0; ch < channels; ++ch)
        moved = moved && front.data()[(b * channels + ch) * positions + p] ==
                             x.data()[(b * positions + p) * channels + ch];
  CHECK(moved);
}

TEMPLATE_TEST_CASE("channels to the front and back", "", float, double, bf16) {
  for (std::int64_t const channels : {1, 8, 24, 33, 128})
    for (std::int64_t const positions : {1, 31, 33, 144})
      compare_channels<TestType>(2, positions, channels);
  compare_channels<TestType>(1, 64, 64);
}

template <class T>
void compare_planes(std::int64_t batch, std::int64_t positions, std::int64_t channels) {
  std::int64_t const n = batch * positions * 2 * channels;
  auto const x = numbers<T>(n, 1, 2), g = numbers<T>(n, 2, 4),
             mask = numbers<T>(batch * positions, 3), dy = numbers<T>(n, 4);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    array<Element> in(ctx, x), by(ctx, g), weight(ctx, mask), a(ctx, n / 2), b(ctx, n / 2),
        upstream(ctx, dy), dx(ctx, n), dg(ctx, n);
    local::for_each(
        ctx, n,
        kernels::masked_gate_to_planes<Element>{in.data(), by.data(), weight.data(), positions,
                                                channels, a.data(), b.data()});
    local::for_each(ctx, n,
                    kernels::masked_gate_from_planes_backward<Element>{
                        upstream.data(), upstream.data() + n / 2, in.data(), by.data(),
                        weight.data(), positions, channels, dx.data(), dg.data()});
    std::vector<double> results;
    for (auto* part : {&a, &b, &dx, &dg}) part->add_to(results);
    return results;
  };
  compare<T>(size_text("planes", {batch, positions, channels}),
             {{"a, b", n, 8, 2}, {"dx, dg", 2 * n, 16, 2}}, run);
}

TEMPLATE_TEST_CASE("masked gate to planes and back", "", float, double, bf16) {
  for (std::int64_t const channels : {1, 8, 24, 128})
    for (std::int64_t const positions : {1, 31, 33})
      compare_planes<TestType>(2, positions, channels);
}

template <class T, int Rank>
void compare_boxes(box<Rank> const& tile, box<Rank> const& part_box, std::int64_t skew = 0) {
  std::int64_t const whole = tile.size(), count = part_box.size();
  auto const values = numbers<bf16>(whole, 1), sent = numbers<bf16>(count, 2);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    array<Element> x(ctx, values, skew), into(ctx, values, skew), sum(ctx, values, skew),
        packed(ctx, count), arrived(ctx, sent);
    local::pack_box(ctx, static_cast<Element const*>(x.data()), tile, part_box, packed.data());
    local::unpack_box(ctx, static_cast<Element const*>(arrived.data()), into.data(), tile,
                      part_box);
    local::unpack_box_add(ctx, static_cast<Element const*>(arrived.data()), sum.data(), tile,
                          part_box);
    std::vector<double> results;
    for (auto* piece : {&packed, &into, &sum}) piece->add_to(results);
    return results;
  };
  compare<T>(size_text("box", {Rank, whole, count, skew}),
             {{"packed", count, 0, 0, 0}, {"unpacked", whole, 0, 0, 0}, {"added", whole, 1, 2}},
             run);
  // and the words of the exchange between ranks
  host_context ctx;
  array<T> x(ctx, values), packed(ctx, count), expected(ctx, count);
  local::pack_box(ctx, static_cast<T const*>(x.data()), tile, part_box, packed.data());
  comm::pack(static_cast<T const*>(x.data()), tile, part_box, expected.data());
  CHECK((count == 0 ||
         std::memcmp(packed.data(), expected.data(), std::size_t(count) * sizeof(T)) == 0));
}

TEMPLATE_TEST_CASE("boxes", "", float, double, bf16) {
  using T = TestType;
  compare_boxes<T, 0>({}, {});
  compare_boxes<T, 1>({{0}, {33}}, {{3}, {32}});
  compare_boxes<T, 1>({{5}, {37}}, {{5}, {37}});
  compare_boxes<T, 2>({{0, 0}, {9, 31}}, {{2, 30}, {9, 31}});
  compare_boxes<T, 3>({{4, 0, 8}, {8, 24, 16}}, {{5, 8, 8}, {7, 16, 16}});
  compare_boxes<T, 3>({{4, 0, 8}, {8, 24, 16}}, {{5, 8, 8}, {7, 16, 16}}, 1);
  compare_boxes<T, 4>({{0, 2, 3, 0}, {2, 7, 9, 24}}, {{0, 3, 3, 0}, {2, 5, 9, 24}});
  compare_boxes<T, 4>({{0, 2, 3, 0}, {2, 7, 9, 24}}, {{1, 2, 8, 8}, {2, 7, 9, 16}});
  compare_boxes<T, 5>({{0, 0, 0, 0, 0}, {2, 3, 1, 3, 8}}, {{0, 1, 0, 0, 0}, {2, 3, 1, 2, 8}});
  compare_boxes<T, 2>({{0, 0}, {4, 4}}, {{2, 2}, {2, 4}});  // empty
}

template <class T>
void compare_outer(std::int64_t rows, std::int64_t columns, std::int64_t channels) {
  std::int64_t const batch = 2, pairs = batch * rows * columns, n = pairs * channels;
  auto const r = numbers<T>(batch * rows * channels, 1),
             c = numbers<T>(batch * columns * channels, 2);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    array<Element> row(ctx, r), column(ctx, c), z(ctx, n), product(ctx, pairs), turned(ctx, n),
        sums(ctx, batch * rows * channels);
    local::for_each(
        ctx, n,
        kernels::outer_sum<Element>{row.data(), column.data(), rows, columns, channels, z.data()});
    local::for_each(
        ctx, pairs,
        kernels::outer_product<Element>{row.data(), column.data(), rows, columns, product.data()});
    kernels::permute<Element, 4> turn{};
    turn.x = z.data();
    turn.y = turned.data();
    std::int64_t const extent[] = {batch, columns, rows, channels},
                       stride[] = {rows * columns * channels, channels, columns * channels, 1};
    std::copy(extent, extent + 4, turn.extent);
    std::copy(stride, stride + 4, turn.stride);
    local::for_each(ctx, n, turn);
    local::for_each(ctx, batch * rows * channels,
                    kernels::sum_middle<Element>{z.data(), columns, channels, sums.data()});
    std::vector<double> results;
    for (auto* piece : {&z, &product, &turned}) piece->add_to(results);
    sums.add_to(results);
    return results;
  };
  compare<T>(size_text("outer", {rows, columns, channels}),
             {{"sum", n, 1, 2},
              {"product", pairs, 1, 1},
              {"permuted", n, 1, 2},
              {"middle", batch * rows * channels, double(columns), 2 * double(columns), 2}},
             run);
}

TEMPLATE_TEST_CASE("outer sums, permutations, sums of a middle dimension", "", float, double,
                   bf16) {
  for (std::int64_t const channels : {1, 8, 24})
    for (std::int64_t const rows : {1, 5}) compare_outer<TestType>(rows, 7, channels);
}

TEST_CASE("faults of what moves elements show") {
  auto const front = [](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(70 * 40, 1)), y(ctx, 70 * 40);
    local::for_each(ctx, 70 * 40, kernels::transpose_matrices<float>{x.data(), 70, 40, y.data()});
    y.add_to(results);
  };
  auto const planes = [](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(70 * 40, 1)), mask(ctx, numbers<float>(70, 2)),
        y(ctx, 70 * 40);
    local::for_each(ctx, 70 * 40,
                    kernels::masked_gate_to_planes<float>{x.data(), x.data(), mask.data(), 70, 20,
                                                          y.data(), y.data() + 70 * 20});
    y.add_to(results);
  };
  auto const back = [](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(70 * 40, 1)), mask(ctx, numbers<float>(70, 2)),
        dy(ctx, numbers<float>(70 * 40, 3)), dx(ctx, 70 * 40), dg(ctx, 70 * 40);
    local::for_each(ctx, 70 * 40,
                    kernels::masked_gate_from_planes_backward<float>{
                        dy.data(), dy.data() + 70 * 20, x.data(), x.data(), mask.data(), 70, 20,
                        dx.data(), dg.data()});
    dx.add_to(results);
    dg.add_to(results);
  };
  for (auto const& caught : {is_caught({0, -1, false}, front), is_caught({-1, -1, true}, front),
                             is_caught({0, -1, false}, planes), is_caught({-1, -1, true}, planes),
                             is_caught({0, -1, false}, back), is_caught({-1, -1, true}, back)})
    CHECK(caught);
  CHECK_FALSE(is_caught({}, front));
  CHECK_FALSE(is_caught({}, planes));
  CHECK_FALSE(is_caught({}, back));
}

}  // namespace
}  // namespace dtm::kernel_test
