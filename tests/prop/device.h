/* device.h: checked programs through the simulator and NVRTC, under many schedules. */
#ifndef FUSEC_PROP_DEVICE_H
#define FUSEC_PROP_DEVICE_H

#include "front.h"

/* Schedules that are tried for a program beside the chosen one. */
enum { SCHEDULES = 35, MOST_VARIANTS = 1 + SCHEDULES };

/* One text of a program: a schedule, and a name of its own, so that many lie in one
 * object. */
typedef struct {
    Checked *checked;
    char schedule[64]; /* "": chosen */
    Compilation compiled;
    LaunchPlan plan; /* compiled.launch, with the names under which kernels were loaded */
} Variant;

typedef struct {
    bool schedules; /* forced ones too */
    int texts;      /* that a program comes to, at most: seeds differ in which ones */
    bool simulate, nvrtc;
} Devices;

/* Compiles the program for the schedules that admit it; *count says how many texts
 * they come to. A plan that is refused unforced is a finding. */
bool make_variants(Checked *checked, const Devices *devices, Variant *variants, int *count,
                   Finding *f);
/* Runs variants, of one program or many, compiled for the host in one go: two orders of
 * events and a second layout must give the same bits, and those within the bound.
 * `at_fault` is the index of the one that f tells of. */
bool simulate_variants(Variant *variants, int count, int *at_fault, Finding *f);
bool compile_variants(Variant *variants, int count, int *at_fault, Finding *f);
/* All of this for one program. */
bool check_devices(Checked *checked, const Devices *devices, Finding *f);

#endif
