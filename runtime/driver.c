/* driver.c: opens libcuda and resolves the entry points of driver.def. */
#include "driver.h"

#include "error.h"
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

typedef CUresult GetProcAddress(const char *name, void **function, int version, uint64_t flags,
                                int *found);

typedef struct {
    const char *name;
    int version;
    size_t offset; /* of the pointer in Driver */
} EntryPoint;

static const EntryPoint entry_points[] = {
#define DRIVER(name, cuda_version, parameters) {#name, cuda_version, offsetof(Driver, name)},
#include "driver.def"
#undef DRIVER
};

static fusec_status resolve_entry_points(Driver *driver, fusec_error *error)
{
    GetProcAddress *get = NULL;
    void *symbol = dlsym(driver->library, "cuGetProcAddress_v2");
    memcpy(&get, &symbol, sizeof get);
    if (!get)
        return fail(error, FUSEC_NO_DRIVER,
                    "libcuda.so.1 is too old: fusec needs a driver for "
                    "CUDA 12.0 or later");
    for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++) {
        const EntryPoint *entry = &entry_points[i];
        void *function = NULL;
        int found = 0;
        CUresult result = get(entry->name, &function, entry->version, 0, &found);
        if (result != CUDA_SUCCESS || !function)
            return fail(error, FUSEC_NO_DRIVER, "libcuda.so.1 has no %s", entry->name);
        memcpy((char *)driver + entry->offset, &function, sizeof function);
    }
    return FUSEC_OK;
}

fusec_status driver_open(Driver *driver, fusec_error *error)
{
    memset(driver, 0, sizeof *driver);
    const char *why;
    driver->library = library_open("libcuda.so.1", &why);
    if (!driver->library && errno == ENOMEM)
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (!driver->library) return fail(error, FUSEC_NO_DRIVER, "no CUDA driver: %s", why);
    fusec_status status = resolve_entry_points(driver, error);
    if (status != FUSEC_OK) return status;
    CUresult result = driver->cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        return fail(error, FUSEC_NO_DEVICE, "the CUDA driver finds no device");
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return driver_check(driver, result, "cuInit", error);
    if (result != CUDA_SUCCESS) {
        const char *text = NULL;
        driver->cuGetErrorString(result, &text);
        return fail(error, FUSEC_NO_DRIVER, "the CUDA driver does not start: %s",
                    text ? text : "unknown error");
    }
    return driver_check(driver, driver->cuDriverGetVersion(&driver->version), "cuDriverGetVersion",
                        error);
}

fusec_status driver_check(const Driver *driver, CUresult result, const char *what,
                          fusec_error *error)
{
    if (result == CUDA_SUCCESS) return FUSEC_OK;
    const char *name = NULL, *text = NULL;
    driver->cuGetErrorName(result, &name);
    driver->cuGetErrorString(result, &text);
    fusec_status status = FUSEC_CUDA_ERROR;
    if (result == CUDA_ERROR_OUT_OF_MEMORY) status = FUSEC_OUT_OF_MEMORY;
    if (result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_INVALID_DEVICE)
        status = FUSEC_NO_DEVICE;
    return fail(error, status, "%s: %s (%s)", what, name ? name : "unknown CUDA error",
                text ? text : "no description");
}

fusec_status driver_memory_rate(const Driver *driver, CUdevice gpu, double *rate,
                                fusec_error *error)
{
    int clock = 0, wires = 0; /* in kHz; bits */
    CUresult result =
        driver->cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, gpu);
    if (result == CUDA_SUCCESS)
        result =
            driver->cuDeviceGetAttribute(&wires, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, gpu);
    /* Each wire carries two bits a clock. */
    *rate = clock > 0 && wires > 0 ? 2.0 * clock * wires / 8 / 1e6 : 0;
    return driver_check(driver, result, "cuDeviceGetAttribute", error);
}

fusec_status context_enter(const Driver *driver, CUcontext context, CurrentContext *current,
                           fusec_error *error)
{
    *current = (CurrentContext){driver, false};
    CUcontext now = NULL;
    fusec_status status =
        driver_check(driver, driver->cuCtxGetCurrent(&now), "cuCtxGetCurrent", error);
    if (status != FUSEC_OK || now == context) return status;
    status = driver_check(driver, driver->cuCtxPushCurrent(context), "cuCtxPushCurrent", error);
    current->pushed = status == FUSEC_OK;
    return status;
}

void context_leave(CurrentContext *current)
{
    CUcontext ignored;
    if (current->pushed) current->driver->cuCtxPopCurrent(&ignored);
    current->pushed = false;
}
