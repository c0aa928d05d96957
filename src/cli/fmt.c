/* fmt.c: `fusec fmt` and `--emit=tokens`, which need the text of a file and no graph. */
#include "cli/fmt.h"

#include "cli/commands.h"
#include "cli/files.h"

#include <string.h>

typedef void Printer(Text *out, Arena *arena, Diagnostics *d, const Source *source);

/* Reads a file and runs a printer over it under a setjmp of its own; reports what is wrong with the
 * file. */
static int print_source(const Options *o, const char *file, Printer *printer, Source *source,
                        Text *out)
{
    int status = read_file(o->arena, file, &source->text, &source->length);
    if (status != EXIT_DONE) return status;
    source->name = strcmp(file, "-") ? file : "<stdin>";
    index_lines(o->arena, source);
    jmp_buf escape;
    Diagnostics d = {.arena = o->arena, .text = text_new(o->arena), .escape = &escape};
    if (setjmp(escape) == 0) printer(out, o->arena, &d, source);
    print_diagnostics(text_string(d.text));
    if (!d.errors) return EXIT_DONE;
    return d.machine ? EXIT_MACHINE : EXIT_WRONG;
}

int list_tokens(const Options *o, Text *out)
{
    Source source = {0};
    return print_source(o, o->files.data[0], print_tokens, &source, out);
}

static int format_file(const Options *o, const char *file)
{
    Source source = {0};
    Text *out = text_new(o->arena);
    int status = print_source(o, file, format_source, &source, out);
    if (status != EXIT_DONE) return status;
    bool same =
        out->length == source.length && !memcmp(text_string(out), source.text, source.length);
    if (o->check) {
        if (!same) remark("%s is not in the canonical formatting", source.name);
        return same ? EXIT_DONE : EXIT_WRONG;
    }
    if (o->write && same) return EXIT_DONE;
    return save_result(o->arena, o->write ? file : o->output, text_string(out), out->length);
}

/* Formats all files, even after an error in one. */
int command_fmt(Options *o)
{
    int status = EXIT_DONE;
    for (int i = 0; i < o->files.count; i++) {
        const int of_file = format_file(o, o->files.data[i]);
        if (status == EXIT_DONE) status = of_file;
    }
    return status;
}
