/* fusec.h: the public interface of libfusec, a fusion compiler and runtime for
 * normalization graphs.
 *
 *     fusec_program   a parsed and checked .fuse file          needs no GPU
 *     fusec_device    a CUDA context, the CPU evaluator,       its compilers and caches
 *                     or a target: a GPU of another machine
 *     fusec_plan      one graph compiled for column sizes      launched for any rows
 *
 * The page goes from simple to explicit to advanced: most programs need only the first
 * section.
 *
 *     fusec_program *program;  fusec_device *device;  fusec_plan *plan;
 *     fusec_error error;
 *     fusec_program_parse(text, strlen(text), "ln.fuse", &program, &error);
 *     fusec_device_open(0, &device, &error);
 *     fusec_plan_create(device, program, NULL, sizes, 2, NULL, &plan, &error);
 *     fusec_plan_launch(plan, inputs, outputs, NULL, workspace, stream, &error);
 *
 * RULES FOR ALL ENTRIES
 *  - Every call that can fail returns a fusec_status and takes a fusec_error, which may
 *    be NULL. On success the error's status is FUSEC_OK and its message is "". Nothing
 *    is ever printed.
 *  - Results are written to the pointer arguments only on success; on failure `*result`
 *    is NULL.
 *  - Objects are immutable once made and may be used from many threads at once. The exceptions
 *    are _destroy and the _record of an event: no other thread may use the object during either
 *    call, nor after _destroy. Every _destroy takes NULL.
 *  - Objects hold what they need: a device, or a program, may be destroyed before the
 *    plans made from it; the context of a device lives until its last plan is gone.
 *  - A string that a call returns lives as long as the object it was asked of. The library
 *    copies the strings that it is given.
 *  - A call that needs an object, a text or a place for its result checks for NULL. With NULL a
 *    call that returns a status returns INVALID_ARGUMENT; a count, size or number is 0; a text
 *    that is never absent is ""; any other pointer is NULL; a call without a result does nothing.
 *  - Some structs begin with struct_size. The caller sets it to the size of the struct in its
 *    header: `fusec_axis_info axis = {.struct_size = sizeof axis};`. The library writes nothing
 *    beyond that size, so later versions can add fields at the end. A struct_size that does not
 *    cover the field after it is INVALID_ARGUMENT. fusec_error, fusec_size, fusec_tensor and the
 *    numbers of the enums are frozen: they never change.
 *  - Locale, floating-point environment, working directory and signals of the process change no
 *    text and no result, and no call changes them. Calls compute in a C locale, rounding to
 *    nearest, without traps. So do the caller's functions that they call, which may run in a
 *    thread of the library while the call waits. 256 KiB of stack are enough: compiling has a
 *    stack of its own. Threads that the library starts block all signals and end before the
 *    call returns.
 *  - An environment variable that holds a relative path is ignored. A program that runs with
 *    more rights than its user has reads no environment variable (secure_getenv).
 *  - After fork the child may use programs, the CPU device and its plans, unless another
 *    thread was making or destroying that very object. CUDA does not survive a fork: calls
 *    on a CUDA device, or on what was made from it, return CUDA_ERROR, and _destroy frees only
 *    host memory.
 *  - libcuda and libnvrtc are opened at run time. Without libcuda there are only the CPU
 *    device and targets, without libnvrtc a CUDA device runs only saved plans.
 *  - No CUDA header is needed, neither here nor to build the library. */
#ifndef FUSEC_H
#define FUSEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FUSEC_API __attribute__((visibility("default")))
#else
#define FUSEC_API
#endif

#define FUSEC_VERSION "0.3.0"

/* ==== simple ==== */

/* ---- errors ---- */

/* clang-format off */
/* Every status, with its meaning. The numbers are part of the ABI: new ones go to the
 * end.
 *
 *      name              text */
#define FUSEC_STATUSES(STATUS)                                                           \
    STATUS(OK,               "success")                                                  \
    STATUS(INVALID_PROGRAM,  "the program has errors")                                   \
    STATUS(INVALID_ARGUMENT, "an argument is wrong, or the schedule was refused")        \
    STATUS(INVALID_TENSOR,   "a tensor does not fit the plan")                           \
    STATUS(OUT_OF_MEMORY,    "out of memory")                                            \
    STATUS(NO_DRIVER,        "no usable CUDA driver")                                    \
    STATUS(NO_DEVICE,        "no such CUDA device or context")                           \
    STATUS(NO_NVRTC,         "no usable NVRTC")                                          \
    STATUS(COMPILE_FAILED,   "NVRTC or the driver refused the generated code")           \
    STATUS(CUDA_ERROR,       "a CUDA call failed")                                       \
    STATUS(IO_ERROR,         "a file could not be read or written")                      \
    STATUS(INVALID_FILE,     "a plan file is damaged or of another version")             \
    STATUS(UNSUPPORTED,      "this device cannot do that")                              \
    STATUS(LIMIT_EXCEEDED,   "the compilation is beyond a limit")                        \
    STATUS(CANCELLED,        "the caller cancelled the compilation")
/* clang-format on */

typedef enum fusec_status {
#define FUSEC_STATUS_ENUM(name, text) FUSEC_##name,
    FUSEC_STATUSES(FUSEC_STATUS_ENUM)
#undef FUSEC_STATUS_ENUM
        FUSEC_STATUS_COUNT
} fusec_status;

