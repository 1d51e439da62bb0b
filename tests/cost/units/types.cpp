// Vocabulary: tensors in every form, on two meshes, and where their tiles lie.
#include "dtm/core/space.hpp"
#include "dtm/core/tensor.hpp"
#include "dtm/core/tile.hpp"

using namespace dtm;

template <class X>
std::int64_t where(X const& x) {
  return x.tile().begin[0] + x.global_extent(0) + x.to_local().extent[0];
}
template <class T, class Mesh>
std::int64_t program(pair_tensor<space<T, Mesh>, c<8>> const& pair,
                     pair_tensor<space<T, Mesh>> const& mask,
                     single_tensor<space<T, Mesh>, c<8>> const& single,
                     single_column_tensor<space<T, Mesh>, c<8>> const& column) {
  return where(pair) + where(mask) + where(single) + where(column);
}

template <class T, class Mesh>
inline constexpr auto* on = &program<T, Mesh>;
auto* first = on<float, mesh<dp, cp0, cp1>>;
auto* second = on<double, mesh<dp, sized<cp0, 2>, cp1>>;
