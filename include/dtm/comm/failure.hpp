#pragma once
// A failure as it travels between ranks: which error, whose, and its words; and back into the same
// typed exception.

#include <dtm/core/errors.hpp>

#include <cstdint>
#include <exception>
#include <string>

namespace dtm::comm {

enum class failure_kind : std::int32_t {
  none,
  plain,
  layout,
  mesh,
  mismatch,
  deadline,
  peer,
  replication,
  file,
  argument,
  device,
  memory
};

struct failure {
  failure_kind kind = failure_kind::none;
  int rank = 0;  // whose, in the numbering of the world
  std::string text;
};

inline failure_kind kind_of(std::exception const& e) noexcept {
  auto const is = [&e]<class E>(E const*) { return dynamic_cast<E const*>(&e) != nullptr; };
  if (is(static_cast<layout_error const*>(nullptr))) return failure_kind::layout;
  if (is(static_cast<mesh_error const*>(nullptr))) return failure_kind::mesh;
  if (is(static_cast<collective_mismatch const*>(nullptr))) return failure_kind::mismatch;
  if (is(static_cast<deadline_exceeded const*>(nullptr))) return failure_kind::deadline;
  if (is(static_cast<peer_failed const*>(nullptr))) return failure_kind::peer;
  if (is(static_cast<replication_error const*>(nullptr))) return failure_kind::replication;
  if (is(static_cast<file_error const*>(nullptr))) return failure_kind::file;
  if (is(static_cast<argument_error const*>(nullptr))) return failure_kind::argument;
  if (is(static_cast<device_error const*>(nullptr))) return failure_kind::device;
  if (is(static_cast<memory_error const*>(nullptr))) return failure_kind::memory;
  return failure_kind::plain;
}

/// Kind and words of the exception that is being handled; call it inside a catch block.
inline failure current_failure(int rank) {
  try {
    throw;
  } catch (std::exception const& e) {
    return {kind_of(e), rank, e.what()};
  } catch (...) {
    return {failure_kind::plain, rank, "an exception that is no std::exception"};
  }
}

/// The same error on a rank that only heard of it.
[[noreturn]] inline void throw_same(failure const& f) {
  switch (f.kind) {
    case failure_kind::layout:
      throw layout_error(f.text);
    case failure_kind::mesh:
      throw mesh_error(f.text);
    case failure_kind::mismatch:
      throw collective_mismatch(f.text);
    case failure_kind::deadline:
      throw deadline_exceeded(f.text);
    case failure_kind::peer:
      throw peer_failed(f.rank, f.text);
    case failure_kind::replication:
      throw replication_error(f.text);
    case failure_kind::file:
      throw file_error(f.text);
    case failure_kind::argument:
      throw argument_error(f.text);
    case failure_kind::device:
      throw device_error(f.text);
    case failure_kind::memory:
      throw memory_error(f.text);
    default:
      throw error(f.text);
  }
}

}  // namespace dtm::comm
