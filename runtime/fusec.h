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
 *  - Objects are immutable once made and may be used from many threads at once. Only a
 *    _destroy, and the _record of an event, need order: no other thread may use the object
 *    during either, nor any after a _destroy. Every _destroy takes NULL.
 *  - Objects hold what they need: a device, or a program, may be destroyed before the
 *    plans made from it; the context of a device lives until its last plan is gone.
 *  - Strings returned live as long as the object they were asked of. Strings given are
 *    copied.
 *  - A NULL where an object, a place for a result or a text is needed is never followed:
 *    calls with a status answer INVALID_ARGUMENT, counts and sizes 0, numbers 0, texts
 *    that are never absent "", other pointers NULL, and calls without a result do nothing.
 *  - A struct with a struct_size begins with its size in the caller's header, which the
 *    caller sets: `fusec_axis_info axis = {.struct_size = sizeof axis};`. The library writes
 *    no more than that, so new fields go to the end; less than its first field and one more
 *    is INVALID_ARGUMENT. fusec_error, fusec_size, fusec_tensor and the enums' numbers are
 *    frozen: they never change.
 *  - The process stays the caller's. Locale, floating-point environment, working directory
 *    and signals change no text and no result, and no call leaves any of them changed.
 *    Calls compute in a C locale of their own, rounding to nearest, without traps, and so
 *    do functions of the caller that they call, which may run in a thread of the library
 *    while the call waits. 256 KiB of stack are enough: compiling has a stack of its own.
 *    Threads that the library makes take no signals and are gone when the call returns.
 *  - No environment variable names a relative path: such a one is passed over. None is read
 *    in a program that runs with more rights than its user has (secure_getenv).
 *  - After fork the child may use programs, the CPU device and its plans, unless another
 *    thread was making or destroying that very object. CUDA does not survive a fork: calls
 *    on a CUDA device or what was made from it answer CUDA_ERROR, and _destroy lets go of
 *    the memory alone.
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

/* The status as an identifier: "INVALID_TENSOR"; "UNKNOWN" for any other number. */
FUSEC_API const char *fusec_status_name(fusec_status status);
/* The status in words: "a tensor does not fit the plan". */
FUSEC_API const char *fusec_status_text(fusec_status status);
/* The version of the library that runs; FUSEC_VERSION is the header's. */
FUSEC_API const char *fusec_version(void);

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

FUSEC_API const char *fusec_dtype_name(fusec_dtype dtype); /* "bf16", as in .fuse; NULL if none */
FUSEC_API size_t fusec_dtype_bytes(fusec_dtype dtype);     /* of one element; 0 if none */

/* Frozen. The size of an axis, by the axis's name in the graph. */
typedef struct fusec_size {
    const char *axis;
    int64_t size;
} fusec_size;

enum { FUSEC_MAX_RANK = 8 };

/* Frozen. A tensor in the device's memory (the host's for the CPU device), owned by the caller.
 * Axis 0 is the outermost, in the order of the graph's declaration. Strides are in
 * ELEMENTS.
 *  - The last axis must be dense (stride 1); an axis of size 0 or 1 may have any stride.
 *  - Other strides of inputs are free: 0 repeats, negative walks backwards.
 *  - Elements of an output must not lie on each other.
 *  - `data` must be aligned to the element size; more alignment is faster, never
 *    different.
 *  - Rows are read by 16-byte blocks: a launch may read, and ignores, up to 15 bytes before
 *    and after an input's own, never beyond the aligned block that its first or last byte
 *    is in. Such blocks do not straddle pages; a memory checker may want inputs allocated
 *    in multiples of 16 bytes, as fusec_alloc does.
 *  - A tensor without elements may have data NULL. `T[]` is rank 0 with one element. */
typedef struct fusec_tensor {
    void *data;
    fusec_dtype dtype;
    int32_t rank;
    int64_t sizes[8], strides[8];
} fusec_tensor;

