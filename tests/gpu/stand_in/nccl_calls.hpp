#pragma once
// What the calls of the stand-in for NCCL share.

#include "nccl.hpp"

namespace stand_in::nccl {

/// The communicator behind a handle that is still valid.
std::shared_ptr<communicator> find(ncclComm_t comm);

/// An error with the sentence that ncclGetLastError gives.
ncclResult_t refused(ncclResult_t code, std::string const& sentence);

/// Why a communicator takes no calls now.
ncclResult_t not_ready(communicator const& comm);

/// Blocks until a communicator has joined, or left.
ncclResult_t await(communicator& comm, char const* who);

/// True inside of a group: its end waits for the communicator.
bool defer_to_group(std::shared_ptr<communicator> const& comm);

}  // namespace stand_in::nccl