/* Frozen. What went wrong. `message` is one or more lines without a newline at the end: for
 * programs the diagnostics with places and carets; long ones are cut at the end of a
 * line. */
typedef struct fusec_error {
    fusec_status status;
    char message[1024];
} fusec_error;

/* The status as an identifier: "INVALID_TENSOR"; "UNKNOWN" for a number that is no status. */
FUSEC_API const char *fusec_status_name(fusec_status status);
/* The status in words: "a tensor does not fit the plan". */
FUSEC_API const char *fusec_status_text(fusec_status status);
/* The version of the library that runs; FUSEC_VERSION is the header's. */
FUSEC_API const char *fusec_version(void);

/* ---- objects and tensors ---- */

/* A parsed and checked program; where plans run; a compiled graph. Destroyed by
 * fusec_program_destroy, fusec_device_destroy and fusec_plan_destroy. */
typedef struct fusec_program fusec_program;
typedef struct fusec_device fusec_device;
typedef struct fusec_plan fusec_plan;

/* A CUstream or cudaStream_t. NULL is the legacy default stream. The CPU device ignores
 * it. */
typedef struct CUstream_st *fusec_stream;

/* How a tensor's elements are stored. The numbers are part of the ABI.
 * F16 BF16 F8E4M3 F8E5M2 are computed with as f32; BOOL is one byte, 0 or 1. */
typedef enum fusec_dtype {
    FUSEC_F64,
    FUSEC_F32,
    FUSEC_F16,
    FUSEC_BF16,
    FUSEC_F8E4M3,
    FUSEC_F8E5M2,
    FUSEC_I64,
    FUSEC_I32,
    FUSEC_I8,
    FUSEC_U8,
    FUSEC_BOOL,
    FUSEC_DTYPE_COUNT
} fusec_dtype;

/* The name of a dtype in .fuse, "bf16", and the bytes of one element. NULL and 0 for a number that
 * is no dtype. */
FUSEC_API const char *fusec_dtype_name(fusec_dtype dtype);
FUSEC_API size_t fusec_dtype_bytes(fusec_dtype dtype);

/* Frozen. The size of an axis, by the axis's name in the graph. */
typedef struct fusec_size {
    const char *axis;
    int64_t size;
} fusec_size;

/* The most axes that a tensor has. */
enum { FUSEC_MAX_RANK = 8 };

/* Frozen. A tensor in the device's memory (the host's for the CPU device), owned by the caller.
 * Axis 0 is the outermost, in the order of the graph's declaration. Strides are in
 * ELEMENTS.
 *  - The last axis must be dense (stride 1); an axis of size 0 or 1 may have any stride.
 *  - Other strides of inputs are free: 0 repeats, negative walks backwards.
 *  - Elements of an output must not overlap.
 *  - `data` must be aligned to the element size; more alignment is faster, never
 *    different.
 *  - Rows are read in blocks of 16 bytes. A launch may read up to 15 bytes before and after an
 *    input, and ignores them. It reads nothing beyond the aligned block of the input's first or
 *    last byte, and no such block straddles two pages. For a memory checker, allocate inputs in
 *    multiples of 16 bytes, as fusec_alloc does.
 *  - A tensor without elements may have data NULL. `T[]` is rank 0 with one element. */
typedef struct fusec_tensor {
    void *data;
    fusec_dtype dtype;
    int32_t rank;
    int64_t sizes[8], strides[8];
} fusec_tensor;

/* ---- programs ---- */

/* Parses and checks a program.
 *   text, length   the .fuse source; need not end in NUL
 *   name           of the file, for diagnostics; NULL: "<memory>"
 *   program        the result, owned by the caller
 * The program holds one or more graphs. It may import "std", which is embedded, and nothing
 * else: no file is opened. fusec_program_open and fusec_program_parse_with allow imports.
 * Limits: 64 MiB of text, and what fusec_parse_options has by default.
 * Errors: INVALID_PROGRAM with the diagnostics as message; OUT_OF_MEMORY; LIMIT_EXCEEDED. */
FUSEC_API fusec_status fusec_program_parse(const char *text, size_t length, const char *name,
                                           fusec_program **program, fusec_error *error);
FUSEC_API void fusec_program_destroy(fusec_program *program);

/* ---- devices ---- */

/* Opens a CUDA device. The caller owns it.
 *   ordinal   of a GPU, from 0: its primary context (the one the CUDA runtime API and
 *             PyTorch use), retained until the device and its plans are destroyed. Or -1:
 *             the calling thread's current context, which must outlive the device and its
 *             plans
 * Every call leaves the current context as it found it.
 * Errors: NO_DRIVER (libcuda missing, too old, or not initializing), NO_DEVICE,
 * OUT_OF_MEMORY, CUDA_ERROR. */
FUSEC_API fusec_status fusec_device_open(int ordinal, fusec_device **device, fusec_error *error);

/* The CPU evaluator as a device. It exists on every machine. It computes in f64, with the range of
 * the declared types, rounds what it stores to the declared dtypes, and is slow. Tensors are host
 * pointers, a launch is finished when it returns, streams are ignored, and a launch may allocate.
 * Errors: OUT_OF_MEMORY. */
FUSEC_API fusec_status fusec_device_cpu(fusec_device **device, fusec_error *error);

