/* retry_spills.c: see retry_spills.h. */
#include "retry_spills.h"

#include "candidates.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TRIES = 5 };

typedef struct {
    char *schedules[MOST_TRIES + 1]; /* malloc'ed; the first is the rules' choice */
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

/* None where the budget ends. False: out of memory. */
static bool find_leaner(const Compilation *c, Budget *budget, Leaner *leaner)
{
    jmp_buf escape;
    Arena *arena = arena_new();
    if (!arena) return false;
    arena_on_out_of_memory(arena, give_up, &escape);
    if (budget) budget->used = 0;
    arena_set_budget(arena, budget);
    if (setjmp(escape)) {
        arena_free(arena);
        return budget && budget->stopped;
    }
    Candidates found = list_leaner(arena, c->plan, MOST_TRIES);
    for (int i = 0; i < found.list.count; i++) {
        const char *schedule = found.list.data[i].schedule;
        leaner->schedules[i] = strdup(schedule          ? schedule
                                      : c->plan->advice ? c->plan->advice
                                                        : family_name(c->plan->family));
        if (!leaner->schedules[i]) arena_out_of_memory(arena);
        leaner->count++;
    }
    arena_free(arena);
    return true;
}

/* The search for one that does not spill: the request, changed for each, and what spilled so far.
 */
typedef struct {
    CompileRequest request;
    Spilling spilling[MOST_TRIES + 1];
    CountSpills *count;
    void *data;
} Attempt;

/* Compiles with one of the others. *is_leaner: it does not spill and is now *c. */
static LeanerResult try_leaner(Attempt *a, const char *schedule, Compilation *c, bool *is_leaner)
{
    a->request.schedule = schedule;
    Compilation next = compile(&a->request);
    const bool no_memory = next.out_of_memory;
    int bytes = next.status == COMPILE_OK ? a->count(a->data, &next) : SPILLS_UNKNOWN;
    *is_leaner = bytes == 0;
    compile_free(*is_leaner ? c : &next);
    if (*is_leaner)
        *c = next;
    else if (bytes > 0)
        a->spilling[a->request.spilling_count++] = (Spilling){schedule, bytes};
    return no_memory ? LEANER_OUT_OF_MEMORY : bytes == SPILLS_FAILED ? LEANER_FAILED : LEANER_DONE;
}

/* The rules' choice once more, with all that spills among what it rejected. */
static LeanerResult list_spilling(Attempt *a, Compilation *c)
{
    a->request.schedule = NULL;
    Compilation listed = compile(&a->request);
    const bool no_memory = listed.out_of_memory;
    if (listed.status == COMPILE_OK) {
        compile_free(c);
        *c = listed;
    } else {
        compile_free(&listed);
    }
    return no_memory ? LEANER_OUT_OF_MEMORY : LEANER_DONE;
}

LeanerResult compile_without_spills(const CompileRequest *request, CountSpills *count, void *data,
                                    Compilation *c, char **found)
{
    Leaner leaner = {.count = 0};
    Attempt a = {.request = *request, .count = count, .data = data};
    int bytes = count(data, c);
    *found = NULL;
    if (bytes <= 0) return bytes == SPILLS_FAILED ? LEANER_FAILED : LEANER_DONE;
    LeanerResult result =
        find_leaner(c, request->budget, &leaner) ? LEANER_DONE : LEANER_OUT_OF_MEMORY;
    a.request.spilling = a.spilling;
    if (leaner.count)
        a.spilling[a.request.spilling_count++] = (Spilling){leaner.schedules[0], bytes};
    for (int i = 1; i < leaner.count && !*found && result == LEANER_DONE; i++) {
        bool is_leaner;
        result = try_leaner(&a, leaner.schedules[i], c, &is_leaner);
        if (is_leaner) {
            *found = leaner.schedules[i];
            leaner.schedules[i] = NULL;
        }
    }
    if (result == LEANER_DONE && !*found) result = list_spilling(&a, c);
    free_leaner(&leaner);
    return result;
}
