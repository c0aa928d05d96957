/* plan_file.h: the contents of a saved plan's file, as bytes and back. Nothing here needs a
 * device. */
#ifndef FUSEC_PLAN_FILE_H
#define FUSEC_PLAN_FILE_H

#include "serialize.h"
#include "schedule/launch.h"

typedef struct {
    const char *arch, *cuda, *log; /* the compiler's log */
    const LaunchPlan *launch;
    const char *code;
    size_t code_bytes;
    bool is_ptx, in_place;
} PlanFile;

typedef enum { PLAN_READ, PLAN_DAMAGED, PLAN_OTHER_VERSION } PlanRead;

void plan_encode(Writer *w, const PlanFile *file);
/* Decodes any bytes. The result points into them and into the arena, and no index in it leaves its
 * table. `version` gets the version of fusec that wrote the file, where that is another one. */
PlanRead plan_decode(const char *bytes, size_t size, Arena *arena, PlanFile *file,
                     const char **version);

#endif