/* Parses and checks a program.
 *   text, length   the .fuse source; need not end in NUL
 *   name           of the file, for diagnostics; NULL: "<memory>"
 * The program holds one or more graphs. It may import "std", which is embedded, and nothing
 * else: no file is opened. fusec_program_open and fusec_program_parse_with allow imports.
 * Limits: 64 MiB of text, and what fusec_parse_options has by default.
 * Errors: INVALID_PROGRAM with the diagnostics as message; OUT_OF_MEMORY; LIMIT_EXCEEDED. */
FUSEC_API fusec_status fusec_program_parse(const char *text, size_t length, const char *name,
                                           fusec_program **program, fusec_error *error);
FUSEC_API void fusec_program_destroy(fusec_program *program);

/* Opens a CUDA device.
 *   ordinal   0, 1, …: the device's primary context (the one the CUDA runtime API and
 *             PyTorch use), retained until the device and its plans are destroyed
 *             -1: the calling thread's current context, which must outlive the device
 *             and its plans
 * No call leaves another current context behind than it found.
 * Errors: NO_DRIVER (libcuda missing, too old, or not initializing), NO_DEVICE,
 * OUT_OF_MEMORY, CUDA_ERROR. */
FUSEC_API fusec_status fusec_device_open(int ordinal, fusec_device **device, fusec_error *error);

/* The CPU evaluator as a device: always there, exact (f64 arithmetic with the range of the
 * declared types, storage rounded as declared), slow. Tensors are host pointers, launches
 * are finished when they return, streams are ignored, and launching may allocate.
 * Errors: OUT_OF_MEMORY. */
FUSEC_API fusec_status fusec_device_cpu(fusec_device **device, fusec_error *error);

/* A target: the GPU of another machine as a device. Plans are compiled for it, with NVRTC but
 * without a driver, and saved; fusec_plan_load takes plans of every architecture, to look at.
 *   arch   "sm_90a", … or a GPU, "h200", …; NULL: sm_90a
 * Nothing runs: memory, streams, events and launches answer UNSUPPORTED. It never looks into the
 * tuning file. Its ordinal is -1, is_cpu 0, and its name the GPU's whose numbers it has.
 * Errors: INVALID_ARGUMENT for an unknown architecture, OUT_OF_MEMORY. */
FUSEC_API fusec_status fusec_device_target(const char *arch, fusec_device **device,
                                           fusec_error *error);
FUSEC_API void fusec_device_destroy(fusec_device *device);

/* Conveniences for programs without an allocator of their own.
 *   fusec_alloc   memory of the device, aligned to 256 bytes; 0 bytes give NULL. May
 *                 synchronize.
 *   fusec_free    NULL is allowed; waits for work that uses the memory, as cuMemFree does.
 *   fusec_copy    between host and device or within one of them, the direction follows from
 *                 the pointers; finished when it returns, ordered after the default stream.
 * Errors: OUT_OF_MEMORY, CUDA_ERROR. */
FUSEC_API fusec_status fusec_alloc(fusec_device *device, size_t bytes, void **memory,
                                   fusec_error *error);
FUSEC_API void fusec_free(fusec_device *device, void *memory);
FUSEC_API fusec_status fusec_copy(fusec_device *device, void *to, const void *from, size_t bytes,
                                  fusec_error *error);

/* Options of a plan; pass NULL for none, or begin with `= {.struct_size = sizeof options}`.
 * Fields that a caller's older header does not have count as zero. */
