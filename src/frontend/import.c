/* frontend/import.c: parses a file and everything that it imports, depth first, each file once.
 *
 * A file is known by the identity that its loader gives it, so two paths to it are one file. The
 * standard library is embedded and known by its name. */
#include "frontend/import.h"

#include "frontend/syntax.h"

#include <string.h>

static const char std_text[] = {
#include "std.inc"
};

static const char std_name[] = "std";

typedef struct Loaded Loaded;
struct Loaded {
    Module *module;
    bool finished; /* false: its imports are being read */
    Loaded *next;
};

typedef struct {
    Arena *arena;
    Diagnostics *d;
    const Imports *imports;
    Loaded *loaded; /* the latest first */
    Module *last;
    int count;    /* of import statements */
    size_t bytes; /* that were imported */
} Importer;

static Loaded *add_loaded(Importer *im, Module *module)
{
    Loaded *loaded = NEW(im->arena, Loaded);
    loaded->module = module;
    loaded->next = im->loaded;
    im->loaded = loaded;
    if (im->last) im->last->next = module;
    im->last = module;
    return loaded;
}

static Loaded *find_file(const Importer *im, const char *identity)
{
    for (Loaded *at = im->loaded; at; at = at->next)
        if (at->module->source->text != std_text && strcmp(at->module->identity, identity) == 0)
            return at;
    return NULL;
}

static Loaded *find_std(const Importer *im)
{
    for (Loaded *at = im->loaded; at; at = at->next)
        if (at->module->source->text == std_text) return at;
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

/* Reports an import that could not be read. */
static void report_import(Importer *im, const Item *import, const char *problem)
{
    const char *path = import->name.name, *slash = strrchr(path, '/');
    bool std = strncmp(slash ? slash + 1 : path, "std", 3) == 0;
    report_error(im->d, import->name.span, std ? "the standard library is: import \"std\"" : NULL,
                 "%.600s", problem);
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
        report_error(im->d, import->span, NULL, "import cycle: '%s' imports itself", name);
    else
        report_error(im->d, import->span, NULL,
                     "import cycle: '%s' imports '%s', which is importing it", through, name);
}

/* ---- what is taken for a program ---- */

/* Whether a text is UTF-8 without control characters. */
static bool is_text(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    while (at < end) {
        if (*at < 0x80 ? *at < ' ' && !strchr("\t\n\v\f\r", *at) : *at < 0xc2 || *at > 0xf4)
            return false;
        int more = *at < 0x80 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : 3;
        for (at++; more > 0; more--, at++)
            if (at >= end || (*at & 0xc0) != 0x80) return false;
    }
    return true;
}

/* Whether a text begins as a program does, or is empty but for comments. */
static bool begins_item(const char *at)
{
    static const char *const words[] = {"import", "fn", "graph"};
    while (*at == '#' || (*at && strchr(" \t\n\v\f\r", *at)))
        at += *at == '#' ? strcspn(at, "\n") : 1;
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(at, words[i], length) == 0 && at[length] &&
            strchr(" \t\n\v\f\r\"#", at[length]))
            return true;
    }
    return *at == 0;
}

/* Why a file is no program; NULL: it is one. An import may name any file, so diagnostics show no
 * lines of such a file. */
static const char *why_no_program(Importer *im, const Imported *file, const Source *source)
{
    if (!is_text(file->text, file->length))
        return arena_format(im->arena, "'%.400s' is not a .fuse program: it is not UTF-8 text",
                            source->name);
    if (!begins_item(source->text))
        return arena_format(
            im->arena,
            "'%.400s' is not a .fuse program: it does not begin with import, fn or graph",
            source->name);
    return NULL;
}

static const char *why_too_large(Importer *im, const Imported *file)
{
    im->bytes += file->length < MAX_PROGRAM_BYTES ? file->length : MAX_PROGRAM_BYTES;
    if (file->length > MAX_PROGRAM_BYTES)
        return arena_format(im->arena,
                            "'%.400s' is too large for a program: it has more than %d bytes",
                            file->name, (int)MAX_PROGRAM_BYTES);
    if (im->bytes > MAX_IMPORTED_BYTES)
        return arena_format(im->arena, "the imports have more than %d bytes in all",
                            (int)MAX_IMPORTED_BYTES);
    return NULL;
}

/* ---- loading ---- */

static void load_imports(Importer *im, Loaded *loaded, int depth);

static const Module *load_source(Importer *im, const Source *source, const char *identity,
                                 int depth)
{
    Module *module = parse_module(im->arena, im->d, source);
    if (!module->items && !im->d->errors)
        report_error(
            im->d, whole_file(source),
            "a program has graphs, as in graph g[N = 4](x : f32[N]) -> (y : f32[N]) { y = x }",
            "the file has no graph, function or import");
    module->identity = identity;
    load_imports(im, add_loaded(im, module), depth);
    return module;
}