/* A target: the GPU of another machine as a device. NVRTC compiles plans for it without a driver,
 * and fusec_plan_save writes them. fusec_plan_load loads plans of every architecture on it, to be
 * looked at.
 *   arch   "sm_90a", … or a GPU, "h200", …; NULL: sm_90a
 * Nothing runs on it: memory, streams, events and launches return UNSUPPORTED. Its plans do not
 * use the tuning file. Of its fusec_device_info ordinal is -1, is_cpu 0, and name the GPU whose
 * numbers it has.
 * Errors: INVALID_ARGUMENT for an unknown architecture, OUT_OF_MEMORY. */
FUSEC_API fusec_status fusec_device_target(const char *arch, fusec_device **device,
                                           fusec_error *error);

/* Releases a device. The plans made from it stay usable. */
FUSEC_API void fusec_device_destroy(fusec_device *device);

/* ---- memory ---- */

/* Memory for programs without an allocator of their own.
 *   fusec_alloc   memory of the device, aligned to 256 bytes; 0 bytes give NULL. May
 *                 synchronize.
 *   fusec_free    NULL is allowed; waits for work that uses the memory, as cuMemFree does.
 *   fusec_copy    between host and device or within one of them; the direction follows from
 *                 the pointers. It begins after the work of the default stream and is finished
 *                 when it returns.
 * Errors: OUT_OF_MEMORY, CUDA_ERROR, UNSUPPORTED on a target. */
FUSEC_API fusec_status fusec_alloc(fusec_device *device, size_t bytes, void **memory,
                                   fusec_error *error);
FUSEC_API void fusec_free(fusec_device *device, void *memory);
FUSEC_API fusec_status fusec_copy(fusec_device *device, void *to, const void *from, size_t bytes,
                                  fusec_error *error);

/* ---- plans ---- */

/* Options of a plan; pass NULL for none, or begin with `= {.struct_size = sizeof options}`.
 * Fields that a caller's older header does not have count as zero. */
typedef struct fusec_plan_options {
    size_t struct_size; /* sizeof(fusec_plan_options) */
    /* NULL: all outputs. Else those wanted, one at least: "dx,dgamma". What only the others
     * need is neither computed nor read. */
    const char *outputs;
    /* NULL: fusec chooses. Else FAMILY[:key=value,…], as for --schedule. */
    const char *schedule;
    /* NULL: the device's. Else "sm_90a", … (CPU device: what fusec_plan_text is
     * written for; sm_90a by default). */
    const char *arch;
    /* Nonzero: an output may be the same memory as an input, where the plan can do that;
     * fusec_plan_launch says where. */
    int32_t in_place;
    /* Nonzero: neither reads the caches nor writes to the disk cache. */
    int32_t no_cache;
    /* Nonzero: the tuning file is not read. 0: where `schedule` is NULL, the plan takes the
     * schedule that `fusec tune` found for this graph, column sizes and device, if there is one.
     * The file is $FUSEC_TUNING_FILE, else $XDG_CONFIG_HOME/fusec/tuning, else
     * ~/.config/fusec/tuning. Only plans for a CUDA device's own architecture read it. */
    int32_t no_tuning;
    /* Nonzero: each kernel starts when everything before it in the stream is done, not while its
     * predecessor finishes (fusec_plan_launch). A saved plan does not keep this. */
    int32_t no_early_start;
    /* Limits of the compilation; 0: the default. Beyond one it ends with LIMIT_EXCEEDED,
     * and the message names it. A plan that is made is the same whatever the limits.
     *   max_nodes     operations of the graph, its functions inlined; 2^20
     *   max_bytes     memory that fusec's compiler holds at a time, NVRTC's apart; 4 GiB
     *   max_seconds   that fusec_plan_create takes with NVRTC, of which no call is broken off;
     *                 600 */
    int64_t max_nodes, max_bytes;
    double max_seconds;
    /* NULL: the call cannot be cancelled. Else the library calls it with cancel_data every few
     * thousand steps of the compiler, before and after each call of NVRTC, and while another thread
     * compiles the same text. If it returns nonzero, fusec_plan_create ends with CANCELLED. It may
     * run in a thread of the library, while the calling thread waits and no lock is held. It must
     * return, with the floating-point environment and locale as they were. A compilation that
     * other threads wait for goes on: each of them asks its own function. */
    int32_t (*is_cancelled)(void *cancel_data);
    void *cancel_data;
} fusec_plan_options;

/* Compiles one graph of a program for a device.
 *   graph          its name; NULL: the only one
 *   sizes, count   sizes of axes; those not given take the program's defaults. Column
 *                  sizes are compiled in. Row sizes decide nothing: launches may have any. A row
 *                  size given here is one that fusec_plan_workspace assumes where it is not
 *                  told; without a size or a default it assumes 1.
 *   options        NULL: none
 *   plan           the result, owned by the caller
 *
 * NVRTC takes a fraction of a second. Equal requests are compiled once in a process and, by the
 * disk cache, once on a machine. Compiling blocks no launch and no other compilation.
 * Thread-safe.
 * Errors: INVALID_PROGRAM, INVALID_ARGUMENT (unknown graph, axis or output, a column
 * axis without a size, an axis with two, a refused schedule), NO_NVRTC, COMPILE_FAILED
 * with NVRTC's log, OUT_OF_MEMORY, CUDA_ERROR, UNSUPPORTED, LIMIT_EXCEEDED, CANCELLED. After
 * any of them nothing is left behind, and the next call starts again. */
