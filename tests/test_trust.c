/* test_trust.c: files are not trusted. What another could have written, and what is not what it
 * says, is neither loaded nor an error where something else can be done; and what is written keeps
 * what was there before. */
#include "disk.h"
#include "file_write.h"
#include "internal.h"
#include "suites.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static char directory[64];
static fusec_error error;

static void make_directory(void)
{
    snprintf(directory, sizeof directory, "/tmp/fusec-trust-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    setenv("FUSEC_CACHE_DIR", directory, 1);
    unsetenv("FUSEC_CACHE_BYTES");
}

static void remove_directory(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s %s.link", directory, directory);
    ck_assert_int_eq(system(command), 0);
}

/* A path in the directory, in one of four buffers. */
static const char *in_directory(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", directory, name);
    return path;
}

static bool no_root(const char *test)
{
    if (geteuid() == 0) return false;
    printf("trust: %s: skipped (not root)\n", test);
    return true;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static const char *read_text(const char *path)
{
    static char text[256];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static int count_files(void)
{
    int count = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *item; (item = readdir(dir)) != NULL;) count += item->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* ---- entries of the disk cache ---- */

static DiskKey key_of(const char *cuda, int minor)
{
    const Nvrtc nvrtc = {.major = 12, .minor = minor};
    return disk_key(cuda, "sm_90a", NULL, &nvrtc);
}

static void store(const DiskKey *key)
{
    char why[512] = "", log[] = "log", code[] = "machine code";
    const Code made = {.data = code, .bytes = sizeof code - 1, .log = log, .milliseconds = 1.5};
    ck_assert_msg(disk_store(key, &made, why, sizeof why), "%s", why);
}

static bool load(const DiskKey *key)
{
    Code code;
    bool loaded = disk_load(key, &code);
    ck_assert(!loaded || (code.bytes == 12 && !memcmp(code.data, "machine code", 12)));
    code_free(&code);
    return loaded;
}

static void flip_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 1, file);
    fclose(file);
}

static const char *const faults[] = {
    "owner",       "group",     "others",  "link",      "hard link",    "renamed",
    "other NVRTC", "truncated", "emptied", "header",    "middle",       "end",
    "longer",      "sparse",    "fifo",    "directory", "older format",
};
enum { FAULTS = sizeof faults / sizeof *faults };

static void spoil(const char *fault, const char *path, const char *aside)
{
    bool is = true;
    if (!strcmp(fault, "owner"))
        is = chown(path, NOBODY, NOBODY) == 0;
    else if (!strcmp(fault, "group"))
        is = chmod(path, 0620) == 0;
    else if (!strcmp(fault, "others"))
        is = chmod(path, 0602) == 0;
    else if (!strcmp(fault, "link"))
        is = rename(path, aside) == 0 && symlink(aside, path) == 0;
    else if (!strcmp(fault, "hard link"))
        is = link(path, aside) == 0;
    else if (!strcmp(fault, "truncated"))
        is = truncate(path, 50) == 0;
    else if (!strcmp(fault, "emptied"))
        is = truncate(path, 0) == 0;
    else if (!strcmp(fault, "header"))
        flip_byte(path, 9);
    else if (!strcmp(fault, "middle"))
        flip_byte(path, 70);
    else if (!strcmp(fault, "end"))
        flip_byte(path, -3);
    else if (!strcmp(fault, "older format"))
        flip_byte(path, 7);
    else if (!strcmp(fault, "longer"))
        is = truncate(path, 4096) == 0;
    else if (!strcmp(fault, "sparse"))
        is = truncate(path, 6LL << 30) == 0;
    else if (!strcmp(fault, "fifo"))
        is = unlink(path) == 0 && mkfifo(path, 0600) == 0;
    else if (!strcmp(fault, "directory"))
        is = unlink(path) == 0 && mkdir(path, 0700) == 0;
    else
        is = false;
    ck_assert_msg(is, "%s", fault);
}

/* It is not loaded, it is gone, and another can take its place. */
START_TEST(a_bad_entry_is_dropped)
{
    const char *fault = faults[_i];
    const DiskKey key = key_of("text", 9), other = key_of("other", 9), older = key_of("text", 8);
    const DiskKey *from = !strcmp(fault, "renamed")       ? &other
                          : !strcmp(fault, "other NVRTC") ? &older
                                                          : NULL;
    struct stat about;
    if (!strcmp(fault, "owner") && no_root("an entry of another user")) return;
    store(from ? from : &key);
    ck_assert(load(from ? from : &key));
    if (from)
        ck_assert_int_eq(rename(in_directory(from->name), in_directory(key.name)), 0);
    else
        spoil(fault, in_directory(key.name), in_directory("aside"));
    ck_assert_msg(!load(&key), "%s", fault);
    ck_assert_msg(lstat(in_directory(key.name), &about) != 0, "%s", fault);
    store(&key);
    ck_assert(load(&key));
}
END_TEST

/* Two texts of one hash, as far as anyone can tell from a name, differ. */
START_TEST(the_whole_key_is_compared)
{
    const DiskKey key = key_of("text", 9);
    DiskKey others[] = {key, key, key, key, key, key};
    others[0].cuda = "texT";
    others[1].arch = "sm_90";
    others[2].option = "--fmad=false";
    others[3].minor = 8;
    others[4].major = 13;
    others[5].version = "0.0.1";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        store(&key);
        ck_assert(load(&key));
        ck_assert_msg(!load(&others[i]), "%zu", i);
        ck_assert_msg(!load(&key), "%zu: it was dropped", i);
    }
}
END_TEST

