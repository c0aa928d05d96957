/* target.c: the GPUs that code is generated for, from the files of src/targets/. Each line of such
 * a file is SOURCE(key, value). The preprocessor reads the files that are compiled in; a small
 * reader reads those that are added. The special instructions (setmaxnreg, wgmma, tcgen05) of the
 * architectures with an `a` do not carry over to later ones. */
#include "target.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_SHEET(key, value) .key = value, .evidence[TARGET_KEY_##key] = EVIDENCE_DATA_SHEET,
#define ASSUMED(key, value) .key = value, .evidence[TARGET_KEY_##key] = EVIDENCE_ASSUMED,
#define MEASURED(key, value) .key = value, .evidence[TARGET_KEY_##key] = EVIDENCE_MEASURED,
#define FITTED(key, value) .key = value, .evidence[TARGET_KEY_##key] = EVIDENCE_FITTED,

/* The first GPU of an architecture stands for it. */
static const Target files[] = {
    {
#include "targets/sm80_a100.def"
    },
    {
#include "targets/sm86_rtx3090.def"
    },
    {
#include "targets/sm86_a10.def"
    },
    {
#include "targets/sm89_rtx4090.def"
    },
    {
#include "targets/sm89_l40s.def"
    },
    {
#include "targets/sm90_h100.def"
    },
    {
#include "targets/sm90_h200.def"
    },
    {
#include "targets/sm100_b200.def"
    },
    {
#include "targets/sm103_b300.def"
    },
    {
#include "targets/sm120_rtx5090.def"
    },
};

#undef DATA_SHEET
#undef ASSUMED
#undef MEASURED
#undef FITTED

static const char *const words[EVIDENCES] = {
    [EVIDENCE_DATA_SHEET] = "DATA_SHEET",
    [EVIDENCE_ASSUMED] = "ASSUMED",
    [EVIDENCE_MEASURED] = "MEASURED",
    [EVIDENCE_FITTED] = "FITTED",
};

/* Keys by kind, for the reader. */
typedef enum { KIND_NAME, KIND_LIMIT, KIND_RATE, KIND_CONSTANT } Kind;

