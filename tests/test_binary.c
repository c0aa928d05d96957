/* test_binary.c: from CUDA text to machine code: NVRTC, the cubin reader, the disk cache.
 * What needs NVRTC prints "skipped" where there is none. */
#include "serialize.h"
#include "cubin.h"
#include "fusec.h"
#include "nvrtc.h"
#include "suites.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char cuda_text[] =
    "extern \"C\" __global__ void shuffle(const float *x, float *y) {\n"
    "    __shared__ float tile[256];\n"
    "    tile[threadIdx.x] = x[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    y[threadIdx.x] = tile[255 - threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void gather(const float *x, float *y, int k) {\n"
    "    float v[64];\n"
    "    for (int i = 0; i < 64; i++) v[i] = x[i];\n"
    "    for (int i = 0; i < 64; i++) v[i * k & 63] += x[i];\n"
    "    y[0] = v[k & 63];\n"
    "}\n";

static fusec_error error;
static char directory[] = "/tmp/fusec-test-XXXXXX";

static void make_cache(void)
{
    strcpy(directory, "/tmp/fusec-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("FUSEC_CACHE_DIR", directory, 1);
    unsetenv("FUSEC_CACHE_BYTES");
}

static void remove_cache(void)
{
    setenv("FUSEC_CACHE_DIR", directory, 1);
    fusec_cache_clear(NULL, NULL);
    ck_assert_msg(rmdir(directory) == 0, "the cache left files behind");
}

static bool no_nvrtc(const char *test)
{
    if (fusec_nvrtc_version(NULL, NULL, NULL, 0, &error) == FUSEC_OK) return false;
    printf("binary: %s: skipped (no NVRTC)\n", test);
    return true;
}

static fusec_binary *compile_text(void)
{
    fusec_binary *binary;
    fusec_status status = fusec_binary_compile(cuda_text, "sm_90a", FUSEC_CUBIN, &binary, &error);
    ck_assert_msg(status == FUSEC_OK, "%s", error.message);
    return binary;
}

static int count_entry(void *data, const fusec_cache_entry *entry)
{
    ck_assert_str_eq(entry->arch, "sm_90a");
    ck_assert_uint_gt(strlen(entry->kernel), 0);
    ++*(int *)data;
    return 0;
}

static int count_entries(void)
{
    int count = 0;
    ck_assert_int_eq(fusec_cache_list(count_entry, &count, &error), FUSEC_OK);
    return count;
}

/* The path of the only file in the cache. */
static void only_entry(char *path, size_t size)
{
    DIR *dir = opendir(directory);
    for (struct dirent *item; (item = readdir(dir)) != NULL;)
        if (item->d_name[0] != '.') snprintf(path, size, "%s/%s", directory, item->d_name);
    closedir(dir);
}

START_TEST(usage_is_read_off_the_cubin)
{
    fusec_kernel_info info = {.struct_size = sizeof info};
    if (no_nvrtc("usage_is_read_off_the_cubin")) return;
    fusec_binary *binary = compile_text();
    ck_assert_int_eq(fusec_binary_kernel(binary, "shuffle", &info), FUSEC_OK);
    ck_assert_int_gt(info.registers, 3);
    ck_assert_int_lt(info.registers, 40);
    ck_assert_int_eq(info.static_smem_bytes, 1024);
    ck_assert_int_eq(info.stack_bytes, 0);
    ck_assert_int_eq(info.spill_bytes, 0);
    ck_assert_int_eq(fusec_binary_kernel(binary, "gather", &info), FUSEC_OK);
    ck_assert_int_eq(info.stack_bytes, 256); /* an indexed array is no spill */
    ck_assert_int_eq(info.spill_bytes, 0);
    ck_assert_int_eq(fusec_binary_kernel(binary, "shuf", &info), FUSEC_INVALID_ARGUMENT);
    fusec_binary_destroy(binary);
}
END_TEST

START_TEST(code_that_waits_first_is_known)
{
    static const char text[] =
        "#define WAIT asm volatile(\"griddepcontrol.wait;\" ::: \"memory\")\n"
        "extern \"C\" __global__ void waits(const float *__restrict__ x, float *y) { WAIT; y[threadIdx.x] = x[threadIdx.x]; }\n"
        "extern \"C\" __global__ void reads(float *x, float *y) { float v = x[threadIdx.x]; WAIT; y[threadIdx.x] = v; }\n"
        "extern \"C\" __global__ void calls(float *y) { printf(\"%p\", y); WAIT; y[threadIdx.x] = 1; }\n"
        "extern \"C\" __global__ void may_wait(float *y, int n) { if (n > 7) WAIT; y[threadIdx.x] = 1; }\n"
        "extern \"C\" __global__ void may_end(float *y, int n) { if (threadIdx.x < n) return; WAIT; y[threadIdx.x] = 1; }\n"
        "extern \"C\" __global__ void never(float *y) { y[threadIdx.x] = 1; }\n";
    if (no_nvrtc("code_that_waits_first_is_known")) return;
    fusec_binary *binary;
    size_t bytes;
    ck_assert_int_eq(fusec_binary_compile(text, "sm_90a", FUSEC_CUBIN, &binary, &error), FUSEC_OK);
    const void *cubin = fusec_binary_data(binary, &bytes);
    ck_assert(cubin_waits_first(cubin, bytes, "waits"));
    ck_assert(!cubin_waits_first(cubin, bytes, "reads"));
    ck_assert(!cubin_waits_first(cubin, bytes, "calls"));
    ck_assert(!cubin_waits_first(cubin, bytes, "may_wait"));
    ck_assert(!cubin_waits_first(cubin, bytes, "may_end"));
    ck_assert(!cubin_waits_first(cubin, bytes, "never"));
    ck_assert(!cubin_waits_first(cubin, bytes, "another"));
    ck_assert(!cubin_waits_first(cubin, 200, "waits"));
    fusec_binary_destroy(binary);
}
END_TEST

START_TEST(damaged_cubins_are_harmless)
{
    size_t bytes;
    Usage usage;
    if (no_nvrtc("damaged_cubins_are_harmless")) return;
    fusec_binary *binary = compile_text();
    const void *data = fusec_binary_data(binary, &bytes);
    for (size_t length = 0; length < bytes; length += 37) {
        char *cut = malloc(length + 1); /* exactly as long, so that ASan sees a read outside */
        memcpy(cut, data, length);
        cubin_usage(cut, length, NULL, "shuffle", &usage);
        cubin_kernel_name(cut, length, 0);
        cubin_waits_first(cut, length, "shuffle");
        free(cut);
    }
    unsigned state = 1;
    char *flipped = malloc(bytes);
    memcpy(flipped, data, bytes);
    memset(flipped + 32, 0xff, 8); /* no segments, at the end of all addresses */
    memset(flipped + 54, 0, 4);
    ck_assert_int_le(cubin_count(flipped, bytes), 2);
    for (int round = 0; round < 500; round++) {
        memcpy(flipped, data, bytes);
        for (int i = 0; i < 8; i++) {
            state = state * 1664525u + 1013904223u;
            size_t at = i < 4 ? state % 64 : state % bytes;
            flipped[at] = (char)(state >> 24);
        }
        cubin_usage(flipped, bytes, NULL, "shuffle", &usage);
        cubin_waits_first(flipped, bytes, "shuffle");
    }
    free(flipped);
    fusec_binary_destroy(binary);
}
END_TEST

/* Compiled one by one, kernels are cubins one behind another, of the same code. */
START_TEST(kernels_are_compiled_one_by_one)
{
    static const char *const kernels[] = {"shuffle", "gather"};
    static char text[2000], wrong[2100];
    Nvrtc nvrtc;
    Code whole, apart, none;
    if (no_nvrtc("kernels_are_compiled_one_by_one")) return;
    snprintf(text, sizeof text, "#define HALF 0.5f\n%s", cuda_text);
    snprintf(wrong, sizeof wrong, "%sextern \"C\" __global__ void last() { wrong }\n", text);
    ck_assert_int_eq(nvrtc_open(&nvrtc, &error), FUSEC_OK);
    ck_assert_int_eq(nvrtc_compile(&nvrtc, text, "sm_90a", NULL, &whole, &error), FUSEC_OK);
    ck_assert_int_eq(nvrtc_compile_kernels(&nvrtc, text, "sm_90a", NULL, &apart, &error), FUSEC_OK);
    ck_assert_int_eq(cubin_count(whole.data, whole.bytes), 1);
    ck_assert_int_eq(cubin_count(apart.data, apart.bytes), 2);
    for (int i = 0; i < 2; i++) {
        Usage one, other;
        ck_assert(cubin_usage(whole.data, whole.bytes, whole.log, kernels[i], &one));
        ck_assert(cubin_usage(apart.data, apart.bytes, apart.log, kernels[i], &other));
        ck_assert_mem_eq(&one, &other, sizeof one);
        ck_assert_str_eq(cubin_kernel_name(apart.data, apart.bytes, i), kernels[i]);
        ck_assert_int_eq(cubin_of(apart.data, apart.bytes, kernels[i]), i);
        ck_assert_int_eq(cubin_of(whole.data, whole.bytes, kernels[i]), 0);
    }
    ck_assert_ptr_null(cubin_kernel_name(apart.data, apart.bytes, 2));
    ck_assert_int_eq(cubin_of(apart.data, apart.bytes, "another"), -1);
    for (size_t length = 0; length < apart.bytes; length += 61) {
        char *cut = malloc(length + 1);
        memcpy(cut, apart.data, length);
        Usage usage;
        cubin_usage(cut, length, NULL, "gather", &usage);
        ck_assert_int_ge(cubin_count(cut, length), 1);
        free(cut);
    }
    code_free(&whole);
    code_free(&apart);
    /* an error names the line of the whole text; one PTX is made of all */
    ck_assert_int_eq(nvrtc_compile_kernels(&nvrtc, wrong, "sm_90a", NULL, &none, &error),
                     FUSEC_COMPILE_FAILED);
    ck_assert_msg(strstr(error.message, "fusec.cu(14)"), "%s", error.message);
    ck_assert_int_eq(nvrtc_compile_kernels(&nvrtc, text, "compute_90", NULL, &apart, &error),
                     FUSEC_OK);
    ck_assert(strstr(apart.data, ".entry shuffle") && strstr(apart.data, ".entry gather"));
    code_free(&apart);
    nvrtc_close(&nvrtc);
}
END_TEST

START_TEST(ptx_and_refusals)
{
    fusec_binary *binary;
    size_t bytes;
    if (no_nvrtc("ptx_and_refusals")) return;
    ck_assert_int_eq(fusec_binary_compile(cuda_text, "sm_90a", FUSEC_PTX, &binary, &error),
                     FUSEC_OK);
    const char *ptx = fusec_binary_data(binary, &bytes);
    ck_assert_uint_eq(strlen(ptx), bytes);
    ck_assert_ptr_nonnull(strstr(ptx, ".entry shuffle"));
    fusec_binary_destroy(binary);
    ck_assert_int_eq(fusec_binary_compile(cuda_text, "sm_1", FUSEC_CUBIN, &binary, &error),
                     FUSEC_UNSUPPORTED);
    ck_assert_int_eq(fusec_binary_compile("wrong", "sm_90a", FUSEC_CUBIN, &binary, &error),
                     FUSEC_COMPILE_FAILED);
    ck_assert_ptr_nonnull(strstr(error.message, "error"));
}
END_TEST

START_TEST(missing_nvrtc_is_told)
{
    setenv("FUSEC_NVRTC", "/nowhere/libnvrtc.so.13", 1);
    ck_assert_int_eq(fusec_nvrtc_version(NULL, NULL, NULL, 0, &error), FUSEC_NO_NVRTC);
    ck_assert_ptr_nonnull(strstr(error.message, "/nowhere/libnvrtc.so.13"));
    unsetenv("FUSEC_NVRTC");
}
END_TEST

START_TEST(damaged_entries_are_rebuilt)
{
    char path[512] = "";
    struct stat whole, now;
    if (no_nvrtc("damaged_entries_are_rebuilt")) return;
    fusec_binary_destroy(compile_text());
    ck_assert_int_eq(count_entries(), 1);
    only_entry(path, sizeof path);
    ck_assert_int_eq(stat(path, &whole), 0);
    static const long cuts[] = {0, 5, 40, -1, -2};
    for (int i = 0; i < 5; i++) {
        if (cuts[i] >= 0) {
            ck_assert_int_eq(truncate(path, cuts[i]), 0);
        } else {
            FILE *file = fopen(path, "r+");
            fseek(file, cuts[i] == -1 ? 100 : (long)whole.st_size - 3, SEEK_SET);
            fputc(0x5a, file);
            fclose(file);
        }
        fusec_binary *binary = compile_text();
        fusec_kernel_info info = {.struct_size = sizeof info};
        ck_assert_int_eq(fusec_binary_kernel(binary, "shuffle", &info), FUSEC_OK);
        fusec_binary_destroy(binary);
        ck_assert_int_eq(stat(path, &now), 0);
        ck_assert_int_gt(now.st_size, 1000);
    }
}
END_TEST

START_TEST(an_entry_is_used_again)
{
    if (no_nvrtc("an_entry_is_used_again")) return;
    fusec_binary *first = compile_text(), *second = compile_text();
    ck_assert_double_eq(fusec_binary_milliseconds(first), fusec_binary_milliseconds(second));
    fusec_binary_destroy(first);
    fusec_binary_destroy(second);
    setenv("FUSEC_CACHE_BYTES", "10", 1); /* smaller than any entry */
    fusec_binary *other;
    ck_assert_int_eq(fusec_binary_compile("extern \"C\" __global__ void k() {}", "sm_90a",
                                          FUSEC_CUBIN, &other, &error),
                     FUSEC_OK);
    fusec_binary_destroy(other);
    ck_assert_int_eq(count_entries(), 0);
}
END_TEST

START_TEST(an_unwritable_cache_stops_nothing)
{
    char file[256], below[300];
    if (no_nvrtc("an_unwritable_cache_stops_nothing")) return;
    snprintf(file, sizeof file, "%s/file", directory);
    snprintf(below, sizeof below, "%s/cache", file);
    fclose(fopen(file, "w"));
    setenv("FUSEC_CACHE_DIR", below, 1);
    fusec_binary *binary = compile_text();
    ck_assert_ptr_nonnull(strstr(fusec_binary_warning(binary), "cannot be written"));
    fusec_binary_destroy(binary);
    remove(file);
}
END_TEST

START_TEST(a_cache_size_that_is_none_is_told)
{
    static const char *const sizes[] = {"abc", "256M", "-1", "99999999999999999999999"};
    if (no_nvrtc("a_cache_size_that_is_none_is_told")) return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fusec_cache_clear(NULL, NULL);
        setenv("FUSEC_CACHE_BYTES", sizes[i], 1);
        fusec_binary *binary = compile_text();
        const char *warning = fusec_binary_warning(binary);
        ck_assert_msg(strstr(warning, sizes[i]) && strstr(warning, "268435456"), "%s: '%s'",
                      sizes[i], warning);
        fusec_binary_destroy(binary);
    }
    unsetenv("FUSEC_CACHE_BYTES");
    ck_assert_int_eq(count_entries(), 1);
}
END_TEST

