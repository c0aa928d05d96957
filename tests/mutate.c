/* mutate.c: does the simulator notice? Takes emitted texts, weakens one synchronization,
 * guard or index at a time, and demands a fault, other bits between seeds or a wrong
 * result.
 *
 *     mutate SHARD SHARDS < CASES     a case a line: the arguments of `fusec run`
 *
 * Prints a line a mutant: `killed`, `survived`, or `explained` when tests/mutants.txt says
 * why it makes no difference. The same place in several cases, in a helper or in
 * kernels of one family, is one mutant: it must be noticed in one of them. A case that does
 * not run unharmed is `broken`, and the others go on. Shard 0 tells on stderr which case
 * it is at. */
#include "sim/object.h"
#include "sim_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 3, MESSAGE = 4096, SECONDS = 60, MOST_MUTANTS = 4096, LINE = 256 };

/* `find` becomes `put`; with `put` NULL the whole statement that begins so goes. */
typedef struct {
    const char *name, *find, *put;
} Rule;

static const Rule rules[] = {
    {"barrier", "__syncthreads()", NULL},
    {"barrier", "team_barrier<", NULL},
    {"warp barrier", "__syncwarp()", NULL},
    {"cluster", "cluster_wait()", NULL},
    {"fence", "async_fence()", NULL},
    {"wait", " barrier_wait(", NULL},
    {"wait", " barrier_wait_cluster(", NULL},
    {"wait", " wait_for_previous_kernel(", NULL},
    {"arrive", " barrier_arrive(", NULL},
    {"arrive", " barrier_expect(", NULL},
    {"arrive", " release(", NULL},
    {"arrive", " copies_end(", NULL},
    {"count", "barrier_init(full[threadIdx.x], 1)", "barrier_init(full[threadIdx.x], 2)"},
    {"count", "barrier_init(full, 1)", "barrier_init(full, 2)"},
    {"guard", "if (row > first_row) {", "if (true) {"},
    {"guard", "if (row > first_row) {", "if (false) {"},
    {"copy", " start(first_row)", NULL},
    {"count", "barrier_init(empty[threadIdx.x], threads / 32)",
     "barrier_init(empty[threadIdx.x], threads / 32 - 1)"},
    {"count", "barrier_init(empty[threadIdx.x], threads_per_row / 32)",
     "barrier_init(empty[threadIdx.x], threads_per_row / 32 - 1)"},
    {"count", ".landed[0], 1)", ".landed[0], 2)"},
    {"bytes", "copies_end(bytes,", "copies_end(2 * bytes,"},
    {"bytes", "(width_of<R> + ...) *", "(1 + ... + width_of<R>) *"},
    {"commit", " fetch_commit()", NULL},
    {"fetch", "fetch_wait<stages - 1>", "fetch_wait<stages>"},
    {"fetch", " fetch_wait<", NULL},
    {"parity", " rounds = 8;", " rounds = 2;"},
    {"parity", " rounds = 4;", " rounds = 1;"},
    {"parity", " rounds = 2;", " rounds = 1;"},
    {"wait", "while (!complete)", "while (false)"},
    {"send", " put_mail(", NULL},
    {"parity", "parity ^= 1", "parity ^= 0"},
    {"parity", "round++", "round += 2"},
    {"parity", "round >> 1 & 1", "round & 1"},
    {"parity", "[round & 1]", "[0]"},
    {"parity", "parity = 1;", "parity = 0;"},
    {"parity", "stage = 0, stage_parity = 0;", "stage = 0, stage_parity = 1;"},
    {"ring", "(stage + 1) % stages", "(stage + 2) % stages"},
    {"ring", "(stage + stages - 1) % stages", "stage"},
    {"ring", "int stage = 1;", "int stage = 0;"},
    {"ring", "++stage == stages", "++stage == stages - 1"},
    {"guard", "if (threadIdx.x < threads + 32) {", "if (true) {"},
    {"ring", "(stage += teams) >= stages", "(stage += teams) > stages"},
    {"ring", "stage -= stages;", "stage = 0;"},
    {"ring", "int stage = team,", "int stage = 0,"},
    {"ring", "int stage = team / stage_rows,", "int stage = 0,"},
    {"ring", "(stage += groups) >= stages", "(stage += groups) > stages"},
    {"count", "stage_rows * threads_per_row / 32)", "threads_per_row / 32)"},
    {"part", "(team / stage_rows) * gridDim.x)", "(team / stage_rows))"},
    {"part", "stage_rows + team % stage_rows", "stage_rows"},
    {"part", "stage_row = team % stage_rows", "stage_row = 0"},
    {"tail", "cta_row + stage_row < M", "cta_row + stage_row <= M"},
    {"tail", "stage_row < stage_rows &&", "stage_row < stage_rows - 1 &&"},
    {"part", "blockIdx.x + (long long)team * gridDim.x", "blockIdx.x + (long long)team"},
    {"part", "row < M; row += gridDim.x)", "row < M; row += gridDim.x * teams)"},
    {"ring", "* (stages - 1)", "* (stages - 2)"},
    {"ring", "row_step * stages)", "row_step * (stages + 1))"},
    {"ring", "row_step * s)", "row_step * (s + 1))"},
    {"tail", " < N", " <= N"},
    {"tail", " < N", " < N - 1"},
    {"tail", " < M", " <= M"},
    {"tail", " < M", " < M - 1"},
    {"tail", " < size", " <= size"},
    {"tail", "? slice_begin + slice : N", "? slice_begin + slice + 16 : N"},
    {"tail", "slice_end = slice_begin + slice;", "slice_end = slice_begin + slice + 16;"},
    {"tail", "* slice;", "* (slice - 16);"},
    {"tail", " < partials", " <= partials"},
    {"tail", " < parts", " <= parts"},
    {"tail", " < parts", " < parts - 1"},
    {"tail", " < T", " <= T"},
    {"tail", " < T", " < T - 1"},
    {"part", "blockIdx.x < over ? blockIdx.x : over", "over"},
    {"part", "each + (blockIdx.x < over)", "each + 1"},
    {"part", "each + (blockIdx.x < over)", "each"},
    {"part", "count *= parts", "count *= 1"},
    {"part", "part * teams", "0 * teams"},
    {"part", "(long long)parts * teams", "1 * teams"},
    {"part", "part * B + group", "part * B"},
    {"part", "part * B + group", "group * B + part"},
    {"part", "[p * columns", "[begin * columns"},
    {"part", "part * (long long)gridDim.x + blockIdx.x", "part * gridDim.x"},
    {"part", "alone && part == parts - 1", "alone && part == 0"},
    {"part", "alone && part == parts - 1", "part == parts - 1"},
    {"part", "begin += chunk", "begin += chunk + 1"},
    {"part", "begin ? R<T>::combine(sum, some) : some", "some"},
    {"part", "gridDim.x + blockIdx.x) * size", "gridDim.x) * size"},
    {"part", "group != held_group", "held_group < 0"},
    {"part", "++part == parts", "++part > parts"},
    {"part", "group++", "group"},
    {"part", "left--", "left"},
    {"part", "ahead_row >= T", "ahead_row > T"},
    {"part", "(&held + 1)", "(ring + stages)"},
    {"part", "s < stages - 1", "s < stages - 2"},
    {"part", "whole ? 0 : slice * chunk", "0"},
    {"part", "whole ? 0 : slice * chunk", "slice * chunk"},
    {"part", "begin + chunk < partials ? begin + chunk : partials", "partials"},
    {"early", " load(gamma_next, gamma, first_column", NULL},
    {"early", " load(gamma_next, gamma, col + step", NULL},
    {"early", "_next, gamma, col + step", "_next, gamma, col"},
    {"early", "if (t + 1 < tiles) {", "if (t + 2 < tiles) {"},
    {"guard", "if (team > 0) continue;", ""},
    {"tail", " < N ? slice_begin + slice : N", ""},
    {"tail", "(before + count * (int)sizeof(T) + 15)", "(before + count * (int)sizeof(T))"},
    {"guard", "if (col < N)", "if (true)"},
    {"guard", "if (col < slice_end)", "if (true)"},
    {"guard", "t + 1 < tiles || ", "t < tiles || "},
    {"guard", "if (!ready)", "if (false)"},
    {"guard", "if (ready)", "if (true)"},
    {"tail", "tiles * step + 16]", "tiles * step]"},
    {"tail", "row % 16 / sizeof(T)", "row % 8 / sizeof(T)"},
    {"guard", "if (has_row)", "if (true)"},
    {"pick", "if (thread_in_row == 0 && ", "if ("},
    {"pick", "if (lane == 0 && ", "if ("},
    {"pick", "_at >= 0", "_at >= -1"},
    {"pick", "_at >= slice_begin", "_at > slice_begin"},
    {"pick", "_at < N", "_at <= N"},
    {"pick", "_at < slice_end", "_at <= slice_end"},
    {"pick", "_at < slice_begin + slice", "_at <= slice_begin + slice"},
    {"pick", " i > ", " i >= "},
    {"pick", " i <= ", " i < "},
    {"pick", "_at - col", "_at - col + 1"},
    {"guard", "has_row && ", ""},
    {"window", "(col <= to", "(col < to"},
    {"window", "(col > to", "(col >= to"},
    {"window", "col + vec > from", "col + vec > from + 1"},
    {"window", "col + vec <= from", "col + vec <= from + 1"},
    {"window", "col >= from", "col > from"},
    {"window", "- 1) + 1", "- 1) + 2"},
    {"window", "to = lesser(", "to = -1 + lesser("},
    {"window", "t * step <= last", "t * step < last"},
    {"window", "t * step + n > first", "t * step + n > first + 1"},
    {"window", "if (e_outside != 0)", "if (false)"},
    {"window", "y_out[i] = y_outside", "y_out[i] = 1"},
    {"guard", "row < M)", "true)"},
    {"guard", "if (team == 0)", "if (true)"},
    {"guard", "slice == 0 && ", ""},
    {"guard", "threadIdx.x % 32 == 0", "true"},
    {"guard", "if (threadIdx.x % 32 == 0)", ""},
    {"guard", "if (threadIdx.x == 0)", ""},
    {"guard", "if (thread_in_row < row_threads)", ""},
    {"guard", "if (threadIdx.x < 32)", ""},
    {"guard", "misalignment<n>(row) == 0", "true"},
    {"guard", "misalignment<n>(row) != 0", "false"},
    {"guard", "lane < count ?", "true ?"},
    {"guard", "fmaxf(count, 1)", "count"},
    {"guard", "fmaxf(r.seen, 1)", "r.seen"},
    {"guard", "fmaxf(seen, 1)", "seen"},
    {"meet", " lane_reduce<lanes>(", NULL},
    {"meet", " r.squares += off * (off * ", NULL},
    {"meet", " squares[i] += off * (off * ", NULL},
    {"meet", " + off * (off * ", " + 0 * (off * "},
    {"meet", "(seen * quick_inverse", "(quick_inverse"},
    {"meet", " r.sum += sum", NULL},
    {"meet", " r.sum += more", NULL},
    {"meet", " r.squares += more_squares", NULL},
    {"meet", " r.seen += n", NULL},
    {"meet", " r.seen *= 2", NULL},
    {"meet", " count_row(", NULL},
    {"meet", " moments_settle(", NULL},
    {"meet", " settle_columns(", NULL},
    {"meet", "0.5f / r.seen", "1 / r.seen"},
    {"slots", "count + lane)", "lane)"},
    {"slots", "slots += 2 * count", "slots += count"},
    {"slots", "slots += 3 * count", "slots += 2 * count"},
    {"slots", " put_slot<stride>(slot, writes, sum_of(", NULL},
    {"bytes", "width_of<Moments> = 4", "width_of<Moments> = 3"},
    {"bytes", "width_of<EvenMoments> = 3", "width_of<EvenMoments> = 2"},
    {"zero", "= {};", "= {1};"},
    {"zero", " = 0;", " = 1;"},
    {"zero", "-infinity()", "0"},
};

