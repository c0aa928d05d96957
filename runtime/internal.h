/* internal.h: the contents of the opaque handles of fusec.h, shared by the files of runtime/. */
#ifndef FUSEC_INTERNAL_H
#define FUSEC_INTERNAL_H

#include "compile.h"
#include "driver.h"
#include "error.h"
#include "nvrtc.h"
#include "plan_file.h"
#include "tuning.h"

#include <pthread.h>
#include <stdatomic.h>

struct fusec_program {
    atomic_int references; /* plans share its syntax tree */
    char *text, *name;
    size_t length;
    Compilation checked; /* its arena holds the names, and the texts of imports */
    const Item **graphs; /* as declared */
    int graph_count;
};

/* Compiled code loaded into a device's context. All plans with the same text share it; the first
 * thread that asks makes it, while the others wait. See modules.c. */
typedef struct CodeModule CodeModule;
struct CodeModule {
    uint64_t key[2];
    enum { MODULE_COMPILING, MODULE_READY, MODULE_FAILED } state;
    bool shared; /* is in the device's list */
    int users;
    uint64_t last_use;
    Code code;
    bool is_ptx, from_disk;
    CUmodule *handles; /* of each cubin in `code` */
    int handle_count;
    fusec_error error;
    CodeModule *next;
};

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a module has left COMPILING */
    CodeModule *first;
    uint64_t clock;
} Modules;

struct fusec_device {
    atomic_int references;
    int generation; /* of the process that opened it: see device_is_inherited */
    bool cpu;
    bool absent; /* a target: nothing runs on it */
    Driver driver;
    CUdevice handle;
    CUcontext context;
    bool primary; /* the context was retained by us */
    fusec_device_info info;
    double memory_rate; /* the most bytes that its memory moves in a ns; 0: not known */
    char code_arch[16]; /* "sm_89": what NVRTC makes cubins for */
    Target target;      /* the target of plans; target.sms is the device's own */
    Modules modules;
    pthread_mutex_t nvrtc_lock;
    bool nvrtc_open;
    Nvrtc nvrtc;
    pthread_mutex_t warning_lock;
    char warning[512];
};

/* A kernel's entry on the device. */
typedef struct {
    CUfunction function;
    bool overlaps; /* its code waits before everything else, as its text does */
} LoadedEntry;

struct fusec_plan {
    atomic_int references;
    fusec_device *device;
    fusec_program *program;  /* NULL: it was loaded */
    Compilation compilation; /* a loaded plan has none */
    Arena *arena;            /* of a loaded plan; NULL: of others */
    const LaunchPlan *launch;
    const char *cuda, *arch; /* arch: of the code, where there is a GPU */
    bool in_place, no_early_start, was_cached;
    char *schedule; /* the schedule that was asked for, or is of the tuning file; NULL: chosen */
    double milliseconds;
    CodeModule *module;   /* NULL on the CPU device */
    LoadedEntry *entries; /* by kernel; behind them the entries for strided rows */
    fusec_kernel_info *kernels;
};

double milliseconds_now(void);

/* Copies what a call about an object found to the caller's struct; INVALID_ARGUMENT where that has
 * a size that is none. */
fusec_status answer_info(void *info, const void *own, size_t size);

/* Counts a user; fusec_program_destroy ends its use. */
fusec_program *program_retain(const fusec_program *program);

/* INVALID_ARGUMENT for a limit in options that is negative or NaN. */
fusec_status check_limits(int64_t max_nodes, int64_t max_bytes, double max_seconds,
                          fusec_error *error);
/* The error for a budget that has stopped. */
fusec_status fail_stopped(const Budget *budget, fusec_error *error);
/* compile() with its status and diagnostics as an error. On failure there is nothing to free. */
fusec_status compile_checked(const CompileRequest *request, Compilation *c, fusec_error *error);
/* The same for an existing compilation. */
fusec_status check_compiled(Compilation *c, fusec_error *error);

