/* reserved.c: see reserved.h. */
#include "reserved.h"

#include <string.h>

/* C++ and CUDA words, functions that patterns call, and variables that every kernel has.
 */
static const char *const reserved[] = {
    "alignas",   "alignof",  "and",        "asm",
    "auto",      "bitand",   "bitor",      "bool",
    "break",     "case",     "catch",      "char",
    "class",     "compl",    "concept",    "const",
    "constexpr", "continue", "decltype",   "default",
    "delete",    "do",       "double",     "else",
    "enum",      "explicit", "export",     "extern",
    "false",     "float",    "for",        "friend",
    "goto",      "if",       "inline",     "int",
    "long",      "mutable",  "namespace",  "new",
    "noexcept",  "not",      "nullptr",    "operator",
    "or",        "private",  "protected",  "public",
    "register",  "requires", "return",     "short",
    "signed",    "sizeof",   "static",     "struct",
    "switch",    "template", "this",       "throw",
    "true",      "try",      "typedef",    "typeid",
    "typename",  "union",    "unsigned",   "using",
    "virtual",   "void",     "volatile",   "wchar_t",
    "while",     "xor",      "main",       "asm",
    "uint4",     "uint2",    "threadIdx",  "blockIdx",
    "gridDim",   "blockDim", "warpSize",   "powf",
    "pow",       "fabsf",    "fabs",       "sqrtf",
    "sqrt",      "rsqrtf",   "rsqrt",      "expf",
    "exp",       "exp2f",    "exp2",       "logf",
    "log",       "log2f",    "log2",       "log1pf",
    "log1p",     "expm1f",   "expm1",      "sinf",
    "sin",       "cosf",     "cos",        "tanhf",
    "tanh",      "erff",     "erf",        "floorf",
    "floor",     "ceilf",    "ceil",       "rintf",
    "rint",      "row",      "col",        "t",
    "i",         "lane",     "team",       "first",
    "turn",      "scratch",  "mine",       "base",
    "rows",      "columns",  "threads",    "smem",
    "ring",      "stage",    "stages",     "now",
    "ahead",     "fetch",    "next",       "held",
    "into",      "cluster",  "full",       "empty",
    "slice",     "local",    "bulk",       "begin",
    "parity",    "first_row",
    "row_step",  "exchange", "sent",       "collected",
    "last",      "last_row", "finish_row", "cta_scratch",
    "cta_turn",  "Stage",    "Columns",    "s",
    "teams",     "vec",      "tiles",      "step",
    "group",     "groups",   "boxes",      "Box",
    "news",      "rounds",   "before",     "before_row",
    "partials",  "ready",    "end",        "threads_per_row",
    "slices",    "item",     "items",      "width",
    "batch",     "sums",     "Sums",
    "p",         "y0",       "y1",         "yn",
    "j0",        "j1",       "jn",         "linux",
    "unix",      "assert",   "signbit",    "NULL"};

bool is_reserved_name(const char *name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(reserved[i], name)) return true;
    return false;
}
