#pragma once
// How the ranks of a group exchange tiles of the host: by messages of MPI, or, where all of them are on
// one node, by reading each other's memory (node.hpp). Results, signatures, ledger and errors are the
// same, bit for bit: the choice is one of speed.

namespace dtm::comm {

enum class transport {
  by_topology,    // each group as it can: on one node by shared memory, otherwise by messages
  shared_memory,  // mesh_error on all ranks where a mesh reaches beyond one node
  messages
};

constexpr char const* name(transport how) {
  return how == transport::by_topology     ? "by_topology"
         : how == transport::shared_memory ? "shared_memory"
                                           : "messages";
}

}  // namespace dtm::comm
