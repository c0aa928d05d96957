/* tuning.c: reads and writes the tuning file, and compiles with its schedules. See tuning.h.
 *
 *     fusec tuning 1
 *     KEY <tab> ARCH <tab> SCHEDULE <tab> MICROSECONDS <tab> MICROSECONDS OF THE CHOICE WITHOUT IT
 *         <tab> DEVICE <tab> WHAT
 *
 * Empty lines and lines that begin with # have no meaning and are kept. Writers lock the directory,
 * so that none overwrites what another has added. Readers need no lock, because the file is
 * replaced as a whole. */
#include "tuning.h"

#include "analyze/analyze.h"
#include "serialize.h"
#include "library.h"
#include "reason.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char first_line[] = "fusec tuning 1\n";
enum { MAX_BYTES = 16 << 20 };

size_t tuning_path(char path[PATH_MAX])
{
    const char *chosen = secure_getenv("FUSEC_TUNING_FILE");
    const char *xdg = environment_path("XDG_CONFIG_HOME");
    const char *home = environment_path("HOME");
    int length = 0;
    if (chosen && *chosen)
        length = *chosen == '/' ? snprintf(path, PATH_MAX, "%s", chosen) : 0;
    else if (xdg)
        length = snprintf(path, PATH_MAX, "%s/fusec/tuning", xdg);
    else if (home)
        length = snprintf(path, PATH_MAX, "%s/.config/fusec/tuning", home);
    return length > 0 && length < PATH_MAX ? (size_t)length : 0;
}

/* ---- the key ---- */

static void give_up(void *escape)
{
    longjmp(*(jmp_buf *)escape, 1);
}

bool tuning_key(const Compilation *c, TuningKey *key)
{
    jmp_buf escape;
    Arena *arena = arena_new();
    if (!arena) return false;
    arena_on_out_of_memory(arena, give_up, &escape);
    if (setjmp(escape)) {
        arena_free(arena);
        return false;
    }
    /* Compiled-in sizes are part of the key, declared ones are not. */
    Graph *graph = NEW(arena, Graph);
    *graph = *c->graph;
    for (int i = 0; i < graph->axis_count; i++)
        graph->axes[i].size = c->analysis->fixed >> i & 1 ? c->sizes.of[i] : -1;
    Text *text = text_new(arena);
    print_graph(text, graph);
    XXH128_hash_t hash = XXH3_128bits(text->data, text->length);
    snprintf(key->digits, sizeof key->digits, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    arena_free(arena);
    return true;
}

/* ---- reading ---- */

/* The whole file, malloc'ed and NUL-ended; "" where there is none, or it is not a regular file. NULL:
 * it cannot be read. */
static char *read_text(const char *path, char why[FILE_WHY])
{
    struct stat about;
    size_t length;
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) return calloc(1, 1);
    char *text = file_read(AT_FDCWD, path, FILE_OF_ANYONE, MAX_BYTES, &length, why);
    return text || (errno != ENOENT && errno != ENOTDIR) ? text : calloc(1, 1);
}

enum { KEY, ARCH, SCHEDULE, US, CHOSEN_US, DEVICE, WHAT, FIELDS };

typedef struct {
    const char *text;
    size_t length;
} Field;

/* Whether a field is not empty and consists of these characters only. */
static bool consists_of(const Field *field, const char *characters)
{
    return field->length && strspn(field->text, characters) >= field->length;
}

static bool field_is(const Field *field, const char *text)
{
    return strlen(text) == field->length && memcmp(field->text, text, field->length) == 0;
}

/* The fields of an entry's line; false: it is no entry. */
static bool split_line(const char *line, size_t length, Field fields[FIELDS])
{
    const char *end = line + length;
    for (int i = 0; i < FIELDS; i++) {
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        const char *stop = tab ? tab : end;
        if (!tab != (i == FIELDS - 1)) return false;
        fields[i] = (Field){line, (size_t)(stop - line)};
        line = stop + (tab != NULL);
    }
    return fields[KEY].length == TUNING_DIGITS && consists_of(&fields[KEY], "0123456789abcdef") &&
           consists_of(&fields[ARCH], "sm_0123456789af") &&
           consists_of(&fields[SCHEDULE], "abcdefghijklmnopqrstuvwxyz_-:=,+/0123456789") &&
           consists_of(&fields[US], "0123456789.") &&
           consists_of(&fields[CHOSEN_US], "0123456789.") && fields[DEVICE].length;
}