typedef struct fusec_plan_options {
    size_t struct_size; /* sizeof(fusec_plan_options) */
    /* NULL: all. Else the outputs wanted, one at least, "dx,dgamma"; what only the
     * others need is neither computed nor read. */
    const char *outputs;
    /* NULL: chosen. Else FAMILY[:key=value,…], as --schedule. */
    const char *schedule;
    /* NULL: the device's. Else "sm_90a", … (CPU device: what fusec_plan_text is
     * written for; sm_90a by default). */
    const char *arch;
    /* Nonzero: an output may be the same memory as an input, where the plan can do that;
     * fusec_plan_launch says where. */
    int32_t in_place;
    /* Nonzero: neither looks into the caches nor fills the disk cache. */
    int32_t no_cache;
    /* Nonzero: does not look into the tuning file. Else, where no schedule is given, one
     * that `fusec tune` found for this graph, column sizes and device is taken.
     * The file is $FUSEC_TUNING_FILE, else $XDG_CONFIG_HOME/fusec/tuning, else
     * ~/.config/fusec/tuning; only plans for a CUDA device's own architecture read it. */
    int32_t no_tuning;
    /* Nonzero: each kernel starts when everything before it in the stream is done, not while its
     * predecessor finishes (fusec_plan_launch). A saved plan does not keep this. */
    int32_t no_early_start;
    /* Limits of the compilation; 0: the default. Beyond one it ends with LIMIT_EXCEEDED,
     * and the message names it. A plan that is made is the same whatever the limits.
     *   max_nodes     operations of the graph, its functions inlined; 2^20
     *   max_bytes     memory that fusec's compiler holds at a time, NVRTC's apart; 4 GiB
     *   max_seconds   of fusec_plan_create, NVRTC's time included, though no call of NVRTC is
     *                 broken off; 600 */
    int64_t max_nodes, max_bytes;
    double max_seconds;
    /* NULL: never. Else asked every few thousand steps of the compiler, before and after each
     * call of NVRTC, and while another thread compiles the same text: nonzero ends
     * fusec_plan_create with CANCELLED. It is called with cancel_data while the calling thread
     * waits, maybe in a thread of the library, and no lock is held; it must return, and may set
     * no other floating-point environment or locale. What other threads wait for goes on: each
     * asks its own. */
    int32_t (*is_cancelled)(void *cancel_data);
    void *cancel_data;
} fusec_plan_options;

/* Compiles one graph of a program for a device.
 *   graph          its name; NULL: the only one
 *   sizes, count   sizes of axes; those not given take the program's defaults. Column
 *                  sizes are compiled in. Row sizes decide nothing, launches may have any:
 *                  what is given here is what fusec_plan_workspace counts with where it is
 *                  not told, 1 without a size or a default.
 *   options        NULL: none
 * NVRTC takes a fraction of a second. Equal requests are compiled once a process, and, through the disk cache,
 * once a machine. Compiling holds up no launch and no other compilation. Thread-safe.
 * Errors: INVALID_PROGRAM, INVALID_ARGUMENT (unknown graph, axis or output, a column
 * axis without a size, an axis with two, a refused schedule), NO_NVRTC, COMPILE_FAILED
 * with NVRTC's log, OUT_OF_MEMORY, CUDA_ERROR, UNSUPPORTED, LIMIT_EXCEEDED, CANCELLED; after
 * any of them nothing is left behind, and the next attempt starts again. */
FUSEC_API fusec_status fusec_plan_create(fusec_device *device, const fusec_program *program,
                                         const char *graph, const fusec_size *sizes, size_t count,
                                         const fusec_plan_options *options, fusec_plan **plan,
                                         fusec_error *error);
/* Launches already made continue; what they use of the plan is released after them. */
FUSEC_API void fusec_plan_destroy(fusec_plan *plan);

/* The CUDA C that the plan runs, to read or to paste into a project. "" for a loaded
 * plan that was saved without it. */
FUSEC_API const char *fusec_plan_text(const fusec_plan *plan);

/* Bytes of workspace that a launch with these row sizes needs; 0: none, SIZE_MAX: an
 * unknown axis, one given twice, a size below 0 or one that cannot be. Axes not given have
 * the sizes the plan was made with, or 1: name all that launches will have more rows of.
 * It never shrinks when a row size grows, so the workspace for the largest serves all. */
