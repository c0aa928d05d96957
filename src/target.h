/* target.h: what a GPU can do, as plain data; the compiler never asks a driver. */
#ifndef FUSEC_TARGET_H
#define FUSEC_TARGET_H

#include <stdbool.h>

typedef struct {
    const char *arch;     /* "sm_90a": what NVRTC compiles for */
    int sms;              /* multiprocessors; the runtime puts in the device's own count */
    int smem_per_cta;     /* bytes a CTA may have by opt-in */
    int smem_per_sm;      /* bytes of all CTAs of an SM */
    int registers_per_sm; /* 32-bit */
    int threads_per_sm;
    int most_ctas_per_sm;
    int max_cluster;  /* CTAs; 1: no clusters */
    int enough_bytes; /* of rows an SM asks for at once: more make memory slower
                         (schedule/max_ctas.c); 0: not known */
    bool swift;       /* its memory moves about as much for each SM as an H200's: threads, L2 and
                         exchanges bound kernels first */
    bool bulk_copy;   /* cp.async.bulk and mbarriers (sm_90 and later) */
} Target;

/* SMs that clusters of that many CTAs can fill: a cluster lives inside one processing cluster of
 * SMs, whose SM counts are no multiples of it. Measured on an H100 (of 132: 120 for 4 and 8, 112
 * for 16); taken in proportion elsewhere. */
int target_cluster_sms(const Target *target, int cluster);
/* Makes it that of a GPU with so many SMs, whose memory moves at most so many bytes in a ns (0: not
 * known). */
void target_set_device(Target *target, int sms, double memory_rate);
/* Whether it is of compute capability 9.0, as the GPUs are on which schedules were timed. */
bool was_measured_on(const Target *target);
/* Finds an architecture by name ("sm_90a"); NULL if unknown. */
const Target *target_find(const char *arch);
/* The names of all known architectures, and how many. */
const char *const *target_names(int *count);

#endif