enum { RULES = sizeof rules / sizeof *rules };

/* A mutant: a place in what the compiler prints, met in one case or many. */
typedef struct {
    uint64_t hash;
    const Rule *rule;
    bool killed;
    char label[LINE], said[LINE];
} Mutant;

typedef struct {
    SimRun *run;
    const char *text;    /* unharmed */
    const char *kernels; /* where the helpers end */
    const char *explanations;
    unsigned shard, shards;
    Mutant *mutants;
    int count;
} Hunt;

static uint64_t hash_bytes(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

static size_t harmed_length(const Rule *rule, const char *at)
{
    return rule->put ? strlen(rule->find) : strcspn(at, ";");
}

/* `text` with what stands at `at` weakened. */
static char *harm(const Rule *rule, const char *text, const char *at)
{
    const char *put = rule->put ? rule->put : " ", *rest = at + harmed_length(rule, at);
    char *out = NULL;
    if (asprintf(&out, "%.*s%s%s", (int)(at - text), text, put, rest) < 0) abort();
    return out;
}

/* The line that holds `at`, without its indentation. */
static void copy_line(const char *text, const char *at, char *line)
{
    while (at > text && at[-1] != '\n') at--;
    at += strspn(at, " ");
    snprintf(line, LINE, "%.*s", (int)strcspn(at, "\n"), at);
}

/* ---- the prelude's helpers ---- */

/* Where in the prelude a place in the text's copy of a section comes from; NULL: in a
 * section with inline PTX, which has a host twin. */
static const char *find_origin(const char *text, const char *at, const char **section)
{
    const char *prelude = object_prelude();
    for (const char *s = strstr(prelude, "//@ "); s; s = strstr(s + 1, "\n//@ ")) {
        if (*s == '\n') s++;
        const char *body = s + strcspn(s, "\n"), *end = strstr(body, "\n//@ ");
        size_t length = end ? (size_t)(end - body) : strlen(body);
        while (length > 0 && body[length - 1] == '\n') length--;
        const char *here = memmem(text, strlen(text), body, length);
        if (!here || at < here || at >= here + length) continue;
        *section = s;
        return memmem(body, length, "asm", 3) ? NULL : body + (at - here);
    }
    return NULL;
}

/* ---- one mutant ---- */

/* In a process of its own, so that nothing it does can matter to the next. */
static void try_mutant(SimRun *run, const char *prelude, const char *text, char *said)
{
    char message[MESSAGE] = "";
    alarm(SECONDS);
    SimObject *o =
        object_load_beside(prelude, text, run->kernels, run->kernel_count, message, MESSAGE);
    if (!o)
        snprintf(said, MESSAGE, "!%s", message);
    else if (!check_run(run, o, 1, SEEDS, said, MESSAGE) && !said[0])
        snprintf(said, MESSAGE, "it fails");
    else if (strcmp(said, "wrong results\n") == 0)
        said[0] = 0;
    object_free(o);
}

/* What the simulator says of it in a line; "" if it notices nothing. */
static void hunt_mutant(const Hunt *h, const char *prelude, const char *text, char *said)
{
    int status = 0;
    said[0] = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        try_mutant(h->run, prelude, text, said);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) abort();
    if (status != 0) snprintf(said, MESSAGE, "it ends with status %d", status);
    said[strcspn(said, "\n")] = 0;
}

