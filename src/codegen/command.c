/* codegen/command.c: the command line that prints a text again, for the head of that text. It holds
 * everything that the text depends on and nothing else, so a text does not depend on where it is
 * printed. */
#include "codegen/cuda.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static bool is_plain(const char *word)
{
    for (const char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-+=.,:/@%", *c)) return false;
    return *word != 0;
}

const char *shell_word(Arena *arena, const char *word)
{
    if (is_plain(word)) return word;
    bool control = false;
    for (const char *c = word; *c; c++) control |= iscntrl((unsigned char)*c) != 0;
    Text *quoted = text_new(arena);
    text_print(quoted, control ? "$'" : "'");
    for (const char *c = word; *c; c++) {
        if (iscntrl((unsigned char)*c))
            text_print(quoted, "\\%03o", (unsigned)(unsigned char)*c);
        else if (*c == '\'')
            text_print(quoted, control ? "\\'" : "'\\''");
        else if (*c == '\\' && control)
            text_print(quoted, "\\\\");
        else
            text_put(quoted, c, 1);
    }
    text_print(quoted, "'");
    return text_string(quoted);
}

/* A name in angle brackets stands for a text that is no file. A name that begins with a dash would
 * be read as an option, one that looks like a size as a size. */
static const char *file_word(Arena *arena, const char *file)
{
    if (*file == '<') return "-";
    bool known = *file != '-' && (strchr(file, '/') || !strchr(file, '='));
    return shell_word(arena, known ? file : arena_format(arena, "./%s", file));
}

static void put_option(Text *text, const char *option, const char *value)
{
    if (value) text_print(text, " %s %s", option, shell_word(text->arena, value));
}

const char *command_text(Arena *arena, const Plan *plan, const CommandWords *words)
{
    const Graph *g = plan->analysis->graph;
    Text *text = text_new(arena);
    text_print(text, "fusec %s", file_word(arena, words->file));
    if (words->has_several_graphs) put_option(text, "--graph", g->name);
    for (int i = 0; i < g->axis_count; i++)
        if (plan->launch.fixed >> i & 1)
            text_print(text, " %s=%" PRId64, g->axes[i].name, plan->analysis->sizes.of[i]);
    put_option(text, "--outputs", words->outputs);
    put_option(text, "--arch", plan->target.arch);
    if (plan->target.memory)
        put_option(text, "--memory", arena_format(arena, "%d", plan->target.memory));
    put_option(text, "--schedule", words->schedule);
    return text_string(text);
}
