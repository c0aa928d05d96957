/* reference/tolerance.c: compares stored results with the evaluator's exact values and bounds.
 *
 * The rule, element by element: |out - ref| <= 0.53 ulp of the stored type + DOUBT E, where the ulp
 * is that of the largest value that may have been rounded, |ref| + DOUBT E. NaN must be NaN and
 * infinity infinity, except where f32 arithmetic may leave its range or meet NaN (E says so), and
 * where the stored type's own overflow is within the tolerance. An integer must be exact up to
 * E. */
#include "reference/reference.h"

#include <math.h>
#include <string.h>

#define ULPS_ALLOWED 0.53

typedef struct {
    double error, ulps, share;
    bool nan, unchecked; /* rightly NaN; nothing to compare with */
} Deviation;

static const Deviation hopeless = {.error = HUGE_VAL, .ulps = HUGE_VAL, .share = HUGE_VAL};
static const Deviation unknown = {.unchecked = true};

/* ---- floats ---- */

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
    default: return dtype_round(dtype, HUGE_VAL); /* fp8 saturates */
    }
}

/* The value that a perfect store would give before rounding: saturation is part of the dtype. */
static double target_value(DType dtype, double exact)
{
    const double end = largest(dtype);
    return is_fp8(dtype) && fabs(exact) > end ? copysign(end, exact) : exact;
}

/* Compares infinities: right if the rounded value is infinite too, or may be within the tolerance,
 * which does not count the rounding to infinity. */
static Deviation judge_infinity(DType dtype, double out, double ref, double tolerance)
{
    if (out == dtype_round(dtype, ref)) return (Deviation){0};
    if (signbit(out) != signbit(ref) || isinf(ref)) return hopeless;
    const double half = dtype_ulp(dtype, largest(dtype)) / 2, end = largest(dtype) + half;
    const double beyond = isinf(out) ? end - fabs(ref) + half : fabs(ref) - fabs(out);
    return beyond <= tolerance ? (Deviation){.share = 1} : hopeless;
}

/* An infinite bound still says that NaN is wrong; a NaN bound says nothing. */
static Deviation judge_float(DType dtype, double out, double exact, double bound)
{
    if (isnan(bound)) return unknown;
    if (isnan(out) || isnan(exact))
        return isnan(out) && isnan(exact) ? (Deviation){.nan = true} : hopeless;
    if (!(bound < HUGE_VAL)) return unknown;
    const double ref = target_value(dtype, exact);
    const double ulp = dtype_ulp(dtype, ref);
    const double most = fmin(fabs(ref) + DOUBT * bound, largest(dtype));
    const double tolerance = ULPS_ALLOWED * dtype_ulp(dtype, most) + DOUBT * bound;
    if (isinf(out) || isinf(dtype_round(dtype, ref)))
        return judge_infinity(dtype, out, ref, tolerance);
    const double error = fabs(out - ref);
    return (Deviation){error, error / ulp, error / tolerance, false, false};
}

/* ---- integers ---- */

static int64_t least_int(DType dtype)
{
    return dtype_saturate(dtype, INT64_MIN);
}

static int64_t most_int(DType dtype)
{
    return dtype == DTYPE_BOOL ? 1 : dtype_saturate(dtype, INT64_MAX);
}

/* The integer in memory: no bool is stored as 2. */
static int64_t stored_int(DType dtype, const void *element)
{
    return dtype_load_int(dtype == DTYPE_BOOL ? DTYPE_U8 : dtype, element);
}

/* |a - b|, which may be larger than any int64_t. */
static uint64_t int_distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static Deviation judge_int(DType dtype, int64_t out, int64_t exact, double bound)
{
    const int64_t ref = dtype_saturate(dtype, exact);
    const double tolerance = DOUBT * bound, error = (double)int_distance(out, ref);
    const bool possible = dtype != DTYPE_BOOL || int_distance(out, 0) <= 1;
    if (!(bound > 0))
        return out == ref ? (Deviation){0}
                          : (Deviation){.error = error, .ulps = error, .share = HUGE_VAL};
    if (possible && tolerance >= (double)int_distance(ref, least_int(dtype)) &&
        tolerance >= (double)int_distance(ref, most_int(dtype)))
        return unknown;
    return (Deviation){error, error, possible ? error / tolerance : HUGE_VAL, false, false};
}

/* ---- outputs ---- */

static Deviation judge_element(DType dtype, const void *element, const void *exact, double bound)
{
    double real;
    int64_t whole;
    if (dtype_is_float(dtype)) {
        memcpy(&real, exact, sizeof real);
        return judge_float(dtype, dtype_load_float(dtype, element), real, bound);
    }
    memcpy(&whole, exact, sizeof whole);
    return judge_int(dtype, stored_int(dtype, element), whole, bound);
}

static double exact_value(DType dtype, const void *exact)
{
    double real;
    int64_t whole;
    memcpy(&real, exact, sizeof real);
    memcpy(&whole, exact, sizeof whole);
    return dtype_is_float(dtype) ? real : (double)whole;
}

static void take_in(Verdict *v, const Deviation *d, int64_t element)
{
    v->wrong += d->share > 1;
    v->nans += d->nan;
    v->unchecked += d->unchecked;
    v->worst_ulps = fmax(v->worst_ulps, d->ulps);
    if (v->worst < 0 || d->share > v->worst_share) {
        v->worst = element;
        v->worst_share = d->share;
    }
}

Verdict judge(DType dtype, const void *out, const void *exact, const float *bound, int64_t count)
{
    Verdict verdict = {.count = count, .worst = -1};
    double errors = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *ref = (const char *)exact + i * (int64_t)sizeof(double);
        const char *element = (const char *)out + i * dtype_info[dtype].bytes;
        const Deviation d = judge_element(dtype, element, ref, (double)bound[i]);
        const double value = exact_value(dtype, ref);
        take_in(&verdict, &d, i);
        if (!d.unchecked && isfinite(value) && isfinite(d.error)) {
            errors += d.error * d.error;
            norm += value * value;
        }
    }
    verdict.relative = errors == 0 ? 0 : sqrt(errors / norm);
    return verdict;
}

int64_t judge_changed(DType dtype, const void *out, const void *judged, const void *exact,
                      const float *bound, int64_t count)
{
    const size_t bytes = (size_t)dtype_info[dtype].bytes;
    const char *element = out, *other = judged, *ref = exact;
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; i++, element += bytes, other += bytes, ref += sizeof(double))
        if (memcmp(element, other, bytes)) wrong += judge(dtype, element, ref, bound + i, 1).wrong;
    return wrong;
}
