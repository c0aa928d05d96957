/* fit.c: see fit.h. */
#include "cli/fit.h"

#include <math.h>
#include <string.h>

static const char softmax[] = "graph softmax[M, N](x : bf16[M, N]) -> (y : bf16[M, N]) {\n"
                              "    e = exp(x - max[N](x))\n"
                              "    y = e / sum[N](e)\n"
                              "}\n";
/* Column vectors that are larger than the first-level cache: each CTA reads them from L2. */
static const char shared[] =
    "graph shared[M, N](x : bf16[M, N], a : f32[N], b : f32[N], c : f32[N], d : f32[N], e : f32[N],\n"
    "                   f : f32[N], g : f32[N], h : f32[N]) -> (y : bf16[M, N]) {\n"
    "    y = (x - max[N](x)) * a + b + c + d + e + f + g + h\n"
    "}\n";
static const char backward[] =
    "graph backward[M, N](x : bf16[M, N], dy : bf16[M, N], gamma : bf16[N], mu : f32[M], rstd : f32[M])\n"
    "    -> (dx : bf16[M, N], dgamma : bf16[N], dbeta : bf16[N]) {\n"
    "    xhat = (x - mu) * rstd\n"
    "    wdy = dy * gamma\n"
    "    dx = (wdy - xhat * mean[N](wdy * xhat) - mean[N](wdy)) * rstd\n"
    "    dgamma = sum[M](dy * xhat)\n"
    "    dbeta = sum[M](dy)\n"
    "}\n";

const Probe probes[] = {
    {TARGET_KEY_memory_rate, BOUND_BY_MEMORY, "memory", "row", 4096, softmax},
    {TARGET_KEY_l2_rate, BOUND_BY_L2, "L2", "row:threads=1024,cluster=1,stages=1", 16384, shared},
    {TARGET_KEY_lane_rate, BOUND_BY_INSTRUCTIONS, "instructions",
     "grid-stride:threads=64,rows=1,cluster=1,stages=2,per_sm=1", 4096, backward},
    {TARGET_KEY_exchange, BOUND_BY_WAITS, "exchanges",
     "row:threads=256,cluster=1,stages=6,per_sm=1", 1024, softmax},
    {TARGET_KEY_latency, BOUND_BY_WAITS, "latency", "row:threads=1024,reads=2", 1024, softmax},
    {TARGET_KEY_cluster_exchange, BOUND_BY_WAITS, "clusters",
     "row:threads=256,cluster=4,stages=2,per_sm=1", 8192, softmax},
};
const int probe_count = sizeof probes / sizeof *probes;

static double expected_speed(Plan *plan, int key, double value)
{
    *target_constant(&plan->target, key) = value;
    return estimate_speed(plan).gbps;
}

Compilation compile_probe(const Probe *probe, const Target *target, int64_t rows)
{
    AxisSize sizes[] = {{"M", rows}, {"N", probe->columns}};
    CompileRequest request = {.text = probe->text,
                              .length = strlen(probe->text),
                              .name = probe->name,
                              .sizes = sizes,
                              .size_count = 2,
                              .schedule = probe->schedule,
                              .target = *target,
                              .until = UNTIL_PLAN};
    return compile(&request);
}

/* The value of the constant for which the model expects that speed, from an eighth to eight times
 * the present value; 0: there is none. */
static double solve(Plan *plan, int key, double value, double gbps)
{
    enum { STEPS = 40 };
    double low = value / 8, high = value * 8;
    double at_low = expected_speed(plan, key, low), at_high = expected_speed(plan, key, high);
    if ((gbps - at_low) * (gbps - at_high) >= 0) return 0;
    for (int i = 0; i < STEPS; i++) {
        double middle = sqrt(low * high);
        bool below = (expected_speed(plan, key, middle) < gbps) == (at_low < at_high);
        *(below ? &low : &high) = middle;
    }
    return sqrt(low * high);
}

/* Rounded to four digits. */
static double rounded(double value)
{
    double unit = pow(10, floor(log10(value)) - 3);
    return round(value / unit) * unit;
}

static bool fit_probe(Target *target, const Probe *probe, Plan *plan, double gbps)
{
    double *constant = target_constant(target, probe->key);
    plan->target = *target;
    double value = solve(plan, probe->key, *constant, gbps);
    if (value <= 0) return false;
    expected_speed(plan, probe->key, value);
    if (estimate_speed(plan).bound != probe->bound) return false;
    *constant = rounded(value);
    return true;
}

/* Fits several times over, because each constant is found with the others as they are. A constant
 * that cannot be found is again what it was. */
int fit_constants(Target *target, Plan *const *plans, const double *gbps)
{
    enum { ROUNDS = 8 };
    Target before = *target;
    int found = 0;
    for (int round = 0; round < ROUNDS; round++) {
        found = 0;
        for (int i = 0; i < probe_count; i++) {
            const int key = probes[i].key;
            const bool fits = plans[i] && fit_probe(target, &probes[i], plans[i], gbps[i]);
            if (!fits) *target_constant(target, key) = *target_constant(&before, key);
            target->evidence[key] = fits ? EVIDENCE_MEASURED : before.evidence[key];
            found += fits;
        }
    }
    return found;
}
