/* fuzz_table.c: libFuzzer target for the reader of tables of measured schedules (.tuned).
 *
 * Whatever a table holds: the first line that is no row is told, with a reason; a line that is one
 * has columns, a schedule and a finite gain, and written anew from its parts is the same row. */
#include "base/arena.h"
#include "demand.h"
#include "schedule/plan.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(Arena *arena, const TableRow *row)
{
    TableRow again;
    demand(row->from > 0 && row->to >= row->from, "a row without columns");
    demand(*row->class && *row->schedule, "a row without a class or a schedule");
    demand(isfinite(row->gain), "a gain that is no number");
    const char *line =
        arena_format(arena, "%s %lld..%lld %s %.17g", row->class, (long long)row->from,
                     (long long)row->to, row->schedule, row->gain);
    demand(!read_table_row(arena, line, strlen(line), &again), "a row that cannot be read again");
    demand(!strcmp(again.class, row->class) && !strcmp(again.schedule, row->schedule) &&
               again.from == row->from && again.to == row->to && again.gain == row->gain,
           "a row that is another when it is read again");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    const char *table = arena_copy(arena, size ? (const char *)data : "", size), *why = NULL;
    const int damaged = find_damage(arena, table, &why);
    demand(!damaged || (why && *why), "damage without a reason");
    int number = 1;
    for (const char *line = table; *line && number != damaged; number++) {
        const size_t length = strcspn(line, "\n");
        TableRow row;
        if (length) {
            demand(!read_table_row(arena, line, length, &row), "damage that was not told");
            check_row(arena, &row);
        }
        line += length + (line[length] == '\n');
    }
    arena_free(arena);
    return 0;
}
