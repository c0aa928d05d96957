/* modules.c: the modules of a device: text -> machine code -> CUmodule, each made once.
 *
 * One lock guards the list and the modules' states. Compiling, reading the disk and loading run
 * without it. An unused module stays for a while, because plans come and go. */
#include "internal.h"

#include "cubin.h"
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_IDLE_MODULES = 64 };

bool modules_init(Modules *modules)
{
    memset(modules, 0, sizeof *modules);
    if (pthread_mutex_init(&modules->lock, NULL) != 0) return false;
    pthread_condattr_t monotonic;
    bool made = pthread_condattr_init(&monotonic) == 0;
    if (made) {
        made = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
               pthread_cond_init(&modules->changed, &monotonic) == 0;
        pthread_condattr_destroy(&monotonic);
    }
    if (!made) pthread_mutex_destroy(&modules->lock);
    return made;
}

static void unload_module(fusec_device *device, CodeModule *module)
{
    if (module->handle_count) {
        CurrentContext current;
        const bool entered = device_enter(device, &current, NULL) == FUSEC_OK;
        for (int i = 0; entered && i < module->handle_count; i++)
            device->driver.cuModuleUnload(module->handles[i]);
        context_leave(&current);
    }
    free(module->handles);
    module->handles = NULL;
    module->handle_count = 0;
}

static void module_free(fusec_device *device, CodeModule *module)
{
    unload_module(device, module);
    code_free(&module->code);
    free(module);
}

void modules_free(fusec_device *device)
{
    Modules *modules = &device->modules;
    for (CodeModule *next, *module = modules->first; module; module = next) {
        next = module->next;
        module_free(device, module);
    }
    if (device_is_inherited(device)) return;
    pthread_cond_destroy(&modules->changed);
    pthread_mutex_destroy(&modules->lock);
}

static void make_key(uint64_t key[2], const char *cuda, const char *arch, const char *option)
{
    XXH64_hash_t seed = XXH3_64bits(arch, strlen(arch));
    if (option) seed ^= XXH3_64bits_withSeed(option, strlen(option), 1);
    XXH128_hash_t hash = XXH3_128bits_withSeed(cuda, strlen(cuda), seed);
    key[0] = hash.low64;
    key[1] = hash.high64;
}

static void unlink_module(Modules *modules, CodeModule *module)
{
    for (CodeModule **at = &modules->first; *at; at = &(*at)->next)
        if (*at == module) {
            *at = module->next;
            break;
        }
    module->shared = false;
}

/* The least recently used idle module if there are too many, taken out of the list. */
static CodeModule *take_oldest_idle(Modules *modules)
{
    CodeModule *oldest = NULL;
    int idle = 0;
    for (CodeModule *m = modules->first; m; m = m->next)
        if (m->users == 0) {
            idle++;
            if (!oldest || m->last_use < oldest->last_use) oldest = m;
        }
    if (idle <= MAX_IDLE_MODULES) return NULL;
    unlink_module(modules, oldest);
    return oldest;
}

/* With the context current. */
static fusec_status load_cubins(const Driver *driver, CodeModule *module, fusec_error *error)
{
    const Code *code = &module->code;
    size_t at = 0;
    do {
        CUmodule *handle = &module->handles[module->handle_count];
        fusec_status status = driver_check(
            driver, driver->cuModuleLoadData(handle, code->data + at), "cuModuleLoadData", error);
        if (status != FUSEC_OK) return status;
        module->handle_count++;
        at += cubin_bytes(code->data + at, code->bytes - at);
    } while (at < code->bytes);
    return FUSEC_OK;
}

/* On failure nothing is loaded. */
static fusec_status load_module(fusec_device *device, CodeModule *module, fusec_error *error)
{
    CurrentContext current;
    if (device->absent) return FUSEC_OK;
    module->handles =
        calloc((size_t)cubin_count(module->code.data, module->code.bytes), sizeof *module->handles);
    if (!module->handles) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    fusec_status status = device_enter(device, &current, error);
    if (status == FUSEC_OK) status = load_cubins(&device->driver, module, error);
    context_leave(&current);
    if (status != FUSEC_OK) unload_module(device, module);
    return status;
}

