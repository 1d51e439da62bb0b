#pragma once
// The MPI calls the library makes, with 64-bit counts. MPI 4 has large-count functions; with an
// older MPI a count that does not fit an int is refused with a sentence, never wrapped. Everything
// is non-blocking; errors become exceptions.

#include <dtm/core/element.hpp>
#include <dtm/core/errors.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "call.hpp"

namespace dtm::comm::mpi {

/// The one conversion of counts: throws argument_error unless `value` is in [0, largest of To].
template <class To>
constexpr To checked_count(std::int64_t value, char const* what = "count") {
  if (value < 0 || static_cast<std::uint64_t>(value) >
                       static_cast<std::uint64_t>(std::numeric_limits<To>::max()))
    throw argument_error(std::string(what) + " " + std::to_string(value) + " does not fit: 0 to " +
                         std::to_string(std::numeric_limits<To>::max()) +
                         " is possible here; an MPI 4 library has larger counts");
  return static_cast<To>(value);
}

/// count * factor, or argument_error where it is negative or beyond 63 bits.
constexpr std::int64_t checked_product(std::int64_t count, std::int64_t factor,
                                       char const* what = "count") {
  std::int64_t product = 0;
  if (count < 0 || factor < 0 || __builtin_mul_overflow(count, factor, &product))
    throw argument_error(std::string(what) + " " + std::to_string(count) + " x " +
                         std::to_string(factor) + " is not a 63-bit number");
  return product;
}

/// Offsets of pieces that are packed back to back; one more than there are pieces, the last is the
/// total.
inline std::vector<std::int64_t> packed_offsets(std::span<std::int64_t const> counts) {
  std::vector<std::int64_t> offsets(counts.size() + 1, 0);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0 || __builtin_add_overflow(offsets[i], counts[i], &offsets[i + 1]))
      throw argument_error(
          "the counts of an all_to_all add up to more than 63 bits, or one is negative: " +
          std::to_string(counts[i]));
  return offsets;
}

#if MPI_VERSION >= 4
using native_count = MPI_Count;
using native_offset = MPI_Aint;
#define DTM_MPI_LARGE(name) name##_c
#else
using native_count = int;
using native_offset = int;
#define DTM_MPI_LARGE(name) name
#endif

inline void check(int code, char const* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw error(std::string("MPI reports an error in ") + what + ": " +
              std::string(text, std::size_t(length)));
}

/// How elements travel: an MPI type and how many of them make one element.
struct datatype {
  MPI_Datatype type;
  std::int64_t bytes;  // of one element
  std::int64_t units;  // MPI elements per element
  char const* name;
  /// detail::combine of the type, where ranks may reduce it.
  void (*combine)(void* out, std::span<std::byte const* const> parts, std::int64_t count,
                  reduction how) = nullptr;
};

template <class T>
constexpr char const* name_of() {
  if constexpr (element<T>)
    return element_name<T>();
  else
    return typeid(T).name();
}

template <class T>
datatype datatype_of() {
  static_assert(std::is_trivially_copyable_v<T>,
                "dtm comm: only trivially copyable elements travel between ranks");
  std::int64_t const bytes = sizeof(T);
  if constexpr (std::is_same_v<T, float>)
    return {MPI_FLOAT, bytes, 1, name_of<T>()};
  else if constexpr (std::is_same_v<T, double>)
    return {MPI_DOUBLE, bytes, 1, name_of<T>()};
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return {MPI_INT32_T, bytes, 1, name_of<T>()};
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return {MPI_INT64_T, bytes, 1, name_of<T>()};
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return {MPI_UINT8_T, bytes, 1, name_of<T>()};
  else
    return {MPI_BYTE, bytes, bytes, name_of<T>()};
}

inline native_count count_of(std::int64_t elements, datatype const& type) {
  return checked_count<native_count>(checked_product(elements, type.units));
}

inline MPI_Op operation_of(reduction how) {
  return how == reduction::sum ? MPI_SUM : how == reduction::max ? MPI_MAX : MPI_MIN;
}

// ---- in place: the result, or each rank's part of it, is already in `data`
// ----------------------------
inline MPI_Request all_reduce(void* data, std::int64_t count, datatype const& type, reduction how,
                              MPI_Comm comm) {
  MPI_Request request;
  check(DTM_MPI_LARGE(MPI_Iallreduce)(MPI_IN_PLACE, data, count_of(count, type), type.type,
                                      operation_of(how), comm, &request),
        "all_reduce");
  return request;
}

inline MPI_Request all_gather(void* data, std::int64_t count, datatype const& type, MPI_Comm comm) {
  MPI_Request request;
  check(DTM_MPI_LARGE(MPI_Iallgather)(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data,
                                      count_of(count, type), type.type, comm, &request),
        "all_gather");
  return request;
}

/// Block r goes to rank r and becomes the block that comes from it.
inline MPI_Request all_to_all(void* data, std::int64_t count, datatype const& type, MPI_Comm comm) {
  MPI_Request request;
  check(DTM_MPI_LARGE(MPI_Ialltoall)(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data,
                                     count_of(count, type), type.type, comm, &request),
        "all_to_all");
  return request;
}

/// Counts and offsets of an all_to_all as MPI reads them; they must live until the operation is
/// complete.
struct blocks {
  std::vector<native_count> counts;
  std::vector<native_offset> offsets;

  blocks(std::span<std::int64_t const> elements, datatype const& type) {
    auto const start = packed_offsets(elements);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      counts.push_back(count_of(elements[i], type));
      offsets.push_back(
          checked_count<native_offset>(checked_product(start[i], type.units), "offset"));
    }
  }
};

inline MPI_Request all_to_all(void const* in, blocks const& sent, void* out, blocks const& received,
                              datatype const& type, MPI_Comm comm) {
  MPI_Request request;
  check(DTM_MPI_LARGE(MPI_Ialltoallv)(in, sent.counts.data(), sent.offsets.data(), type.type, out,
                                      received.counts.data(), received.offsets.data(), type.type,
                                      comm, &request),
        "all_to_all");
  return request;
}

inline MPI_Request broadcast(void* data, std::int64_t count, datatype const& type, int root,
                             MPI_Comm comm) {
  MPI_Request request;
  check(DTM_MPI_LARGE(MPI_Ibcast)(data, count_of(count, type), type.type, root, comm, &request),
        "broadcast");
  return request;
}

inline MPI_Request send(void const* data, std::int64_t count, datatype const& type, int to, int tag,
                        MPI_Comm comm) {
  MPI_Request request;
  check(DTM_MPI_LARGE(MPI_Isend)(data, count_of(count, type), type.type, to, tag, comm, &request),
        "send");
  return request;
}

inline MPI_Request receive(void* data, std::int64_t count, datatype const& type, int from, int tag,
                           MPI_Comm comm) {
  MPI_Request request;
  check(DTM_MPI_LARGE(MPI_Irecv)(data, count_of(count, type), type.type, from, tag, comm, &request),
        "receive");
  return request;
}

inline MPI_Request barrier(MPI_Comm comm) {
  MPI_Request request;
  check(MPI_Ibarrier(comm, &request), "barrier");
  return request;
}

#undef DTM_MPI_LARGE

/// False before MPI_Init and after MPI_Finalize, when no handle may be touched.
inline bool is_running() noexcept {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

}  // namespace dtm::comm::mpi