FUSEC_API fusec_status fusec_plan_create(fusec_device *device, const fusec_program *program,
                                         const char *graph, const fusec_size *sizes, size_t count,
                                         const fusec_plan_options *options, fusec_plan **plan,
                                         fusec_error *error);
/* Releases a plan. Launches already made continue; what they use of the plan is released after
 * them. */
FUSEC_API void fusec_plan_destroy(fusec_plan *plan);

/* The CUDA C that the plan runs, to read or to paste into a project. "" for a loaded
 * plan that was saved without it. */
FUSEC_API const char *fusec_plan_text(const fusec_plan *plan);

/* Bytes of workspace that a launch with these row sizes needs; 0: none. An axis that is not given
 * has the size that the plan was made with, or 1: give every axis along which a launch will have
 * more. The result never shrinks as a row size grows, so the workspace for the largest sizes
 * serves all launches. SIZE_MAX: an axis is unknown or given twice, or a size is negative or
 * impossible. */
FUSEC_API size_t fusec_plan_workspace(const fusec_plan *plan, const fusec_size *rows, size_t count);

/* Runs the plan on a stream.
 *   inputs      all tensor inputs, in declaration order (scalars left out)
 *   outputs     all outputs, in declaration order; entries of unwanted outputs are not
 *               read
 *   scalars     all scalars, in declaration order: floats are rounded to their dtype,
 *               for an integer or bool the value must be one of its dtype's; NULL: the
 *               defaults
 *   workspace   device memory of fusec_plan_workspace bytes, aligned to 256 bytes, which no
 *               other launch uses until this one is finished; its contents do not matter;
 *               NULL if none is needed
 * Row sizes are those of the wanted tensors; an axis that none of them has keeps the plan's
 * size. All memory belongs to the caller and must stay until the work is finished.
 *
 * The call only launches kernels (cooperative ones for rows that more CTAs share than a cluster
 * has). It does not allocate, synchronize or clear memory, so it may be captured into a CUDA
 * graph.
 *
 * From sm_90 on the plan's first kernel launches while its predecessor in the stream finishes
 * (programmatic dependent launch; not in a captured graph). It waits until the predecessor is
 * done and its writes are visible. Kernels of the caller need no change, except those that
 * were launched in this way themselves: they must have waited for their own predecessor
 * (griddepcontrol.wait, cudaGridDependencySynchronize). The option no_early_start turns this
 * off.
 *
 * Thread-safe. The same arguments give the same bits every time. A row's result does not
 * depend on the other rows. A sum over some of the row axes (sum[T] of [B, T, C]) does not depend
 * on how many such sums there are.
 *
 * An output must not overlap an input, another output or the workspace. With the option in_place
 * an output may be an input with the same pointer, element size, sizes and strides, if the plan
 * reads all of the input before it writes over it. `fusec explain` lists these pairs. They are
 * those of which no kernel that reads the input runs beside or after one that writes the output,
 * and those where both have all axes of the graph, one kernel reads and writes them, and it reads
 * no row again after writing it.
 * Errors: INVALID_TENSOR (dtype, rank, sizes, strides, alignment, NULL, overlap: which,
 * and why), INVALID_ARGUMENT (a scalar without a value, or with one that its dtype does
 * not have, the workspace), UNSUPPORTED (more CTAs than a launch has), CUDA_ERROR, on
 * the CPU device OUT_OF_MEMORY.
 * After an error found in the arguments nothing was launched. */
FUSEC_API fusec_status fusec_plan_launch(const fusec_plan *plan, const fusec_tensor *inputs,
                                         const fusec_tensor *outputs, const double *scalars,
                                         void *workspace, fusec_stream stream, fusec_error *error);

/* ==== explicit ==== */

/* ---- imports ---- */

/* The answer to an import statement. The library sets struct_size and makes everything else zero
 * before it asks. */
typedef struct fusec_imported {
    size_t struct_size; /* sizeof(fusec_imported) of the library */
    const char *text;   /* .fuse source; need not end in NUL */
    size_t length;      /* at most 16 MiB; 64 MiB for all imports of a program */
    /* Of the file, for diagnostics, and the `importer` of the imports in it; NULL: the path
     * as written. */
    const char *name;
    /* Tells files apart: imports with equal identities are one file, which is read once. A file
     * that imports itself, directly or through others, is an error. NULL: the name. */
    const char *identity;
    void *memory;      /* for the release function; the library leaves it alone */
    char message[256]; /* where there is no text: why, one line for the diagnostics */
} fusec_imported;

/* Finds an import.
 *   data       of the options
 *   importer   the name of the importing file: the program's, or what an answer gave
 *   path       as written in the import statement
 * Returns OK with text, length and name; INVALID_PROGRAM: there is no such file;
 * IO_ERROR: it cannot be read; OUT_OF_MEMORY. Parsing ends with that status, and with
 * INVALID_PROGRAM for any other. The library calls it once for each import statement, mostly in a
 * thread of its own while the calling thread waits. It must return: no exception, no longjmp. */
typedef fusec_status fusec_import_function(void *data, const char *importer, const char *path,
                                           fusec_imported *imported);
/* Frees what an answer holds. The library calls it once for each answer of OK, when it has copied
 * the answer, at the latest before parsing returns. */
typedef void fusec_release_function(void *data, fusec_imported *imported);

/* Options of parsing; pass NULL for none, or begin with `= {.struct_size = sizeof options}`.
 * Fields that a caller's older header does not have count as zero. */
