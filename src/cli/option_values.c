/* option_values.c: values on the command line: of flags, sizes of axes, scalars. */
#include "base/reserved.h"
#include "cli/options_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == 0 && errno == 0 && !isspace((unsigned char)text[0]);
}

bool parse_number(const char *text, double *value)
{
    char *end;
    errno = 0;
    if (!strcmp(text, "true") || !strcmp(text, "false")) {
        *value = text[0] == 't';
        return true;
    }
    *value = strtod(text, &end);
    bool whole = end != text && *end == 0 && !isspace((unsigned char)text[0]);
    bool large =
        whole && errno == ERANGE && (*value > 1 || *value < -1); /* not where it is near zero */
    errno = large ? ERANGE : 0;
    return whole && !large;
}

const char *split_name(Arena *arena, const char *text, const char **rest)
{
    const char *p = text;
    if (!isalpha((unsigned char)*p) && *p != '_') return NULL;
    while (isalnum((unsigned char)*p) || *p == '_') p++;
    if (*p != '=') return NULL;
    *rest = p + 1;
    return arena_copy(arena, text, (size_t)(p - text));
}

bool parse_word(const char *what, const char *text, const char *const *words, int count, int *index)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(text, words[i])) {
            *index = i;
            return true;
        }
    char hint[256] = "one of";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(hint);
        snprintf(hint + used, sizeof hint - used, "%s %s", i ? "," : "", words[i]);
    }
    complain(hint, "unknown %s '%s'", what, text);
    return false;
}

bool add_size(Options *o, const char *axis, const char *text)
{
    int64_t size;
    bool whole = *text && text[strspn(text, "0123456789")] == 0,
         list = *text && text[strspn(text, "0123456789,")] == 0;
    static const char ONE_SIZE[] =
        "a run has one size for each axis: for another size run fusec again";
    if (!parse_integer(text, &size)) {
        if (whole)
            complain(NULL, "axis %s cannot have %s elements", axis, text);
        else
            complain(
                list
                    ? ONE_SIZE
                    : arena_format(
                          o->arena,
                          "a size is a whole number, as in %s=4096; a scalar is set by --set %s=...",
                          axis, axis),
                "'%s' is not a size for axis %s", text, axis);
        return false;
    }
    if (size < 0) {
        complain(NULL, "axis %s cannot have the negative size %s", axis, text);
        return false;
    }
    for (int i = 0; i < o->sizes.count; i++)
        if (!strcmp(o->sizes.data[i].axis, axis)) {
            complain(ONE_SIZE, "axis %s is given twice", axis);
            return false;
        }
    *list_push(o->arena, &o->sizes) = (AxisSize){axis, size};
    return true;
}

static bool add_setting(Options *o, const char *text)
{
    const char *rest;
    Setting s = {.name = split_name(o->arena, text, &rest)};
    if (!s.name) {
        complain("write it as --set eps=1e-6", "'%s' is not of the form NAME=NUMBER", text);
        return false;
    }
    if (!parse_number(s.text = rest, &s.value)) {
        complain(NULL,
                 errno == ERANGE ? "'%s' is too large for scalar %s"
                                 : "'%s' is not a number for scalar %s",
                 rest, s.name);
        return false;
    }
    for (int i = 0; i < o->settings.count; i++)
        if (!strcmp(o->settings.data[i].name, s.name)) {
            complain(NULL, "scalar %s is given twice", s.name);
            return false;
        }
    *list_push(o->arena, &o->settings) = s;
    return true;
}

static bool parse_layout(Options *o, const char *flag, const char *text, int most, Layout *layout)
{
    const char *p;
    layout->name = split_name(o->arena, text, &p);
    while (layout->name && layout->count < most) {
        char *end;
        errno = 0;
        int64_t value = strtoll(p, &end, 10);
        if (end == p || errno || value < 0) break;
        layout->values[layout->count++] = value;
        if (*end == 0) return true;
        if (*end != ',') break;
        p = end + 1;
    }
    complain(most == 1 ? "write it as --offset x=3: elements, 0 or more"
                       : "write it as --stride x=576,1: elements, 0 or more",
             "%s cannot take '%s'", flag, text);
    return false;
}

static bool parse_seed(Options *o, const char *text)
{
    char *end;
    errno = 0;
    o->seed = strtoull(text, &end, 0);
    if (isdigit((unsigned char)text[0]) && *end == 0 && errno == 0) return true;
    complain("a seed is a whole number from 0", "'%s' is not a seed", text);
    return false;
}

static bool parse_sms(Options *o, const char *text)
{
    int64_t count;
    if (!parse_integer(text, &count) || count < 1 || count > 4096) {
        complain("a whole number from 1 to 4096", "--sms cannot take '%s'", text);
        return false;
    }
    o->sms = (int)count;
    return true;
}