static void hunt_kernel(const Hunt *h, const Rule *rule, const char *at, char *said)
{
    char *text = harm(rule, h->text, at);
    hunt_mutant(h, object_prelude(), text, said);
    free(text);
}

static void hunt_helper(const Hunt *h, const Rule *rule, const char *at, const char *origin,
                        char *said)
{
    char *text = harm(rule, h->text, at), *prelude = harm(rule, object_prelude(), origin);
    hunt_mutant(h, prelude, text, said);
    free(text);
    free(prelude);
}

/* ---- where a mutant is ---- */

/* "(row)": the family of the kernel that holds `at`, from the first line of the comment above it:
 * `// name (family), from ...`. Formulas stand further in. */
static void copy_family(const char *text, const char *at, char *family)
{
    const char *found = NULL;
    for (const char *s = text; (s = strstr(s, "), from ")) && s < at; s++) {
        const char *begin = s;
        while (begin > text && *begin != '\n') begin--;
        if (strncmp(begin, "\n//   ", 6) != 0) found = s;
    }
    while (found && found > text && *found != '(') found--;
    snprintf(family, LINE, "%.*s", found ? (int)strcspn(found, ")") + 1 : 0, found ? found : "");
}

/* How many places before this one in the same kernel or helper look the same. */
static int count_before(const char *begin, const char *at, const char *line)
{
    int count = 0;
    for (const char *s = begin; (s = strstr(s, line)) && s + strlen(line) <= at; s++) count++;
    return count;
}