FUSEC_API size_t fusec_plan_workspace(const fusec_plan *plan, const fusec_size *rows, size_t count);

/* Runs the plan on a stream.
 *   inputs      all tensor inputs, in declaration order (scalars left out)
 *   outputs     all outputs, in declaration order; entries of unwanted outputs are not
 *               read
 *   scalars     all scalars, in declaration order: floats are rounded to their dtype,
 *               for an integer or bool the value must be one of its dtype's; NULL: the
 *               defaults
 *   workspace   device memory of fusec_plan_workspace bytes, 256-byte aligned, for this
 *               launch alone until it is finished; its contents do not matter; NULL if
 *               none is needed
 * Row sizes are read off the wanted tensors; an axis that none has keeps the plan's
 * size. All memory must stay until the work is finished.
 * No allocation, no synchronization, no memset: nothing but kernel launches (cooperative
 * ones for rows that more CTAs share than a cluster has), so it may be captured into a
 * CUDA graph.
 * From sm_90 on the plan's first kernel launches while its predecessor in the stream finishes
 * (programmatic dependent launch; not in a captured graph). It waits until the predecessor is
 * done and its writes are visible. Kernels of the caller need no change, except those that
 * were launched in this way themselves: they must have waited for their own predecessor
 * (griddepcontrol.wait, cudaGridDependencySynchronize). The option no_early_start turns this
 * off.
 * Thread-safe. The same arguments give the same bits every time. A row's result does not
 * depend on the other rows, nor a sum over some of them (sum[T] of [B, T, C]) on how many such
 * sums there are.
 * An output must not overlap an input, another output or the workspace. With the option
 * in_place an output may be an input with the same pointer, element size, sizes and
 * strides, if all reads come before the writes: either no kernel that reads the input
 * runs beside or after one that writes the output, or both have all axes of the graph,
 * one kernel does both, and it reads no row again after writing it: `fusec explain` lists the
 * pairs.
 * Errors: INVALID_TENSOR (dtype, rank, sizes, strides, alignment, NULL, overlap: which,
 * and why), INVALID_ARGUMENT (a scalar without a value, or with one that its dtype does
 * not have, the workspace), UNSUPPORTED (more CTAs than a launch has), CUDA_ERROR, on
 * the CPU device OUT_OF_MEMORY.
 * After an error found in the arguments nothing was launched. */
FUSEC_API fusec_status fusec_plan_launch(const fusec_plan *plan, const fusec_tensor *inputs,
                                         const fusec_tensor *outputs, const double *scalars,
                                         void *workspace, fusec_stream stream, fusec_error *error);

/* ==== explicit ==== */

/* What an import statement is answered with. Beside `struct_size`, which the library sets,
 * everything is zero before. */
typedef struct fusec_imported {
    size_t struct_size; /* sizeof(fusec_imported) of the library */
    const char *text;   /* .fuse source; need not end in NUL */
    size_t length;      /* at most 16 MiB; 64 MiB for all imports of a program */
    /* Of the file, for diagnostics, and the `importer` of the imports in it; NULL: the path
     * as written. */
    const char *name;
    /* Tells files apart: imports with equal ones are one file, read once; an import of one
     * that is importing it is a cycle. NULL: the name. */
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
 * INVALID_PROGRAM for any other. Called for each import statement once, while the
 * thread that parses waits, mostly in a thread of the library. It must not unwind past the
 * library. */
typedef fusec_status fusec_import_function(void *data, const char *importer, const char *path,
                                           fusec_imported *imported);
/* Frees what an answer holds. Called once for each answer of OK, when the library has
 * copied it, at the latest before parsing returns. */
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
     *   max_seconds   of the call, for all graphs together; 600 */
    int64_t max_nodes, max_bytes;
    double max_seconds;
    /* NULL: never. Else asked every few thousand steps, as that of fusec_plan_options: nonzero
     * ends the call with CANCELLED. */
    int32_t (*is_cancelled)(void *cancel_data);
    void *cancel_data;
} fusec_parse_options;

