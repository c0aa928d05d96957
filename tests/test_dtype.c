/* test_dtype.c: conversions between stored elements and values, exhaustively for 8 and
 * 16 bits. */
#include "base/dtype.h"
#include "suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const DType small[] = {DTYPE_F16, DTYPE_BF16, DTYPE_F8E4M3, DTYPE_F8E5M2};

static unsigned store_bits(DType dtype, double value)
{
    unsigned char bytes[8] = {0};
    dtype_store_float(dtype, bytes, value);
    return dtype_info[dtype].bytes == 1 ? bytes[0] : (unsigned)bytes[0] | (unsigned)bytes[1] << 8;
}

static double load_bits(DType dtype, unsigned bits)
{
    const uint16_t half = (uint16_t)bits;
    const unsigned char byte = (unsigned char)bits;
    return dtype_info[dtype].bytes == 1 ? dtype_load_float(dtype, &byte)
                                        : dtype_load_float(dtype, &half);
}

static unsigned sign_bit(DType dtype)
{
    return dtype_info[dtype].bytes == 1 ? 0x80 : 0x8000;
}

START_TEST(every_element_comes_back)
{
    const DType dtype = small[_i];
    for (unsigned bits = 0; bits < sign_bit(dtype) * 2; bits++) {
        const double value = load_bits(dtype, bits);
        if (isnan(value))
            ck_assert(isnan(load_bits(dtype, store_bits(dtype, value))));
        else if (isinf(value) && dtype == DTYPE_F8E5M2)
            ck_assert_double_eq(load_bits(dtype, store_bits(dtype, value)), copysign(57344, value));
        else
            ck_assert_uint_eq(store_bits(dtype, value), bits);
    }
}
END_TEST

/* Between two neighbours: the nearer one, and the even one in the middle. */
START_TEST(rounding_is_to_nearest_even)
{
    const DType dtype = small[_i];
    for (unsigned bits = 0; bits + 1 < sign_bit(dtype); bits++) {
        const double low = load_bits(dtype, bits), high = load_bits(dtype, bits + 1);
        if (!isfinite(low) || !isfinite(high)) continue;
        const double middle = low + (high - low) / 2;
        ck_assert_uint_eq(store_bits(dtype, middle), bits + (bits & 1));
        ck_assert_uint_eq(store_bits(dtype, nextafter(middle, 0)), bits);
        ck_assert_uint_eq(store_bits(dtype, nextafter(middle, high)), bits + 1);
        ck_assert_uint_eq(store_bits(dtype, -nextafter(middle, high)),
                          (bits + 1) | sign_bit(dtype));
        ck_assert_double_eq(dtype_ulp(dtype, low), high - low);
    }
}
END_TEST

START_TEST(overflow_follows_the_dtype)
{
    ck_assert_double_eq(dtype_round(DTYPE_F16, 65519.99), 65504);
    ck_assert_double_eq(dtype_round(DTYPE_F16, 65520), (double)INFINITY);
    ck_assert_double_eq(dtype_round(DTYPE_BF16, -3.4e38), -(double)INFINITY);
    ck_assert_double_eq(dtype_round(DTYPE_F8E4M3, 1e300), 448);
    ck_assert_double_eq(dtype_round(DTYPE_F8E4M3, -(double)INFINITY), -448);
    ck_assert_double_eq(dtype_round(DTYPE_F8E5M2, (double)INFINITY), 57344);
    ck_assert_uint_eq(store_bits(DTYPE_F8E4M3, (double)NAN), 0x7f);
    ck_assert_uint_eq(store_bits(DTYPE_BF16, -0.0), 0x8000);
    for (int i = 0; i < DTYPE_I64; i++) ck_assert(isnan(dtype_round((DType)i, (double)NAN)));
}
END_TEST

START_TEST(integers_saturate)
{
    ck_assert_int_eq(int_from_double(1e30), INT64_MAX);
    ck_assert_int_eq(int_from_double(-1e30), INT64_MIN);
    ck_assert_int_eq(int_from_double((double)NAN), 0);
    ck_assert_int_eq(int_from_double(-2.9), -2);
    ck_assert_int_eq(dtype_saturate(DTYPE_I8, 1000), 127);
    ck_assert_int_eq(dtype_saturate(DTYPE_U8, -1), 0);
    ck_assert_int_eq(dtype_saturate(DTYPE_I32, INT64_MIN), INT32_MIN);
    int32_t word;
    dtype_store_float(DTYPE_I32, &word, 3e9);
    ck_assert_int_eq(word, INT32_MAX);
    ck_assert_int_eq(dtype_load_int(DTYPE_I32, &word), INT32_MAX);
}
END_TEST

START_TEST(scalars_take_values_of_their_dtype)
{
    ck_assert(dtype_takes(DTYPE_F16, 1e-3)); /* rounded */
    ck_assert(dtype_takes(DTYPE_F8E4M3, (double)NAN));
    ck_assert(dtype_takes(DTYPE_I32, -7) && dtype_takes(DTYPE_I32, -0.0));
    ck_assert(dtype_takes(DTYPE_I32, INT32_MAX) && !dtype_takes(DTYPE_I32, 0x1p31));
    ck_assert(dtype_takes(DTYPE_U8, 255) && !dtype_takes(DTYPE_U8, 256));
    ck_assert(!dtype_takes(DTYPE_U8, -1) && !dtype_takes(DTYPE_I8, 1.5));
    ck_assert(dtype_takes(DTYPE_I64, (double)INT64_MIN));
    ck_assert(dtype_takes(DTYPE_I64, (double)INT64_MAX) && !dtype_takes(DTYPE_I64, 0x1p64));
    ck_assert(dtype_takes(DTYPE_BOOL, 1) && !dtype_takes(DTYPE_BOOL, 0.5));
    for (int i = DTYPE_I64; i < DTYPE_COUNT; i++) {
        ck_assert(!dtype_takes((DType)i, (double)NAN));
        ck_assert(!dtype_takes((DType)i, -(double)INFINITY));
    }
}
END_TEST

START_TEST(names_are_found)
{
    DType dtype;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        ck_assert(dtype_find(dtype_info[i].fuse, &dtype));
        ck_assert_int_eq(dtype, i);
    }
    ck_assert(!dtype_find("f31", &dtype));
}
END_TEST

Suite *dtype_suite(void)
{
    Suite *suite = suite_create("dtype");
    TCase *cases = tcase_create("conversions");
    const int count = (int)(sizeof small / sizeof *small);
    tcase_add_loop_test(cases, every_element_comes_back, 0, count);
    tcase_add_loop_test(cases, rounding_is_to_nearest_even, 0, count);
    tcase_add_test(cases, overflow_follows_the_dtype);
    tcase_add_test(cases, integers_saturate);
    tcase_add_test(cases, scalars_take_values_of_their_dtype);
    tcase_add_test(cases, names_are_found);
    suite_add_tcase(suite, cases);
    return suite;
}
