#pragma once
// The exceptions of the library. A user's mistake throws one of these on *all* ranks that take
// part; the text names the thing, the values and the remedy. Internal invariants are asserts, not
// errors.
//
// The vocabulary headers of core/ do not include this file: they only declare who is to be called
// when a run-time check fails (core/refuse.hpp), so that <string> and <stdexcept> stay out of
// device code.

#include <stdexcept>
#include <string>

namespace dtm {

/// Base of everything the library throws.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A run-time extent, a shard or a local span does not fit its layout.
class layout_error : public error {
 public:
  using error::error;
};

/// A mesh does not fit the number of ranks, or two meshes that should be one are not.
class mesh_error : public error {
 public:
  using error::error;
};

/// Ranks called different collectives, or the same one with different arguments.
class collective_mismatch : public error {
 public:
  using error::error;
};

/// A wait ended without its messages; the text names the absent ranks, the operation and the call
/// site.
class deadline_exceeded : public error {
 public:
  using error::error;
};

/// Another rank left by an exception; `rank()` names it in the numbering of the world.
class peer_failed : public error {
 public:
  peer_failed(int rank, std::string const& text) : error(text), rank_(rank) {}
  int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// A value that its type calls replicated differs between ranks, or is not finite (check level 3).
class replication_error : public error {
 public:
  using error::error;
};

/// A file cannot be read or written; the text starts with its path.
class file_error : public error {
 public:
  using error::error;
};

/// An argument of a function or of a program has a value that is not possible.
class argument_error : public error {
 public:
  using error::error;
};

/// There is no memory for what was asked for; the text says how much, for whom, and what there is.
class memory_error : public error {
 public:
  using error::error;
};

/// A call of a device's runtime or libraries failed, or there is no device that can be used; the
/// text names the call and the place.
class device_error : public error {
 public:
  using error::error;
};

}  // namespace dtm