START_TEST(entries_are_ours_alone)
{
    struct stat about;
    const DiskKey key = key_of("text", 9);
    mode_t mask = umask(0);
    store(&key);
    umask(mask);
    ck_assert(stat(in_directory(key.name), &about) == 0 && (about.st_mode & 0777) == 0600);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

/* ---- directories ---- */

static const char *const places[] = {"owner", "group", "others", "link", "link/", "relative"};
enum { PLACES = sizeof places / sizeof *places };
static const char *const place_words[PLACES] = {"belongs to another user", "other users may write",
                                                "other users may write",   "symbolic link",
                                                "symbolic link",           "not absolute"};

static void spoil_place(const char *place)
{
    char link[80];
    snprintf(link, sizeof link, "%s.link%s", directory, strcmp(place, "link/") ? "" : "/");
    if (!strcmp(place, "owner")) ck_assert_int_eq(chown(directory, NOBODY, NOBODY), 0);
    if (!strcmp(place, "group")) ck_assert_int_eq(chmod(directory, 0770), 0);
    if (!strcmp(place, "others")) ck_assert_int_eq(chmod(directory, 01777), 0);
    if (!strncmp(place, "link", 4)) {
        link[strlen(directory) + 5] = 0;
        ck_assert_int_eq(symlink(directory, link), 0);
        if (place[4]) strcat(link, "/");
        setenv("FUSEC_CACHE_DIR", link, 1);
    }
    if (!strcmp(place, "relative")) {
        ck_assert_int_eq(chdir("/tmp"), 0);
        setenv("FUSEC_CACHE_DIR", strrchr(directory, '/') + 1, 1);
    }
}

static int count_entry(void *count, const fusec_cache_entry *entry)
{
    (void)entry;
    ++*(int *)count;
    return 0;
}

START_TEST(a_directory_of_others_is_not_used)
{
    char why[512] = "", log[] = "", code[] = "machine code";
    const Code made = {.data = code, .bytes = 12, .log = log};
    const DiskKey key = key_of("text", 9), other = key_of("other", 9);
    int count = 0;
    size_t removed = 7;
    if (!strcmp(places[_i], "owner") && no_root("a directory of another user")) return;
    store(&key);
    spoil_place(places[_i]);
    ck_assert(!load(&key));
    ck_assert(!disk_store(&other, &made, why, sizeof why));
    ck_assert_msg(strstr(why, "is not used") && strstr(why, place_words[_i]), "%s", why);
    ck_assert_int_eq(fusec_cache_list(count_entry, &count, &error), FUSEC_IO_ERROR);
    ck_assert_msg(strstr(error.message, place_words[_i]) != NULL, "%s", error.message);
    ck_assert_int_eq(fusec_cache_clear(&removed, &error), FUSEC_IO_ERROR);
    ck_assert(count == 0 && removed == 7 && count_files() == 1);
    ck_assert_uint_eq(fusec_cache_path(NULL, 0) == 0, !strcmp(places[_i], "relative"));
}
END_TEST

START_TEST(no_directory_is_no_error)
{
    size_t removed = 7;
    setenv("FUSEC_CACHE_DIR", in_directory("not/yet"), 1);
    ck_assert_int_eq(fusec_cache_clear(&removed, &error), FUSEC_OK);
    ck_assert_uint_eq(removed, 0);
    const DiskKey key = key_of("text", 9);
    ck_assert(!load(&key));
    store(&key);
    ck_assert(load(&key));
}
END_TEST

/* ---- writing ---- */

/* In place of the C library's: what is found under the name when a file is synced, and when its directory is. */
static char synced[2][8];
static const char *synced_path;

int fsync(int handle)
{
    struct stat about;
    if (synced_path && fstat(handle, &about) == 0)
        snprintf(synced[S_ISDIR(about.st_mode)], sizeof synced[0], "%s", read_text(synced_path));
    return (int)syscall(SYS_fsync, handle);
}

/* A machine that goes down leaves the old file or the new one. */
START_TEST(what_is_written_is_synced)
{
    NewFile file;
    synced_path = in_directory("file");
    write_file(synced_path, "old");
    ck_assert(file_begin(&file, synced_path, 0666) && file_put(&file, "new", 3) &&
              file_finish(&file));
    synced_path = NULL;
    ck_assert_str_eq(synced[false], "old"); /* before the new one takes its name */
    ck_assert_str_eq(synced[true], "new");
}
END_TEST

START_TEST(owner_and_mode_stay)
{
    struct stat about;
    NewFile file;
    const char *path = in_directory("file");
    write_file(path, "old");
    if (geteuid() == 0)
        ck_assert_int_eq(chown(path, NOBODY, 1234), 0);
    else
        no_root("the owner of a file stays");
    ck_assert_int_eq(chmod(path, 04751), 0);
    ck_assert(file_begin(&file, path, 0666) && file_put(&file, "new", 3) && file_finish(&file));
    ck_assert(stat(path, &about) == 0 && (about.st_mode & 07777) == 04751);
    ck_assert(geteuid() != 0 || (about.st_uid == NOBODY && about.st_gid == 1234));
    ck_assert_str_eq(read_text(path), "new");
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(set_id_bits_go_where_the_owner_does)
{
    struct stat about;
    int status;
    const char *path = in_directory("file");
    if (no_root("a file of another user")) return;
    write_file(path, "old");
    ck_assert(chown(path, 0, NOBODY) == 0 && chmod(path, 06775) == 0 &&
              chmod(directory, 0777) == 0);
    pid_t child = fork();
    if (child == 0) { /* of the group that may write, and not the owner */
        NewFile file;
        bool good = setgid(NOBODY) == 0 && setuid(NOBODY) == 0 && file_begin(&file, path, 0666) &&
                    file_put(&file, "new", 3) && file_finish(&file);
        _exit(!good);
    }
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
    ck_assert(stat(path, &about) == 0 && about.st_uid == NOBODY);
    ck_assert_msg((about.st_mode & 07777) == 02775, "%o", about.st_mode);
}
END_TEST

START_TEST(links_are_followed)
{
    struct stat about;
    NewFile file;
    write_file(in_directory("file"), "old");
    ck_assert(symlink("file", in_directory("link")) == 0 &&
              link(in_directory("file"), in_directory("hard")) == 0);
    ck_assert(symlink("new", in_directory("dangling")) == 0 &&
              symlink("loop", in_directory("loop")) == 0);
    ck_assert(file_begin(&file, in_directory("link"), 0666) && file_put(&file, "new", 3) &&
              file_finish(&file));
    ck_assert(lstat(in_directory("link"), &about) == 0 && S_ISLNK(about.st_mode));
    ck_assert_str_eq(read_text(in_directory("file")), "new");
    ck_assert_str_eq(read_text(in_directory("hard")), "old");
    ck_assert(file_begin(&file, in_directory("dangling"), 0666) && file_put(&file, "made", 4) &&
              file_finish(&file));
    ck_assert_str_eq(read_text(in_directory("new")), "made");
    ck_assert(!file_begin(&file, in_directory("loop"), 0666));
    ck_assert(!file_begin(&file, directory, 0666));
    ck_assert_int_eq(count_files(), 6);
}
END_TEST

/* A writer that is killed in the middle. */
static void kill_writer(const char *name)
{
    int ends[2], status;
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        NewFile file;
        bool begun = file_begin(&file, in_directory(name), 0600) && file_put(&file, "half", 4);
        if (write(ends[1], begun ? "y" : "n", 1) == 1) pause();
        _exit(1);
    }
    ck_assert(read(ends[0], &byte, 1) == 1 && byte == 'y');
    kill(child, SIGKILL);
    ck_assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);
}

