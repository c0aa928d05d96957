/* stub_cuda.c: a libcuda.so.1 for machines without a GPU: every entry point of driver.def, with
 * host memory for the GPU's. Under the injector each call can fail.
 *
 * A kernel computes nothing: a launch writes zeros to all memory that was filled with bytes of 0xff
 * before, as the command line fills outputs, so it is right for graphs whose outputs are zero.
 * Events are a millisecond apart. Memory that is larger than a test's tensors is never touched.
 * None of it is the C library's: what it does not give back is the driver's loss.
 *
 * A program that has a function `stub_launched` is told of each launch. */
#include "driver.h"

#include "faults.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#ifndef STUB_SMS
#define STUB_SMS 4
#endif
enum {
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_UNKNOWN = 999,
    MOST_BUFFERS = 256,
    MOST_BYTES = 1 << 20
};

typedef struct {
    char *memory;
    size_t bytes;
    bool poisoned;
} Buffer;

static Buffer buffers[MOST_BUFFERS];

static CUresult call(const char *name)
{
    static int (*chosen)(int, const char *);
    if (!chosen) {
        void *symbol = dlsym(RTLD_DEFAULT, "fault_now");
        memcpy(&chosen, &symbol, sizeof chosen);
    }
    return chosen && chosen(FAULT_CUDA, name) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

#define ENTRY()                                                                                    \
    do {                                                                                           \
        if (call(__func__)) return CUDA_ERROR_UNKNOWN;                                             \
    } while (0)

/* The prototypes, with the parameters of driver.def. */
#define DRIVER(name, version, parameters) CUresult name parameters;
#include "driver.def"
#undef DRIVER

/* ---- the driver, its device, its context ---- */

CUresult cuInit(unsigned flags)
{
    (void)flags;
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version)
{
    ENTRY();
    *version = 13000;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "unknown error";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTRY();
    *device = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count)
{
    ENTRY();
    *count = 1;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    ENTRY();
    snprintf(name, (size_t)length, "Stub GPU");
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    (void)device;
    ENTRY();
    *bytes = 1u << 30;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    (void)device;
    ENTRY();
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = STUB_SMS; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 2619000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 5120; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 16; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}

/* Needs no memory at its first use. */
static __attribute__((tls_model("initial-exec"))) _Thread_local CUcontext current;
static char handle; /* of everything that is more than memory */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    ENTRY();
    *context = (CUcontext)(void *)&handle;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTRY();
    *context = current;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTRY();
    *device = 0;
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context)
{
    ENTRY();
    current = context;
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *context)
{
    *context = current;
    current = NULL;
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void)
{
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuCtxResetPersistingL2Cache(void)
{
    ENTRY();
    return CUDA_SUCCESS;
}

/* ---- code ---- */

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTRY();
    *module = (CUmodule)(uintptr_t)image; /* which its owner keeps */
    return image ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuModuleUnload(CUmodule module)
{
    (void)module;
    ENTRY();
    return CUDA_SUCCESS;
}

/* Whether a cubin has the text of that kernel; what is no cubin has all. */
static bool has_kernel(const char *image, const char *name)
{
    Elf64_Ehdr header;
    if (memcmp(image, ELFMAG, SELFMAG) != 0) return true;
    memcpy(&header, image, sizeof header);
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image + header.e_shoff);
    const char *names = image + sections[header.e_shstrndx].sh_offset;
    for (int i = 0; i < header.e_shnum; i++) {
        const char *section = names + sections[i].sh_name;
        if (strncmp(section, ".text.", 6) == 0 && strcmp(section + 6, name) == 0) return true;
    }
    return false;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTRY();
    if (!module || !*name) return CUDA_ERROR_UNKNOWN;
    if (!has_kernel((const char *)module, name)) return CUDA_ERROR_NOT_FOUND;
    *function = (CUfunction)(uintptr_t)name; /* which its owner keeps */
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ctas, CUfunction function, int threads,
                                                     size_t smem_bytes)
{
    (void)function, (void)threads, (void)smem_bytes;
    ENTRY();
    *ctas = 8;
    return CUDA_SUCCESS;
}

