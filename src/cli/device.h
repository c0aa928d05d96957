/* device.h: the CLI's side of the runtime: which architecture to compile for, machine code, and
 * statuses of the runtime as exit statuses. */
#ifndef FUSEC_CLI_DEVICE_H
#define FUSEC_CLI_DEVICE_H

#include "fusec.h"
#include "cli/options.h"

enum { DEVICE_NAME = 128 };

/* The target of --arch, else of the GPU at hand, whose name then goes to `device`, else sm_90a.
 * Complains about an unknown one. */
int choose_target(const Options *o, Target *target, char device[DEVICE_NAME]);

/* The exit status for a status of the runtime. */
int status_of(fusec_status status);
/* The same, with a complaint that has the error's message unless the status is OK. */
int finish_call(fusec_status status, const fusec_error *error);

/* Prints the runtime's warning, once: a command compiles several texts. */
void remark_warning(const fusec_binary *binary);

/* The PTX or cubin of a generated text; reports which kernels of a cubin spill. */
int emit_machine_code(const Options *o, const Target *target, const char *cuda,
                      const char *const *kernels, int kernel_count, Text *out);

#endif
