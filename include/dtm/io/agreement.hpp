#pragma once
// Files that all ranks open: an error of one rank is the same error on all, and what should be one
// file is one. Everything here is collective over the world; the rest of io is local.

#include <cstdint>
#include <string>
#include <string_view>

#include "dtm/comm/agreement.hpp"
#include "dtm/core/errors.hpp"
#include "dtm/io/content_hash.hpp"
#include "dtm/io/safetensors.hpp"

namespace dtm::io {

/// Throws replication_error on all ranks unless all pass the same hash. `what` starts the message:
/// a path, mostly.
inline void require_same_everywhere(comm::world& world, std::uint64_t hash, std::string_view what,
                                    comm::call_site where = comm::call_site::current()) {
  std::uint64_t const first = comm::agree_on(world, hash, 0, where);
  comm::agree(
      world,
      [&] {
        if (hash == first) return;
        throw replication_error(std::string(what) + ": the content differs between ranks: hash " +
                                hash_text(hash) + " on rank " + std::to_string(world.rank()) +
                                ", " + hash_text(first) +
                                " on rank 0; give every rank the same file");
      },
      where);
}

/// Every rank opens the file. If that fails on any rank, all throw the file_error of the lowest
/// such rank.
inline safetensors_file open_on_all_ranks(comm::world& world, std::string const& path,
                                          comm::call_site where = comm::call_site::current()) {
  return comm::agree(
      world, [&] { return safetensors_file::open(path); }, where);
}

/// Throws replication_error on all ranks unless the file has the same bytes on all. Every rank
/// reads all of it.
inline void require_same_content(comm::world& world, safetensors_file const& file,
                                 comm::call_site where = comm::call_site::current()) {
  std::uint64_t const hash = comm::agree(
      world, [&] { return file.hash(); }, where);
  require_same_everywhere(world, hash, file.path(), where);
}

}  // namespace dtm::io