START_TEST(what_killed_writers_left_is_swept)
{
    const DiskKey key = key_of("text", 9), other = key_of("other", 9);
    char why[TUNING_WHY];
    TuningEntry entry = {{"00000000000000000000000000000001"}, "sm_90a", "H100", "row", 1, 2, "g"};
    kill_writer(key.name);
    kill_writer("tuning");
    kill_writer("mine"); /* none of ours */
    ck_assert_int_eq(count_files(), 3);
    store(&other);
    ck_assert_int_eq(count_files(), 3);
    setenv("FUSEC_TUNING_FILE", in_directory("tuning"), 1);
    ck_assert_msg(tuning_store(&entry, why), "%s", why);
    ck_assert_int_eq(count_files(), 3); /* an entry, the tuning file, and mine.tmp-… */
}
END_TEST

/* A clear takes nothing away from who is writing, nor does another writer. */
START_TEST(writers_are_left_alone)
{
    const DiskKey key = key_of("text", 9), other = key_of("other", 9);
    NewFile file;
    size_t removed;
    int handle = open(directory, O_RDONLY | O_DIRECTORY);
    ck_assert(handle >= 0 && file_begin_at(&file, handle, key.name, 0600));
    store(&other);
    ck_assert_int_eq(fusec_cache_clear(&removed, &error), FUSEC_OK);
    ck_assert_uint_eq(removed, 1);
    ck_assert_int_eq(count_files(), 1);
    ck_assert(file_finish(&file));
    close(handle);
    ck_assert_int_eq(access(in_directory(key.name), F_OK), 0);
}
END_TEST