static const struct {
    const char *name;
    Kind kind;
    size_t offset;
    int least, most;
} keys[TARGET_KEYS] = {
#define TARGET_NAME(key, meaning) {#key, KIND_NAME, offsetof(Target, key), 0, 0},
#define TARGET_LIMIT(key, least, most, meaning)                                                    \
    {#key, KIND_LIMIT, offsetof(Target, key), least, most},
#define TARGET_RATE(key, meaning) {#key, KIND_RATE, offsetof(Target, key), 0, 0},
#define TARGET_CONSTANT(key, meaning) {#key, KIND_CONSTANT, offsetof(Target, key), 0, 0},
#include "targets/keys.def"
#undef TARGET_NAME
#undef TARGET_LIMIT
#undef TARGET_RATE
#undef TARGET_CONSTANT
};

/* ---- all GPUs ---- */

/* Every GPU appears twice where its architecture has an `a`: first for the architecture without
 * it. */
enum { FILES = sizeof files / sizeof *files, MOST = 64 };
static Target known[MOST];
static const char *names[MOST], *gpus[MOST];
static int known_count, name_count, gpu_count;
static pthread_once_t is_built = PTHREAD_ONCE_INIT;

static bool is_exact(const Target *target)
{
    return target->arch[strlen(target->arch) - 1] == 'a';
}

static void list_name(const char **list, int *count, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (!strcmp(list[i], name)) return;
    list[(*count)++] = name;
}

static void know(const Target *file)
{
    for (int exact = 0; exact <= file->accelerated; exact++) {
        Target *target = &known[known_count++];
        *target = *file;
        target->file_sms = file->sms;
        if (exact) strcat(target->arch, "a");
        list_name(names, &name_count, target->arch);
    }
    list_name(gpus, &gpu_count, known[known_count - 1].gpu);
}

static void know_all(void)
{
    for (int i = 0; i < FILES; i++) know(&files[i]);
}

const Target *target_find(const char *name)
{
    const Target *found = NULL;
    pthread_once(&is_built, know_all);
    for (int i = 0; i < known_count; i++) {
        if (!found && !strcmp(known[i].arch, name)) return &known[i];
        if (!strcmp(known[i].gpu, name)) found = &known[i];
    }
    return found;
}

const char *const *target_names(int *count)
{
    pthread_once(&is_built, know_all);
    *count = name_count;
    return names;
}

const char *const *target_gpus(int *count)
{
    pthread_once(&is_built, know_all);
    *count = gpu_count;
    return gpus;
}

int target_measured(const Target *target, int *constants)
{
    int measured = 0;
    *constants = 0;
    for (int i = 0; i < TARGET_KEYS; i++) {
        if (keys[i].kind != KIND_CONSTANT) continue;
        ++*constants;
        measured += target->evidence[i] >= EVIDENCE_MEASURED;
    }
    return measured;
}

double *target_constant(Target *target, int key)
{
    return (double *)((char *)target + keys[key].offset);
}

/* ---- the GPU at hand ---- */

/* Added files come before others that are as near. */
static const Target *find_nearest(const char *arch, double rate)
{
    const Target *nearest = NULL;
    double least = 0;
    for (int i = 0; i < known_count; i++) {
        double distance = fabs(known[i].peak_rate - rate);
        bool nearer = !nearest || distance < least || (distance <= least && known[i].added);
        if (strcmp(known[i].arch, arch) || !nearer) continue;
        nearest = &known[i];
        least = distance;
    }
    return nearest;
}

void target_set_device(Target *target, int sms, double memory_rate)
{
    const double other = 1.1;
    double rate = memory_rate / sms;
    pthread_once(&is_built, know_all);
    const Target *nearest = memory_rate > 0 ? find_nearest(target->arch, rate) : NULL;
    if (nearest) *target = *nearest;
    target->sms = sms;
    if (!nearest) return;
    target->borrowed = sms != target->file_sms || rate > other * nearest->peak_rate ||
                       rate * other < nearest->peak_rate;
    target->peak_rate = rate;
    const Target *usual = target_find(target->arch);
    if (strcmp(target->gpu, usual->gpu)) target->memory = (int)(memory_rate + 0.5);
}

static int capability_of(const Target *target)
{
    return atoi(target->arch + strlen("sm_"));
}

bool target_of_device(Target *target, int cc, int sms, double memory_rate)
{
    const Target *best = NULL;
    pthread_once(&is_built, know_all);
    for (int i = 0; i < known_count; i++) {
        int candidate = capability_of(&known[i]), before = best ? capability_of(best) : 0;
        if (candidate > cc || (candidate < cc && is_exact(&known[i]))) continue;
        if (candidate > before || (candidate == before && is_exact(&known[i]) && !is_exact(best)))
            best = &known[i];
    }
    if (!best) return false;
    *target = *best;
    target_set_device(target, sms, memory_rate);
    target->borrowed |= capability_of(target) != cc;
    return true;
}

int target_cluster_sms(const Target *target, int cluster)
{
    int share = cluster <= 2   ? target->cluster2_sms
                : cluster <= 4 ? target->cluster4_sms
                : cluster <= 8 ? target->cluster8_sms
                               : target->cluster16_sms;
    int sms = target->sms * share / target->file_sms / cluster * cluster;
    return sms < cluster ? cluster : sms;
}

static int clamp(int sms, int most)
{
    return sms < 1 ? 1 : sms > most ? most : sms;
}

void target_set_sms(Target *target, int sms)
{
    const Target file = *target;
    target->sms = sms;
    target->cluster2_sms = clamp(file.cluster2_sms * sms / file.file_sms, sms);
    target->cluster4_sms = clamp(file.cluster4_sms * sms / file.file_sms, sms);
    target->cluster8_sms = clamp(file.cluster8_sms * sms / file.file_sms, sms);
    target->cluster16_sms = clamp(file.cluster16_sms * sms / file.file_sms, sms);
    target->file_sms = sms;
}

/* ---- the reader ---- */

typedef struct {
    const char *at;
    int line;
    char *why;
} Reader;

enum { WHY = 128 };

static bool fail_line(const Reader *r, const char *what, const char *of)
{
    snprintf(r->why, WHY, "line %d: %s%s%.40s%s", r->line, what, *of ? " '" : "", of,
             *of ? "'" : "");
    return false;
}

/* Spaces, newlines and comments. False: a comment has no end. */
static bool skip_blanks(Reader *r)
{
    for (;;) {
        while (*r->at && strchr(" \t\r\n", *r->at)) r->line += *r->at++ == '\n';
        if (strncmp(r->at, "/*", 2)) return true;
        const char *end = strstr(r->at + 2, "*/");
        if (!end) return fail_line(r, "a comment without an end", "");
        for (; r->at < end; r->at++) r->line += *r->at == '\n';
        r->at = end + 2;
    }
}

/* Copies up to one of `ends`, which is not consumed; trailing spaces are dropped. */
static bool take(Reader *r, const char *ends, char *to, size_t size)
{
    while (*r->at == ' ') r->at++;
    size_t length = strcspn(r->at, ends);
    const char *from = r->at;
    if (!from[length] || length == 0) return fail_line(r, "not of the form SOURCE(key, value)", "");
    r->at += length + 1;
    while (length && from[length - 1] == ' ') length--;
    if (length >= size) return fail_line(r, "too long a word", "");
    memcpy(to, from, length);
    to[length] = 0;
    return true;
}

/* A name is letters, digits and underscores. */
static bool set_name(const Reader *r, char *to, const char *value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t length = strlen(value), inner = length > 2 ? strspn(value + 1, letters) : 0;
    if (length < 3 || *value != '"' || value[length - 1] != '"' || inner != length - 2 ||
        inner >= TARGET_NAME_SIZE - 2)
        return fail_line(r, "not a name in quotes of small letters, digits and _:", value);
    memcpy(to, value + 1, inner);
    to[inner] = 0;
    return true;
}

static bool set_value(const Reader *r, Target *target, int key, const char *value)
{
    void *to = (char *)target + keys[key].offset;
    char *end;
    if (keys[key].kind == KIND_NAME) return set_name(r, to, value);
    double number = strtod(value, &end);
    if (*end || end == value) return fail_line(r, "not a number:", value);
    if (keys[key].kind == KIND_LIMIT) {
        bool fits = number >= keys[key].least && number <= keys[key].most;
        if (!fits || number != floor(number))
            return fail_line(r, "not a whole number in range:", value);
        *(int *)to = (int)number;
        return true;
    }
    if (!(number >= 1e-6 && number <= 1e12)) return fail_line(r, "out of range:", value);
    *(double *)to = number;
    return true;
}

static int find_word(const char *word)
{
    for (int i = EVIDENCE_NONE + 1; i < EVIDENCES; i++)
        if (!strcmp(words[i], word)) return i;
    return EVIDENCE_NONE;
}

static int find_key(const char *word)
{
    int key = 0;
    while (key < TARGET_KEYS && strcmp(keys[key].name, word)) key++;
    return key;
}

static bool read_lines(Reader *r, Target *target)
{
    char word[16], key[TARGET_NAME_SIZE], value[TARGET_NAME_SIZE];
    for (;;) {
        if (!skip_blanks(r)) return false;
        if (!*r->at) return true;
        if (!take(r, "(\n", word, sizeof word) || !take(r, ",\n", key, sizeof key) ||
            !take(r, ")\n", value, sizeof value))
            return false;
        int source = find_word(word), index = find_key(key);
        if (!source) return fail_line(r, "unknown source", word);
        if (index == TARGET_KEYS) return fail_line(r, "unknown key", key);
        if (!set_value(r, target, index, value)) return false;
        target->evidence[index] = (unsigned char)source;
    }
}

/* The GPU whose values stand for keys that the text lacks, as assumptions. */
static const Target *find_base(const Target *own)
{
    for (int i = 0; i < known_count; i++)
        if (!strcmp(known[i].arch, own->arch)) return &known[i];
    return NULL;
}

static void list_names(void)
{
    gpu_count = name_count = 0;
    for (int i = 0; i < known_count; i++) {
        list_name(names, &name_count, known[i].arch);
        list_name(gpus, &gpu_count, known[i].gpu);
    }
}

/* The place of the first that is dropped; that behind the last if none is. */
static int forget(const char *gpu)
{
    int kept = 0, place = -1;
    for (int i = 0; i < known_count; i++) {
        if (strcmp(known[i].gpu, gpu))
            known[kept++] = known[i];
        else if (place < 0)
            place = kept;
    }
    known_count = kept;
    return place < 0 ? kept : place;
}

/* Takes the place of what was known of that GPU: of an architecture the first is meant. */
static void know_instead(const Target *file)
{
    const int place = forget(file->gpu), others = known_count;
    know(file);
    const int added = known_count - others;
    Target own[2];
    memcpy(own, &known[others], sizeof *own * (size_t)added);
    memmove(&known[place + added], &known[place], sizeof *known * (size_t)(others - place));
    memcpy(&known[place], own, sizeof *own * (size_t)added);
    list_names();
}

/* The text is read twice: the first time to find the GPU whose values stand for missing ones. */
bool target_add(const char *text, char why[128])
{
    pthread_once(&is_built, know_all);
    Reader r = {text, 1, why}, again = r;
    Target own = {.arch = ""};
    if (!read_lines(&r, &own)) return false;
    if (!*own.gpu || !*own.arch) return fail_line(&again, "gpu or arch is missing", "");
    const Target *base = is_exact(&own) ? NULL : find_base(&own);
    if (!base) return fail_line(&again, "unknown architecture:", own.arch);
    if (strncmp(own.gpu, "sm_", 3) == 0)
        return fail_line(&again, "an architecture's name:", own.gpu);
    bool resized = own.evidence[TARGET_KEY_sms];
    int sms = own.sms;
    own = *base;
    if (resized) target_set_sms(&own, sms);
    for (int i = 0; i < TARGET_KEYS; i++) own.evidence[i] = EVIDENCE_ASSUMED;
    if (!read_lines(&again, &own)) return false;
    if (own.max_cluster & (own.max_cluster - 1))
        return fail_line(&again, "max_cluster is not a power of two", "");
    if (own.cluster2_sms > own.sms || own.cluster4_sms > own.sms || own.cluster8_sms > own.sms ||
        own.cluster16_sms > own.sms)
        return fail_line(&again, "clusters on more SMs than the GPU has", "");
    own.added = true;
    if (known_count + 2 > MOST) return fail_line(&again, "too many targets", "");
    know_instead(&own);
    return true;
}

/* ---- tables ---- */

#include "tables.inc"

enum { MOST_TABLES = 16, NAME = 32 };
static struct {
    char gpu[NAME];
    char *rows;
} added_tables[MOST_TABLES];
static int added_count;

const char *target_table(const Target *target)
{
    if (target->no_table) return "";
    for (int i = 0; i < added_count; i++)
        if (!strcmp(added_tables[i].gpu, target->gpu)) return added_tables[i].rows;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!strcmp(tables[i].gpu, target->gpu)) return tables[i].rows;
    return "";
}

