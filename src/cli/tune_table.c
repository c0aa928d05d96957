/* tune_table.c: `fusec tune --table`: the row of a target's table for what was measured. A row is
 * replaced where the same columns of the same class are measured again, and goes where the model's
 * choice is as fast. */
#include "cli/tune.h"

#include "cli/files.h"
#include "file_read.h"
#include "schedule/plan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20 };
static const double LEAST_GAIN = 0.03;

typedef LIST(TableRow) Rows;

/* False: a line is no row. */
static bool parse_rows(Arena *arena, const char *path, const char *text, Rows *rows)
{
    int number = 1;
    for (const char *line = text; *line; number++) {
        const size_t length = strcspn(line, "\n");
        TableRow row;
        const char *problem = length ? read_table_row(arena, line, length, &row) : NULL;
        if (problem) {
            complain(NULL, "%s, line %d is not a row of a table: %s", path, number, problem);
            return false;
        }
        if (length) *list_push(arena, rows) = row;
        line += length + (line[length] == '\n');
    }
    return true;
}

static int by_class(const void *left, const void *right)
{
    const TableRow *a = left, *b = right;
    const int order = strcmp(a->class, b->class);
    return order ? order : (a->from > b->from) - (a->from < b->from);
}

/* Takes the columns out of the rows that have them. */
static Rows without(Arena *arena, const Rows *rows, const char *class, long long columns)
{
    Rows left = {0};
    for (int i = 0; i < rows->count; i++) {
        TableRow row = rows->data[i], rest = row;
        const bool own = !strcmp(row.class, class) && row.from <= columns && columns <= row.to;
        if (!own) *list_push(arena, &left) = row;
        row.to = columns - 1;
        rest.from = columns + 1;
        if (own && row.from <= row.to) *list_push(arena, &left) = row;
        if (own && rest.from <= rest.to) *list_push(arena, &left) = rest;
    }
    return left;
}

static const char *print_rows(Arena *arena, const Rows *rows)
{
    Text *out = text_new(arena);
    for (int i = 0; i < rows->count; i++) {
        const TableRow *row = &rows->data[i];
        text_print(out, "%s %lld..%lld %s %.1f\n", row->class, (long long)row->from,
                   (long long)row->to, row->schedule, row->gain);
    }
    return text_string(out);
}

/* The table's text, "" where there is no such file yet; NULL: `why`. */
static char *read_table(const char *path, char why[FILE_WHY])
{
    size_t length;
    if (access(path, F_OK) != 0) return strdup("");
    return file_read(AT_FDCWD, path, FILE_OF_ANYONE, MOST_BYTES, &length, why);
}

/* The rows of --table, and the class and columns of a plan. An exit status; what fails complains. */
static int open_rows(const Session *s, const Plan *plan, Rows *rows, const char **class,
                     int64_t *columns)
{
    const char *path = s->options->table;
    char why[FILE_WHY] = "out of memory";
    *class = row_of_plan(s->arena, plan, columns);
    if (!*class) {
        complain(NULL, "no row of a table decides the schedule of this graph");
        return EXIT_USAGE;
    }
    char *text = read_table(path, why);
    const bool good = text && parse_rows(s->arena, path, text, rows);
    if (!text) complain(NULL, "%s: %s", path, why);
    free(text);
    return good ? EXIT_DONE : EXIT_MACHINE;
}

int find_row(const Session *s, const Plan *plan, const char **schedule)
{
    int64_t columns;
    const char *class;
    Rows rows = {0};
    const int status = open_rows(s, plan, &rows, &class, &columns);
    for (int i = 0; i < rows.count; i++) {
        const TableRow *row = &rows.data[i];
        if (!strcmp(row->class, class) && row->from <= columns && columns <= row->to)
            *schedule = with_main_schedule(s->arena, plan, row->schedule);
    }
    return status;
}

int store_row(const Session *s, const Plan *plan, const Trial *trials, const Choice *choice)
{
    int64_t columns;
    const char *class;
    Rows rows = {0};
    const int status = open_rows(s, plan, &rows, &class, &columns);
    if (status != EXIT_DONE) return status;
    Rows kept = without(s->arena, &rows, class, columns);
    if (choice->best && choice->gain >= LEAST_GAIN)
        *list_push(s->arena, &kept) = (TableRow){
            class, columns, columns, main_schedule(s->arena, plan, trials[choice->best].schedule),
            100 * choice->gain};
    if (kept.count) qsort(kept.data, (size_t)kept.count, sizeof *kept.data, by_class);
    const char *table = print_rows(s->arena, &kept);
    return save_result(s->arena, s->options->table, table, strlen(table));
}