/* The shortest interval between a kernel's rows with which memory keeps up; 0: rows follow each
 * other without a pause. Launches use it without a call of the driver. */
unsigned device_interval(const fusec_device *device, const LaunchPlan *plan, int kernel,
                         const Sizes *sizes);
/* Whether this process was forked from the one that opened the device. CUDA does not work in it,
 * and another thread of the parent may have held any of the device's locks. */
bool device_is_inherited(const fusec_device *device);
fusec_status fail_inherited(fusec_error *error);
/* UNSUPPORTED: it would have to run on a target. */
fusec_status fail_absent(const fusec_device *device, fusec_error *error);
void device_retain(fusec_device *device);
void device_warn(fusec_device *device, const char *text);
fusec_status device_enter(const fusec_device *device, CurrentContext *current, fusec_error *error);
/* Opens NVRTC at the first call; after a failure tries again at the next. */
fusec_status device_nvrtc(fusec_device *device, const Nvrtc **nvrtc, fusec_error *error);
/* The target that plans are made for: the device's own, or that of `arch`, which need not run on
 * it. */
fusec_status device_target(const fusec_device *device, const char *arch, Target *target,
                           const char **code_arch, fusec_error *error);

bool modules_init(Modules *modules);
void modules_free(fusec_device *device);
/* The module of a text, compiled for `arch`, or loaded from a cache. The budget (may be NULL) is
 * asked while another thread makes it. */
fusec_status module_acquire(fusec_device *device, const char *cuda, const char *arch,
                            const char *option, bool use_cache, Budget *budget, CodeModule **module,
                            bool *was_cached, fusec_error *error);
/* A separate module from given code; owns the code from then on, also on failure. */
fusec_status module_from_code(fusec_device *device, Code *code, bool is_ptx, CodeModule **module,
                              fusec_error *error);
/* The kernel of that name, with the context current. */
CUresult module_function(const fusec_device *device, const CodeModule *module, const char *name,
                         CUfunction *function);
void module_release(fusec_device *device, CodeModule *module);

fusec_plan *plan_new(fusec_device *device);
void plan_retain(const fusec_plan *plan);
/* Looks up the kernels in plan->module and reads their usage. */
fusec_status plan_attach(fusec_plan *plan, fusec_error *error);

/* shards.c. The axes along which parts of the tensors may be computed apart; and those over which
 * output number `output` is a sum, so that the parts' results are to be added. Empty for a loaded
 * plan. */
AxisSet plan_divisible(const fusec_plan *plan);
AxisSet plan_sums(const fusec_plan *plan, int output);

/* check.c. Numbers tensors as the LaunchPlan does. */
static inline const fusec_tensor *launch_tensor(const LaunchPlan *plan, int index,
                                                const fusec_tensor *inputs,
                                                const fusec_tensor *outputs)
{
    return index < plan->input_count ? &inputs[index] : &outputs[index - plan->input_count];
}
/* Checks all tensors of a launch and takes the sizes of all axes from them. */
fusec_status check_tensors(const fusec_plan *plan, const fusec_tensor *inputs,
                           const fusec_tensor *outputs, Sizes *sizes, fusec_error *error);
fusec_status check_workspace(const fusec_plan *plan, const fusec_tensor *inputs,
                             const fusec_tensor *outputs, const void *workspace, int64_t bytes,
                             fusec_error *error);
fusec_status check_scalars(const fusec_plan *plan, const double *scalars, fusec_error *error);

/* The value of scalar `index`, rounded to its dtype. */
double scalar_value(const LaunchPlan *plan, int index, const double *scalars);

/* launch_cpu.c: a launch on the CPU device, tensors already checked. */
fusec_status launch_on_cpu(const fusec_plan *plan, const fusec_tensor *inputs,
                           const fusec_tensor *outputs, const double *scalars, const Sizes *sizes,
                           fusec_error *error);

#endif