static const Module *load_std(Importer *im, const Item *import, int depth)
{
    Loaded *known = find_std(im);
    if (known && !known->finished) report_cycle(im, import, known);
    if (known) return known->module;
    Source *source = NEW(im->arena, Source);
    *source = (Source){.name = std_name, .text = std_text, .length = sizeof std_text - 1};
    return load_source(im, source, std_name, depth);
}

/* Takes over what was loaded. */
static const Module *take_file(Importer *im, const Item *import, const Imported *file, int depth)
{
    const char *given = file->identity ? file->identity : file->name,
               *problem = why_too_large(im, file);
    Loaded *known = find_file(im, given);
    if (known && !known->finished) report_cycle(im, import, known);
    Source *source = NULL;
    char *identity = NULL;
    if (!known && !problem) {
        source = NEW(im->arena, Source);
        *source = (Source){.name = arena_copy(im->arena, file->name, strlen(file->name)),
                           .text = arena_copy(im->arena, file->text, file->length),
                           .length = file->length};
        identity = arena_copy(im->arena, given, strlen(given));
        problem = why_no_program(im, file, source);
    }
    if (im->imports->release) im->imports->release(im->imports->data);
    if (problem) report_import(im, import, problem);
    if (problem && im->bytes > MAX_IMPORTED_BYTES) stop(im->d);
    return problem ? NULL : known ? known->module : load_source(im, source, identity, depth);
}

static const Module *load_file(Importer *im, const Module *from, const Item *import, int depth)
{
    Imported file = {0};
    if (!im->imports || !im->imports->load) {
        report_error(
            im->d, import->name.span,
            "only import \"std\" is allowed; fusec_program_parse_with takes a function that finds others, fusec_program_open "
            "reads files",
            "imports are not allowed for a program given as text");
        return NULL;
    }
    switch (im->imports->load(im->imports->data, from, import->name.name, &file)) {
    case IMPORT_LOADED: return take_file(im, import, &file, depth);
    case IMPORT_NO_MEMORY: arena_out_of_memory(im->arena);
    case IMPORT_MACHINE: im->d->machine = true; break;
    case IMPORT_WRONG: break;
    }
    report_import(im, import, file.problem ? file.problem : "this import is refused");
    return NULL;
}

static void check_limits(Importer *im, const Item *import, int depth)
{
    if (depth >= MAX_DEPTH)
        report_error(im->d, import->span, NULL,
                     "imports are nested too deeply (more than %d levels)", MAX_DEPTH);
    else if (++im->count > MAX_IMPORTS)
        report_error(im->d, import->span, NULL,
                     "a program has at most %d imports, those of its imports among them",
                     MAX_IMPORTS);
    else
        return;
    stop(im->d);
}

static void load_imports(Importer *im, Loaded *loaded, int depth)
{
    const Module *module = loaded->module;
    for (Item *item = module->items; item; item = item->next) {
        if (item->kind != ITEM_IMPORT) continue;
        check_limits(im, item, depth);
        item->imported = strcmp(item->name.name, std_name) == 0
                             ? load_std(im, item, depth + 1)
                             : load_file(im, module, item, depth + 1);
    }
    loaded->finished = true;
}

Module *parse_program(Arena *arena, Diagnostics *d, const Source *main, const Imports *imports)
{
    Importer im = {.arena = arena, .d = d, .imports = imports};
    load_source(&im, main, imports && imports->identity ? imports->identity : main->name, 0);
    Module *first = NULL;
    for (const Loaded *at = im.loaded; at; at = at->next) first = at->module;
    return first;
}

/* ---- what was imported before ---- */

const Module *find_import(const Module *program, const char *identity, const char *path)
{
    for (const Module *at = program; at; at = at->next) {
        if (strcmp(at->identity, identity) != 0) continue;
        for (const Item *item = at->items; item; item = item->next)
            if (item->kind == ITEM_IMPORT && strcmp(item->name.name, path) == 0 && item->imported)
                return item->imported;
    }
    return NULL;
}

static ImportStatus load_kept(void *program, const Module *importer, const char *path,
                              Imported *imported)
{
    const Module *module = find_import(program, importer->identity, path);
    imported->problem = "this import was not there when the program was parsed";
    if (!module) return IMPORT_WRONG;
    *imported = (Imported){.text = module->source->text,
                           .length = module->source->length,
                           .name = module->source->name,
                           .identity = module->identity};
    return IMPORT_LOADED;
}

Imports kept_imports(const Module *program)
{
    return (Imports){
        .load = load_kept, .data = (void *)(uintptr_t)program, .identity = program->identity};
}