START_TEST(writers_and_clears_at_the_same_time)
{
    enum { WRITERS = 3, EACH = 15 };
    int status;
    for (int w = 0; w < WRITERS; w++) {
        if (fork()) continue;
        for (int i = 0; i < EACH; i++) {
            const DiskKey key = key_of("text", i);
            store(&key);
            load(&key);
        }
        _exit(0);
    }
    for (int done = 0; done < WRITERS;) {
        ck_assert_int_eq(fusec_cache_clear(NULL, &error), FUSEC_OK);
        done += waitpid(-1, &status, WNOHANG) > 0 && status == 0;
    }
    ck_assert_int_eq(fusec_cache_clear(NULL, &error), FUSEC_OK);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

/* ---- sealed files that a caller names ---- */

START_TEST(what_is_no_plan_is_refused)
{
    static const char magic[SEAL_MAGIC] = "TESTTEST";
    char *data, why[FILE_WHY];
    size_t bytes;
    Writer w = {0};
    put_string(&w, "text", 4);
    const char *path = in_directory("plan");
    ck_assert(file_write_sealed(path, magic, &w));
    writer_free(&w);
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(file_read_sealed(AT_FDCWD, path, FILE_OF_ANYONE, magic, &data, &bytes, why),
                     SEALED_OK);
    free(data);
    ck_assert_int_eq(truncate(path, 6LL << 30), 0);
    ck_assert_int_eq(file_read_sealed(AT_FDCWD, path, FILE_OF_ANYONE, magic, &data, &bytes, why),
                     SEALED_REFUSED);
    ck_assert_ptr_nonnull(strstr(why, "more than 268435456 bytes"));
    ck_assert(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    ck_assert_int_eq(file_read_sealed(AT_FDCWD, path, FILE_OF_ANYONE, magic, &data, &bytes, why),
                     SEALED_REFUSED);
    ck_assert_str_eq(why, "it is not a regular file");
    ck_assert_int_eq(
        file_read_sealed(AT_FDCWD, "/dev/zero", FILE_OF_ANYONE, magic, &data, &bytes, why),
        SEALED_REFUSED);
    ck_assert_int_eq(
        file_read_sealed(AT_FDCWD, directory, FILE_OF_ANYONE, magic, &data, &bytes, why),
        SEALED_ABSENT);
    ck_assert_int_eq(
        file_read_sealed(AT_FDCWD, in_directory("no"), FILE_OF_ANYONE, magic, &data, &bytes, why),
        SEALED_ABSENT);
}
END_TEST

Suite *trust_suite(void)
{
    Suite *suite = suite_create("trust");
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_set_timeout(tests, 30);
    tcase_add_loop_test(tests, a_bad_entry_is_dropped, 0, FAULTS);
    tcase_add_loop_test(tests, a_directory_of_others_is_not_used, 0, PLACES);
    tcase_add_test(tests, the_whole_key_is_compared);
    tcase_add_test(tests, entries_are_ours_alone);
    tcase_add_test(tests, no_directory_is_no_error);
    tcase_add_test(tests, what_is_written_is_synced);
    tcase_add_test(tests, owner_and_mode_stay);
    tcase_add_test(tests, set_id_bits_go_where_the_owner_does);
    tcase_add_test(tests, links_are_followed);
    tcase_add_test(tests, what_killed_writers_left_is_swept);
    tcase_add_test(tests, writers_are_left_alone);
    tcase_add_test(tests, writers_and_clears_at_the_same_time);
    tcase_add_test(tests, what_is_no_plan_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
