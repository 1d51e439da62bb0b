// Element types and reductions of the stand-in for NCCL.

#include <cmath>
#include <cstring>

#include <dtm/core/element.hpp>

#include "nccl.hpp"

namespace stand_in::nccl {
namespace {

/// Calls with a value of the type that the elements have and one of the type of their sums.
template <class Call>
void with_type(ncclDataType_t datatype, Call call) {
  switch (datatype) {
    case ncclInt8:
      return call(std::int8_t(), std::int8_t());
    case ncclUint8:
      return call(std::uint8_t(), std::uint8_t());
    case ncclInt32:
      return call(std::int32_t(), std::int32_t());
    case ncclUint32:
      return call(std::uint32_t(), std::uint32_t());
    case ncclInt64:
      return call(std::int64_t(), std::int64_t());
    case ncclUint64:
      return call(std::uint64_t(), std::uint64_t());
    case ncclFloat32:
      return call(float(), float());
    case ncclFloat64:
      return call(double(), double());
    case ncclBfloat16:
      return call(dtm::bf16(), float());
    default:
      return;
  }
}

template <class T>
T combine(T a, T b, ncclRedOp_t reduction) {
  if constexpr (std::is_floating_point_v<T>) {  // a NaN loses against a number, as in fmax
    if (reduction == ncclMax) return std::fmax(a, b);
    if (reduction == ncclMin) return std::fmin(a, b);
    return a + b;
  } else {
    if (reduction == ncclMax) return a < b ? b : a;
    if (reduction == ncclMin) return b < a ? b : a;
    using wrapping = std::make_unsigned_t<T>;
    return T(wrapping(wrapping(a) + wrapping(b)));
  }
}

char const* name_of(kind what) {
  switch (what) {
    case kind::all_reduce:
      return "AllReduce";
    case kind::reduce_scatter:
      return "ReduceScatter";
    case kind::all_gather:
      return "AllGather";
    case kind::broadcast:
      return "Broadcast";
    case kind::send:
      return "Send";
    default:
      return "Recv";
  }
}

}  // namespace

std::size_t bytes_of(ncclDataType_t datatype) {
  std::size_t bytes = 1;
  with_type(datatype, [&](auto element, auto) { bytes = sizeof element; });
  return bytes;
}

bool is_supported(ncclDataType_t datatype) {
  bool known = false;
  with_type(datatype, [&](auto, auto) { known = true; });
  return known;
}

char const* name_of(ncclDataType_t datatype) {
  switch (datatype) {
    case ncclInt8:
      return "int8";
    case ncclUint8:
      return "uint8";
    case ncclInt32:
      return "int32";
    case ncclUint32:
      return "uint32";
    case ncclInt64:
      return "int64";
    case ncclUint64:
      return "uint64";
    case ncclFloat32:
      return "float32";
    case ncclFloat64:
      return "float64";
    case ncclBfloat16:
      return "bfloat16";
    default:
      return "another type";
  }
}

std::string describe(item const& i) {
  std::string text = std::string(name_of(i.what)) + "(count " + std::to_string(i.count) + ", " +
                     name_of(i.datatype);
  if (i.what == kind::all_reduce || i.what == kind::reduce_scatter)
    text += i.reduction == ncclSum ? ", sum" : i.reduction == ncclMax ? ", max" : ", min";
  if (i.what == kind::broadcast) text += ", root " + std::to_string(i.root);
  if (i.between_two()) text += ", peer " + std::to_string(i.root);
  return text + ")";
}

accumulator::accumulator(ncclDataType_t datatype, ncclRedOp_t reduction, std::int64_t count)
    : datatype_(datatype), reduction_(reduction), count_(count) {
  with_type(datatype, [&](auto, auto sum) { wide_.resize(std::size_t(count) * sizeof sum); });
}

void accumulator::add(std::byte const* next) {
  with_type(datatype_, [&](auto element, auto sum) {
    using wide = decltype(sum);
    for (std::size_t i = 0; i < std::size_t(count_); ++i) {
      std::memcpy(&element, next + i * sizeof element, sizeof element);
      std::memcpy(&sum, wide_.data() + i * sizeof sum, sizeof sum);
      sum = empty_ ? wide(element) : combine<wide>(sum, wide(element), reduction_);
      std::memcpy(wide_.data() + i * sizeof sum, &sum, sizeof sum);
    }
  });
  empty_ = false;
}

void accumulator::finish(std::byte* out) const {
  with_type(datatype_, [&](auto element, auto sum) {
    using narrow = decltype(element);
    for (std::size_t i = 0; i < std::size_t(count_); ++i) {
      std::memcpy(&sum, wide_.data() + i * sizeof sum, sizeof sum);
      element = narrow(sum);
      std::memcpy(out + i * sizeof element, &element, sizeof element);
    }
  });
}

}  // namespace stand_in::nccl
