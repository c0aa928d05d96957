/* binary.c: CUDA text to machine code without a device: for printing PTX, writing cubins, and
 * register counts. */
#include "error.h"

#include "cubin.h"
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fusec_binary {
    Code code;
    fusec_format format;
    char warning[512];
};

static fusec_status compile_code(const Nvrtc *nvrtc, const char *cuda, const char *arch,
                                 fusec_binary *binary, fusec_error *error)
{
    DiskKey key = disk_key(cuda, arch, NULL, nvrtc);
    if (disk_load(&key, &binary->code)) return FUSEC_OK;
    fusec_status status = nvrtc_compile(nvrtc, cuda, arch, NULL, &binary->code, error);
    if (status == FUSEC_OK)
        disk_store(&key, &binary->code, binary->warning, sizeof binary->warning);
    return status;
}

static fusec_status choose_arch(const Nvrtc *nvrtc, const char *arch, fusec_format format,
                                char name[32], fusec_error *error)
{
    const char *number = strncmp(arch, "sm_", 3) == 0 ? arch + 3 : "";
    bool knows;
    fusec_status status = nvrtc_knows(nvrtc, atoi(number), &knows, error);
    if (status != FUSEC_OK) return status;
    if (!knows || strlen(number) > 8)
        return fail(error, FUSEC_UNSUPPORTED, "NVRTC %d.%d does not know '%.32s'", nvrtc->major,
                    nvrtc->minor, arch);
    snprintf(name, 32, "%s%.8s", format == FUSEC_PTX ? "compute_" : "sm_", number);
    return FUSEC_OK;
}

static fusec_status make_binary(fusec_binary *binary, const char *cuda, const char *arch,
                                fusec_error *error)
{
    Nvrtc nvrtc;
    char name[32];
    fusec_status status = nvrtc_open(&nvrtc, error);
    if (status != FUSEC_OK) return status;
    status = choose_arch(&nvrtc, arch, binary->format, name, error);
    if (status == FUSEC_OK) status = compile_code(&nvrtc, cuda, name, binary, error);
    nvrtc_close(&nvrtc);
    return status;
}

fusec_status fusec_binary_compile(const char *cuda, const char *arch, fusec_format format,
                                  fusec_binary **result, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(result, "the binary", error);
    if (!cuda || !arch) return fail_null(error, cuda ? "the architecture" : "the text");
    if (format != FUSEC_CUBIN && format != FUSEC_PTX)
        return fail(error, FUSEC_INVALID_ARGUMENT, "%d is not a fusec_format", (int)format);
    fusec_binary *binary = calloc(1, sizeof *binary);
    if (!binary) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    binary->format = format;
    fusec_status status = make_binary(binary, cuda, arch, error);
    if (status != FUSEC_OK) {
        fusec_binary_destroy(binary);
        return status;
    }
    *result = binary;
    return succeed(error);
}

void fusec_binary_destroy(fusec_binary *binary)
{
    if (!binary) return;
    code_free(&binary->code);
    free(binary);
}

const void *fusec_binary_data(const fusec_binary *binary, size_t *bytes)
{
    if (bytes) *bytes = binary ? binary->code.bytes : 0;
    return binary ? binary->code.data : NULL;
}

const char *fusec_binary_warning(const fusec_binary *binary)
{
    return binary ? binary->warning : "";
}

double fusec_binary_milliseconds(const fusec_binary *binary)
{
    return binary ? binary->code.milliseconds : 0;
}

fusec_status fusec_binary_kernel(const fusec_binary *binary, const char *kernel,
                                 fusec_kernel_info *info)
{
    Usage usage;
    if (!binary || !kernel || !info || binary->format != FUSEC_CUBIN ||
        !cubin_usage(binary->code.data, binary->code.bytes, binary->code.log, kernel, &usage))
        return FUSEC_INVALID_ARGUMENT;
    fusec_kernel_info own = {.name = kernel, .registers = usage.registers};
    own.spill_bytes = usage.spill_bytes;
    own.stack_bytes = usage.stack_bytes;
    own.static_smem_bytes = usage.smem_bytes;
    return copy_info(info, &own, sizeof own) ? FUSEC_OK : FUSEC_INVALID_ARGUMENT;
}

fusec_status fusec_nvrtc_version(int *major, int *minor, char *path, size_t size,
                                 fusec_error *error)
{
    OWN_ENVIRONMENT;
    Nvrtc nvrtc;
    fusec_status status = nvrtc_open(&nvrtc, error);
    if (status != FUSEC_OK) return status;
    if (major) *major = nvrtc.major;
    if (minor) *minor = nvrtc.minor;
    if (path && size) snprintf(path, size, "%s", nvrtc.path);
    nvrtc_close(&nvrtc);
    return succeed(error);
}
