/* nvrtc.h: libnvrtc, found and opened at run time: CUDA C to cubin or PTX. */
#ifndef FUSEC_NVRTC_H
#define FUSEC_NVRTC_H

#include "fusec.h"

#include <limits.h>
#include <stdbool.h>

/* All entry points: name, parameters. */
#define NVRTC_ENTRY_POINTS(NVRTC)                                                                  \
    NVRTC(nvrtcVersion, (int *major, int *minor))                                                  \
    NVRTC(nvrtcGetNumSupportedArchs, (int *count))                                                 \
    NVRTC(nvrtcGetSupportedArchs, (int *archs))                                                    \
    NVRTC(nvrtcCreateProgram, (NvrtcProgram * program, const char *text, const char *name,         \
                               int headers, const char *const *texts, const char *const *names))   \
    NVRTC(nvrtcDestroyProgram, (NvrtcProgram * program))                                           \
    NVRTC(nvrtcCompileProgram, (NvrtcProgram program, int count, const char *const *options))      \
    NVRTC(nvrtcGetCUBINSize, (NvrtcProgram program, size_t * bytes))                               \
    NVRTC(nvrtcGetCUBIN, (NvrtcProgram program, char *cubin))                                      \
    NVRTC(nvrtcGetPTXSize, (NvrtcProgram program, size_t * bytes))                                 \
    NVRTC(nvrtcGetPTX, (NvrtcProgram program, char *ptx))                                          \
    NVRTC(nvrtcGetProgramLogSize, (NvrtcProgram program, size_t * bytes))                          \
    NVRTC(nvrtcGetProgramLog, (NvrtcProgram program, char *log))

typedef struct NvrtcProgram_st *NvrtcProgram;

typedef struct {
    void *library;
    int major, minor;
    char path[PATH_MAX];
#define NVRTC_POINTER(name, parameters) int(*name) parameters;
    NVRTC_ENTRY_POINTS(NVRTC_POINTER)
#undef NVRTC_POINTER
} Nvrtc;

/* Machine code with the assembler's report; data and log are malloc'ed and NUL-ended. */
typedef struct {
    char *data;
    size_t bytes;        /* without the NUL */
    char *log;           /* of `ptxas -v` */
    double milliseconds; /* that compilation took */
} Code;

/* Searches $FUSEC_NVRTC (a file; if set, nothing else), the library path, CUDA toolkits, Python's
 * site-packages and nvrtc/ beside the library; takes the first library of at least version 12.8. */
fusec_status nvrtc_open(Nvrtc *nvrtc, fusec_error *error);
void nvrtc_close(Nvrtc *nvrtc);
/* *knows: whether cubins can be made for compute capability `cc` = 10 major + minor. */
fusec_status nvrtc_knows(const Nvrtc *nvrtc, int cc, bool *knows, fusec_error *error);
bool nvrtc_makes_ptx(const char *arch);
/* Compiles for "sm_90a" (cubin) or "compute_90" (PTX). `options` is one more option or
 * NULL. */
fusec_status nvrtc_compile(const Nvrtc *nvrtc, const char *cuda, const char *arch,
                           const char *option, Code *code, fusec_error *error);
/* The same on the caller's stack, which has to be large. */
fusec_status nvrtc_compile_here(const Nvrtc *nvrtc, const char *cuda, const char *arch,
                                const char *option, Code *code, fusec_error *error);
/* The same for a text of fusec with several kernels, sooner where there are several cores: each
 * kernel is compiled by itself. A cubin for each lies in code->data, one behind another: see
 * cubin.h. There is one PTX for all. */
fusec_status nvrtc_compile_kernels(const Nvrtc *nvrtc, const char *cuda, const char *arch,
                                   const char *option, Code *code, fusec_error *error);
void code_free(Code *code);

/* The files nvrtc_search visits, in order, until `visit` returns true; see
 * nvrtc_search.c. */
typedef bool VisitLibrary(void *data, const char *path);
/* A NULL path means that memory ran out, which ends the search. */
bool nvrtc_search(VisitLibrary *visit, void *data);

#endif