/* Calls `visit` with each entry and its line. Returns the number of the first wrong line, 0:
 * none. */
typedef void VisitEntry(void *data, const Field fields[FIELDS], const char *line, size_t length);

static int visit_entries(const char *text, VisitEntry *visit, void *data)
{
    int number = 1;
    if (!*text) return 0;
    if (strncmp(text, first_line, sizeof first_line - 1) != 0) return 1;
    for (text += sizeof first_line - 1; *text; text += strcspn(text, "\n") + 1) {
        Field fields[FIELDS];
        size_t length = strcspn(text, "\n");
        number++;
        if (text[length] != '\n') return number; /* cut off */
        if (!length || *text == '#')
            visit(data, NULL, text, length + 1);
        else if (split_line(text, length, fields))
            visit(data, fields, text, length + 1);
        else
            return number;
    }
    return 0;
}

typedef struct {
    const TuningKey *key;
    const char *arch, *device;
    Field schedule; /* of the latest entry that is found */
} Search;

static bool is_same(const Search *s, const Field fields[FIELDS])
{
    return field_is(&fields[KEY], s->key->digits) && field_is(&fields[ARCH], s->arch) &&
           field_is(&fields[DEVICE], s->device);
}

static void find_entry(void *data, const Field fields[FIELDS], const char *line, size_t length)
{
    Search *s = data;
    (void)line;
    (void)length;
    if (fields && is_same(s, fields)) s->schedule = fields[SCHEDULE];
}

char *tuning_find(const TuningKey *key, const char *arch, const char *device, char why[TUNING_WHY])
{
    char path[PATH_MAX], reason[FILE_WHY] = "";
    Search search = {key, arch, device, {NULL, 0}};
    *why = 0;
    errno = 0;
    if (!tuning_path(path)) return NULL;
    char *text = read_text(path, reason);
    if (!text) {
        int error = errno;
        snprintf(why, TUNING_WHY, "the tuning file %.300s cannot be read (%s); going on without it",
                 path, *reason ? reason : reason_of(error));
        errno = error;
        return NULL;
    }
    int wrong = visit_entries(text, find_entry, &search);
    bool found = !wrong && search.schedule.length;
    char *schedule = found ? strndup(search.schedule.text, search.schedule.length) : NULL;
    free(text);
    errno = found && !schedule ? ENOMEM : 0;
    if (wrong)
        snprintf(why, TUNING_WHY,
                 "the tuning file %.300s is damaged at line %d; going on without it", path, wrong);
    return schedule;
}

/* ---- writing ---- */

typedef struct {
    Search search;
    Writer text;
    bool found;
} Rewrite;

/* Copies every line except the entry's own. */
static void keep_entry(void *data, const Field fields[FIELDS], const char *line, size_t length)
{
    Rewrite *r = data;
    if (fields && is_same(&r->search, fields))
        r->found = true;
    else
        put_bytes(&r->text, line, length);
}

/* False: readers would reject the line, and with it the whole file. */
static bool put_entry(Writer *w, const TuningEntry *e)
{
    char times[64];
    const size_t before = w->length;
    Field fields[FIELDS];
    snprintf(times, sizeof times, "%.3f\t%.3f", e->us, e->chosen_us);
    const char *const columns[] = {e->key.digits, e->arch, e->schedule, times, e->device, e->what};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        if (i) put_bytes(w, "\t", 1);
        put_bytes(w, columns[i], strlen(columns[i]));
    }
    put_bytes(w, "\n", 1);
    const char *line = w->data + before;
    const size_t length = w->failed ? 0 : w->length - before - 1;
    return w->failed || (!memchr(line, '\n', length) && split_line(line, length, fields));
}

/* With the directory locked: reads, changes and replaces the file. */
static bool rewrite(const char *path, const TuningEntry *entry, char why[TUNING_WHY])
{
    Rewrite r = {.search = {&entry->key, entry->arch, entry->device, {NULL, 0}}};
    char reason[FILE_WHY] = "", *text = read_text(path, reason);
    int wrong = text ? visit_entries(text, keep_entry, &r) : 0;
    bool needed = entry->schedule || r.found, ok = text && !wrong;
    bool fits = !ok || !entry->schedule || put_entry(&r.text, entry);
    errno = !fits ? EINVAL : r.text.failed ? ENOMEM : errno;
    if (ok && needed)
        ok = fits && !r.text.failed &&
             file_replace(path, first_line, sizeof first_line - 1, r.text.data, r.text.length);
    if (wrong)
        snprintf(why, TUNING_WHY,
                 "%.300s is not a tuning file (line %d): remove it, or set"
                 " FUSEC_TUNING_FILE",
                 path, wrong);
    else if (!ok)
        snprintf(why, TUNING_WHY, "cannot write %.300s: %s", path,
                 !text && *reason ? reason : reason_of(errno));
    writer_free(&r.text);
    free(text);
    return ok;
}

