// Devices, versions, the words of errors.

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string_view>

#include "arena.hpp"
#include "calls.hpp"
#include "mail.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "stand_in.hpp"

using namespace stand_in;

namespace stand_in {

counts count_allocations();
counts count_operations();
void forget_allocations();
void forget_operations();
void forget_gemms();

namespace {

int device = 0;

/// Devices are those of the host: two processes that use the same number use the same device.
std::uint64_t identity(int of) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return std::hash<std::string_view>()(host) * 64 + std::uint64_t(of);
}

struct named_error {
  cudaError_t error;
  char const* name;
  char const* text;
};
#define DTM_STAND_IN_ERROR(name, text) \
  { name, #name, text }
constexpr named_error errors[] = {
    DTM_STAND_IN_ERROR(cudaSuccess, "no error"),
    DTM_STAND_IN_ERROR(cudaErrorInvalidValue, "invalid argument"),
    DTM_STAND_IN_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    DTM_STAND_IN_ERROR(cudaErrorInitializationError, "initialization error"),
    DTM_STAND_IN_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    DTM_STAND_IN_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    DTM_STAND_IN_ERROR(cudaErrorInsufficientDriver,
                       "CUDA driver version is insufficient for CUDA runtime version"),
    DTM_STAND_IN_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    DTM_STAND_IN_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    DTM_STAND_IN_ERROR(cudaErrorNoKernelImageForDevice,
                       "no kernel image is available for execution on the device"),
    DTM_STAND_IN_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    DTM_STAND_IN_ERROR(cudaErrorIllegalState,
                       "the operation cannot be performed in the present state"),
    DTM_STAND_IN_ERROR(cudaErrorNotReady, "device not ready"),
    DTM_STAND_IN_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    DTM_STAND_IN_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    DTM_STAND_IN_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    DTM_STAND_IN_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    DTM_STAND_IN_ERROR(cudaErrorAssert, "device-side assert triggered"),
    DTM_STAND_IN_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                       "part or all of the requested memory range is already mapped"),
    DTM_STAND_IN_ERROR(cudaErrorHostMemoryNotRegistered,
                       "pointer does not correspond to a registered memory region"),
    DTM_STAND_IN_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    DTM_STAND_IN_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    DTM_STAND_IN_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    DTM_STAND_IN_ERROR(cudaErrorNotSupported, "operation not supported"),
    DTM_STAND_IN_ERROR(cudaErrorStreamCaptureUnsupported,
                       "operation not permitted when stream is capturing"),
    DTM_STAND_IN_ERROR(cudaErrorStreamCaptureInvalidated,
                       "operation failed due to a previous error during capture"),
    DTM_STAND_IN_ERROR(cudaErrorStreamCaptureMerge,
                       "operation would result in a merge of separate capture sequences"),
    DTM_STAND_IN_ERROR(cudaErrorStreamCaptureUnmatched,
                       "capture was not ended in the same stream as it began"),
    DTM_STAND_IN_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    DTM_STAND_IN_ERROR(cudaErrorStreamCaptureIsolation,
                       "dependency created on uncaptured work in another stream"),
    DTM_STAND_IN_ERROR(cudaErrorStreamCaptureImplicit,
                       "operation would make the legacy stream depend on a capturing blocking "
                       "stream"),
    DTM_STAND_IN_ERROR(cudaErrorCapturedEvent,
                       "operation not permitted on an event last recorded in a capturing stream"),
    DTM_STAND_IN_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef DTM_STAND_IN_ERROR

named_error const& named(cudaError_t error) {
  for (auto const& entry : errors)
    if (entry.error == error) return entry;
  static constexpr named_error unknown = {cudaErrorUnknown, "unrecognized error code",
                                          "unrecognized error code"};
  return unknown;
}

}  // namespace

int current_device() {
  return device;
}

counts count() {
  counts all = count_allocations();
  auto const operations = count_operations();
  all.enqueued = operations.enqueued;
  all.operations = operations.operations;
  return all;
}

void reset() {
  forget_operations();
  forget_calls();
  forget_allocations();
  forget_gemms();
}

}  // namespace stand_in

extern "C" {

char const* cudaGetErrorName(cudaError_t error) {
  return named(error).name;
}
char const* cudaGetErrorString(cudaError_t error) {
  return named(error).text;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  DTM_STAND_IN_CUDA();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  DTM_STAND_IN_CUDA();
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  DTM_STAND_IN_CUDA();
  *count = the_settings().devices;
  return *count == 0 ? returned(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaGetDevice(int* current) {
  DTM_STAND_IN_CUDA();
  *current = device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int wanted) {
  DTM_STAND_IN_CUDA();
  if (wanted < 0 || wanted >= the_settings().devices) return returned(cudaErrorInvalidDevice);
  device = wanted;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int of) {
  DTM_STAND_IN_CUDA();
  if (of < 0 || of >= the_settings().devices) return returned(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Stand-in %d", of);
  auto const id = identity(of);
  std::memcpy(properties->uuid.bytes, &id, sizeof id);
  properties->totalGlobalMem = the_settings().memory;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = properties->sharedMemPerMultiprocessor = 227 << 10;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  for (int i = 0; i < 3; ++i) properties->maxThreadsDim[i] = i < 2 ? 1024 : 64;
  for (int i = 0; i < 3; ++i) properties->maxGridSize[i] = i < 1 ? 2147483647 : 65535;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->concurrentKernels = properties->unifiedAddressing = 1;
  properties->memoryPoolsSupported = properties->streamPrioritiesSupported = 1;
  properties->asyncEngineCount = 2;
  properties->pciBusID = of + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int of) {
  DTM_STAND_IN_CUDA();
  if (of < 0 || of >= the_settings().devices) return returned(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = 2147483647;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 227 << 10;
      break;
    case cudaDevAttrWarpSize:
      *value = 32;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = 4;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = 2048;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *value = 32;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrPciBusId:
      *value = of + 1;
      break;
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
      *value = 0;
      break;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
      *value = 1;
      break;
    case cudaDevAttrIntegrated:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrPageableMemoryAccess:
      *value = 0;
      break;
    default:
      return returned(cudaErrorNotSupported);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int of) {
  DTM_STAND_IN_CUDA();
  if (of < 0 || of >= the_settings().devices) return returned(cudaErrorInvalidDevice);
  if (length < 13) return returned(cudaErrorInvalidValue);
  std::snprintf(text, std::size_t(length), "0000:%02X:00.0", unsigned(of + 1));
  return cudaSuccess;
}

}  // extern "C"
