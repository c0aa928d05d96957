/* tuning.h: the tuning file: schedules that `fusec tune` measured to be faster than what is chosen
 * without it. It is a text file with one line for each entry; people may read it and delete lines.
 *
 * An entry belongs to a graph (its simplified form, so comments and formatting do not matter), its
 * column sizes, an architecture and a device's name. Row sizes are no part of it, because a row's
 * result must not depend on its batch. */
#ifndef FUSEC_TUNING_H
#define FUSEC_TUNING_H

#include "compile.h"

#include <limits.h>

enum { TUNING_DIGITS = 32, TUNING_WHY = 512 };

typedef struct {
    char digits[TUNING_DIGITS + 1];
} TuningKey;

typedef struct {
    TuningKey key;
    const char *arch, *device;
    const char *schedule; /* as --schedule; NULL: removes the entry */
    double us, chosen_us; /* microseconds measured, and those of the choice without it */
    const char *what;     /* graph and sizes, for people */
} TuningEntry;

/* $FUSEC_TUNING_FILE, else $XDG_CONFIG_HOME/fusec/tuning, else ~/.config/fusec/tuning; its length,
 * 0 if there is no place for one. */
size_t tuning_path(char path[PATH_MAX]);

/* The key of a graph compiled at least UNTIL_ANALYSIS; false: out of memory. */
bool tuning_key(const Compilation *c, TuningKey *key);

/* The schedule of an entry, malloc'ed. NULL: there is none; `why` then says what is wrong with the
 * file, "" if nothing is, and errno is ENOMEM only where memory ran out. */
char *tuning_find(const TuningKey *key, const char *arch, const char *device, char why[TUNING_WHY]);

/* Writes an entry in place of an older one, keeping all others, through a temporary file. A damaged
 * file is left alone. False: `why` says why, and nothing has changed. */
bool tuning_store(const TuningEntry *entry, char why[TUNING_WHY]);

/* The tuning file's answer for a compilation. */
typedef struct {
    const char *schedule;     /* as long as the compilation lives; NULL: none that can be used */
    char warning[TUNING_WHY]; /* "": none */
} Tuned;

/* Takes the result of `request`. If the tuning file has a schedule for it on the device of that
 * name, compiles again with it and replaces *c. A schedule that is refused leaves *c as it was,
 * with a warning. False: out of memory, *c is as it was. */
bool compile_tuned(const CompileRequest *request, const char *device, Compilation *c, Tuned *tuned);

#endif
