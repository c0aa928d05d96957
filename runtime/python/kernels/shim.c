/* shim.c: finds libtorch's C functions in the process. */
#include "shim.h"

#include <dlfcn.h>
#include <stddef.h>

Torch torch;

static void *loaded(const char *library)
{
    return dlopen(library, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
}

/* The bytes of a function's address, for ISO C has no cast from the result of dlsym. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    *(void **)function = found;
    return found != NULL;
}

/* A number that a function without arguments returns; -1: there is no such function. */
static int32_t constant(void *library, const char *name)
{
    int32_t (*function)(void);
    return find(library, name, &function) ? function() : -1;
}

const char *torch_find(void)
{
    static const char *const dtypes[] = {
        "aoti_torch_dtype_float64",       "aoti_torch_dtype_float32",
        "aoti_torch_dtype_float16",       "aoti_torch_dtype_bfloat16",
        "aoti_torch_dtype_float8_e4m3fn", "aoti_torch_dtype_float8_e5m2",
        "aoti_torch_dtype_int64",         "aoti_torch_dtype_int32",
        "aoti_torch_dtype_int8",          "aoti_torch_dtype_uint8",
        "aoti_torch_dtype_bool"};
    void *library = loaded("libtorch_cpu.so");
    if (!library) return "libtorch_cpu.so";
#define TORCH_FIND(name, arguments)                                                                \
    if (!find(library, "aoti_torch_" #name, &torch.name)) return "aoti_torch_" #name;
    TORCH_FUNCTIONS(TORCH_FIND)
#undef TORCH_FIND
    if (!find(library, "aoti_torch_check", &torch.check)) return "aoti_torch_check";
    torch.cpu = constant(library, "aoti_torch_device_type_cpu");
    torch.cuda = constant(library, "aoti_torch_device_type_cuda");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        torch.dtypes[i] = constant(library, dtypes[i]);
    return torch.cpu < 0 || torch.cuda < 0 ? "aoti_torch_device_type_cpu" : NULL;
}

bool torch_find_stream(void)
{
    void *library = torch.get_current_cuda_stream ? NULL : loaded("libtorch_cuda.so");
    if (library)
        find(library, "aoti_torch_get_current_cuda_stream", &torch.get_current_cuda_stream);
    return torch.get_current_cuda_stream != NULL;
}
