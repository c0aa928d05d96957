/* sketch.h: a random program as data: what generate.c draws, what shrink.c takes apart,
 * and what print_sketch() writes as text. Only the compiler knows whether a sketch is a
 * valid program. */
#ifndef FUSEC_PROP_SKETCH_H
#define FUSEC_PROP_SKETCH_H

#include "graph/graph.h"

typedef enum { TERM_NAME, TERM_LITERAL, TERM_AXIS, TERM_UNARY, TERM_BINARY, TERM_CALL } TermKind;

typedef struct Term Term;
struct Term {
    TermKind kind;
    const char *text; /* the name, the literal, `index` or `size`, the operator, the callee */
    AxisSet over;     /* CALL: in brackets, 0: none; AXIS: the one */
    int count;
    Term *args[MAX_OPERANDS];
    Type type; /* what generate.c knows of its value */
    AxisSet axes;
    double low, high;
};

typedef struct {
    const char *name;
    int64_t size;
} SketchAxis;

typedef struct {
    const char *name;
    DType dtype;
    bool scalar;
    AxisSet axes;
    const char *initial; /* NULL: none */
    Term *term;          /* that reads it */
} SketchParam;

typedef struct {
    const char *name;
    Term *value;
    bool output;
    bool function; /* written as a call of a function made for it */
    DType dtype;   /* of the output; its axes are the value's */
} SketchStatement;

typedef struct {
    uint64_t seed;
    SketchAxis axes[MAX_AXES];
    int axis_count;
    LIST(SketchParam) params;
    LIST(SketchStatement) statements;
} Sketch;

enum { PRINT_PARENTHESES = 1, PRINT_INLINE = 2 };

/* The program's text. PRINT_PARENTHESES: around every operation; PRINT_INLINE: no
 * functions. Both mean the same graph as the plain text. */
const char *print_sketch(Arena *arena, const Sketch *s, const char *graph_name, int style);

#endif
