/* codegen/launcher.h: a launcher that another program compiles and links: C over the driver API, with
 * the plans of one graph for several architectures as tables and their cubins as bytes. It computes
 * grids and arguments as schedule/launch.c and runtime/launch.c do; codegen/launcher/ has the text
 * that is the same in all. */
#ifndef FUSEC_LAUNCHER_H
#define FUSEC_LAUNCHER_H

#include "base/text.h"
#include "schedule/launch.h"

typedef struct {
    const char *arch; /* sm_90a */
    const LaunchPlan *launch;
    const void *cubin;
    size_t cubin_bytes;
    const bool *overlaps; /* of kernel k: [2 k], and [2 k + 1] of its `strided` entry */
} LauncherPlan;

typedef struct {
    const char *name;    /* an identifier: what all public names begin with */
    const char *command; /* that writes the launcher */
    int count;           /* at least 1; the plans are of one graph with the same fixed sizes */
    const LauncherPlan *plans;
} Launcher;

/* Identifiers for the fields of the launcher's arguments, in the arena. */
typedef struct {
    const char *axes[MAX_AXES];
    const char **tensors, **strides, **scalars;
} FieldNames;
FieldNames name_fields(Arena *arena, const LaunchPlan *plan);

/* The axis names of a tensor: `M, N`. In the arena. */
const char *axes_of(Arena *arena, const LaunchPlan *plan, AxisSet axes);
/* The axes whose sizes a launch gives. */
AxisSet launch_axes(const LaunchPlan *plan);

void print_launcher_header(Text *out, const Launcher *l);
void print_launcher_source(Text *out, const Launcher *l);
void print_launcher_json(Text *out, const Launcher *l);

#endif
