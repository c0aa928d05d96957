/* target.c: the limits of the GPUs that code is generated for, from NVIDIA's programming
 * guide (table of compute capabilities) and data sheets. The `a` architectures are those
 * whose special instructions (setmaxnreg, wgmma, tcgen05) do not carry over to later
 * ones. A cluster of more than 8 CTAs is non-portable: its kernel needs the attribute
 * that allows it. */
#include "target.h"

#include <stddef.h>
#include <string.h>

/* ENOUGH was measured on an H100, whose memory moves 25.4 bytes a ns for each SM; an H200's, 36.4,
 * is 4 to 8 % slower with no more (softmax of 1024 to 8192 columns). */
enum { KB = 1024, REGISTERS = 64 * KB, ENOUGH = 46 * KB, TARGETS = 8 };

/*   arch      SMs  smem a CTA  smem an SM  registers  threads  CTAs  cluster  enough  swift  bulk
 * copies */
static const Target targets[TARGETS] = {
    {"sm_80", 108, 163 * KB, 164 * KB, REGISTERS, 2048, 32, 1, 0, false, false},
    {"sm_86", 84, 99 * KB, 100 * KB, REGISTERS, 1536, 16, 1, 0, false, false},
    {"sm_89", 128, 99 * KB, 100 * KB, REGISTERS, 1536, 24, 1, 0, false, false},
    {"sm_90", 132, 227 * KB, 228 * KB, REGISTERS, 2048, 32, 16, ENOUGH, false, true},
    {"sm_90a", 132, 227 * KB, 228 * KB, REGISTERS, 2048, 32, 16, ENOUGH, false, true},
    {"sm_100", 148, 227 * KB, 228 * KB, REGISTERS, 2048, 32, 16, 0, false, true},
    {"sm_100a", 148, 227 * KB, 228 * KB, REGISTERS, 2048, 32, 16, 0, false, true},
    {"sm_120", 170, 99 * KB, 100 * KB, REGISTERS, 1536, 24, 8, 0, false, true},
};

static const char *const names[TARGETS] = {
    "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120",
};

bool was_measured_on(const Target *target)
{
    static const char measured[] = "sm_90";
    return !strncmp(target->arch, measured, sizeof measured - 1);
}

const Target *target_find(const char *arch)
{
    for (int i = 0; i < TARGETS; i++)
        if (strcmp(targets[i].arch, arch) == 0) return &targets[i];
    return NULL;
}

const char *const *target_names(int *count)
{
    *count = TARGETS;
    return names;
}

void target_set_device(Target *target, int sms, double memory_rate)
{
    enum {
        MEASURED_RATE = 26,
        SWIFT_RATE = 31
    }; /* bytes a ns for each SM; the latter halfway to an H200's */
    target->sms = sms;
    target->swift = memory_rate > SWIFT_RATE * sms;
    if (memory_rate <= 0 || memory_rate > MEASURED_RATE * sms) target->enough_bytes = 0;
}

int target_cluster_sms(const Target *target, int cluster)
{
    int share = cluster <= 2 ? 132 : cluster <= 8 ? 120 : 112;
    int sms = target->sms * share / 132 / cluster * cluster;
    return sms < cluster ? cluster : sms;
}
