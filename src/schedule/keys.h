/* schedule/keys.h: schedules as people write them: FAMILY:key=value,... with the keys of
 * schedule/keys.def. A text has one schedule, and what it does not tell is chosen; or complete
 * ones (exact=1), of each kernel that walks rows, with + between. */
#ifndef FUSEC_SCHEDULE_KEYS_H
#define FUSEC_SCHEDULE_KEYS_H

#include "schedule/plan.h"

typedef enum {
#define KEY(name, ...) KEY_##name,
#define EXACT(name, ...) KEY_##name,
#include "schedule/keys.def"
    KEYS
} Key;

/* What is asked of a kernel. 0: not given. */
typedef struct {
    bool any; /* something is asked */
    Family family;
    union {
        struct {
#define KEY(name, ...) int name;
#define EXACT(name, ...) int name;
#include "schedule/keys.def"
        };
        int at[KEYS];
    };
} Schedule;

typedef struct {
    const char *name;
    bool exact;        /* printed in complete schedules alone */
    int plain, most;   /* the value that a complete schedule does not tell; the largest */
    const char *words; /* of the values from 1 on, apart by spaces; "": they are numbers */
    const char *meaning;
} KeyInfo;

extern const KeyInfo key_info[KEYS];

/* What a schedule's text may begin with. */
const char *const *family_words(int *count);

/* Reads all schedules of a text into the arena; a reason in the arena where it is none, else NULL.
 */
const char *parse_schedules(Arena *arena, const char *text, Schedule **schedules, int *count);
/* The value of a key, a word or a number, and the text of a schedule, in the arena. */
const char *key_value(Arena *arena, Key key, int value);
const char *schedule_text(Arena *arena, const Schedule *schedule);
#endif