bool target_add_table(const char *gpu, const char *rows)
{
    int at = 0;
    while (at < added_count && strcmp(added_tables[at].gpu, gpu)) at++;
    if (at == MOST_TABLES || strlen(gpu) >= NAME) return false;
    char *own = strdup(rows);
    if (!own) return false;
    free(added_tables[at].rows);
    strcpy(added_tables[at].gpu, gpu);
    added_tables[at].rows = own;
    if (at == added_count) added_count++;
    return true;
}

/* ---- the writer ---- */

/* A number, without an exponent where it is whole. */
static const char *plain_number(char digits[NUMBER_DIGITS], double value)
{
    enum { WHOLE = 1000000000 };
    if (value == floor(value) && value < WHOLE)
        snprintf(digits, NUMBER_DIGITS, "%.0f", value);
    else
        shortest_digits(digits, value, false);
    return digits;
}

static void print_key(Text *out, const Target *target, int key)
{
    const char *from = (const char *)target + keys[key].offset;
    char digits[NUMBER_DIGITS];
    text_print(out, "%s(%s, ", words[target->evidence[key]], keys[key].name);
    if (key == TARGET_KEY_arch)
        text_print(out, "\"%.*s\"", (int)strcspn(from, "a"), from);
    else if (keys[key].kind == KIND_NAME)
        text_print(out, "\"%s\"", from);
    else if (keys[key].kind == KIND_LIMIT)
        text_print(out, "%d", *(const int *)from);
    else
        text_print(out, "%s", plain_number(digits, *(const double *)from));
    text_print(out, ")\n");
}

void print_target(Text *out, const Target *target)
{
    for (int key = 0; key < TARGET_KEYS; key++) print_key(out, target, key);
}
