/* device.c: see device.h. */
#include "cli/device.h"

#include "driver.h"
#include "targets.h"

#include <stdio.h>
#include <string.h>

int status_of(fusec_status status)
{
    switch (status) {
    case FUSEC_OK: return EXIT_DONE;
    case FUSEC_INVALID_PROGRAM:
    case FUSEC_INVALID_TENSOR:
    case FUSEC_INVALID_FILE: return EXIT_WRONG;
    case FUSEC_INVALID_ARGUMENT: return EXIT_USAGE;
    case FUSEC_OUT_OF_MEMORY:
    case FUSEC_NO_DRIVER:
    case FUSEC_NO_DEVICE:
    case FUSEC_NO_NVRTC:
    case FUSEC_COMPILE_FAILED:
    case FUSEC_CUDA_ERROR:
    case FUSEC_IO_ERROR:
    case FUSEC_UNSUPPORTED:
    case FUSEC_LIMIT_EXCEEDED:
    case FUSEC_CANCELLED:
    case FUSEC_STATUS_COUNT: return EXIT_MACHINE;
    }
    return EXIT_MACHINE;
}

static const char *hint_without_gpu(fusec_status status)
{
    bool none = status == FUSEC_NO_DRIVER || status == FUSEC_NO_DEVICE;
    return none
               ? "without a GPU, `run --device sim` runs the kernels on the CPU, and `explain --candidates` estimates their speed"
               : NULL;
}

int finish_call(fusec_status status, const fusec_error *error)
{
    if (status != FUSEC_OK && begins_report(error->message))
        print_diagnostics(error->message);
    else if (status != FUSEC_OK)
        complain(hint_without_gpu(status), "%s", error->message);
    return status_of(status);
}

/* A driver that is there and does not start is told of; most machines without a GPU have none. */
static void remark_driver(const Driver *driver, fusec_status status, const char *why)
{
    if (status == FUSEC_NO_DRIVER && driver->library)
        remark("%s, so the target is sm_90a; --arch names another", why);
}

/* The target of GPU 0 and its name ("": there is none, or none that code can be compiled for),
 * without creating a context. */
static fusec_status device_target(Target *target, char device[DEVICE_NAME], fusec_error *error)
{
    Driver driver = {0};
    CUdevice gpu;
    int major = 0, minor = 0, sms = 0;
    double rate = 0;
    *device = 0;
    fusec_status status = driver_open(&driver, error);
    remark_driver(&driver, status, error->message);
    if (status == FUSEC_NO_DRIVER || status == FUSEC_NO_DEVICE) return FUSEC_OK;
    if (status != FUSEC_OK) return status;
    CUresult result = driver.cuDeviceGet(&gpu, 0);
    if (result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_INVALID_DEVICE) return FUSEC_OK;
    if (result == CUDA_SUCCESS)
        result =
            driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu);
    if (result == CUDA_SUCCESS)
        result =
            driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu);
    if (result == CUDA_SUCCESS) result = driver.cuDeviceGetName(device, DEVICE_NAME, gpu);
    status = driver_check(&driver, result, "what GPU 0 is", error);
    if (status == FUSEC_OK) status = driver_memory_rate(&driver, gpu, &rate, error);
    if (status != FUSEC_OK || !target_of_device(target, major * 10 + minor, sms, rate)) *device = 0;
    return status;
}

static int complain_arch(const Options *o)
{
    int count;
    const char *const *names = target_names(&count);
    Text *list = text_new(o->arena);
    for (int i = 0; i < count; i++) text_print(list, "%s%s", i ? ", " : "one of ", names[i]);
    names = target_gpus(&count);
    for (int i = 0; i < count; i++) text_print(list, "%s%s", i ? ", " : "; or a GPU: ", names[i]);
    complain(text_string(list), "unknown architecture '%s'", o->arch);
    return EXIT_USAGE;
}

static void remark_targets(void)
{
    static bool said;
    const char *problem = targets_open();
    if (*problem && !said) remark("%s", problem);
    said = true;
}

int choose_target(const Options *o, Target *target, char device[DEVICE_NAME])
{
    enum { SIMULATED_SMS = 4 }; /* few, so that CTAs walk many rows */
    bool simulated = o->device && !strcmp(o->device, "sim");
    remark_targets();
    const Target *named = target_find(o->arch ? o->arch : "sm_90a");
    *device = 0;
    if (!named) return complain_arch(o);
    *target = *named;
    if (!o->arch && !simulated) {
        fusec_error error;
        Target own = *target;
        fusec_status status = device_target(&own, device, &error);
        if (status != FUSEC_OK) return finish_call(status, &error);
        if (*device) *target = own;
    }
    if (o->memory)
        target_set_device(target, target->sms, o->memory);
    else if (simulated)
        target->sms = o->sms ? o->sms : SIMULATED_SMS;
    return EXIT_DONE;
}

void remark_warning(const fusec_binary *binary)
{
    static bool said;
    if (said || !*fusec_binary_warning(binary)) return;
    remark("%s", fusec_binary_warning(binary));
    said = true;
}

static void remark_kernels(const fusec_binary *binary, const char *const *kernels, int kernel_count)
{
    for (int i = 0; i < kernel_count; i++) {
        fusec_kernel_info info = {.struct_size = sizeof info};
        if (fusec_binary_kernel(binary, kernels[i], &info) == FUSEC_OK && info.spill_bytes > 0)
            remark("%s spills %d bytes; `fusec explain --candidates` lists other schedules",
                   kernels[i], info.spill_bytes);
    }
}

int emit_machine_code(const Options *o, const Target *target, const char *cuda,
                      const char *const *kernels, int kernel_count, Text *out)
{
    fusec_binary *binary;
    fusec_error error;
    fusec_format format = o->emit == EMIT_PTX ? FUSEC_PTX : FUSEC_CUBIN;
    Progress progress;
    progress_begin(&progress, "compiling with NVRTC");
    const fusec_status compiled = fusec_binary_compile(cuda, target->arch, format, &binary, &error);
    progress_end(&progress);
    int status = finish_call(compiled, &error);
    if (status != EXIT_DONE) return status;
    size_t bytes;
    const void *data = fusec_binary_data(binary, &bytes);
    remark_warning(binary);
    text_put(out, data, bytes);
    if (format == FUSEC_CUBIN) remark_kernels(binary, kernels, kernel_count);
    fusec_binary_destroy(binary);
    return EXIT_DONE;
}