/* fusec_program_parse with options. The texts of imports are kept with the program: neither
 * fusec_plan_create nor anything else asks for them again. A text that is not UTF-8 or does
 * not begin as a program does is refused without a line of it in the diagnostics.
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
 * are followed. They may be any that the process can read: programs from strangers want a
 * function of your own, that knows which. `data` is not used. */
FUSEC_API fusec_status fusec_import_file(void *data, const char *importer, const char *path,
                                         fusec_imported *imported);
FUSEC_API void fusec_release_file(void *data, fusec_imported *imported);

/* Writes a plan as one checksummed file: machine code, launch data and the text, for
 * machines without NVRTC. Written to a temporary name, synced and renamed; a file that is
 * replaced gives its owner and mode, links are followed. A machine without a GPU saves the
 * plans of a target (fusec_device_target). Plans of the CPU device hold no machine code and
 * cannot be saved: UNSUPPORTED. Errors: IO_ERROR, OUT_OF_MEMORY, UNSUPPORTED. */
FUSEC_API fusec_status fusec_plan_save(const fusec_plan *plan, const char *path,
                                       fusec_error *error);

/* Reads it back; needs neither NVRTC nor the program. The device must be able to run the
 * plan's architecture (a plan for sm_90a runs on compute capability 9.0 alone), and hold
 * at once all CTAs that wait for each other (very long rows): else UNSUPPORTED. A target loads
 * plans of every architecture.
 * Only a regular file of at most 256 MiB is read. A damaged one never does more harm than
 * INVALID_FILE, but it holds machine code, which the GPU runs as it is: unlike the disk cache,
 * which takes nothing that another user could have written, this takes the file that it is
 * given, whoever owns it. Load only what you trust. Errors: IO_ERROR, INVALID_FILE, UNSUPPORTED,
 * OUT_OF_MEMORY, CUDA_ERROR. */
FUSEC_API fusec_status fusec_plan_load(fusec_device *device, const char *path, fusec_plan **plan,
                                       fusec_error *error);

/* The graphs of a program, in order; the name of graph `index`, NULL if there is none. */
FUSEC_API size_t fusec_program_graph_count(const fusec_program *program);
FUSEC_API const char *fusec_program_graph(const fusec_program *program, size_t index);
/* The warnings of a program that has no errors, as text; "" if there are none. */
FUSEC_API const char *fusec_program_warnings(const fusec_program *program);
/* The source of a program, without its imports. */
FUSEC_API const char *fusec_program_text(const fusec_program *program);

/* Options of fusec_program_grad; pass NULL for none, or begin with
 * `= {.struct_size = sizeof options}`. Fields that a caller's older header does not have count as
 * zero. Lists are names separated by commas. */
