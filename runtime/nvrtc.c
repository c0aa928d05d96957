/* nvrtc.c: opens libnvrtc and compiles the generated text with it.
 *
 * Many threads may call NVRTC, each with programs of its own. NVRTC's cache (12.9 and later) is
 * off: ours has a fuller key, and the assembler's report must be a fresh one. */
#include "nvrtc.h"

#include "error.h"
#include "library.h"
#include "base/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OLDEST_MAJOR = 12, OLDEST_MINOR = 8, NVRTC_ERROR_OUT_OF_MEMORY = 1 };

typedef struct {
    const char *name;
    size_t offset; /* of the pointer in Nvrtc */
} EntryPoint;

static const EntryPoint entry_points[] = {
#define NVRTC_OFFSET(name, parameters) {#name, offsetof(Nvrtc, name)},
    NVRTC_ENTRY_POINTS(NVRTC_OFFSET)
#undef NVRTC_OFFSET
};

typedef struct {
    Nvrtc *nvrtc;
    char refused[512]; /* libraries found but not usable, and why */
    bool no_memory;
} Search;

static void refuse(Search *search, const char *path, const char *why)
{
    size_t used = strlen(search->refused);
    snprintf(search->refused + used, sizeof search->refused - used, "\n  %.200s: %.160s", path,
             why);
}

static bool resolve_entry_points(Nvrtc *nvrtc)
{
    for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++) {
        void *symbol = dlsym(nvrtc->library, entry_points[i].name);
        if (!symbol) return false;
        memcpy((char *)nvrtc + entry_points[i].offset, &symbol, sizeof symbol);
    }
    return nvrtc->nvrtcVersion(&nvrtc->major, &nvrtc->minor) == 0;
}

static void remember_path(Nvrtc *nvrtc, const char *path)
{
    Dl_info info;
    void *address = dlsym(nvrtc->library, "nvrtcVersion");
    if (address && dladdr(address, &info) && info.dli_fname) path = info.dli_fname;
    snprintf(nvrtc->path, sizeof nvrtc->path, "%s", path);
}

/* VisitLibrary: takes the library if it opens, is complete and is new enough. */
static bool try_library(void *data, const char *path)
{
    Search *search = data;
    Nvrtc *nvrtc = search->nvrtc;
    const char *reason;
    nvrtc->library = path ? library_open(path, &reason) : NULL;
    /* Where memory ran out no further library is tried: it would give other code. */
    if (!nvrtc->library && (!path || errno == ENOMEM)) return search->no_memory = true;
    if (!nvrtc->library) {
        if (strchr(path, '/')) refuse(search, path, reason);
        return false;
    }
    char why[64] = "is not an NVRTC";
    if (resolve_entry_points(nvrtc)) {
        if (nvrtc->major > OLDEST_MAJOR ||
            (nvrtc->major == OLDEST_MAJOR && nvrtc->minor >= OLDEST_MINOR)) {
            remember_path(nvrtc, path);
            return true;
        }
        snprintf(why, sizeof why, "version %d.%d is too old", nvrtc->major, nvrtc->minor);
    }
    refuse(search, path, why);
    nvrtc_close(nvrtc);
    return false;
}

fusec_status nvrtc_open(Nvrtc *nvrtc, fusec_error *error)
{
    Search search = {.nvrtc = nvrtc};
    memset(nvrtc, 0, sizeof *nvrtc);
    bool ended = nvrtc_search(try_library, &search);
    if (search.no_memory) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    if (ended) return FUSEC_OK;
    const char *chosen = secure_getenv("FUSEC_NVRTC");
    if (chosen && *chosen)
        return fail(error, FUSEC_NO_NVRTC,
                    "no usable NVRTC: $FUSEC_NVRTC names it, so nothing else was searched; "
                    "version %d.%d or later is needed%s",
                    OLDEST_MAJOR, OLDEST_MINOR, search.refused);
    return fail(error, FUSEC_NO_NVRTC,
                "no NVRTC %d.%d or later. Searched: $FUSEC_NVRTC, the library path "
                "(libnvrtc.so.13, .12, .so), $CUDA_HOME, $CUDA_PATH, /usr/local/cuda*, "
                "/opt/cuda*, Python's site-packages (wheel nvidia-cuda-nvrtc) in $VIRTUAL_ENV, "
                "$CONDA_PREFIX, ~/.local, /usr and beside python3, and nvrtc/ beside fusec.%s",
                OLDEST_MAJOR, OLDEST_MINOR, search.refused);
}

void nvrtc_close(Nvrtc *nvrtc)
{
    if (nvrtc->library) dlclose(nvrtc->library);
    memset(nvrtc, 0, sizeof *nvrtc);
}

/* Turns a result of NVRTC into a status. */
static fusec_status nvrtc_check(int result, const char *what, fusec_error *error)
{
    if (result == 0) return FUSEC_OK;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY)
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory: NVRTC %s", what);
    return fail(error, FUSEC_COMPILE_FAILED, "NVRTC %s (error %d)", what, result);
}