/* Creates the directory that `path` is in. */
static bool make_directory_of(const char *path)
{
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (!slash || slash == directory) return true;
    *slash = 0;
    return make_directories(directory);
}

static bool is_name(const void *name, const char *other)
{
    return strcmp(name, other) == 0;
}

/* Opens the directory of `path`, created if need be, locked, and without what killed writers left
 * behind; -1: that failed. Where the file system has no locks it is only opened. */
static int lock_directory(const char *path)
{
    char name[NAME_MAX + 1];
    int file = make_directory_of(path) ? file_open_directory(path, name) : -1;
    while (file >= 0 && flock(file, LOCK_EX) != 0 && errno == EINTR) continue;
    if (file >= 0) file_sweep(file, is_name, name);
    return file;
}

bool tuning_store(const TuningEntry *entry, char why[TUNING_WHY])
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat about;
    *why = 0;
    if (!tuning_path(path)) {
        snprintf(why, TUNING_WHY,
                 "no place for a tuning file: set FUSEC_TUNING_FILE to an absolute path");
        return false;
    }
    bool exists = realpath(path, real) != NULL; /* a link stays, and its target is replaced */
    if (exists) memcpy(path, real, sizeof path);
    if ((!exists && errno != ENOENT && errno != ENOTDIR) || (exists && stat(path, &about) != 0)) {
        snprintf(why, TUNING_WHY, "cannot write %.300s: %s", path, reason_of(errno));
        return false;
    }
    /* There is nothing to remove. */
    if (!entry->schedule && (!exists || !S_ISREG(about.st_mode))) return true;
    if (exists && !S_ISREG(about.st_mode)) {
        snprintf(why, TUNING_WHY, "cannot write %.300s: it is not a regular file", path);
        return false;
    }
    int directory = lock_directory(path);
    if (directory < 0) {
        snprintf(why, TUNING_WHY, "cannot write %.300s: %s", path, reason_of(errno));
        return false;
    }
    bool ok = rewrite(path, entry, why);
    close(directory);
    return ok;
}

/* ---- compiling with it ---- */

/* The text as long as a compilation lives; NULL: out of memory. */
static const char *keep_text(Compilation *c, const char *text)
{
    jmp_buf escape;
    arena_on_out_of_memory(c->arena, give_up, &escape);
    const char *kept = setjmp(escape) ? NULL : arena_copy(c->arena, text, strlen(text));
    arena_on_out_of_memory(c->arena, NULL, NULL);
    return kept;
}

/* Compiles with a schedule of the tuning file, as compile_tuned() does. */
static bool compile_with(const CompileRequest *request, const char *schedule, Compilation *c,
                         Tuned *tuned)
{
    CompileRequest again = *request;
    again.schedule = schedule;
    Compilation better = compile(&again);
    bool taken = better.status == COMPILE_OK || better.status == COMPILE_STOPPED;
    bool no_memory = better.out_of_memory;
    if (taken) tuned->schedule = keep_text(&better, schedule);
    if (taken && tuned->schedule) {
        compile_free(c);
        *c = better;
        return true;
    }
    compile_free(&better);
    if (no_memory || taken) return false;
    snprintf(tuned->warning, sizeof tuned->warning,
             "the tuning file's schedule %.200s no longer fits graph %.100s: run `fusec tune` "
             "again",
             schedule, c->graph->name);
    return true;
}

bool compile_tuned(const CompileRequest *request, const char *device, Compilation *c, Tuned *tuned)
{
    TuningKey key;
    *tuned = (Tuned){0};
    if (!tuning_key(c, &key)) return false;
    char *schedule = tuning_find(&key, request->target.arch, device, tuned->warning);
    if (!schedule) return errno != ENOMEM;
    bool ok = compile_with(request, schedule, c, tuned);
    free(schedule);
    return ok;
}
