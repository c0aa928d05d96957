/* target.h: what a GPU can do and how fast it is, as plain data; the compiler never asks a driver.
 * Each GPU has a file in src/targets/; further ones are added with target_add. */
#ifndef FUSEC_TARGET_H
#define FUSEC_TARGET_H

#include "base/text.h"

#include <stdbool.h>

/* Where a value of a target's file comes from: the word that begins its line. */
typedef enum {
    EVIDENCE_NONE,
    EVIDENCE_DATA_SHEET,
    EVIDENCE_ASSUMED,  /* another GPU's, scaled */
    EVIDENCE_MEASURED, /* on one */
    EVIDENCE_FITTED,   /* on the times of many schedules on one */
    EVIDENCES
} Evidence;

enum {
#define TARGET_NAME(key, meaning) TARGET_KEY_##key,
#define TARGET_LIMIT(key, least, most, meaning) TARGET_KEY_##key,
#define TARGET_RATE(key, meaning) TARGET_KEY_##key,
#define TARGET_CONSTANT(key, meaning) TARGET_KEY_##key,
#include "targets/keys.def"
#undef TARGET_NAME
#undef TARGET_LIMIT
#undef TARGET_RATE
#undef TARGET_CONSTANT
    TARGET_KEYS
};

enum { TARGET_NAME_SIZE = 32 };

/* The keys' meanings are in targets/keys.def. */
typedef struct {
#define TARGET_NAME(key, meaning) char key[TARGET_NAME_SIZE];
#define TARGET_LIMIT(key, least, most, meaning) int key;
#define TARGET_RATE(key, meaning) double key;
#define TARGET_CONSTANT(key, meaning) double key;
#include "targets/keys.def"
#undef TARGET_NAME
#undef TARGET_LIMIT
#undef TARGET_RATE
#undef TARGET_CONSTANT
    unsigned char evidence[TARGET_KEYS]; /* an Evidence each */
    int file_sms;                        /* of the GPU that the file is of */
    bool added;                          /* by target_add */
    bool no_table;                       /* its table of tuned rows is not looked into */
    bool borrowed;                       /* the GPU has no file: this is the nearest one's */
    /* GB/s of its memory, where its schedules differ for that from those of the first GPU of its
     * architecture; else 0. */
    int memory;
} Target;

/* SMs that clusters of that many CTAs (2 to 16) can fill. */
int target_cluster_sms(const Target *target, int cluster);

/* Finds a GPU by its name ("h200"), or the first of an architecture ("sm_90a"); NULL if unknown.
 * The target's `arch` is what NVRTC compiles for: that architecture, of a GPU the one with an `a`
 * if there is one. It lives as long as the process. */
const Target *target_find(const char *name);
/* The names of all known architectures, and of all GPUs, and how many. */
const char *const *target_names(int *count);
const char *const *target_gpus(int *count);

/* Makes it that of a GPU of its architecture with so many SMs, whose memory moves at most so many
 * bytes in a ns (0: not known): the known GPU whose memory moves about as much for each SM. */
void target_set_device(Target *target, int sms, double memory_rate);
/* The same of a GPU of compute capability `cc` (90 is 9.0), for the newest architecture that it can
 * run: sm_90a before sm_90. False: it is older than all. */
bool target_of_device(Target *target, int cc, int sms, double memory_rate);

/* Makes its file one of so many SMs: what clusters fill goes with them. */
void target_set_sms(Target *target, int sms);

/* How many of the cost model's constants were measured on that GPU or fitted there, and of how
 * many. */
int target_measured(const Target *target, int *constants);

/* Adds the GPU of a file's text, or replaces that of its name: values that the text lacks are those
 * of the first GPU of its architecture. False: `why` says what is wrong with it, and where. Only
 * before other threads ask for targets. */
bool target_add(const char *text, char why[128]);
/* Rows of schedules that were measured on a GPU (schedule/table.c says how they are written), "" if
 * there are none. Those that are added replace the GPU's earlier ones, on the same condition. */
const char *target_table(const Target *target);
bool target_add_table(const char *gpu, const char *rows);
/* Such a text. */
void print_target(Text *out, const Target *target);
/* A rate or constant by its KEY_. */
double *target_constant(Target *target, int key);

#endif
