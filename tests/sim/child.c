/* child.c: see child.h. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static ssize_t read_again(int fd, void *to, size_t size)
{
    ssize_t got;
    do got = read(fd, to, size);
    while (got < 0 && errno == EINTR);
    return got;
}

static bool wait_for(pid_t child, int *status)
{
    pid_t ended;
    do ended = waitpid(child, status, 0);
    while (ended < 0 && errno == EINTR);
    return ended == child;
}

int run_program(char *const *words, char *said, size_t size)
{
    int ends[2], status = -1;
    pid_t child;
    char rest[512];
    size_t used = 0;
    posix_spawn_file_actions_t actions;
    said[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        failed = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
        if (!failed) failed = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    for (ssize_t n; !failed && (n = read_again(ends[0], rest, sizeof rest)) > 0;) {
        const size_t kept = (size_t)n < size - 1 - used ? (size_t)n : size - 1 - used;
        memcpy(said + used, rest, kept);
        said[used += kept] = 0;
    }
    close(ends[0]);
    errno = failed;
    if (failed || !wait_for(child, &status)) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