typedef struct fusec_parse_options {
    size_t struct_size;              /* sizeof(fusec_parse_options) */
    fusec_import_function *import;   /* NULL: no imports but "std" */
    fusec_release_function *release; /* NULL: answers need not be released */
    void *data;                      /* for both */
    /* Limits of parsing and checking; 0: the default. Beyond one it ends with LIMIT_EXCEEDED, and
     * the message names it. Each fusec_plan_create has limits of its own.
     *   max_nodes     operations of a graph, its functions inlined; 2^20
     *   max_bytes     memory that the compiler holds at a time; 4 GiB
     *   max_seconds   that the call takes, for all graphs together; 600 */
    int64_t max_nodes, max_bytes;
    double max_seconds;
    /* NULL: the call cannot be cancelled. Else called every few thousand steps, as that of
     * fusec_plan_options: if it returns nonzero, the call ends with CANCELLED. */
    int32_t (*is_cancelled)(void *cancel_data);
    void *cancel_data;
} fusec_parse_options;

/* fusec_program_parse with options. The program keeps the texts of its imports: nothing asks for
 * them again. Of a text that is not UTF-8, or does not begin as a program does, no line appears
 * in the diagnostics.
 * Errors: those of fusec_program_parse; IO_ERROR where an import cannot be read;
 * INVALID_ARGUMENT for options with a wrong size. */
FUSEC_API fusec_status fusec_program_parse_with(const char *text, size_t length, const char *name,
                                                const fusec_parse_options *options,
                                                fusec_program **program, fusec_error *error);

/* Reads a program from a file. `path` is its name, too. Options without an import function,
 * or NULL: imports are files, as fusec_import_file finds them.
 * Errors: those of fusec_program_parse_with; INVALID_PROGRAM if there is no such file, or
 * none that is a regular one of at most 16 MiB. */
FUSEC_API fusec_status fusec_program_open(const char *path, const fusec_parse_options *options,
                                          fusec_program **program, fusec_error *error);

/* An import function and its release function for imports that are files: paths are
 * relative to the importing file's name. Only regular files of at most 16 MiB are read; links
 * are followed. A program can import any file that the process can read: for programs that you do
 * not trust, write an import function that decides. `data` is not used. */
FUSEC_API fusec_status fusec_import_file(void *data, const char *importer, const char *path,
                                         fusec_imported *imported);
FUSEC_API void fusec_release_file(void *data, fusec_imported *imported);

/* ---- saved plans ---- */

/* Writes a plan as one checksummed file: machine code, launch data and the text, for
 * machines without NVRTC. The file is written under a temporary name, synced and renamed. It takes
 * the owner and mode of the file that it replaces; links are followed. A machine without a GPU
 * saves the plans of a target (fusec_device_target). Plans of the CPU device hold no machine code
 * and cannot be saved: UNSUPPORTED.
 * Errors: IO_ERROR, OUT_OF_MEMORY, UNSUPPORTED. */
FUSEC_API fusec_status fusec_plan_save(const fusec_plan *plan, const char *path,
                                       fusec_error *error);

/* Reads a saved plan; needs neither NVRTC nor the program. The device must be able to run the
 * plan's architecture (a plan for sm_90a runs on compute capability 9.0 alone), and to hold
 * at once all CTAs that wait for each other (very long rows): else UNSUPPORTED. A target loads
 * plans of every architecture.
 *
 * Only a regular file of at most 256 MiB is read. A damaged one gives INVALID_FILE. Load only
 * files that you trust: they hold machine code, which the GPU runs as it is, and unlike the disk
 * cache this call does not ask who owns or could have written the file.
 * Errors: IO_ERROR, INVALID_FILE, UNSUPPORTED, OUT_OF_MEMORY, CUDA_ERROR. */
FUSEC_API fusec_status fusec_plan_load(fusec_device *device, const char *path, fusec_plan **plan,
                                       fusec_error *error);

/* ---- what a program holds ---- */

/* The graphs of a program, in order; the name of graph `index`, NULL if there is none. */
FUSEC_API size_t fusec_program_graph_count(const fusec_program *program);
FUSEC_API const char *fusec_program_graph(const fusec_program *program, size_t index);
/* The warnings of a program that has no errors, as text; "" if there are none. */
FUSEC_API const char *fusec_program_warnings(const fusec_program *program);
/* The source of a program, without its imports. */
FUSEC_API const char *fusec_program_text(const fusec_program *program);

/* ---- derivatives ---- */

/* Options of fusec_program_grad; pass NULL for none, or begin with
 * `= {.struct_size = sizeof options}`. Fields that a caller's older header does not have count as
 * zero. Lists are names separated by commas. */
typedef struct fusec_grad_options {
    size_t struct_size; /* sizeof(fusec_grad_options) */
    /* The outputs that are differentiated; NULL: all of floats but statistics. A statistic lacks an
     * axis that is reduced, and another output is computed from it. */
    const char *of;
    /* The inputs that get a gradient; NULL: all tensors of floats. Scalars only if named. */
    const char *wrt;
    /* The outputs that the forward pass saves for the backward pass, or "none". NULL or "auto":
     * those with which the backward pass costs least. */
    const char *save;
    /* Limits and cancelling, as in fusec_parse_options. */
    int64_t max_nodes, max_bytes;
    double max_seconds;
    int32_t (*is_cancelled)(void *cancel_data);
    void *cancel_data;
} fusec_grad_options;