/* Libraries, whose kernels are functions, too. */
typedef struct CUlib_st *CUlibrary;
CUresult cuLibraryLoadData(CUlibrary *library, const void *image, void *options, void **values,
                           unsigned count, void *more, void **more_values, unsigned more_count);
CUresult cuLibraryLoadData(CUlibrary *library, const void *image, void *options, void **values,
                           unsigned count, void *more, void **more_values, unsigned more_count)
{
    (void)options, (void)values, (void)count, (void)more, (void)more_values, (void)more_count;
    return cuModuleLoadData((CUmodule *)(void *)library, image);
}
CUresult cuLibraryGetKernel(CUfunction *function, CUlibrary library, const char *name);
CUresult cuLibraryGetKernel(CUfunction *function, CUlibrary library, const char *name)
{
    return cuModuleGetFunction(function, (CUmodule)(void *)library, name);
}
CUresult cuKernelSetAttribute(int attribute, int value, CUfunction function, CUdevice device);
CUresult cuKernelSetAttribute(int attribute, int value, CUfunction function, CUdevice device)
{
    (void)device;
    return cuFuncSetAttribute(function, attribute, value);
}

static Buffer *find_buffer(CUdeviceptr at)
{
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (buffers[i].memory == (char *)(uintptr_t)at) return &buffers[i];
    return NULL;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    (void)extra;
    ENTRY();
    void (*tell)(const CUlaunchConfig *, const char *, void **);
    void *symbol = dlsym(RTLD_DEFAULT, "stub_launched");
    memcpy(&tell, &symbol, sizeof tell);
    if (tell) tell(config, (const char *)(void *)function, parameters);
    for (int i = 0; i < MOST_BUFFERS; i++)
        if (buffers[i].memory && buffers[i].poisoned && buffers[i].bytes <= MOST_BYTES)
            memset(buffers[i].memory, 0, buffers[i].bytes);
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

CUresult cuMemAlloc(CUdeviceptr *memory, size_t bytes)
{
    ENTRY();
    for (int i = 0; i < MOST_BUFFERS; i++) {
        if (buffers[i].memory) continue;
        void *got = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
        buffers[i] = (Buffer){.memory = got, .bytes = bytes};
        *memory = (CUdeviceptr)(uintptr_t)got;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFree(CUdeviceptr memory)
{
    Buffer *buffer = find_buffer(memory);
    if (buffer) {
        syscall(SYS_munmap, buffer->memory, buffer->bytes);
        *buffer = (Buffer){0};
    }
    ENTRY();
    return buffer ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    ENTRY();
    if (bytes <= MOST_BYTES) memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpy(to, from, bytes);
}
CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream)
{
    (void)stream;
    ENTRY();
    Buffer *buffer = find_buffer(memory);
    if (buffer) buffer->poisoned = value == 0xff;
    if (bytes <= MOST_BYTES) memset((void *)(uintptr_t)memory, value, bytes);
    return CUDA_SUCCESS;
}

/* ---- streams, events ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    ENTRY();
    *stream = (CUstream)(void *)&handle;
    return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream)
{
    (void)stream;
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, int *is)
{
    (void)stream;
    ENTRY();
    *is = 0;
    return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    ENTRY();
    *event = (CUevent)(void *)&handle;
    return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    ENTRY();
    return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
    (void)begin, (void)end;
    ENTRY();
    *milliseconds = 1;
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event)
{
    (void)event;
    ENTRY();
    return CUDA_SUCCESS;
}

/* ---- the table ---- */

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                                    int *found);
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             int *found)
{
    (void)version, (void)flags, (void)found;
    ENTRY();
    *function = NULL;
#define DRIVER(entry, version, parameters)                                                         \
    if (!strcmp(name, #entry)) {                                                                   \
        CUresult(*address) parameters = entry;                                                     \
        memcpy(function, &address, sizeof address);                                                \
    }
#include "driver.def"
#undef DRIVER
    return *function ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