static bool parse_memory(Options *o, const char *text)
{
    int64_t rate;
    if (!parse_integer(text, &rate) || rate < 1 || rate > 1000000) {
        complain("a whole number of GB/s from 1 to 1000000", "--memory cannot take '%s'", text);
        return false;
    }
    o->memory = (int)rate;
    return true;
}

/* One of nodes=N, seconds=S, bytes=B. */
static bool set_limit(Budget *limits, const char *name, const char *text)
{
    int64_t count = 0;
    double seconds = 0;
    const bool timed = !strcmp(name, "seconds");
    if (timed ? !parse_number(text, &seconds) || !isdigit((unsigned char)*text)
              : !parse_integer(text, &count))
        return false;
    if (timed)
        limits->seconds = seconds;
    else if (!strcmp(name, "nodes"))
        limits->nodes = count;
    else if (!strcmp(name, "bytes"))
        limits->bytes = count;
    else
        return false;
    return timed ? seconds > 0 : count > 0;
}

static bool parse_limits(Options *o, const char *text)
{
    for (const char *at = text; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        const char *rest, *name = split_name(o->arena, arena_copy(o->arena, at, length), &rest);
        at += length;
        if (name && set_limit(&o->limits, name, rest)) continue;
        complain(
            "as in --limit nodes=100000,seconds=60,bytes=1000000000: each above 0, any of them",
            "--limit cannot take '%s'", text);
        return false;
    }
    return true;
}

/* What C functions begin with. */
static bool parse_name(Options *o, const char *text)
{
    const size_t length = strlen(text);
    bool fits = length && !isdigit((unsigned char)*text) && !is_reserved_name(text);
    for (size_t i = 0; i < length; i++) fits &= isalnum((unsigned char)text[i]) || text[i] == '_';
    if (!fits)
        complain("an identifier of C, as in --name my_norm", "--name cannot take '%s'", text);
    o->name = text;
    return fits;
}

bool store_option(Options *o, Option option, const char *value)
{
    int index = 0;
    Layout layout = {0};
    switch (option) {
    case OPTION_EMIT:
        if (!parse_word("--emit kind", value, emit_words, EMIT_COUNT, &index)) return false;
        o->emit = (EmitKind)index;
        return true;
    case OPTION_DEVICE:
        o->device = value;
        return o->command == COMMAND_TUNE /* check_combination refuses all but one */
               || parse_word("device", value, device_words, DEVICE_COUNT, &index);
    case OPTION_COLOR:
        if (!parse_word("color", value, color_words, COLOUR_COUNT, &index)) return false;
        use_colour((Colour)index);
        return true;
    case OPTION_PRELUDE:
        if (!parse_word("prelude", value, prelude_words, PRELUDE_COUNT, &index)) return false;
        o->include_prelude = index == 1;
        return true;
    case OPTION_STRIDE:
        if (!parse_layout(o, "--stride", value, MAX_RANK, &layout)) return false;
        *list_push(o->arena, &o->strides) = layout;
        return true;
    case OPTION_OFFSET:
        if (!parse_layout(o, "--offset", value, 1, &layout)) return false;
        *list_push(o->arena, &o->offsets) = layout;
        return true;
    case OPTION_SET: return add_setting(o, value);
    case OPTION_SEED: return parse_seed(o, value);
    case OPTION_SMS: return parse_sms(o, value);
    case OPTION_MEMORY: return parse_memory(o, value);
    case OPTION_LIMIT: return parse_limits(o, value);
    case OPTION_GRAPH: o->graph = value; return true;
    case OPTION_ARCH: o->arch = value; return true;
    case OPTION_OUTPUTS: o->outputs = value; return true;
    case OPTION_SCHEDULE: o->schedule = value; return true;
    case OPTION_OUTPUT: o->output = value; return true;
    case OPTION_NAME: return parse_name(o, value);
    case OPTION_IN:
        if (o->in)
            complain("one file holds all inputs", "--in is given twice");
        else
            o->in = value;
        return o->in == value;
    case OPTION_OF: o->grad.of = value; return true;
    case OPTION_WRT: o->grad.wrt = value; return true;
    case OPTION_SAVE: o->grad.save = value; return true;
    case OPTION_OUT: o->out = value; return true;
    case OPTION_NO_TUNING: o->no_tuning = true; return true;
    case OPTION_FIT: o->fit = true; return true;
    case OPTION_TABLE: o->table = value; return true;
    case OPTION_CANDIDATES: o->candidates = true; return true;
    case OPTION_JSON: o->json = true; return true;
    case OPTION_VERIFY: o->verify = true; return true;
    case OPTION_WRITE: o->write = true; return true;
    case OPTION_CHECK: o->check = true; return true;
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_COUNT: break;
    }
    return true;
}