CUresult module_function(const fusec_device *device, const CodeModule *module, const char *name,
                         CUfunction *function)
{
    const int found = cubin_of(module->code.data, module->code.bytes, name);
    return device->driver.cuModuleGetFunction(function, module->handles[found < 0 ? 0 : found],
                                              name);
}

/* The source of a module. */
typedef struct {
    const char *cuda, *arch, *option;
    bool use_cache;
} CodeSource;

/* Chooses what NVRTC makes: for an architecture that it does not know, PTX of the newest one below,
 * which the driver compiles. */
static fusec_status choose_code(const Nvrtc *nvrtc, const char *arch, char name[32], bool *is_ptx,
                                fusec_error *error)
{
    int cc = atoi(arch + strlen("sm_"));
    bool knows;
    fusec_status status = nvrtc_knows(nvrtc, cc, &knows, error);
    *is_ptx = !knows;
    while (status == FUSEC_OK && cc > 75 && !knows)
        status = nvrtc_knows(nvrtc, --cc, &knows, error);
    if (*is_ptx)
        snprintf(name, 32, "compute_%d", cc);
    else
        snprintf(name, 32, "%s", arch);
    return status;
}

static fusec_status compile_code(fusec_device *device, CodeModule *module, const Nvrtc *nvrtc,
                                 const CodeSource *source, const DiskKey *key, bool use_cache,
                                 fusec_error *error)
{
    char why[512];
    fusec_status status =
        nvrtc_compile_kernels(nvrtc, key->cuda, key->arch, source->option, &module->code, error);
    if (status == FUSEC_OK && use_cache && !disk_store(key, &module->code, why, sizeof why))
        device_warn(device, why);
    return status;
}

/* Whether the driver may have refused the code itself, so that other code might do. */
static bool refused_code(const CodeModule *module, fusec_status status)
{
    return module->from_disk && status != FUSEC_OK && status != FUSEC_OUT_OF_MEMORY;
}

/* Loads code from the disk cache, else from NVRTC. Cached code that the driver refuses is compiled
 * again and replaced in the cache. */
static fusec_status load_source(fusec_device *device, CodeModule *module, const CodeSource *source,
                                fusec_error *error)
{
    char name[32];
    const Nvrtc *nvrtc;
    fusec_status status = device_nvrtc(device, &nvrtc, error);
    if (status != FUSEC_OK) return status;
    status = choose_code(nvrtc, source->arch, name, &module->is_ptx, error);
    if (status != FUSEC_OK) return status;
    /* a text that was compiled as one program may have other code */
    char option[128];
    snprintf(option, sizeof option, "kernels one by one%s%s", source->option ? " " : "",
             source->option ? source->option : "");
    DiskKey key = disk_key(source->cuda, name, option, nvrtc);
    module->from_disk = source->use_cache && disk_load(&key, &module->code);
    if (!module->from_disk)
        status = compile_code(device, module, nvrtc, source, &key, source->use_cache, error);
    if (status == FUSEC_OK) status = load_module(device, module, error);
    if (!refused_code(module, status)) return status;
    code_free(&module->code);
    module->from_disk = false;
    status = compile_code(device, module, nvrtc, source, &key, true, error);
    return status == FUSEC_OK ? load_module(device, module, error) : status;
}

static void make_module(fusec_device *device, CodeModule *module, const CodeSource *source)
{
    fusec_status status = load_source(device, module, source, &module->error);
    Modules *modules = &device->modules;
    pthread_mutex_lock(&modules->lock);
    module->state = status == FUSEC_OK ? MODULE_READY : MODULE_FAILED;
    if (status != FUSEC_OK && module->shared) unlink_module(modules, module);
    pthread_cond_broadcast(&modules->changed);
    pthread_mutex_unlock(&modules->lock);
}

