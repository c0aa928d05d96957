/* target.h: what a GPU can do, as plain data; the compiler never asks a driver. */
#ifndef FUSEC_TARGET_H
#define FUSEC_TARGET_H

#include <stdbool.h>

typedef struct {
    const char *arch;          /* "sm_90a": what NVRTC compiles for */
    int sms;                   /* multiprocessors; the runtime puts in the device's own count */
    int smem_per_cta;          /* bytes a CTA may have by opt-in */
    int smem_per_sm;           /* bytes of all CTAs of an SM */
    int registers_per_sm;      /* 32-bit */
    int threads_per_sm;
    int max_cluster;           /* CTAs; 1: no clusters */
    bool bulk_copy;            /* cp.async.bulk and mbarriers (sm_90 and later) */
} Target;

/* Finds an architecture by name ("sm_90a"); NULL if unknown. */
const Target *target_find(const char *arch);
/* The names of all known architectures, and how many. */
const char *const *target_names(int *count);

#endif
