/* device.c: devices: a CUDA context, the CPU evaluator or a target, and conveniences for them. */
#include "internal.h"
#include "targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double milliseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* ---- opening ---- */

static atomic_int generation; /* forks between the first process and this one */
static pthread_once_t counts_forks = PTHREAD_ONCE_INIT;

static void count_fork(void)
{
    atomic_fetch_add(&generation, 1);
}

static void begin_counting(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

bool device_is_inherited(const fusec_device *device)
{
    return device->generation != atomic_load(&generation);
}

fusec_status fail_inherited(fusec_error *error)
{
    return fail(
        error, FUSEC_CUDA_ERROR,
        "a CUDA device does not survive a fork, and the child cannot open one: start another process");
}

static fusec_device *device_new(void)
{
    fusec_device *device = calloc(1, sizeof *device);
    if (!device) return NULL;
    pthread_once(&counts_forks, begin_counting);
    device->generation = atomic_load(&generation);
    if (!modules_init(&device->modules)) {
        free(device);
        return NULL;
    }
    pthread_mutex_init(&device->nvrtc_lock, NULL);
    pthread_mutex_init(&device->warning_lock, NULL);
    atomic_init(&device->references, 1);
    return device;
}

void device_retain(fusec_device *device)
{
    atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
}

void fusec_device_destroy(fusec_device *device)
{
    OWN_ENVIRONMENT;
    if (!device || atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) != 1)
        return;
    modules_free(device);
    if (!device_is_inherited(device)) {
        if (device->primary) device->driver.cuDevicePrimaryCtxRelease(device->handle);
        nvrtc_close(&device->nvrtc);
        pthread_mutex_destroy(&device->nvrtc_lock);
        pthread_mutex_destroy(&device->warning_lock);
    }
    free(device);
}

/* Reads an attribute of the device into an int; false where the driver does not have it. */
static fusec_status read_attribute(const fusec_device *device, int attribute, int *value,
                                   fusec_error *error)
{
    *value = 0;
    return driver_check(&device->driver,
                        device->driver.cuDeviceGetAttribute(value, attribute, device->handle),
                        "cuDeviceGetAttribute", error);
}

static fusec_status read_attributes(fusec_device *device, fusec_error *error)
{
    fusec_device_info *info = &device->info;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &info->major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &info->minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->sms},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &info->l2_bytes},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &info->smem_per_cta},
    };
    fusec_status status = FUSEC_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && status == FUSEC_OK; i++)
        status = read_attribute(device, wanted[i].attribute, wanted[i].value, error);
    return status;
}

static fusec_status choose_arch(fusec_device *device, fusec_error *error)
{
    int cc = device->info.major * 10 + device->info.minor;
    Target *target = &device->target;
    if (!target_of_device(target, cc, device->info.sms, device->memory_rate))
        return fail(error, FUSEC_UNSUPPORTED,
                    "%s has compute capability %d.%d, which is too old for fusec",
                    device->info.name, device->info.major, device->info.minor);
    if (device->info.smem_per_cta > 0 && device->info.smem_per_cta < target->smem_per_cta)
        target->smem_per_cta = device->info.smem_per_cta;
    bool exact = strchr(target->arch, 'a') != NULL;
    snprintf(device->code_arch, sizeof device->code_arch, exact ? "sm_%da" : "sm_%d", cc);
    snprintf(device->info.arch, sizeof device->info.arch, "%.15s", target->arch);
    return FUSEC_OK;
}

static fusec_status describe_device(fusec_device *device, fusec_error *error)
{
    fusec_device_info *info = &device->info;
    const Driver *driver = &device->driver;
    size_t bytes = 0;
    fusec_status status =
        driver_check(driver, driver->cuDeviceGetName(info->name, sizeof info->name, device->handle),
                     "cuDeviceGetName", error);
    if (status == FUSEC_OK)
        status = driver_check(driver, driver->cuDeviceTotalMem(&bytes, device->handle),
                              "cuDeviceTotalMem", error);
    if (status == FUSEC_OK) status = read_attributes(device, error);
    if (status == FUSEC_OK)
        status = driver_memory_rate(driver, device->handle, &device->memory_rate, error);
    info->memory_bytes = bytes;
    info->ordinal = device->handle;
    info->driver_version = driver->version;
    return status == FUSEC_OK ? choose_arch(device, error) : status;
}