/* `from` is where the kernels or the helper begin, in the text or the prelude. */
static Mutant *find_mutant(Hunt *h, const Rule *rule, const char *from, const char *at,
                           const char *where)
{
    char line[LINE], label[3 * LINE];
    copy_line(from, at, line);
    const char *column = at;
    while (column > from && *column != '\n') column--;
    const int before = count_before(from, at, line);
    snprintf(label, sizeof label, "%s %s [%d:%d]", where, line, before, (int)(at - column));
    uint64_t hash = hash_bytes(14695981039346656037u, label, strlen(label));
    const int number = (int)(rule - rules); /* in each shard the same */
    hash = hash_bytes(hash, (const char *)&number, sizeof number);
    for (int i = 0; i < h->count; i++)
        if (h->mutants[i].hash == hash) return &h->mutants[i];
    if (h->count == MOST_MUTANTS) abort();
    Mutant *m = &h->mutants[h->count++];
    *m = (Mutant){.hash = hash, .rule = rule};
    snprintf(m->label, LINE, "%.60s %.180s", where, line);
    return m;
}

/* By its hash, of which FNV mixes the upper half better: so shards need not have met the same
 * mutants before. */
static bool is_own(const Hunt *h, const Mutant *m)
{
    return (m->hash >> 32) % h->shards == h->shard;
}

/* ---- all ---- */

static bool is_comment(const char *text, const char *at)
{
    for (; at > text && *at != '\n'; at--)
        if (at[0] == '/' && at[1] == '/') return true;
    return false;
}

