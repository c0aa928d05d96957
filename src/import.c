/* import.c: reads a file and all that it imports, depth first, each file once.
 *
 * A file is known by its device and inode, so that two paths to it are one file; the
 * standard library is embedded and known by its name. Paths are relative to the
 * importing file. */
#include "syntax.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char std_text[] = {
#include "std.inc"
};

static const char std_name[] = "std";

typedef struct Loaded Loaded;
struct Loaded {
    Module *module;
    struct stat identity;
    bool on_disk;
    bool finished; /* false: its imports are being read */
    Loaded *next;
};

typedef struct {
    Arena *arena;
    Diagnostics *d;
    Loaded *loaded; /* the latest first */
    Module *last;
} Importer;

static Loaded *add_loaded(Importer *im, Module *module, const struct stat *identity)
{
    Loaded *loaded = NEW(im->arena, Loaded);
    loaded->module = module;
    loaded->on_disk = identity != NULL;
    if (identity)
        loaded->identity = *identity;
    loaded->next = im->loaded;
    im->loaded = loaded;
    if (im->last)
        im->last->next = module;
    im->last = module;
    return loaded;
}

static Loaded *find_file(const Importer *im, const struct stat *identity)
{
    for (Loaded *at = im->loaded; at; at = at->next)
        if (at->on_disk && at->identity.st_dev == identity->st_dev &&
            at->identity.st_ino == identity->st_ino)
            return at;
    return NULL;
}

static Loaded *find_std(const Importer *im)
{
    for (Loaded *at = im->loaded; at; at = at->next)
        if (at->module->source->text == std_text)
            return at;
    return NULL;
}

const char *const *std_functions(Arena *arena, int *count)
{
    static const char start[] = "\nfn ";
    LIST(const char *) names = {0};
    for (const char *at = strstr(std_text, start); at; at = strstr(at + 1, start)) {
        const char *name = at + sizeof start - 1;
        *list_push(arena, &names) = arena_copy(arena, name, strcspn(name, "[("));
    }
    *count = names.count;
    return names.data;
}

static const char *relative_path(Arena *arena, const Source *from, const char *path)
{
    const char *slash = strrchr(from->name, '/');
    if (path[0] == '/' || !slash)
        return path;
    return arena_format(arena, "%.*s%s", (int)(slash + 1 - from->name), from->name, path);
}

static void report_unreadable(Importer *im, const Item *import, const char *path,
                              int error)
{
    char buffer[256];
    const char *slash = strrchr(path, '/');
    bool std = strncmp(slash ? slash + 1 : path, "std", 3) == 0;
    report_error(
        im->d, import->name.span, std ? "the standard library is: import \"std\"" : NULL,
        "cannot read '%.400s': %s", path, strerror_r(error, buffer, sizeof buffer));
    if (error != ENOENT && error != ENOTDIR && error != EISDIR && error != EINVAL)
        im->d->machine = true;
}

/* Reads until the end, which may come before or after the size that stat told. */
static bool read_stream(Importer *im, FILE *file, Source *source)
{
    Text *text = text_new(im->arena);
    char buffer[16384];
    size_t count;
    while ((count = fread(buffer, 1, sizeof buffer, file)) > 0 &&
           text->length <= INT32_MAX)
        text_put(text, buffer, count);
    source->text = text_string(text);
    source->length = text->length;
    return !ferror(file);
}

static Source *read_file(Importer *im, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    Source *source = NEW(im->arena, Source);
    source->name = path;
    bool done = read_stream(im, file, source);
    int error = errno;
    fclose(file);
    errno = error;
    return done ? source : NULL;
}

static void report_cycle(Importer *im, const Item *import, const Loaded *first)
{
    const char *through = im->loaded->module->source->name;
    for (const Loaded *at = im->loaded; at != first; at = at->next)
        if (!at->finished) {
            through = at->module->source->name;
            break;
        }
    const char *name = first->module->source->name;
    if (strcmp(through, name) == 0)
        report_error(im->d, import->span, NULL, "import cycle: '%s' imports itself",
                     name);
    else
        report_error(im->d, import->span, NULL,
                     "import cycle: '%s' imports '%s', which is importing it", through,
                     name);
}

static void load_imports(Importer *im, Loaded *loaded, int depth);

static void load_source(Importer *im, const Source *source, const struct stat *identity,
                        int depth)
{
    Module *module = parse_module(im->arena, im->d, source);
    if (!module->items && !im->d->errors)
        report_error(im->d, whole_file(source), "a program has graphs, as in graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }",
                     "the file has no graph, function or import");
    load_imports(im, add_loaded(im, module, identity), depth);
}

static void load_std(Importer *im, const Item *import, int depth)
{
    Loaded *known = find_std(im);
    if (known && !known->finished)
        report_cycle(im, import, known);
    if (known)
        return;
    Source *source = NEW(im->arena, Source);
    *source = (Source){std_name, std_text, sizeof std_text - 1};
    load_source(im, source, NULL, depth);
}

static void load_file(Importer *im, const Source *from, const Item *import, int depth)
{
    const char *path = relative_path(im->arena, from, import->name.name);
    struct stat identity;
    if (stat(path, &identity)) {
        report_unreadable(im, import, path, errno);
        return;
    }
    if (!S_ISREG(identity.st_mode)) {
        report_unreadable(im, import, path, S_ISDIR(identity.st_mode) ? EISDIR : EINVAL);
        return;
    }
    Loaded *known = find_file(im, &identity);
    if (known && !known->finished)
        report_cycle(im, import, known);
    if (known)
        return;
    Source *source = read_file(im, path);
    if (source)
        load_source(im, source, &identity, depth);
    else
        report_unreadable(im, import, path, errno);
}

static void load_imports(Importer *im, Loaded *loaded, int depth)
{
    const Module *module = loaded->module;
    for (const Item *item = module->items; item; item = item->next) {
        if (item->kind != ITEM_IMPORT)
            continue;
        if (depth >= MAX_DEPTH) {
            report_error(im->d, item->span, NULL,
                         "imports are nested too deeply (more than %d levels)",
                         MAX_DEPTH);
            stop(im->d);
        }
        if (strcmp(item->name.name, std_name) == 0)
            load_std(im, item, depth + 1);
        else
            load_file(im, module->source, item, depth + 1);
    }
    loaded->finished = true;
}

Module *parse_program(Arena *arena, Diagnostics *d, const Source *main)
{
    Importer im = {.arena = arena, .d = d};
    struct stat identity;
    bool on_disk = stat(main->name, &identity) == 0 && S_ISREG(identity.st_mode);
    load_source(&im, main, on_disk ? &identity : NULL, 0);
    Module *first = NULL;
    for (const Loaded *at = im.loaded; at; at = at->next)
        first = at->module;
    return first;
}