static fusec_status open_current_context(fusec_device *device, fusec_error *error)
{
    const Driver *driver = &device->driver;
    fusec_status status =
        driver_check(driver, driver->cuCtxGetCurrent(&device->context), "cuCtxGetCurrent", error);
    if (status != FUSEC_OK) return status;
    if (!device->context)
        return fail(error, FUSEC_NO_DEVICE, "this thread has no current CUDA context");
    return driver_check(driver, driver->cuCtxGetDevice(&device->handle), "cuCtxGetDevice", error);
}

static fusec_status open_primary_context(fusec_device *device, int ordinal, fusec_error *error)
{
    const Driver *driver = &device->driver;
    int count = 0;
    fusec_status status =
        driver_check(driver, driver->cuDeviceGetCount(&count), "cuDeviceGetCount", error);
    if (status != FUSEC_OK) return status;
    if (ordinal < 0 || ordinal >= count)
        return fail(error, FUSEC_NO_DEVICE, "no CUDA device %d: there are %d", ordinal, count);
    status =
        driver_check(driver, driver->cuDeviceGet(&device->handle, ordinal), "cuDeviceGet", error);
    if (status == FUSEC_OK)
        status =
            driver_check(driver, driver->cuDevicePrimaryCtxRetain(&device->context, device->handle),
                         "cuDevicePrimaryCtxRetain", error);
    device->primary = status == FUSEC_OK;
    return status;
}

fusec_status fusec_device_open(int ordinal, fusec_device **result, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(result, "the device", error);
    fusec_device *device = device_new();
    if (!device) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (*targets_open()) device_warn(device, targets_open());
    fusec_status status = driver_open(&device->driver, error);
    if (status == FUSEC_OK)
        status = ordinal == -1 ? open_current_context(device, error)
                               : open_primary_context(device, ordinal, error);
    if (status == FUSEC_OK) status = describe_device(device, error);
    if (status != FUSEC_OK) {
        fusec_device_destroy(device);
        return status;
    }
    *result = device;
    return succeed(error);
}

static void add_names(char list[512], const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, 512 - used, "%s%s", used ? ", " : "", names[i]);
    }
}

static fusec_status fail_arch(const char *arch, fusec_error *error)
{
    int count;
    char list[512] = "";
    const char *const *names = target_names(&count);
    add_names(list, names, count);
    names = target_gpus(&count);
    add_names(list, names, count);
    return fail(error, FUSEC_INVALID_ARGUMENT, "unknown architecture '%s': there are %s", arch,
                list);
}

/* Of a device without a GPU. */
static void take_target(fusec_device *device, const Target *target, const char *name)
{
    device->target = *target;
    device->info.ordinal = -1;
    snprintf(device->info.name, sizeof device->info.name, "%s", name);
    snprintf(device->info.arch, sizeof device->info.arch, "%.15s", target->arch);
    snprintf(device->code_arch, sizeof device->code_arch, "%.15s", target->arch);
}

fusec_status fusec_device_cpu(fusec_device **result, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(result, "the device", error);
    fusec_device *device = device_new();
    if (device && *targets_open()) device_warn(device, targets_open());
    const Target *target = target_find("sm_90a");
    if (!device || !target) {
        fusec_device_destroy(device);
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    }
    device->cpu = true;
    device->info.is_cpu = 1;
    take_target(device, target, "CPU");
    *result = device;
    return succeed(error);
}

static fusec_status open_target(fusec_device *device, const char *arch, fusec_error *error)
{
    const Target *target = target_find(arch ? arch : "sm_90a");
    if (!target) return fail_arch(arch, error);
    const int cc = atoi(target->arch + strlen("sm_"));
    device->absent = true;
    take_target(device, target, target->gpu);
    device->info.major = cc / 10;
    device->info.minor = cc % 10;
    device->info.sms = target->sms;
    device->info.smem_per_cta = target->smem_per_cta;
    return FUSEC_OK;
}