static void hunt_place(Hunt *h, const Rule *rule, const char *at, char *said)
{
    const bool kernel = at > h->kernels;
    const char *section = h->text, *origin = NULL;
    char where[LINE];
    if (kernel)
        copy_family(h->text, at, where);
    else if (!(origin = find_origin(h->text, at, &section)))
        return;
    else
        snprintf(where, LINE, "%.*s:", (int)strcspn(section + 4, "\n"), section + 4);
    Mutant *m = kernel ? find_mutant(h, rule, h->kernels, at, where)
                       : find_mutant(h, rule, section, origin, where);
    if (m->killed || !is_own(h, m)) return;
    if (kernel)
        hunt_kernel(h, rule, at, said);
    else
        hunt_helper(h, rule, at, origin, said);
    m->killed = said[0] && said[0] != '!';
    snprintf(m->said, LINE, "%.200s", said);
}

/* The last line of the kind, for helpers have some of their own. */
static const char *prelude_end(const char *text)
{
    const char *end = text;
    for (const char *s = text; (s = strstr(s, "\n#endif\n")); s++) end = s;
    return end;
}

static void hunt_case(Hunt *h, char *said)
{
    for (int i = 0; i < RULES; i++)
        for (const char *at = h->text; (at = strstr(at, rules[i].find)); at++)
            if (!is_comment(h->text, at)) hunt_place(h, &rules[i], at, said);
}

static void hunt_words(Hunt *h, const char *words, char *said)
{
    SimRun run;
    snprintf(said, MESSAGE, "there is no kernel");
    if (open_run(&run, words)) {
        h->run = &run;
        h->text = run.session.simulated.cuda;
        h->kernels = prelude_end(h->text);
        hunt_mutant(h, object_prelude(), h->text, said);
    }
    if (said[0])
        printf("broken    | %-12s | %s | %s\n", "case", words, said);
    else
        hunt_case(h, said);
    close_run(&run);
}

/* The words up to the next bar, which is passed. */
static void take_field(const char **at, char field[LINE])
{
    const size_t length = strcspn(*at, "|\n");
    snprintf(field, LINE, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == '|');
}

/* Lines of tests/mutants.txt: rule | part of the place | part of what is put there | why. */
static bool is_explained(const Hunt *h, const Mutant *m)
{
    char name[LINE], place[LINE], put[LINE];
    for (const char *at = h->explanations; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        take_field(&at, name);
        take_field(&at, place);
        take_field(&at, put);
        if (strcmp(name, m->rule->name) == 0 && strstr(m->label, place) &&
            strstr(m->rule->put ? m->rule->put : "", put))
            return true;
    }
    return false;
}

static void print_table(const Hunt *h)
{
    for (int i = 0; i < h->count; i++) {
        const Mutant *m = &h->mutants[i];
        if (!is_own(h, m) || m->said[0] == '!') continue; /* the latter does not compile */
        printf("%-9s | %-12s | %s | %s -> %s | %.160s\n",
               m->killed            ? "killed"
               : is_explained(h, m) ? "explained"
                                    : "survived",
               m->rule->name, m->label, m->rule->find, m->rule->put ? m->rule->put : "(gone)",
               m->said);
    }
}

/* A rule that no text has a place for breaks nothing. */
static void print_idle_rules(const Hunt *h)
{
    for (int r = 0; r < RULES && h->shard == 0; r++) {
        int places = 0;
        for (int i = 0; i < h->count; i++) places += h->mutants[i].rule == &rules[r];
        if (!places) printf("idle      | %-12s | %s\n", rules[r].name, rules[r].find);
    }
}

static char *read_explanations(void)
{
    enum { MOST = 1 << 16 };
    char *text = calloc(1, MOST);
    FILE *f = fopen("tests/mutants.txt", "r");
    if (f && text) text[fread(text, 1, MOST - 1, f)] = 0;
    if (f) fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    char words[4096];
    char *said = mmap(NULL, MESSAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Hunt h = {.mutants = calloc(MOST_MUTANTS, sizeof(Mutant)), .explanations = read_explanations()};
    if (argc != 3 || said == MAP_FAILED || !h.mutants || !h.explanations) return 2;
    h.shard = (unsigned)atoi(argv[1]);
    h.shards = (unsigned)atoi(argv[2]);
    for (int cases = 1; fgets(words, sizeof words, stdin); cases++) {
        words[strcspn(words, "\n")] = 0;
        if (h.shard == 0) fprintf(stderr, "%3d %s\n", cases, words);
        hunt_words(&h, words, said);
    }
    print_table(&h);
    print_idle_rules(&h);
    return 0;
}
