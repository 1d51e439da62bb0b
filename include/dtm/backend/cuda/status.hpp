#pragma once
// What a call of the CUDA runtime or of cuBLAS returns, as an error that names call, place and
// reason. No status is dropped: check() throws, forget() is for destructors, which cannot.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <string>

#include "dtm/comm/call_site.hpp"
#include "dtm/core/errors.hpp"

namespace dtm::gpu {

using comm::call_site;

namespace detail {

/// What to do about it, where that is known.
inline std::string advice(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
      return "; this process sees no GPU (CUDA_VISIBLE_DEVICES may hide it)";
    case cudaErrorInsufficientDriver:
      return "; no driver is installed, or it is older than CUDA " +
             std::to_string(CUDART_VERSION / 1000) + "." +
             std::to_string(CUDART_VERSION % 1000 / 10) + " needs";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "; the kernels were compiled for other architectures (DTM_CUDA_ARCHITECTURES)";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread:
      return "; a graph is being captured, of which this cannot be a part";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
      return "; a kernel that was launched before has failed, and every further call will "
             "(CUDA_LAUNCH_BLOCKING=1 names it)";
    default:
      return "";
  }
}

[[noreturn]] inline void fail(std::string const& call, std::string const& name,
                              std::string const& text, call_site where, std::string const& rest) {
  throw device_error("dtm cuda: " + call + " failed: " + name + " (" + text + "), at " +
                     where.file + ":" + std::to_string(where.line) + rest);
}

}  // namespace detail

/// Throws device_error unless the call, whose name is given, succeeded.
inline void check(cudaError_t status, std::string const& call,
                  call_site where = call_site::current()) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // or the next launch would report it again
  detail::fail(call, cudaGetErrorName(status), cudaGetErrorString(status), where,
               detail::advice(status));
}
inline void check(cublasStatus_t status, std::string const& call,
                  call_site where = call_site::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  detail::fail(call, cublasGetStatusName(status), cublasGetStatusString(status), where, "");
}

/// Where nobody can be told: a failure that matters has been reported by an earlier call or will be
/// by a later one.
inline void forget(cudaError_t status) noexcept {
  if (status != cudaSuccess) (void)cudaGetLastError();
}
inline void forget(cublasStatus_t) noexcept {}

}  // namespace dtm::gpu
