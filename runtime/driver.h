/* driver.h: libcuda, opened at run time, so that the library needs neither a GPU nor a CUDA header.
 *
 * driver.def lists the entry points. The types here are the few of cuda.h that they need, with the
 * same layout (the CUDA ABI is stable). cuGetProcAddress_v2 resolves every entry point for the CUDA
 * version named in the list, because the plain symbols of libcuda are versioned. */
#ifndef FUSEC_DRIVER_H
#define FUSEC_DRIVER_H

#include "fusec.h"

#include <stdbool.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CU_STREAM_NON_BLOCKING = 1,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

typedef struct {
    int id;
    char pad[4];
    union {
        char bytes[64];
        struct {
            unsigned x, y, z;
        } cluster;
        int cooperative;
        int programmatic_stream_serialization;
        void *align;
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned smem_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

typedef struct {
    void *library;
    int version; /* 13000 for CUDA 13.0 */
#define DRIVER(name, cuda_version, parameters) CUresult(*name) parameters;
#include "driver.def"
#undef DRIVER
} Driver;

/* Opens and initializes libcuda. Errors: NO_DRIVER. The library stays loaded for good: it does not
 * survive being unloaded. */
fusec_status driver_open(Driver *driver, fusec_error *error);
/* The most bytes that the GPU's memory moves in a ns; 0: not known. */
fusec_status driver_memory_rate(const Driver *driver, CUdevice gpu, double *rate,
                                fusec_error *error);
/* Turns a CUresult into a status with a message "cuName: CUDA_ERROR_… (description)". */
fusec_status driver_check(const Driver *driver, CUresult result, const char *what,
                          fusec_error *error);

/* Makes a context current around calls, and restores the one that was current before. */
typedef struct {
    const Driver *driver;
    bool pushed;
} CurrentContext;
fusec_status context_enter(const Driver *driver, CUcontext context, CurrentContext *current,
                           fusec_error *error);
void context_leave(CurrentContext *current);

#endif
