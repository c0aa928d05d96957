/* judge.c: compares stored results with the evaluator's exact values and bounds.
 *
 * The law: |out - ref| <= 0.53 ulp of the stored type + 4 E. NaN must be NaN, infinity
 * infinity, except where f32 arithmetic may leave its range (E infinite), and where the
 * stored type's own overflow is within the tolerance. */
#include "reference.h"

#include <math.h>
#include <string.h>

#define ULPS_ALLOWED 0.53
#define BOUNDS_ALLOWED 4

typedef struct {
    double error, ulps, share;
} Deviation;

static const Deviation hopeless = {HUGE_VAL, HUGE_VAL, HUGE_VAL};

static bool is_fp8(DType dtype)
{
    return dtype == DTYPE_F8E4M3 || dtype == DTYPE_F8E5M2;
}

static double largest(DType dtype)
{
    switch (dtype) {
    case DTYPE_F64: return 0x1.fffffffffffffp1023;
    case DTYPE_F32: return 0x1.fffffep127;
    case DTYPE_F16: return 65504;
    case DTYPE_BF16: return 0x1.fep127;
    default: return dtype_round(dtype, HUGE_VAL);   /* fp8 saturates */
    }
}

/* What a perfect store may be compared with: saturation is part of the dtype. */
static double target_value(DType dtype, double exact)
{
    if (!dtype_is_float(dtype))
        return dtype == DTYPE_I64 ? exact : dtype_round(dtype, exact);
    const double end = largest(dtype);
    return is_fp8(dtype) && fabs(exact) > end ? copysign(end, exact) : exact;
}

/* An infinity on either side: right if the rounded value is so, or may be within the
 * tolerance. */
static Deviation judge_infinity(DType dtype, double out, double ref, double tolerance)
{
    const Deviation none = {0, 0, 0};
    if (out == dtype_round(dtype, ref))
        return none;
    if (signbit(out) != signbit(ref) || isinf(ref))
        return hopeless;
    const double end = largest(dtype) + dtype_ulp(dtype, largest(dtype)) / 2;
    const double beyond = isinf(out) ? end - fabs(ref) : fabs(ref) - fabs(out);
    return beyond <= tolerance ? (Deviation){0, 0, 1} : hopeless;
}

static Deviation deviation(DType dtype, double out, double exact, double bound)
{
    const double ref = target_value(dtype, exact);
    const double ulp = dtype_ulp(dtype, ref);
    const double tolerance = ULPS_ALLOWED * ulp + BOUNDS_ALLOWED * bound;
    if (!(bound < HUGE_VAL) || (isnan(out) && isnan(ref)))
        return (Deviation){0, 0, 0};
    if (isnan(out) || isnan(ref))
        return hopeless;
    if (isinf(out) || isinf(dtype_round(dtype, ref)))
        return judge_infinity(dtype, out, ref, tolerance);
    const double error = fabs(out - ref);
    return (Deviation){error, error / ulp, error / tolerance};
}

static double stored_value(DType dtype, const void *out, int64_t i)
{
    const void *element = (const char *)out + i * dtype_info[dtype].bytes;
    return dtype_is_float(dtype) ? dtype_load_float(dtype, element)
                                 : (double)dtype_load_int(dtype, element);
}

Verdict judge(DType dtype, const void *out, const double *exact, const float *bound,
              int64_t count, bool discontinuous)
{
    Verdict verdict = {.count = count, .worst = -1, .discontinuous = discontinuous};
    double errors = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        const double value = stored_value(dtype, out, i);
        const Deviation d = deviation(dtype, value, exact[i], (double)bound[i]);
        verdict.wrong += d.share > 1;
        const bool nan = isnan(value) && isnan(exact[i]);
        verdict.nans += nan;
        verdict.unbounded += !nan && !(bound[i] < HUGE_VALF);
        if (verdict.worst < 0 || d.share > verdict.worst_share) {
            verdict.worst = i;
            verdict.worst_ulps = d.ulps;
            verdict.worst_share = d.share;
        }
        if (isfinite(exact[i]) && isfinite(d.error)) {
            errors += d.error * d.error;
            norm += exact[i] * exact[i];
        }
    }
    verdict.relative = errors == 0 ? 0 : sqrt(errors / norm);
    return verdict;
}

int64_t judge_changed(DType dtype, const void *out, const void *judged, const double *exact,
                      const float *bound, int64_t count)
{
    const size_t bytes = (size_t)dtype_info[dtype].bytes;
    const char *element = out, *other = judged;
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++, element += bytes, other += bytes)
        if (memcmp(element, other, bytes))
            wrong += judge(dtype, element, exact + i, bound + i, 1, false).wrong;
    return wrong;
}