/* The backward pass of a graph, as a program like any other, with one graph NAME_bwd.
 *   graph      its name; NULL: the only one
 *   options    NULL: none
 *   backward   the result, owned by the caller; does not need `program`
 *
 * The gradient of output y is an input dy of y's dtype and axes, that of input x an output dx of
 * x's. What the backward pass needs of the forward pass is an input under its own name: an input
 * of the forward graph, or an output of it that is saved. Where an input of the forward graph is
 * called dy already, the gradient is dy_2. fusec_program_text gives its text.
 * docs/reference/language.md has the derivatives at kinks. A backward pass can be differentiated
 * again. Needs no GPU. Thread-safe.
 * Errors: INVALID_ARGUMENT for unknown names, INVALID_PROGRAM for an input or output
 * that has no gradient (integers, bools) and for a graph without any; OUT_OF_MEMORY,
 * LIMIT_EXCEEDED, CANCELLED. */
FUSEC_API fusec_status fusec_program_grad(const fusec_program *program, const char *graph,
                                          const fusec_grad_options *options,
                                          fusec_program **backward, fusec_error *error);

/* ---- what a graph and a plan declare ---- */

/* A tensor of a plan or graph. Its axes are numbers of the axes there, outermost first. */
typedef struct fusec_tensor_info {
    size_t struct_size; /* sizeof(fusec_tensor_info), set by the caller */
    const char *name;
    fusec_dtype dtype;
    int32_t rank;
    int32_t axes[8];
    int32_t is_output;
    int32_t is_wanted; /* 0: the plan does not use it; its entry at launch is not read */
    /* Bit i of an output: it is a sum over axis i. If that axis is divided among devices
     * (fusec_axis_info), the caller adds the sums of the parts. */
    uint32_t summed;
} fusec_tensor_info;

/* A scalar of a plan or graph. */
typedef struct fusec_scalar_info {
    size_t struct_size; /* sizeof(fusec_scalar_info), set by the caller */
    const char *name;
    fusec_dtype dtype;
    int32_t has_default;
    double default_value;
} fusec_scalar_info;

/* An axis of a plan or graph. */
typedef struct fusec_axis_info {
    size_t struct_size; /* sizeof(fusec_axis_info), set by the caller */
    const char *name;
    int64_t size;     /* compiled in, or what the plan was made with */
    int32_t is_fixed; /* nonzero: compiled in; every launch must have this size */
    /* Nonzero: the tensors may be divided along this axis among devices, and each launches its
     * part. The graph then uses neither its size nor an index along it, and reduces over it only
     * in sums that are outputs. 0 for a loaded plan. */
    int32_t is_divisible;
} fusec_axis_info;

/* What graph number `graph` declares: its axes, outermost first; its tensors, inputs before
 * outputs; its scalars. Each list is numbered from 0. An index beyond its end, a NULL and a wrong
 * struct_size give INVALID_ARGUMENT and leave *info alone. Texts live as long as the program.
 *   axis     size is the default, -1 where there is none; is_fixed and is_divisible are 0: only a
 *            plan knows
 *   tensor   is_wanted is 1, summed 0; axes are numbers of the graph's axes */
FUSEC_API fusec_status fusec_program_axis(const fusec_program *program, size_t graph, size_t index,
                                          fusec_axis_info *info);
FUSEC_API fusec_status fusec_program_tensor(const fusec_program *program, size_t graph,
                                            size_t index, fusec_tensor_info *info);
FUSEC_API fusec_status fusec_program_scalar(const fusec_program *program, size_t graph,
                                            size_t index, fusec_scalar_info *info);

/* The name of the graph that the plan computes. */
FUSEC_API const char *fusec_plan_graph(const fusec_plan *plan);
/* The architecture of the plan's machine code, "sm_90a"; of a plan of the CPU device, that of its
 * text. */
FUSEC_API const char *fusec_plan_arch(const fusec_plan *plan);
/* The tensors, scalars and axes of a plan, numbered from 0: tensors are inputs first, then
 * outputs. An index beyond the end, a NULL and a wrong struct_size give INVALID_ARGUMENT and leave
 * *info alone. */
FUSEC_API size_t fusec_plan_input_count(const fusec_plan *plan);
FUSEC_API size_t fusec_plan_output_count(const fusec_plan *plan);
FUSEC_API size_t fusec_plan_tensor_count(const fusec_plan *plan);
FUSEC_API fusec_status fusec_plan_tensor(const fusec_plan *plan, size_t index,
                                         fusec_tensor_info *info);
FUSEC_API size_t fusec_plan_scalar_count(const fusec_plan *plan);
FUSEC_API fusec_status fusec_plan_scalar(const fusec_plan *plan, size_t index,
                                         fusec_scalar_info *info);
FUSEC_API size_t fusec_plan_axis_count(const fusec_plan *plan);
FUSEC_API fusec_status fusec_plan_axis(const fusec_plan *plan, size_t index, fusec_axis_info *info);

/* ---- facts about a device ---- */

/* What a device is. */
typedef struct fusec_device_info {
    size_t struct_size; /* sizeof(fusec_device_info), set by the caller */
    char name[128];     /* "NVIDIA H100 80GB HBM3", "CPU", of a target "h100" */
    char arch[16];      /* what plans are made for: "sm_90a" */
    int32_t is_cpu;
    int32_t ordinal;      /* of the CUDA device; -1 for the CPU and a target */
    int32_t major, minor; /* compute capability */
    int32_t sms;          /* multiprocessors */
    int32_t smem_per_cta; /* bytes a CTA may have by opt-in */
    int32_t l2_bytes;
    int32_t driver_version; /* 13000 for CUDA 13.0; 0 for the CPU and a target */
    uint64_t memory_bytes;
} fusec_device_info;