fusec_status fusec_device_target(const char *arch, fusec_device **result, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(result, "the device", error);
    fusec_device *device = device_new();
    if (!device) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (*targets_open()) device_warn(device, targets_open());
    fusec_status status = open_target(device, arch, error);
    if (status != FUSEC_OK) {
        fusec_device_destroy(device);
        return status;
    }
    *result = device;
    return succeed(error);
}

/* ---- what the others need ---- */

fusec_status fail_absent(const fusec_device *device, fusec_error *error)
{
    return fail(
        error, FUSEC_UNSUPPORTED,
        "%s is a target without a GPU: plans can be made and saved for it, but nothing runs on it",
        device->info.arch);
}

fusec_status device_enter(const fusec_device *device, CurrentContext *current, fusec_error *error)
{
    *current = (CurrentContext){&device->driver, false};
    if (device->absent) return fail_absent(device, error);
    if (device_is_inherited(device)) return fail_inherited(error);
    return context_enter(&device->driver, device->context, current, error);
}

/* The share of the memory clock's bandwidth that copy warps at a pace ask for. A pace above what
 * memory delivers gains nothing (docs/log/2026-11-27-figures.md). A GPU that delivers less than
 * this share loses nothing by it. */
unsigned device_interval(const fusec_device *device, const LaunchPlan *plan, int kernel,
                         const Sizes *sizes)
{
    const double share = 0.92;
    return launch_interval(plan, kernel, sizes, share * device->memory_rate, device->info.l2_bytes);
}

fusec_status device_nvrtc(fusec_device *device, const Nvrtc **nvrtc, fusec_error *error)
{
    fusec_status status = FUSEC_OK;
    *nvrtc = NULL;
    if (device_is_inherited(device)) return fail_inherited(error);
    pthread_mutex_lock(&device->nvrtc_lock);
    if (!device->nvrtc_open) status = nvrtc_open(&device->nvrtc, error);
    device->nvrtc_open = status == FUSEC_OK;
    pthread_mutex_unlock(&device->nvrtc_lock);
    *nvrtc = &device->nvrtc;
    return status;
}

fusec_status device_target(const fusec_device *device, const char *arch, Target *target,
                           const char **code_arch, fusec_error *error)
{
    *target = device->target;
    *code_arch = device->code_arch;
    if (!arch || strcmp(arch, device->target.arch) == 0) return FUSEC_OK;
    const Target *other = target_find(arch);
    if (!other) return fail_arch(arch, error);
    int sms = target->sms;
    bool by_gpu = strcmp(arch, other->arch) != 0, is_gpu = !device->cpu && !device->absent;
    *target = *other;
    if (is_gpu && by_gpu) target->sms = sms;
    if (is_gpu && !by_gpu) target_set_device(target, sms, device->memory_rate);
    *code_arch = other->arch;
    return FUSEC_OK;
}

void device_warn(fusec_device *device, const char *text)
{
    if (device_is_inherited(device)) return;
    pthread_mutex_lock(&device->warning_lock);
    if (!device->warning[0]) snprintf(device->warning, sizeof device->warning, "%s", text);
    pthread_mutex_unlock(&device->warning_lock);
}

size_t fusec_device_warning(const fusec_device *device, char *text, size_t size)
{
    fusec_device *d = (fusec_device *)device; /* only the lock changes, not the device */
    const bool alone = device && device_is_inherited(device);
    if (text && size) *text = 0;
    if (!device) return 0;
    if (!alone) pthread_mutex_lock(&d->warning_lock);
    size_t length = strlen(d->warning);
    if (text && size) snprintf(text, size, "%s", d->warning);
    if (!alone) pthread_mutex_unlock(&d->warning_lock);
    return length;
}

fusec_status fusec_device_get_info(const fusec_device *device, fusec_device_info *info)
{
    if (!device || !info || !copy_info(info, &device->info, sizeof device->info))
        return FUSEC_INVALID_ARGUMENT;
    return FUSEC_OK;
}