fusec_status nvrtc_knows(const Nvrtc *nvrtc, int cc, bool *knows, fusec_error *error)
{
    static const char what[] = "does not list its architectures";
    int count = 0;
    *knows = false;
    fusec_status status = nvrtc_check(nvrtc->nvrtcGetNumSupportedArchs(&count), what, error);
    if (status != FUSEC_OK || count <= 0) return status;
    int *archs = calloc((size_t)count, sizeof *archs);
    if (!archs) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    status = nvrtc_check(nvrtc->nvrtcGetSupportedArchs(archs), what, error);
    for (int i = 0; i < count && status == FUSEC_OK; i++) *knows |= archs[i] == cc;
    free(archs);
    return status;
}

/* ---- compiling ---- */

bool nvrtc_makes_ptx(const char *arch)
{
    return strncmp(arch, "compute_", 8) == 0;
}

/* Only the log reports spills, so code without it is not accepted. */
static fusec_status read_log(const Nvrtc *nvrtc, NvrtcProgram program, Code *code,
                             fusec_error *error)
{
    static const char what[] = "gives no log";
    size_t bytes = 0;
    fusec_status status = nvrtc_check(nvrtc->nvrtcGetProgramLogSize(program, &bytes), what, error);
    if (status != FUSEC_OK) return status;
    code->log = calloc(bytes + 1, 1);
    if (!code->log) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    return bytes ? nvrtc_check(nvrtc->nvrtcGetProgramLog(program, code->log), what, error)
                 : FUSEC_OK;
}

static fusec_status read_code(const Nvrtc *nvrtc, NvrtcProgram program, bool ptx, Code *code,
                              fusec_error *error)
{
    static const char what[] = "gives no code";
    int got = ptx ? nvrtc->nvrtcGetPTXSize(program, &code->bytes)
                  : nvrtc->nvrtcGetCUBINSize(program, &code->bytes);
    if (got != 0) return nvrtc_check(got, what, error);
    code->data = calloc(code->bytes + 1, 1);
    if (!code->data) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    got = ptx ? nvrtc->nvrtcGetPTX(program, code->data) : nvrtc->nvrtcGetCUBIN(program, code->data);
    if (ptx) code->bytes = strlen(code->data);
    return nvrtc_check(got, what, error);
}

static double now_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static fusec_status compile_program(const Nvrtc *nvrtc, NvrtcProgram program, const char *arch,
                                    const char *option, Code *code, fusec_error *error)
{
    char architecture[64];
    snprintf(architecture, sizeof architecture, "--gpu-architecture=%s", arch);
    const bool ptx = nvrtc_makes_ptx(arch);
    const char *options[8] = {"--std=c++17", architecture};
    int count = 2;
    if (!ptx) options[count++] = "--ptxas-options=-v";
    /* Kernels need neither textures nor the device runtime, and NVRTC starts faster without. The
     * kernels of a text are optimized side by side. */
    if (nvrtc->major > 12) {
        options[count++] = "--minimal";
        options[count++] = "--split-compile=0";
    }
    if (nvrtc->major > 12 || nvrtc->minor >= 9) options[count++] = "--no-cache";
    if (option && *option) options[count++] = option;
    double begin = now_milliseconds();
    int result = nvrtc->nvrtcCompileProgram(program, count, options);
    code->milliseconds = now_milliseconds() - begin;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY)
        return nvrtc_check(result, "has none to compile with", error);
    fusec_status status = read_log(nvrtc, program, code, error);
    if (status != FUSEC_OK) return status;
    if (result != 0)
        return fail(error, FUSEC_COMPILE_FAILED, "NVRTC %d.%d for %s: %s", nvrtc->major,
                    nvrtc->minor, arch, *code->log ? code->log : "compilation failed");
    return read_code(nvrtc, program, ptx, code, error);
}

fusec_status nvrtc_compile_here(const Nvrtc *nvrtc, const char *cuda, const char *arch,
                                const char *option, Code *code, fusec_error *error)
{
    *code = (Code){0};
    NvrtcProgram program = NULL;
    fusec_status status =
        nvrtc_check(nvrtc->nvrtcCreateProgram(&program, cuda, "fusec.cu", 0, NULL, NULL),
                    "cannot create a program", error);
    if (status != FUSEC_OK) return status;
    status = compile_program(nvrtc, program, arch, option, code, error);
    nvrtc->nvrtcDestroyProgram(&program);
    if (status != FUSEC_OK) code_free(code);
    return status;
}

typedef struct {
    const Nvrtc *nvrtc;
    const char *cuda, *arch, *option;
    Code *code;
    fusec_error *error;
    fusec_status status;
} Job;

static void *do_job(void *data)
{
    OWN_ENVIRONMENT;
    Job *job = data;
    job->status =
        nvrtc_compile_here(job->nvrtc, job->cuda, job->arch, job->option, job->code, job->error);
    return NULL;
}

/* NVRTC is a whole C++ compiler, and needs the stack of one. */
fusec_status nvrtc_compile(const Nvrtc *nvrtc, const char *cuda, const char *arch,
                           const char *option, Code *code, fusec_error *error)
{
    Job job = {nvrtc, cuda, arch, option, code, error, FUSEC_OK};
    run_on_large_stack(do_job, &job);
    return job.status;
}

void code_free(Code *code)
{
    free(code->data);
    free(code->log);
    *code = (Code){0};
}
