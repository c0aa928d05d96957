/* test_safetensors.c: tensor files: written and read back, and refused with a reason
 * when wrong. */
#include "cli/safetensors.h"
#include "suites.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define X(shape, begin, end)                                                                       \
    "\"x\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"
#define Y(begin, end)                                                                              \
    "\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" #begin "," #end "]}"

static const struct {
    const char *header;
    size_t data;
    const char *why; /* part of the message; NULL: good */
} cases[] = {
    {"{" X("[2]", 0, 8) "}", 8, NULL},
    {"{" X("[]", 0, 4) "," Y(4, 8) ",\"__metadata__\":{\"a\":\"b\"}}   ", 8, NULL},
    {"{" X("[0,7]", 0, 0) "}", 0, NULL},
    {"{}", 0, NULL},
    {"[]", 0, "not a JSON object"},
    {"{]", 0, "not valid"},
    {"{\"\xff\":1}", 0, "not valid"},
    {"{\"x\":3}", 0, "'x'"},
    {"{" X("[2]", 0, 8) "}", 7, "truncated"},
    {"{" X("[2]", 0, 8) "}", 9, "belong to no tensor"},
    {"{" X("[1]", 4, 8) "}", 8, "belong to no tensor"},
    {"{" X("[2]", 0, 8) "," Y(4, 8) "}", 8, "overlap"},
    {"{" X("[1]", 0, 4) "," X("[1]", 0, 4) "}", 4, "not valid at byte 65: duplicate object key"},
    {"{" X("[3]", 0, 8) "}", 8, "a shape of 12 bytes"},
    {"{" X("[-1]", 0, 4) "}", 4, "not a whole number"},
    {"{" X("[1.5]", 0, 4) "}", 4, "not a whole number"},
    {"{" X("[4294967296,4294967296]", 0, 4) "}", 4, "larger than any memory"},
    {"{" X("[1]", -4, 0) "}", 4, "data_offsets"},
    {"{" X("[1]", 4, 0) "}", 4, "data_offsets"},
    {"{" X("[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, "9 axes"},
    {"{\"x\":{\"dtype\":\"Q4\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "'Q4'"},
};

static size_t make_image(unsigned char *image, const char *header, size_t data)
{
    const size_t length = strlen(header);
    for (int i = 0; i < 8; i++) image[i] = (unsigned char)(length >> 8 * i & 0xff);
    memcpy(image + 8, header, length);
    memset(image + 8 + length, 1, data);
    return 8 + length + data;
}

START_TEST(headers_are_judged)
{
    unsigned char image[1024];
    char message[256] = "";
    TensorFile file;
    const size_t length = make_image(image, cases[_i].header, cases[_i].data);
    const bool good = tensors_parse(image, length, "FILE", &file, message, sizeof message);
    ck_assert_msg(good == !cases[_i].why, "%s: %s", cases[_i].header, message);
    if (!good) {
        ck_assert_msg(strstr(message, cases[_i].why) != NULL, "%s", message);
        ck_assert_msg(strncmp(message, "FILE: ", 6) == 0, "%s", message);
        ck_assert_ptr_null(file.tensors);
    }
    tensors_close(&file);
}
END_TEST

START_TEST(lying_prefixes_are_refused)
{
    unsigned char huge[16] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    char message[256];
    TensorFile file;
    for (size_t length = 0; length <= sizeof huge; length++)
        ck_assert(!tensors_parse(huge, length, "FILE", &file, message, sizeof message));
}
END_TEST

/* The header of the second file shifts the data off its alignment. */
START_TEST(unaligned_data_is_copied)
{
    unsigned char image[256];
    char message[256];
    TensorFile file;
    const char *const headers[] = {"{" X("[2]", 0, 8) "}", "{" X("[2]", 0, 8) "} "};
    for (int i = 0; i < 2; i++) {
        const size_t length = make_image(image, headers[i], 8);
        ck_assert(tensors_parse(image, length, "FILE", &file, message, sizeof message));
        ck_assert_uint_eq((uintptr_t)tensors_find(&file, "x")->data % 4, 0);
        ck_assert_mem_eq(tensors_find(&file, "x")->data, "\1\1\1\1\1\1\1\1", 8);
        tensors_close(&file);
    }
}
END_TEST

START_TEST(files_are_written_and_read_back)
{
    char directory[] = "/tmp/fusec-safetensors-XXXXXX", path[64], message[256];
    unsigned char bytes[3] = {1, 2, 3};
    double doubles[2] = {0.5, -2};
    Tensor tensors[] = {{"b \"q\"", DTYPE_U8, 1, {3}, bytes}, {"a", DTYPE_F64, 2, {1, 2}, doubles}};
    TensorFile file;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/t", directory);
    for (int round = 0; round < 2; round++) { /* the second one replaces the first */
        ck_assert_msg(tensors_write(path, tensors, 2, message, sizeof message), "%s", message);
        ck_assert_msg(tensors_read(path, &file, message, sizeof message), "%s", message);
        ck_assert_int_eq(file.count, 2);
        ck_assert_mem_eq(tensors_find(&file, "b \"q\"")->data, bytes, 3);
        ck_assert_mem_eq(tensors_find(&file, "a")->data, doubles, 16);
        ck_assert_int_eq(tensors_find(&file, "a")->sizes[1], 2);
        tensors_close(&file);
    }
    unlink(path);
    ck_assert_int_eq(rmdir(directory), 0); /* no temporary file is left */
}
END_TEST

START_TEST(files_that_cannot_be_are_named)
{
    char message[256];
    TensorFile file;
    ck_assert(!tensors_read("/nonexistent/t", &file, message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, "/nonexistent/t"));
    ck_assert(!tensors_read("/", &file, message, sizeof message));
    ck_assert(!tensors_read("/dev/zero", &file, message, sizeof message));
    ck_assert(!tensors_write("/nonexistent/t", NULL, 0, message, sizeof message));
    ck_assert_ptr_nonnull(strstr(message, "/nonexistent/t"));
    ck_assert(tensors_write("/dev/null", NULL, 0, message, sizeof message));
    struct stat status;
    ck_assert(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
}
END_TEST

/* Who cuts a file off does no harm to who has read it. */
START_TEST(a_file_that_shrinks_does_no_harm)
{
    enum { COUNT = 1 << 20 };
    char directory[] = "/tmp/fusec-safetensors-XXXXXX", path[64], message[256];
    unsigned char *bytes = calloc(COUNT, 1);
    unsigned sum = 0;
    Tensor tensor = {"x", DTYPE_U8, 1, {COUNT}, bytes};
    TensorFile file;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/t", directory);
    memset(bytes, 1, COUNT);
    ck_assert(tensors_write(path, &tensor, 1, message, sizeof message));
    ck_assert_msg(tensors_read(path, &file, message, sizeof message), "%s", message);
    ck_assert_int_eq(truncate(path, 0), 0);
    for (int i = 0; i < COUNT; i++) sum += ((unsigned char *)file.tensors[0].data)[i];
    ck_assert_uint_eq(sum, COUNT);
    tensors_close(&file);
    ck_assert(truncate(path, 8 + 64 + COUNT / 2) == 0 &&
              !tensors_read(path, &file, message, sizeof message));
    unlink(path);
    rmdir(directory);
    free(bytes);
}
END_TEST

/* A pipe that never ends is left where its last tensor does. */
START_TEST(an_endless_pipe_is_left)
{
    unsigned char image[256], zeros[4096] = {0};
    char path[32], message[256];
    int ends[2], status;
    TensorFile file;
    const size_t length = make_image(image, "{" X("[2]", 0, 8) "}", 8);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (ssize_t put = write(ends[1], image, length); put > 0;)
            put = write(ends[1], zeros, sizeof zeros);
        _exit(0);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    ck_assert(!tensors_read(path, &file, message, sizeof message));
    ck_assert_msg(strstr(message, "belong to no tensor") != NULL, "%s", message);
    close(ends[0]);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
}
END_TEST

START_TEST(a_fifo_without_a_writer_is_given_up)
{
    char directory[] = "/tmp/fusec-safetensors-XXXXXX", path[64], message[256];
    unsigned char image[256];
    TensorFile file;
    const size_t length = make_image(image, "{" X("[2]", 0, 8) "}", 8);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/t", directory);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!tensors_read(path, &file, message, sizeof message));
    ck_assert_msg(strstr(message, "/t: cannot be read: nobody writes to this FIFO") != NULL, "%s",
                  message);
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path, O_WRONLY);
        usleep(200000);
        _exit(write(fd, image, length) != (ssize_t)length);
    }
    ck_assert_msg(tensors_read(path, &file, message, sizeof message), "%s", message);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    tensors_close(&file);
    unlink(path);
    rmdir(directory);
}
END_TEST

Suite *safetensors_suite(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *tests = tcase_create("files");
    tcase_add_loop_test(tests, headers_are_judged, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tests, lying_prefixes_are_refused);
    tcase_add_test(tests, unaligned_data_is_copied);
    tcase_add_test(tests, files_are_written_and_read_back);
    tcase_add_test(tests, files_that_cannot_be_are_named);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, a_file_that_shrinks_does_no_harm);
    tcase_add_test(tests, an_endless_pipe_is_left);
    tcase_add_test(tests, a_fifo_without_a_writer_is_given_up);
    suite_add_tcase(suite, tests);
    return suite;
}
