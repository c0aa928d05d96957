/* run.c: one run of a command or of the calls of the library: in a folder laid out anew, with a call
 * that fails or with streams that cannot be written. */
#include "run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 24, SECONDS = 20 };

char build[PATH], work[PATH];
FaultReport *report;
long runs;

bool is_cache(const char *path)
{
    return !strncmp(path, "cache/", 6);
}

bool is_entry(const char *path)
{
    return is_cache(path) && strspn(path + 6, "0123456789abcdef") == 32 &&
           !strcmp(path + 6 + 32, ".fusec");
}

void make_folders(const char *root)
{
    static const char *const names[] = {"cache", "tmp", "home"};
    char path[PATH];
    mkdir(root, 0700); /* the disk cache is to be nobody else's */
    for (int i = 0; i < 3; i++) {
        join(path, root, names[i]);
        mkdir(path, 0700);
    }
}

/* Lays the folder out as it is before each run. */
static void lay_out(const Folder *before, unsigned flags)
{
    char path[PATH];
    empty_folder(work);
    make_folders(work);
    for (int i = 0; i < before->count; i++) {
        const File *file = &before->files[i];
        join(path, work, file->path);
        if (!(flags & FRESH && is_cache(file->path))) save(path, file->data, file->bytes);
    }
}

static void set(const char *name, const char *folder, const char *file)
{
    char value[PATH];
    join(value, folder, file);
    setenv(name, value, 1);
}

/* Where what a run says goes. */
static char *beside(char path[PATH], const char *ending)
{
    snprintf(path, PATH, "%.4000s%s", work, ending);
    return path;
}

static void redirect(int fd, int where, const char *path)
{
    close(fd);
    if (where == TO_NOTHING) return;
    const int opened = where == TO_FULL ? open("/dev/full", O_WRONLY)
                                        : open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (opened != fd && (dup2(opened, fd) != fd || close(opened) != 0)) _exit(126);
}

static void start(const Case *c, const How *how)
{
    char words[512], program[PATH], out[PATH], error[PATH], *argv[WORDS];
    int count = 0;
    snprintf(words, sizeof words, "%s", c->words);
    join(program, build, c->flags & CALLS ? "faults/calls" : "fusec");
    argv[count++] = program;
    for (char *word = strtok(words, " "); word && count < WORDS - 1; word = strtok(NULL, " "))
        argv[count++] = word;
    argv[count] = NULL;
    if (chdir(work) != 0) _exit(126);
    set("FUSEC_CACHE_DIR", work, "cache");
    set("FUSEC_TUNING_FILE", work, "tuning");
    set("HOME", work, "home");
    set("TMPDIR", work, "tmp");
    set("FUSEC_NVRTC", build, "faults/libnvrtc_stub.so");
    set("LD_PRELOAD", build, "faults/inject.so");
    set("FAULTS_BUILD", build, "faults");
    set("LD_LIBRARY_PATH", build, c->flags & GPU ? "faults" : "faults/none");
    setenv("FAULT_REPORT", getenv("FAULT_REPORT_FILE"), 1);
    if (c->flags & SPILLS) setenv("STUB_SPILLS", "1", 1);
    if (how->fault) setenv("FAULT", how->fault, 1);
    if (c->flags & STDIN && (close(0), open("in.safetensors", O_RDONLY)) != 0) _exit(126);
    redirect(1, how->out, beside(out, ".out"));
    redirect(2, how->error, beside(error, ".err"));
    execv(program, argv);
    _exit(126);
}

static void wait_for(pid_t child, Result *result)
{
    for (int steps = 0;; steps++) {
        const pid_t ended = waitpid(child, &result->status, WNOHANG);
        if (ended == child) return;
        if (ended < 0) die("waitpid");
        if (steps > 5000 + SECONDS * 1000) {
            result->late = true;
            kill(-child, SIGKILL);
            waitpid(child, &result->status, 0);
            return;
        }
        nanosleep(&(struct timespec){0, steps < 5000 ? 100000 : 1000000}, NULL);
    }
}

Result run(const Case *c, const Folder *before, const How *how)
{
    char path[PATH];
    Result result = {0};
    lay_out(before, c->flags);
    memset(report, 0, sizeof *report);
    save(beside(path, ".out"), "", 0);
    save(beside(path, ".err"), "", 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        setpgid(0, 0);
        start(c, how);
    }
    wait_for(child, &result);
    runs++;
    result.out = load(beside(path, ".out"), &result.out_bytes);
    result.error = load(beside(path, ".err"), &result.error_bytes);
    return result;
}

void free_result(Result *result)
{
    free(result->out);
    free(result->error);
}