typedef struct fusec_grad_options {
    size_t struct_size; /* sizeof(fusec_grad_options) */
    /* The outputs that are differentiated; NULL: all of floats but statistics, which lack an axis
     * that is reduced and from which another output is computed. */
    const char *of;
    /* The inputs with respect to which; NULL: all tensors of floats. Scalars only if named. */
    const char *wrt;
    /* The outputs that the forward pass saves for the backward pass; "none"; "auto", as NULL:
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
 *   backward   to be destroyed by the caller; does not need `program`
 * The gradient of output y is an input dy of y's dtype and axes, that of input x an output dx of
 * x's. What the backward pass needs of the forward pass is an input under its own name: an input
 * of the forward graph, or an output of it that is saved. Where an input of the forward graph is
 * called dy already, the gradient is dy_2. fusec_program_text has it as text. docs/reference/language.md says
 * what is a derivative at kinks. Gradients can be differentiated again. Needs no GPU. Thread-safe.
 * Errors: INVALID_ARGUMENT for names that are not there, INVALID_PROGRAM for an input or output
 * that has no gradient (integers, bools) and for a graph without any; OUT_OF_MEMORY,
 * LIMIT_EXCEEDED, CANCELLED. */
FUSEC_API fusec_status fusec_program_grad(const fusec_program *program, const char *graph,
                                          const fusec_grad_options *options,
                                          fusec_program **backward, fusec_error *error);

/* A tensor of a plan or graph. Its axes are numbers of the axes there, outermost first. */
typedef struct fusec_tensor_info {
    size_t struct_size; /* sizeof(fusec_tensor_info), set by the caller */
    const char *name;
    fusec_dtype dtype;
    int32_t rank;
    int32_t axes[8];
    int32_t is_output;
    int32_t is_wanted; /* 0: never touched, its entry at launch is not read */
    /* Of an output, bit i: it is a sum over axis i, and where that is divided among devices
     * (fusec_axis_info) the sums of the parts must be added. */
    uint32_t summed;
} fusec_tensor_info;

typedef struct fusec_scalar_info {
    size_t struct_size; /* sizeof(fusec_scalar_info), set by the caller */
    const char *name;
    fusec_dtype dtype;
    int32_t has_default;
    double default_value;
} fusec_scalar_info;

typedef struct fusec_axis_info {
    size_t struct_size; /* sizeof(fusec_axis_info), set by the caller */
    const char *name;
    int64_t size;     /* compiled in, or what the plan was made with */
    int32_t is_fixed; /* nonzero: compiled in; every launch must have this size */
    /* Nonzero: the tensors may be divided along it among devices that each launch their part:
     * nothing asks for its size or an index along it, and nothing is reduced over it but by sums
     * that are outputs. 0 for a loaded plan. */
    int32_t is_divisible;
} fusec_axis_info;

/* What a graph declares, by the number of the graph: its axes, outermost first; its tensors, inputs
 * before outputs; its scalars. They are asked for from 0 on: a number behind the last one gives
 * INVALID_ARGUMENT and leaves *info alone, as do a NULL and an unknown struct_size. Texts live
 * as long as the program.
 *   axis     size is the default, -1 where there is none; is_fixed and is_divisible are 0: only a
 *            plan knows
 *   tensor   is_wanted is 1, summed 0; axes are numbers of the graph's axes */
FUSEC_API fusec_status fusec_program_axis(const fusec_program *program, size_t graph, size_t index,
                                          fusec_axis_info *info);
FUSEC_API fusec_status fusec_program_tensor(const fusec_program *program, size_t graph,
                                            size_t index, fusec_tensor_info *info);
FUSEC_API fusec_status fusec_program_scalar(const fusec_program *program, size_t graph,
                                            size_t index, fusec_scalar_info *info);

/* What bindings need to know about a plan. Tensors are numbered inputs first, then
 * outputs; a number out of range gives INVALID_ARGUMENT and leaves *info alone, as do
 * a NULL and an unknown struct_size. */
FUSEC_API const char *fusec_plan_graph(const fusec_plan *plan);
/* What the machine code is for: "sm_90a"; of the CPU device's plans, what the text is for. */
FUSEC_API const char *fusec_plan_arch(const fusec_plan *plan);
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

FUSEC_API fusec_status fusec_device_get_info(const fusec_device *device, fusec_device_info *info);

/* Copies the device's standing warning (the first of: the disk cache cannot be written or
 * cannot be trusted, a file of $FUSEC_TARGETS is wrong, the tuning file is damaged or has a
 * schedule that this version refuses; everything works without them) and returns its length; 0: none.
 * `text` may be NULL when size is 0. */
FUSEC_API size_t fusec_device_warning(const fusec_device *device, char *text, size_t size);

/* Waits for all work of the device's context. Errors: CUDA_ERROR, also of earlier
 * launches. */
FUSEC_API fusec_status fusec_device_synchronize(fusec_device *device, fusec_error *error);

/* ==== advanced ==== */

/* What a compiled kernel uses. Numbers that are not known are -1. */
typedef struct fusec_kernel_info {
    size_t struct_size; /* sizeof(fusec_kernel_info), set by the caller */
    const char *name;
    int32_t registers;   /* a thread */
    int32_t spill_bytes; /* stores plus loads, for lack of registers */
    int32_t stack_bytes; /* local memory frame a thread, spilled or not */
    int32_t static_smem_bytes;
    int32_t threads; /* a CTA */
    /* CTAs that share a row: up to 16 are a cluster of the GPU, more are a group; 1: none. */
    int32_t cluster;
    /* Of `grid`; a launch of fewer or more CTAs may take another amount. */
    int64_t dynamic_smem_bytes;
    /* CTAs for the sizes the plan was made with; where one is 0, the kernel is not launched. */
    int64_t grid[3];
} fusec_kernel_info;

/* The kernels of a plan in launch order. Of the CPU device's plans only launch data are
 * known. A kernel's second entry, for views whose rows are not evenly apart, is launched
 * in its place and has no number of its own (fusec_binary_kernel knows it by its name). */
FUSEC_API size_t fusec_plan_kernel_count(const fusec_plan *plan);
FUSEC_API fusec_status fusec_plan_kernel(const fusec_plan *plan, size_t index,
                                         fusec_kernel_info *info);
/* The machine code that runs: a cubin, or PTX text where NVRTC does not know the device.
 * NULL for the CPU device. Lives as long as the plan. */
FUSEC_API const void *fusec_plan_binary(const fusec_plan *plan, size_t *bytes);
/* What `fusec explain` says of the graph for the plan's sizes, in words or as JSON: axes,
 * reductions, kernels, traffic, and why they were chosen. Copies at most `size` bytes with the
 * NUL at the end and returns the length of the whole; 0 for a loaded plan or for lack of memory.
 * `text` may be NULL when size is 0. */
FUSEC_API size_t fusec_plan_explain(const fusec_plan *plan, int32_t as_json, char *text,
                                    size_t size);
/* The schedule that the plan was made by: options.schedule, else the tuning file's; NULL:
 * what fusec chooses by itself, or a loaded plan. Lives as long as the plan. */
FUSEC_API const char *fusec_plan_schedule(const fusec_plan *plan);
/* Milliseconds that fusec_plan_create took in all, and whether the machine code came
 * from a cache. */
FUSEC_API double fusec_plan_milliseconds(const fusec_plan *plan);
FUSEC_API int fusec_plan_was_cached(const fusec_plan *plan);

/* The arguments of a launch, checked once and kept, for loops that launch the same memory again
 * and again. What fusec_plan_launch says of streams and graphs holds. The memory must outlive the call; the plan may be destroyed before it. Many
 * threads may launch one call, if the work itself may overlap. Errors of fusec_call_create:
 * those of fusec_plan_launch; UNSUPPORTED on the CPU device, which keeps no calls. */
typedef struct fusec_call fusec_call;
FUSEC_API fusec_status fusec_call_create(const fusec_plan *plan, const fusec_tensor *inputs,
                                         const fusec_tensor *outputs, const double *scalars,
                                         void *workspace, fusec_call **call, fusec_error *error);
FUSEC_API fusec_status fusec_call_launch(const fusec_call *call, fusec_stream stream,
                                         fusec_error *error);
FUSEC_API void fusec_call_destroy(fusec_call *call);

/* Streams and events, for programs that bring no CUDA of their own (timing, tests). On
 * the CPU device a stream is NULL and an event is a point in time. */
FUSEC_API fusec_status fusec_stream_create(fusec_device *device, fusec_stream *stream,
                                           fusec_error *error);
FUSEC_API void fusec_stream_destroy(fusec_device *device, fusec_stream stream);

typedef struct fusec_event fusec_event;
FUSEC_API fusec_status fusec_event_create(fusec_device *device, fusec_event **event,
                                          fusec_error *error);
FUSEC_API fusec_status fusec_event_record(fusec_event *event, fusec_stream stream,
                                          fusec_error *error);
/* Waits for `end` and gives the milliseconds since `begin`; both must have been
 * recorded. */
FUSEC_API fusec_status fusec_event_elapsed(const fusec_event *begin, const fusec_event *end,
                                           double *milliseconds, fusec_error *error);
FUSEC_API void fusec_event_destroy(fusec_event *event);

/* A copy within the device, and filling with a byte, both in stream order and
 * asynchronous: what benchmarks measure the memory with and clear the L2 cache with. */
FUSEC_API fusec_status fusec_copy_async(fusec_device *device, void *to, const void *from,
                                        size_t bytes, fusec_stream stream, fusec_error *error);
FUSEC_API fusec_status fusec_fill_async(fusec_device *device, void *memory, uint8_t value,
                                        size_t bytes, fusec_stream stream, fusec_error *error);

/* CUDA C to machine code without a device or driver: what `fusec emit --emit=ptx|cubin`
 * and the register counts of `fusec explain` come from. */
typedef enum fusec_format { FUSEC_CUBIN, FUSEC_PTX } fusec_format;

typedef struct fusec_binary fusec_binary;

/* Compiles a text.
 *   cuda   the text, ended by NUL
 *   arch   "sm_90a", … (for PTX its compute_90a is used)
 * Goes through the disk cache. Errors: NO_NVRTC (with the places searched),
 * COMPILE_FAILED with NVRTC's log, UNSUPPORTED for an architecture that this NVRTC does
 * not know, INVALID_ARGUMENT for an unknown format, OUT_OF_MEMORY. */
FUSEC_API fusec_status fusec_binary_compile(const char *cuda, const char *arch, fusec_format format,
                                            fusec_binary **binary, fusec_error *error);
FUSEC_API void fusec_binary_destroy(fusec_binary *binary);
/* The bytes; PTX is ended by a NUL that does not count. */
FUSEC_API const void *fusec_binary_data(const fusec_binary *binary, size_t *bytes);
/* That the disk cache cannot be used, which is no error; "": all is well. Lives as
 * long as the binary. */
FUSEC_API const char *fusec_binary_warning(const fusec_binary *binary);
/* Milliseconds that NVRTC took when this code was compiled; what it cost, also if
 * cached. */
FUSEC_API double fusec_binary_milliseconds(const fusec_binary *binary);
/* Resource usage of the kernel of that name; launch data are 0. INVALID_ARGUMENT if
 * there is none or the binary is PTX. info->name is the caller's `kernel`. */
FUSEC_API fusec_status fusec_binary_kernel(const fusec_binary *binary, const char *kernel,
                                           fusec_kernel_info *info);

/* NVRTC's version and file, or NO_NVRTC with the places searched, or OUT_OF_MEMORY. path may be
 * NULL. */
FUSEC_API fusec_status fusec_nvrtc_version(int *major, int *minor, char *path, size_t size,
                                           fusec_error *error);

/* The disk cache: $FUSEC_CACHE_DIR, else $XDG_CACHE_HOME/fusec, else ~/.cache/fusec. It
 * keeps at most $FUSEC_CACHE_BYTES (256 MiB by default, and where that is no number, which
 * is a warning), dropping what was used least recently.
 * The directory must have an absolute path, belong to the effective user, be writable by
 * nobody else and be no symbolic link: else it is not used, which is a warning. So must each
 * entry, which also holds all that it was made from; one that does not fit, or that the
 * driver refuses, is removed and compiled again.
 *   fusec_cache_path    its directory, whether it exists or not; returns the length written, 0
 *                       if there is none or its path is relative
 *   fusec_cache_list    calls `entry` for each entry, most recently used first; a return other
 *                       than 0 stops
 *   fusec_cache_clear   removes all entries (and nothing else); *count is how many, may be NULL
 * Errors: IO_ERROR, OUT_OF_MEMORY: the list then has all that could be read. */
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
