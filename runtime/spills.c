/* spills.c: see spills.h. */
#include "spills.h"

#include "candidates.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 5 };

typedef struct {
    char *schedules[MOST_TRIES + 1];   /* malloc'ed; the first is the rules' choice */
    int count;
} Leaner;

static void give_up(void *escape)
{
    longjmp(*(jmp_buf *)escape, 1);
}

static void free_leaner(Leaner *leaner)
{
    for (int i = 0; i < leaner->count; i++) free(leaner->schedules[i]);
    leaner->count = 0;
}

/* None where memory runs out, or the budget. */
static void find_leaner(const Compilation *c, Budget *budget, Leaner *leaner)
{
    jmp_buf escape;
    Arena *arena = arena_new();
    leaner->count = 0;
    if (!arena)
        return;
    arena_on_out_of_memory(arena, give_up, &escape);
    if (budget) budget->used = 0;
    arena_set_budget(arena, budget);
    if (setjmp(escape)) {
        arena_free(arena);
        return;
    }
    Candidates found = list_leaner(arena, c->plan, MOST_TRIES);
    for (int i = 0; i < found.list.count; i++) {
        const char *schedule = found.list.data[i].schedule;
        leaner->schedules[i] = strdup(schedule ? schedule : c->plan->advice ? c->plan->advice : family_name(c->plan->family));
        if (!leaner->schedules[i])
            break;
        leaner->count++;
    }
    arena_free(arena);
}

/* Compiles with one of the others; true: it does not spill and is now *c. */
static bool try_leaner(CompileRequest *request, Spilling *spilling, const char *schedule,
                       CountSpills *count, void *data, Compilation *c)
{
    request->schedule = schedule;
    Compilation next = compile(request);
    int bytes = next.status == COMPILE_OK ? count(data, &next) : -1;
    Compilation *unused = bytes == 0 ? c : &next;
    compile_free(unused);
    if (bytes == 0)
        *c = next;
    else if (bytes > 0)
        spilling[request->spilling_count++] = (Spilling){schedule, bytes};
    return bytes == 0;
}

char *compile_without_spills(const CompileRequest *request, CountSpills *count, void *data,
                             Compilation *c)
{
    Spilling spilling[MOST_TRIES + 1];
    Leaner leaner;
    CompileRequest again = *request;
    char *found = NULL;
    int bytes = count(data, c);
    if (bytes <= 0)
        return NULL;
    find_leaner(c, request->budget, &leaner);
    again.spilling = spilling;
    if (leaner.count)
        spilling[again.spilling_count++] = (Spilling){leaner.schedules[0], bytes};
    for (int i = 1; i < leaner.count && !found; i++)
        if (try_leaner(&again, spilling, leaner.schedules[i], count, data, c)) {
            found = leaner.schedules[i];
            leaner.schedules[i] = NULL;
        }
    again.schedule = NULL;
    Compilation listed = found ? (Compilation){0} : compile(&again);
    if (listed.arena && listed.status == COMPILE_OK) {
        compile_free(c);
        *c = listed;
    } else if (listed.arena) {
        compile_free(&listed);
    }
    free_leaner(&leaner);
    return found;
}