/* Fills *info. INVALID_ARGUMENT for a NULL or a wrong struct_size. */
FUSEC_API fusec_status fusec_device_get_info(const fusec_device *device, fusec_device_info *info);

/* Copies the device's warning and returns its length; 0: there is none. `text` may be NULL when
 * size is 0. The warning is the first of these, without which everything works:
 *  - the disk cache cannot be written, or cannot be trusted;
 *  - a file in $FUSEC_TARGETS is wrong;
 *  - the tuning file is damaged, or has a schedule that this version refuses. */
FUSEC_API size_t fusec_device_warning(const fusec_device *device, char *text, size_t size);

/* Waits for all work of the device's context.
 * Errors: CUDA_ERROR, also for earlier launches. */
FUSEC_API fusec_status fusec_device_synchronize(fusec_device *device, fusec_error *error);

/* ==== advanced ==== */

/* ---- kernels of a plan ---- */

/* What a compiled kernel uses. Numbers that are not known are -1. */
typedef struct fusec_kernel_info {
    size_t struct_size; /* sizeof(fusec_kernel_info), set by the caller */
    const char *name;
    int32_t registers;   /* per thread */
    int32_t spill_bytes; /* of spill stores and loads */
    int32_t stack_bytes; /* of local memory per thread, spilled or not */
    int32_t static_smem_bytes;
    int32_t threads; /* per CTA */
    /* CTAs that share a row: up to 16 are a cluster of the GPU, more are a group; 1: none. */
    int32_t cluster;
    /* Per CTA, for `grid`; a launch of fewer or more CTAs may take another amount. */
    int64_t dynamic_smem_bytes;
    /* CTAs for the sizes the plan was made with; where one is 0, the kernel is not launched. */
    int64_t grid[3];
} fusec_kernel_info;

/* The kernels of a plan in launch order. Of the CPU device's plans only launch data are
 * known. A kernel may have a second entry, for views whose rows are not evenly apart, or whose
 * columns of several axes are not side by side. It is launched instead of the first and has no
 * index of its own; fusec_binary_kernel finds it by its name. */
FUSEC_API size_t fusec_plan_kernel_count(const fusec_plan *plan);
FUSEC_API fusec_status fusec_plan_kernel(const fusec_plan *plan, size_t index,
                                         fusec_kernel_info *info);
/* The machine code that runs: cubins, one behind another, or PTX text where NVRTC does not know the
 * device. NULL for the CPU device. Lives as long as the plan. */
FUSEC_API const void *fusec_plan_binary(const fusec_plan *plan, size_t *bytes);
/* Number `index` of these cubins, an ELF file. A plan has one for all kernels, or one for each
 * kernel and each further entry. NULL beyond the last, for PTX and for the CPU device. Lives as long
 * as the plan. */
FUSEC_API const void *fusec_plan_cubin(const fusec_plan *plan, size_t index, size_t *bytes);
/* What `fusec explain` says of the graph for the plan's sizes, in words or as JSON: axes,
 * reductions, kernels, traffic, and why they were chosen. Copies at most `size` bytes, the closing
 * NUL included, and returns the length of the whole text; 0 for a loaded plan or if memory runs
 * out. `text` may be NULL when size is 0. */
FUSEC_API size_t fusec_plan_explain(const fusec_plan *plan, int32_t as_json, char *text,
                                    size_t size);
/* The schedule that the plan was made by: options.schedule, else the tuning file's. NULL if fusec
 * chose it, and for a loaded plan. Lives as long as the plan. */
FUSEC_API const char *fusec_plan_schedule(const fusec_plan *plan);
/* Milliseconds that fusec_plan_create took, and whether the machine code came from a cache. */
FUSEC_API double fusec_plan_milliseconds(const fusec_plan *plan);
FUSEC_API int fusec_plan_was_cached(const fusec_plan *plan);

/* ---- prepared launches ---- */

/* The arguments of a launch, checked once and kept, for loops that launch the same memory again
 * and again. fusec_call_launch treats streams and CUDA graphs as fusec_plan_launch does. The
 * memory must outlive the call object; the plan may be destroyed before it. Many threads may launch
 * one call, if the launches may overlap.
 * Errors of fusec_call_create: those of fusec_plan_launch; UNSUPPORTED on the CPU device, which
 * keeps no calls. */
typedef struct fusec_call fusec_call;
FUSEC_API fusec_status fusec_call_create(const fusec_plan *plan, const fusec_tensor *inputs,
                                         const fusec_tensor *outputs, const double *scalars,
                                         void *workspace, fusec_call **call, fusec_error *error);
FUSEC_API fusec_status fusec_call_launch(const fusec_call *call, fusec_stream stream,
                                         fusec_error *error);
FUSEC_API void fusec_call_destroy(fusec_call *call);

/* ---- streams, events, copies ---- */

/* Streams, for programs without a CUDA runtime of their own (timing, tests). The caller destroys
 * what it creates. On the CPU device a stream is NULL.
 * Errors: CUDA_ERROR; UNSUPPORTED on a target. */
