#pragma once
// Function annotations that a device compiler needs and a host compiler does not know.

#if defined(__CUDACC__)
#define DTM_HD __host__ __device__
#else
#define DTM_HD
#endif

#define DTM_VERSION_MAJOR 0
#define DTM_VERSION_MINOR 1
#define DTM_VERSION_PATCH 0