/* With the lock held, except while the budget is asked: waits until another thread has made a
 * module; false: the budget has stopped. */
static bool wait_for(Modules *modules, const CodeModule *m, Budget *budget)
{
    enum { A_WHILE = 20 * 1000 * 1000, SECOND = 1000 * 1000 * 1000 }; /* ns */
    while (m->state == MODULE_COMPILING) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += A_WHILE;
        until.tv_sec += until.tv_nsec / SECOND;
        until.tv_nsec %= SECOND;
        pthread_cond_timedwait(&modules->changed, &modules->lock, &until);
        if (m->state != MODULE_COMPILING) break;
        pthread_mutex_unlock(&modules->lock);
        bool go_on = !budget || budget_ask(budget);
        pthread_mutex_lock(&modules->lock);
        if (!go_on) return false;
    }
    return true;
}

/* With the lock held: finds the module with this key, which another thread may be making; or adds a
 * new one, which the caller has to make (*is_new). */
static CodeModule *find_module(Modules *modules, const uint64_t key[2], bool use_cache,
                               bool *is_new)
{
    CodeModule *m = modules->first;
    while (use_cache && m && memcmp(m->key, key, sizeof m->key) != 0) m = m->next;
    *is_new = !use_cache || !m;
    if (*is_new) {
        m = calloc(1, sizeof *m);
        if (!m) return NULL;
        memcpy(m->key, key, sizeof m->key);
        m->shared = use_cache;
        if (use_cache) {
            m->next = modules->first;
            modules->first = m;
        }
    }
    m->users++;
    m->last_use = ++modules->clock;
    return m;
}

fusec_status module_acquire(fusec_device *device, const char *cuda, const char *arch,
                            const char *option, bool use_cache, Budget *budget, CodeModule **module,
                            bool *was_cached, fusec_error *error)
{
    uint64_t key[2];
    bool is_new;
    if (device_is_inherited(device)) return fail_inherited(error);
    make_key(key, cuda, arch, option);
    pthread_mutex_lock(&device->modules.lock);
    CodeModule *m = find_module(&device->modules, key, use_cache, &is_new);
    const bool waited = !m || is_new || wait_for(&device->modules, m, budget);
    pthread_mutex_unlock(&device->modules.lock);
    if (!m) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (!waited) {
        module_release(device, m);
        return fail_stopped(budget, error);
    }
    if (is_new) make_module(device, m, &(CodeSource){cuda, arch, option, use_cache});
    if (m->state == MODULE_READY) {
        *module = m;
        *was_cached = !is_new || m->from_disk;
        return FUSEC_OK;
    }
    fusec_status status = fail(error, m->error.status, "%s", m->error.message);
    module_release(device, m);
    return status;
}

fusec_status module_from_code(fusec_device *device, Code *code, bool is_ptx, CodeModule **module,
                              fusec_error *error)
{
    CodeModule *m = calloc(1, sizeof *m);
    if (!m) {
        code_free(code);
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    }
    *m = (CodeModule){.state = MODULE_READY, .users = 1, .code = *code, .is_ptx = is_ptx};
    *code = (Code){0};
    fusec_status status = load_module(device, m, error);
    if (status == FUSEC_OK)
        *module = m;
    else
        module_release(device, m);
    return status;
}

void module_release(fusec_device *device, CodeModule *module)
{
    if (!module) return;
    Modules *modules = &device->modules;
    CodeModule *unused = NULL;
    /* After a fork the list may be half changed: modules_free frees what it holds. */
    if (device_is_inherited(device)) return;
    pthread_mutex_lock(&modules->lock);
    if (--module->users == 0) unused = module->shared ? take_oldest_idle(modules) : module;
    pthread_mutex_unlock(&modules->lock);
    if (unused) module_free(device, unused);
}
