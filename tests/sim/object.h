/* object.h: a generated text, compiled by the host's C++ compiler against sim.h and
 * loaded. */
#ifndef FUSEC_SIM_OBJECT_H
#define FUSEC_SIM_OBJECT_H

#include "abi.h"

#include <stdbool.h>

/* A __shared__ variable, at its place in a CTA's shared memory. */
typedef struct {
    char *name;
    char *kernel; /* that declares it; NULL: a device function, all kernels */
    size_t offset, size;
} SharedVariable;

enum { PLACES = 16, PLACE_TEXT = 128 };

typedef struct {
    uint32_t place;
    char text[PLACE_TEXT];
} PlaceText;

/* Memory that a launch leaves to the next one: to map it anew costs a fault a page. */
typedef struct {
    char *at;
    size_t size;
} SimRoom;

typedef struct SimObject {
    char *directory; /* the text, the headers and the object lie here */
    bool keep;       /* leave it behind */
    void *handle;
    SimLink *link;
    uintptr_t begin, end; /* where the object lies in memory */
    SharedVariable *shared;
    int shared_count;
    size_t shared_size;
    PlaceText places[PLACES]; /* those last asked for, in turn */
    int next_place;
    SimRoom stacks, smem, cells; /* of the threads and CTAs of one launch at a time */
} SimObject;

/* Compiles and loads `text`, whose kernels are named. NULL with a message when the
 * machine has no compiler or the text does not compile. With FUSEC_SIM_KEEP=DIR in the
 * environment the text and the object stay in DIR. The compiler is $CXX, else g++, else
 * clang++. */
SimObject *object_load(const char *text, const char *const *kernels, int kernel_count,
                       char *message, size_t message_size);
/* The same with another prelude in place of src/codegen/prelude/. */
SimObject *object_load_beside(const char *prelude, const char *text, const char *const *kernels,
                              int kernel_count, char *message, size_t message_size);
const char *object_prelude(void);
void object_free(SimObject *object); /* NULL allowed */

/* Source lines of a place in the object, "kernel.cu:45, from kernel.cu:80"; the text
 * lives until a dozen other places have been asked for. */
const char *object_place(SimObject *object, uint32_t place);

#endif