static void *compile_in_thread(void *unused)
{
    (void)unused;
    fusec_binary *binary = NULL;
    fusec_binary_compile(cuda_text, "sm_90a", FUSEC_CUBIN, &binary, NULL);
    return binary;
}

START_TEST(threads_share_the_cache)
{
    pthread_t threads[4];
    if (no_nvrtc("threads_share_the_cache")) return;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_in_thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *binary = NULL;
        pthread_join(threads[i], &binary);
        ck_assert_ptr_nonnull(binary);
        fusec_binary_destroy(binary);
    }
    ck_assert_int_eq(count_entries(), 1);
}
END_TEST

START_TEST(sealed_files)
{
    static const char magic[SEAL_MAGIC] = {'T', 'E', 'S', 'T', 'T', 'E', 'S', 'T'};
    char path[256], why[FILE_WHY], *data;
    size_t bytes, length;
    Writer w = {0};
    put_int(&w, -5);
    put_string(&w, "a\0b", 3);
    put_double(&w, 0.5);
    snprintf(path, sizeof path, "%s/sealed", directory);
    ck_assert(file_write_sealed(path, magic, &w));
    ck_assert_int_eq(file_read_sealed(AT_FDCWD, path, FILE_OF_OURS, magic, &data, &bytes, why),
                     SEALED_OK);
    Reader r = {data, bytes, false};
    ck_assert_int_eq(get_int(&r), -5);
    ck_assert_mem_eq(get_string(&r, &length), "a\0b", 4);
    ck_assert_double_eq(get_double(&r), 0.5);
    ck_assert(!r.failed && r.left == 0);
    get_int(&r);
    ck_assert(r.failed);
    free(data);
    writer_free(&w);
    remove(path);
    ck_assert_int_eq(file_read_sealed(AT_FDCWD, path, FILE_OF_OURS, magic, &data, &bytes, why),
                     SEALED_ABSENT);
}
END_TEST

Suite *binary_suite(void)
{
    Suite *suite = suite_create("binary");
    TCase *tests = tcase_create("code");
    tcase_add_checked_fixture(tests, make_cache, remove_cache);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, sealed_files);
    tcase_add_test(tests, usage_is_read_off_the_cubin);
    tcase_add_test(tests, code_that_waits_first_is_known);
    tcase_add_test(tests, damaged_cubins_are_harmless);
    tcase_add_test(tests, kernels_are_compiled_one_by_one);
    tcase_add_test(tests, ptx_and_refusals);
    tcase_add_test(tests, missing_nvrtc_is_told);
    tcase_add_test(tests, damaged_entries_are_rebuilt);
    tcase_add_test(tests, an_entry_is_used_again);
    tcase_add_test(tests, an_unwritable_cache_stops_nothing);
    tcase_add_test(tests, a_cache_size_that_is_none_is_told);
    tcase_add_test(tests, threads_share_the_cache);
    suite_add_tcase(suite, tests);
    return suite;
}