FUSEC_API fusec_status fusec_stream_create(fusec_device *device, fusec_stream *stream,
                                           fusec_error *error);
FUSEC_API void fusec_stream_destroy(fusec_device *device, fusec_stream stream);

/* An event: a point in a stream; on the CPU device a point in time. Recording again moves it.
 * Errors: CUDA_ERROR, OUT_OF_MEMORY; UNSUPPORTED on a target. */
typedef struct fusec_event fusec_event;
FUSEC_API fusec_status fusec_event_create(fusec_device *device, fusec_event **event,
                                          fusec_error *error);
FUSEC_API fusec_status fusec_event_record(fusec_event *event, fusec_stream stream,
                                          fusec_error *error);
/* Waits for `end` and gives the milliseconds since `begin`. Both must have been recorded. */
FUSEC_API fusec_status fusec_event_elapsed(const fusec_event *begin, const fusec_event *end,
                                           double *milliseconds, fusec_error *error);
FUSEC_API void fusec_event_destroy(fusec_event *event);

/* A copy within the device, and filling memory with a byte. Both are asynchronous and in stream
 * order. Benchmarks measure the memory with the first and clear the L2 cache with the second. */
FUSEC_API fusec_status fusec_copy_async(fusec_device *device, void *to, const void *from,
                                        size_t bytes, fusec_stream stream, fusec_error *error);
FUSEC_API fusec_status fusec_fill_async(fusec_device *device, void *memory, uint8_t value,
                                        size_t bytes, fusec_stream stream, fusec_error *error);

/* ---- CUDA C to machine code ---- */

/* CUDA C is compiled to machine code without a device or driver. `fusec emit --emit=ptx|cubin` and
 * the register counts of `fusec explain` come from here. */
typedef enum fusec_format { FUSEC_CUBIN, FUSEC_PTX } fusec_format;

typedef struct fusec_binary fusec_binary;

/* Compiles a text.
 *   cuda   the text, ended by NUL
 *   arch   "sm_90a", … (PTX is made for compute_90a)
 * Uses the disk cache. The caller owns *binary.
 * Errors: NO_NVRTC (with the places searched),
 * COMPILE_FAILED with NVRTC's log, UNSUPPORTED for an architecture that this NVRTC does
 * not know, INVALID_ARGUMENT for an unknown format, OUT_OF_MEMORY. */
FUSEC_API fusec_status fusec_binary_compile(const char *cuda, const char *arch, fusec_format format,
                                            fusec_binary **binary, fusec_error *error);
FUSEC_API void fusec_binary_destroy(fusec_binary *binary);
/* The bytes; PTX is ended by a NUL that does not count. */
FUSEC_API const void *fusec_binary_data(const fusec_binary *binary, size_t *bytes);
/* Why the disk cache cannot be used, which is no error; "" if it can. Lives as long as the
 * binary. */
FUSEC_API const char *fusec_binary_warning(const fusec_binary *binary);
/* Milliseconds that NVRTC took when it compiled this code, which may have been for the cache. */
FUSEC_API double fusec_binary_milliseconds(const fusec_binary *binary);
/* What the kernel of that name uses; launch data are 0. INVALID_ARGUMENT if there is none or the
 * binary is PTX. info->name is the caller's `kernel`. */
FUSEC_API fusec_status fusec_binary_kernel(const fusec_binary *binary, const char *kernel,
                                           fusec_kernel_info *info);

/* NVRTC's version and file. path may be NULL.
 * Errors: NO_NVRTC with the places searched, OUT_OF_MEMORY. */
FUSEC_API fusec_status fusec_nvrtc_version(int *major, int *minor, char *path, size_t size,
                                           fusec_error *error);

/* ---- the disk cache ---- */

/* The disk cache is $FUSEC_CACHE_DIR, else $XDG_CACHE_HOME/fusec, else ~/.cache/fusec. It
 * keeps at most $FUSEC_CACHE_BYTES, 256 MiB by default, and drops what was used least recently.
 * A value that is no number gives a warning and the default.
 *
 * The directory must have an absolute path, belong to the effective user, be writable by
 * nobody else and be no symbolic link: else it is not used, which is a warning. The same holds for
 * each entry. An entry also holds everything that it was made from; one that does not match, or
 * that the driver refuses, is removed and compiled again.
 *   fusec_cache_path    its directory, whether it exists or not; returns its length, 0 if no
 *                       variable names one or its path is relative
 *   fusec_cache_list    calls `entry` for each entry, most recently used first; a return other
 *                       than 0 stops
 *   fusec_cache_clear   removes all entries (and nothing else); *count is how many, may be NULL
 * Errors: IO_ERROR, OUT_OF_MEMORY. The list then holds all entries that could be read. */
typedef struct fusec_cache_entry {
    size_t struct_size; /* of this library's, set by the library */
    const char *name;   /* the file in the directory */
    const char *arch;
    const char *kernel; /* the main one in it: others are named after it; "": it is PTX */
    uint64_t bytes;
    int64_t used; /* seconds since 1970 */
} fusec_cache_entry;

FUSEC_API size_t fusec_cache_path(char *path, size_t size);
FUSEC_API fusec_status fusec_cache_list(int (*entry)(void *data, const fusec_cache_entry *entry),
                                        void *data, fusec_error *error);
FUSEC_API fusec_status fusec_cache_clear(size_t *count, fusec_error *error);

#ifdef __cplusplus
}
#endif

#endif
