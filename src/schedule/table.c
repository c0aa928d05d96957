/* schedule/table.c: schedules that were measured to be faster than the model's choice, rows of a
 * text beside the target's file (targets/NAME.tuned):
 *
 *   CLASS DTYPE VECTOR FROM..TO SCHEDULE GAIN
 *
 * A class is what a kernel does for each row, whatever the graph is called: bytes of an element of
 * each input, > of each output, | of each vector that all rows share, | the reductions of each
 * phase, apart by /, those that go together joined by *, | and sums over rows; |window where a mask
 * leaves a part of each row. VECTOR is how many
 * elements a thread takes at a time; FROM and TO are columns. A schedule that does not tell all
 * keys leaves the rest to the model. GAIN is the percentage of time saved, for whoever prunes. */
#include "schedule/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_bytes(Text *out, int *count, DType dtype)
{
    text_print(out, "%s%d", (*count)++ ? "+" : "", dtype_info[dtype].bytes);
}

static void put_loads(Text *out, const Kernel *k, bool shared)
{
    int count = 0;
    for (int i = 0; i < k->load_count; i++)
        if (k->loads[i].access == ACCESS_VECTOR && is_column_vector(k, &k->loads[i]) == shared)
            put_bytes(out, &count, k->loads[i].dtype);
}

static void put_stores(Text *out, const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->store_count; i++)
        if (is_stored_row(&k->stores[i])) put_bytes(out, &count, k->stores[i].dtype);
}

static void put_phase(Text *out, const Scheduler *s, const Kernel *k, int phase)
{
    int count = 0;
    for (int i = 0; i < k->inner_count; i++) {
        const InnerReduction *r = &k->inner[i];
        if (r->phase != phase) continue;
        text_print(out, "%s%s%s",
                   !count++        ? ""
                   : r->partner.id ? "*"
                                   : "+",
                   op_info[node(s->g, r->node)->op].text,
                   reduces_part(s->g, k, r->node) ? "-part" : "");
    }
}

const char *class_of(const Scheduler *s, const Kernel *k)
{
    Text *out = text_new(s->arena);
    put_loads(out, k, false);
    text_print(out, ">");
    put_stores(out, k);
    text_print(out, "|");
    put_loads(out, k, true);
    for (int phase = 0; phase + 1 < k->phases; phase++) {
        text_print(out, phase ? "/" : "|");
        put_phase(out, s, k, phase);
    }
    text_print(out, "|%d%s%s", k->accumulator_count, k->window ? "|window" : "",
               k->kept ? " kept" : "");
    return text_string(out);
}

/* Of the first input that has rows. */
const char *row_type(const Kernel *k)
{
    for (int i = 0; i < k->load_count; i++)
        if (is_row_vector(k, &k->loads[i])) return dtype_info[k->loads[i].dtype].fuse;
    return "f32";
}

/* The next word of a line. */
static const char *next_word(const char **at, size_t *length)
{
    *at += strspn(*at, " ");
    const char *word = *at;
    *length = strcspn(word, " \n");
    *at += *length;
    return word;
}

static bool is_word(const char **at, const char *wanted)
{
    size_t length;
    const char *word = next_word(at, &length);
    return strlen(wanted) == length && !memcmp(word, wanted, length);
}

static bool is_number(const char **at, int wanted)
{
    size_t length;
    return atoi(next_word(at, &length)) == wanted;
}

static bool is_within(const char **at, int64_t columns)
{
    size_t length;
    char *end;
    const char *word = next_word(at, &length);
    const long long from = strtoll(word, &end, 10);
    return !strncmp(end, "..", 2) && from <= columns && columns <= strtoll(end + 2, NULL, 10);
}

const char *find_tuned(const Scheduler *s, const Kernel *k)
{
    const char *table = target_table(s->target);
    if (!*table) return NULL;
    const char *class = class_of(s, k), *type = row_type(k);
    const int vec = find_vector(s, k);
    for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *at = line;
        if (!is_word(&at, class) || !is_word(&at, type) || !is_number(&at, vec) ||
            !is_within(&at, column_count(s, k)))
            continue;
        size_t length;
        const char *schedule = next_word(&at, &length);
        return arena_copy(s->arena, schedule, length);
    }
    return NULL;
}

/* ---- rows ---- */

static bool has_columns(const char *word, TableRow *row)
{
    char *end;
    row->from = strtoll(word, &end, 10);
    if (strncmp(end, "..", 2) != 0) return false;
    row->to = strtoll(end + 2, &end, 10);
    return !*end && row->from > 0 && row->to >= row->from;
}

const char *read_table_row(Arena *arena, const char *line, size_t length, TableRow *row)
{
    enum { CLASS, DTYPE, VECTOR, COLUMNS, SCHEDULE, GAIN, WORDS };
    const char *words[WORDS], *at = arena_copy(arena, line, length);
    for (int i = 0; i < WORDS; i++) {
        size_t word;
        const char *begin = next_word(&at, &word);
        if (!word) return "it needs CLASS DTYPE VECTOR FROM..TO SCHEDULE GAIN";
        words[i] = arena_copy(arena, begin, word);
    }
    char *end;
    Schedule *schedules;
    int count;
    row->class = arena_format(arena, "%s %s %s", words[CLASS], words[DTYPE], words[VECTOR]);
    row->schedule = words[SCHEDULE];
    row->gain = strtod(words[GAIN], &end);
    if (*end || !isfinite(row->gain) || at[strspn(at, " ")])
        return arena_format(arena, "the gain comes after the schedule, and '%s%s' is not a number",
                            words[GAIN], at);
    if (!has_columns(words[COLUMNS], row))
        return arena_format(arena, "'%s' is not of the form FROM..TO", words[COLUMNS]);
    const char *problem = parse_schedules(arena, row->schedule, &schedules, &count);
    return problem     ? problem
           : count > 1 ? "a row of a table gives the schedule of one kernel"
                       : NULL;
}

int find_damage(Arena *arena, const char *table, const char **why)
{
    int number = 1;
    for (const char *line = table; *line; number++) {
        const size_t length = strcspn(line, "\n");
        TableRow row;
        *why = length ? read_table_row(arena, line, length, &row) : NULL;
        if (*why) return number;
        line += length + (line[length] == '\n');
    }
    return 0;
}

const char *row_of_plan(Arena *arena, const Plan *plan, int64_t *columns)
{
    const int place = main_walker(arena, plan);
    if (place < 0 || plan->analysis->part_count) return NULL;
    const Kernel *k = walker_at(arena, plan, place);
    const Scheduler s = reading_scheduler(arena, plan->analysis, &plan->target);
    *columns = column_count(&s, k);
    if (!k->inner_count || k->dynamic) return NULL;
    return arena_format(arena, "%s %s %d", class_of(&s, k), row_type(k), find_vector(&s, k));
}
