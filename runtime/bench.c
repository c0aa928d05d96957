/* bench.c: see bench.h. */
#include "bench.h"

#include "internal.h"

static const char EMPTY[] = "extern \"C\" __global__ void empty() {}\n";

fusec_status bench_reset_cache(fusec_device *device, fusec_error *error)
{
    const Driver *driver = &device->driver;
    CurrentContext current;
    if (device->cpu) return FUSEC_OK;
    fusec_status status = device_enter(device, &current, error);
    if (status != FUSEC_OK) return status;
    CUresult result = driver->cuCtxSynchronize();
    if (result == CUDA_SUCCESS) result = driver->cuCtxResetPersistingL2Cache();
    /* A device that cannot do so keeps nothing in L2. */
    if (result == CUDA_ERROR_NOT_SUPPORTED) result = CUDA_SUCCESS;
    status = driver_check(driver, result, "cuCtxResetPersistingL2Cache", error);
    context_leave(&current);
    return status;
}

fusec_status bench_compile(fusec_device *device, const char *cuda, double *milliseconds,
                           fusec_error *error)
{
    const Nvrtc *nvrtc;
    Code code;
    fusec_status status = device_nvrtc(device, &nvrtc, error);
    if (status == FUSEC_OK)
        status = nvrtc_compile(nvrtc, EMPTY, device->code_arch, NULL, &code, error);
    if (status != FUSEC_OK) return status;
    code_free(&code);
    status = nvrtc_compile_kernels(nvrtc, cuda, device->code_arch, NULL, &code, error);
    if (status != FUSEC_OK) return status;
    *milliseconds = code.milliseconds;
    code_free(&code);
    return FUSEC_OK;
}

/* Times several bursts, each short enough not to fill the launch queue, and keeps the best. */
static CUresult time_bursts(const Driver *driver, CUfunction function, int kernels, double *best)
{
    enum { BURSTS = 20, BURST = 128 };
    CUlaunchConfig config = {
        .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 32, .block_y = 1, .block_z = 1};
    CUresult result = CUDA_SUCCESS;
    *best = 1e30;
    for (int burst = 0; burst < BURSTS && result == CUDA_SUCCESS; burst++) {
        double begin = milliseconds_now();
        for (int i = 0; i < BURST && result == CUDA_SUCCESS; i++)
            result = driver->cuLaunchKernelEx(&config, function, NULL, NULL);
        double each = (milliseconds_now() - begin) * 1e3 / BURST * kernels;
        if (each < *best) *best = each;
        if (result == CUDA_SUCCESS) result = driver->cuCtxSynchronize();
    }
    return result;
}

fusec_status bench_bare_launch(fusec_device *device, int kernels, double *microseconds,
                               fusec_error *error)
{
    const Driver *driver = &device->driver;
    const Nvrtc *nvrtc;
    Code code;
    CurrentContext current;
    CUmodule module = NULL;
    CUfunction function;
    fusec_status status = device_nvrtc(device, &nvrtc, error);
    if (status == FUSEC_OK)
        status = nvrtc_compile(nvrtc, EMPTY, device->code_arch, NULL, &code, error);
    if (status != FUSEC_OK) return status;
    status = device_enter(device, &current, error);
    if (status == FUSEC_OK) {
        CUresult result = driver->cuModuleLoadData(&module, code.data);
        if (result == CUDA_SUCCESS)
            result = driver->cuModuleGetFunction(&function, module, "empty");
        if (result == CUDA_SUCCESS) result = time_bursts(driver, function, kernels, microseconds);
        if (module) driver->cuModuleUnload(module);
        status = driver_check(driver, result, "cuLaunchKernelEx", error);
        context_leave(&current);
    }
    code_free(&code);
    return status;
}
