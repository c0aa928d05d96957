/* saved.c: plans as files: the contents of plan_file.h, sealed with a checksum. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static const char magic[SEAL_MAGIC] = {'F', 'U', 'S', 'E', 'C', 'P', 'L', '6'};

fusec_status fusec_plan_save(const fusec_plan *plan, const char *path, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!plan || !path) return fail_null(error, plan ? "the path" : "the plan");
    if (!plan->module)
        return fail(error, FUSEC_UNSUPPORTED, "a plan of the CPU device has no machine code");
    const Code *code = &plan->module->code;
    PlanFile file = {plan->arch,  plan->cuda,           code->log,     plan->launch, code->data,
                     code->bytes, plan->module->is_ptx, plan->in_place};
    Writer w = {0};
    plan_encode(&w, &file);
    fusec_status status = FUSEC_OK;
    if (w.failed)
        status = fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    else if (!file_write_sealed(path, magic, &w))
        status = fail_errno(error, errno, path);
    writer_free(&w);
    return status == FUSEC_OK ? succeed(error) : status;
}

/* "sm_90a" runs on 9.0 alone, "sm_80" on 8.x, PTX on everything from its version on. */
static fusec_status check_arch(const fusec_device *device, const char *arch, bool is_ptx,
                               fusec_error *error)
{
    int cc = strncmp(arch, "sm_", 3) == 0 ? atoi(arch + 3) : 0;
    int own = device->info.major * 10 + device->info.minor;
    if (device->absent) return FUSEC_OK;
    bool exact = strpbrk(arch + (cc ? 3 : 0), "abcdefghijklmnopqrstuvwxyz") != NULL;
    bool fits = exact ? own == cc : own >= cc && (is_ptx || own / 10 == cc / 10);
    if (cc && fits) return FUSEC_OK;
    return fail(error, FUSEC_UNSUPPORTED, "the plan is for %.16s, %s is %s", arch,
                device->info.name, device->info.arch);
}

static fusec_status take_file(fusec_plan *plan, const PlanFile *file, fusec_error *error)
{
    plan->arch = file->arch;
    plan->in_place = file->in_place;
    plan->launch = file->launch;
    plan->cuda = file->cuda;
    fusec_status status = check_arch(plan->device, file->arch, file->is_ptx, error);
    if (status != FUSEC_OK) return status;
    Code code = {
        .data = malloc(file->code_bytes + 1), .bytes = file->code_bytes, .log = strdup(file->log)};
    if (!code.data || !code.log) {
        code_free(&code);
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    }
    memcpy(code.data, file->code, file->code_bytes + 1); /* with its NUL */
    status = module_from_code(plan->device, &code, file->is_ptx, &plan->module, error);
    return status == FUSEC_OK ? plan_attach(plan, error) : status;
}

static void give_up(void *escape)
{
    longjmp(*(jmp_buf *)escape, 1);
}

/* plan_decode(); false: the arena ran out of memory. */
static bool decode(fusec_plan *plan, const char *data, size_t bytes, PlanFile *file,
                   const char **version, PlanRead *read)
{
    jmp_buf escape;
    plan->arena = arena_new();
    if (!plan->arena) return false;
    arena_on_out_of_memory(plan->arena, give_up, &escape);
    if (setjmp(escape)) return false;
    *read = plan_decode(data, bytes, plan->arena, file, version);
    arena_on_out_of_memory(plan->arena, NULL, NULL);
    return true;
}

static fusec_status read_plan(fusec_plan *plan, const char *data, size_t bytes, fusec_error *error)
{
    PlanFile file;
    PlanRead read;
    const char *version;
    if (!decode(plan, data, bytes, &file, &version, &read))
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    switch (read) {
    case PLAN_READ: break;
    case PLAN_DAMAGED: return fail(error, FUSEC_INVALID_FILE, "the plan file is damaged");
    case PLAN_OTHER_VERSION:
        return fail(error, FUSEC_INVALID_FILE, "the plan was saved by fusec %.32s, this is %s",
                    version, FUSEC_VERSION);
    }
    return take_file(plan, &file, error);
}

static fusec_status load_plan(fusec_device *device, const char *data, size_t bytes,
                              fusec_plan **result, fusec_error *error)
{
    fusec_plan *plan = plan_new(device);
    if (!plan) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    double begin = milliseconds_now();
    fusec_status status = read_plan(plan, data, bytes, error);
    plan->milliseconds = milliseconds_now() - begin;
    plan->was_cached = true;
    if (status == FUSEC_OK)
        *result = plan;
    else
        fusec_plan_destroy(plan);
    return status;
}

fusec_status fusec_plan_load(fusec_device *device, const char *path, fusec_plan **result,
                             fusec_error *error)
{
    OWN_ENVIRONMENT;
    char *data, why[FILE_WHY];
    size_t bytes;
    CLEAR_RESULT(result, "the plan", error);
    if (!device || !path) return fail_null(error, device ? "the path" : "the device");
    if (device->cpu)
        return fail(error, FUSEC_UNSUPPORTED,
                    "the CPU device runs no machine code of a saved plan");
    Sealed sealed = file_read_sealed(AT_FDCWD, path, FILE_OF_ANYONE, magic, &data, &bytes, why);
    if (sealed == SEALED_ABSENT) return fail_errno(error, errno, path);
    if (sealed == SEALED_REFUSED)
        return fail(error, FUSEC_INVALID_FILE, "%.600s is not a plan file, or is damaged: %s", path,
                    why);
    fusec_status status = load_plan(device, data, bytes, result, error);
    free(data);
    return status == FUSEC_OK ? succeed(error) : status;
}
