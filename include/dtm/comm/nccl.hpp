#pragma once
// The words of NCCL: how elements travel, how they are reduced, what a status means. Counts are
// 64-bit. 16-bit elements are moved as what they are and never reduced.

#include <nccl.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "mpi.hpp"

namespace dtm::comm::nccl {

/// An NCCL type and how many of them make one element.
struct datatype {
  ncclDataType_t type;
  std::int64_t bytes;  // of one element
  std::int64_t units;  // NCCL elements per element
  char const* name;

  std::size_t units_of(std::int64_t elements) const {
    return std::size_t(mpi::checked_product(elements, units));
  }
  std::size_t bytes_of(std::int64_t elements) const {
    return std::size_t(mpi::checked_product(elements, bytes, "bytes of"));
  }
};

template <class T>
datatype datatype_of() {
  static_assert(std::is_trivially_copyable_v<T>,
                "dtm comm: only trivially copyable elements travel between ranks");
  std::int64_t const bytes = sizeof(T);
  char const* const name = mpi::name_of<T>();
  if constexpr (std::is_same_v<T, float>)
    return {ncclFloat32, bytes, 1, name};
  else if constexpr (std::is_same_v<T, double>)
    return {ncclFloat64, bytes, 1, name};
  else if constexpr (std::is_same_v<T, bf16>)
    return {ncclBfloat16, bytes, 1, name};
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return {ncclInt32, bytes, 1, name};
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return {ncclInt64, bytes, 1, name};
  else
    return {ncclUint8, bytes, bytes, name};
}

/// The type of elements that are added or compared between ranks.
template <class T>
datatype summable() {
  static_assert(
      sizeof(T) != 2,
      "dtm comm: 16-bit elements are storage; convert to float before reducing over ranks");
  static_assert(std::is_arithmetic_v<T>, "dtm comm: only numbers are reduced over ranks");
  static_assert(sizeof(T) == 2 || !std::is_arithmetic_v<T> || element<T>,
                "dtm comm: NCCL reduces fp32, fp64, int32, int64 and uint8");
  return datatype_of<T>();
}

inline ncclRedOp_t operation_of(reduction how) {
  return how == reduction::sum ? ncclSum : how == reduction::max ? ncclMax : ncclMin;
}

/// A communicator that does not block says "in progress" where another would have returned later.
inline bool accepted(ncclResult_t status) {
  return status == ncclSuccess || status == ncclInProgress;
}

/// "unhandled system error (socket closed)"; the second text is the communicator's last error.
inline std::string text_of(ncclResult_t status, ncclComm_t comm) {
  std::string text = ncclGetErrorString(status);
  char const* const last = comm == nullptr ? nullptr : ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return text;
}

}  // namespace dtm::comm::nccl
