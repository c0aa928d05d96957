/* memory.c: memory, streams and events: conveniences for programs without CUDA code of their own.
 * Each is one driver call in the device's context, or plain C on the CPU device. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct fusec_event {
    fusec_device *device;
    CUevent handle;
    double moment; /* CPU device: milliseconds */
    bool recorded;
};

/* Evaluates a driver call in the device's context; `what` names it in messages. */
#define IN_CONTEXT(device, what, error, call)                                                      \
    do {                                                                                           \
        CurrentContext current_;                                                                   \
        fusec_status status_ = device_enter((device), &current_, (error));                         \
        if (status_ == FUSEC_OK)                                                                   \
            status_ = driver_check(&(device)->driver, (device)->driver.call, (what), (error));     \
        context_leave(&current_);                                                                  \
        return status_ == FUSEC_OK ? succeed(error) : status_;                                     \
    } while (0)

static fusec_status allocate_on_device(fusec_device *device, size_t bytes, CUdeviceptr *memory,
                                       fusec_error *error)
{
    IN_CONTEXT(device, "cuMemAlloc", error, cuMemAlloc(memory, bytes));
}

fusec_status fusec_alloc(fusec_device *device, size_t bytes, void **memory, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(memory, "the memory", error);
    if (!device) return fail_null(error, "the device");
    if (bytes == 0) return succeed(error);
    if (bytes > SIZE_MAX - 255)
        return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
    bytes = (bytes + 255) / 256 * 256; /* whole blocks, because kernels read rows by them */
    if (!device->cpu) {
        CUdeviceptr allocated = 0;
        fusec_status status = allocate_on_device(device, bytes, &allocated, error);
        if (status == FUSEC_OK) *memory = (void *)(uintptr_t)allocated;
        return status;
    }
    *memory = aligned_alloc(256, bytes);
    if (!*memory) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory: %zu bytes", bytes);
    return succeed(error);
}

void fusec_free(fusec_device *device, void *memory)
{
    OWN_ENVIRONMENT;
    CurrentContext current;
    if (!device || !memory) return;
    if (device->cpu) {
        free(memory);
        return;
    }
    if (device_enter(device, &current, NULL) == FUSEC_OK)
        device->driver.cuMemFree((CUdeviceptr)(uintptr_t)memory);
    context_leave(&current);
}

fusec_status fusec_copy(fusec_device *device, void *to, const void *from, size_t bytes,
                        fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!device || (bytes && (!to || !from)))
        return fail_null(error, !device ? "the device" : !to ? "the target" : "the source");
    if (bytes == 0) return succeed(error);
    if (device->cpu) {
        memmove(to, from, bytes);
        return succeed(error);
    }
    IN_CONTEXT(device, "cuMemcpy", error,
               cuMemcpy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes));
}

fusec_status fusec_copy_async(fusec_device *device, void *to, const void *from, size_t bytes,
                              fusec_stream stream, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!device || bytes == 0 || !to || !from || device->cpu)
        return fusec_copy(device, to, from, bytes, error);
    IN_CONTEXT(
        device, "cuMemcpyAsync", error,
        cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, stream));
}

fusec_status fusec_fill_async(fusec_device *device, void *memory, uint8_t value, size_t bytes,
                              fusec_stream stream, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!device || (bytes && !memory))
        return fail_null(error, device ? "the memory" : "the device");
    if (bytes == 0) return succeed(error);
    if (device->cpu) {
        memset(memory, value, bytes);
        return succeed(error);
    }
    IN_CONTEXT(device, "cuMemsetD8Async", error,
               cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, value, bytes, stream));
}

fusec_status fusec_device_synchronize(fusec_device *device, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!device) return fail_null(error, "the device");
    if (device->cpu) return succeed(error);
    IN_CONTEXT(device, "cuCtxSynchronize", error, cuCtxSynchronize());
}

/* ---- streams and events ---- */

fusec_status fusec_stream_create(fusec_device *device, fusec_stream *stream, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(stream, "the stream", error);
    if (!device) return fail_null(error, "the device");
    if (device->cpu) return succeed(error);
    IN_CONTEXT(device, "cuStreamCreate", error, cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
}

void fusec_stream_destroy(fusec_device *device, fusec_stream stream)
{
    OWN_ENVIRONMENT;
    CurrentContext current;
    if (!device || !stream || device->cpu) return;
    if (device_enter(device, &current, NULL) == FUSEC_OK) device->driver.cuStreamDestroy(stream);
    context_leave(&current);
}

static fusec_status create_handle(fusec_event *event, fusec_error *error)
{
    IN_CONTEXT(event->device, "cuEventCreate", error, cuEventCreate(&event->handle, 0));
}

fusec_status fusec_event_create(fusec_device *device, fusec_event **result, fusec_error *error)
{
    OWN_ENVIRONMENT;
    CLEAR_RESULT(result, "the event", error);
    if (!device) return fail_null(error, "the device");
    fusec_event *event = calloc(1, sizeof *event);
    if (!event) return fail(error, FUSEC_OUT_OF_MEMORY, "out of memory");
    event->device = device;
    device_retain(device);
    fusec_status status = device->cpu ? succeed(error) : create_handle(event, error);
    if (status == FUSEC_OK)
        *result = event;
    else
        fusec_event_destroy(event);
    return status;
}

static fusec_status record(const fusec_event *event, fusec_stream stream, fusec_error *error)
{
    IN_CONTEXT(event->device, "cuEventRecord", error, cuEventRecord(event->handle, stream));
}

fusec_status fusec_event_record(fusec_event *event, fusec_stream stream, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!event) return fail_null(error, "the event");
    fusec_status status = event->device->cpu ? succeed(error) : record(event, stream, error);
    if (status == FUSEC_OK) {
        event->recorded = true;
        event->moment = milliseconds_now();
    }
    return status;
}

static fusec_status wait_for(const fusec_event *event, fusec_error *error)
{
    IN_CONTEXT(event->device, "cuEventSynchronize", error, cuEventSynchronize(event->handle));
}

static fusec_status elapsed(const fusec_event *begin, const fusec_event *end, float *milliseconds,
                            fusec_error *error)
{
    IN_CONTEXT(end->device, "cuEventElapsedTime", error,
               cuEventElapsedTime(milliseconds, begin->handle, end->handle));
}

fusec_status fusec_event_elapsed(const fusec_event *begin, const fusec_event *end,
                                 double *milliseconds, fusec_error *error)
{
    OWN_ENVIRONMENT;
    if (!begin || !end || !milliseconds)
        return fail_null(error, "an event, or the place for the time,");
    if (!begin->recorded || !end->recorded)
        return fail(error, FUSEC_INVALID_ARGUMENT, "an event was not recorded");
    if (end->device->cpu) {
        *milliseconds = end->moment - begin->moment;
        return succeed(error);
    }
    float time = 0;
    fusec_status status = wait_for(end, error);
    if (status == FUSEC_OK) status = elapsed(begin, end, &time, error);
    if (status == FUSEC_OK) *milliseconds = (double)time;
    return status;
}

void fusec_event_destroy(fusec_event *event)
{
    OWN_ENVIRONMENT;
    CurrentContext current;
    if (!event) return;
    if (event->handle) {
        if (device_enter(event->device, &current, NULL) == FUSEC_OK)
            event->device->driver.cuEventDestroy(event->handle);
        context_leave(&current);
    }
    fusec_device_destroy(event->device);
    free(event);
}
