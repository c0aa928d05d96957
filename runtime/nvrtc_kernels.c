/* nvrtc_kernels.c: the kernels of a text, each compiled as a program of its own, several at a time.
 *
 * The front end of NVRTC has one thread for a program, so kernels that share one wait for each
 * other. They share nothing but helpers, which are inlined, so a kernel's code is the same either
 * way, except for the order of some instructions. */
#include "internal.h"

#include "cubin.h"

#include "base/thread.h"
#include "codegen/cuda.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *text; /* the helpers and the kernel */
    Code code;
    fusec_error error;
} Piece;

typedef struct {
    const Nvrtc *nvrtc;
    const char *arch, *option;
    Piece *pieces;
    int count;
    atomic_int next;
} Work;

/* Threads of this process that compile kernels. Plans that are made at the same time share the
 * cores. */
static atomic_int busy;

/* ---- pieces ---- */

static const char *find_kernel(const char *text)
{
    static const char line_before[] = "\n" KERNEL_BEGINS;
    const char *found = strstr(text, line_before);
    return found ? found + 1 : NULL;
}

static int count_kernels(const char *text)
{
    int count = 0;
    for (const char *at = text; (at = find_kernel(at)) != NULL; at++) count++;
    return count;
}

static int line_number(const char *text, const char *at)
{
    int number = 1;
    for (const char *c = text; c < at; c++) number += *c == '\n';
    return number;
}

/* The helpers, then the kernel with the line number that it has in the whole text. False: out of
 * memory. */
static bool cut_pieces(const char *cuda, Piece *pieces)
{
    const char *kernel = find_kernel(cuda);
    const size_t helpers = (size_t)(kernel - cuda);
    for (int i = 0; kernel; i++) {
        const char *next = find_kernel(kernel);
        const size_t length = next ? (size_t)(next - kernel) : strlen(kernel);
        char directive[32];
        const size_t words =
            (size_t)snprintf(directive, sizeof directive, "#line %d\n", line_number(cuda, kernel));
        char *text = pieces[i].text = malloc(helpers + words + length + 1);
        if (!text) return false;
        memcpy(text, cuda, helpers);
        memcpy(text + helpers, directive, words);
        memcpy(text + helpers + words, kernel, length);
        text[helpers + words + length] = 0;
        kernel = next;
    }
    return true;
}

static void free_pieces(Piece *pieces, int count)
{
    for (int i = 0; i < count; i++) {
        free(pieces[i].text);
        code_free(&pieces[i].code);
    }
    free(pieces);
}

/* ---- compiling ---- */

/* One of the threads, which `busy` counts. */
static void *compile_pieces(void *data)
{
    OWN_ENVIRONMENT;
    Work *work = data;
    for (int i; (i = atomic_fetch_add(&work->next, 1)) < work->count;) {
        Piece *piece = &work->pieces[i];
        nvrtc_compile_here(work->nvrtc, piece->text, work->arch, work->option, &piece->code,
                           &piece->error);
    }
    atomic_fetch_sub(&busy, 1);
    return NULL;
}

/* One thread, and others while there are cores for them. */
static void compile_all(Work *work)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t *threads = calloc((size_t)work->count, sizeof *threads);
    int started = 0;
    atomic_fetch_add(&busy, 1);
    while (threads && started < work->count - 1) {
        const bool has_core = atomic_fetch_add(&busy, 1) < cores;
        if (!has_core || !thread_start(&threads[started], LARGE_STACK, compile_pieces, work)) {
            atomic_fetch_sub(&busy, 1);
            break;
        }
        started++;
    }
    run_on_large_stack(compile_pieces, work);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    free(threads);
}

/* ---- one code ---- */

/* Cubins begin at multiples of 8 bytes. */
static size_t room_of(const Code *code)
{
    return (cubin_bytes(code->data, code->bytes) + 7) / 8 * 8;
}

static fusec_status join_pieces(const Piece *pieces, int count, Code *code, fusec_error *error)
{
    size_t log_bytes = 0;
    for (int i = 0; i < count; i++) {
        if (pieces[i].error.status != FUSEC_OK) {
            code->bytes = 0;
            return fail(error, pieces[i].error.status, "%s", pieces[i].error.message);
        }
        code->bytes += room_of(&pieces[i].code);
        log_bytes += strlen(pieces[i].code.log);
    }
    code->data = calloc(code->bytes + 1, 1);
    code->log = malloc(log_bytes + 1);
    if (!code->data || !code->log) {
        code_free(code);
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    }
    char *data = code->data, *log = code->log;
    for (int i = 0; i < count; i++) {
        const Code *own = &pieces[i].code;
        memcpy(data, own->data, cubin_bytes(own->data, own->bytes));
        data += room_of(own);
        log = stpcpy(log, own->log);
    }
    *log = 0;
    return FUSEC_OK;
}

fusec_status nvrtc_compile_kernels(const Nvrtc *nvrtc, const char *cuda, const char *arch,
                                   const char *option, Code *code, fusec_error *error)
{
    const int count = count_kernels(cuda);
    if (count < 2 || nvrtc_makes_ptx(arch))
        return nvrtc_compile(nvrtc, cuda, arch, option, code, error);
    *code = (Code){0};
    const double begin = milliseconds_now();
    Piece *pieces = calloc((size_t)count, sizeof *pieces);
    fusec_status status;
    if (!pieces || !cut_pieces(cuda, pieces))
        status = fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    else {
        Work work = {nvrtc, arch, option, pieces, count, 0};
        compile_all(&work);
        status = join_pieces(pieces, count, code, error);
        if (status == FUSEC_OK) code->milliseconds = milliseconds_now() - begin;
    }
    if (pieces) free_pieces(pieces, count);
    return status;
}
