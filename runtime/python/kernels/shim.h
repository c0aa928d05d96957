/* shim.h: the functions of libtorch that have C linkage and stay as they are for years (torch 2.7 to
 * 2.15), declared by hand: torch's own headers are C++. They are looked up in the libraries that the
 * process has loaded, so one binary serves every torch. */
#ifndef FUSEC_TORCH_SHIM_H
#define FUSEC_TORCH_SHIM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct AtenTensorOpaque *TorchTensor;
typedef struct TorchLibraryOpaque *TorchLibrary;
/* An argument or result of an operator: a tensor's handle, or the bytes of an int64_t, double or
 * bool, low end first. */
typedef uint64_t StableValue;
/* An operator's kernel. It owns the tensors among its arguments; its results take their places. */
typedef void TorchKernel(StableValue *stack, uint64_t arguments, uint64_t results);

/* Every function that is used: NAME without aoti_torch_, and its arguments. All return 0 if they
 * succeed. */
#define TORCH_FUNCTIONS(F)                                                                         \
    F(library_init_impl,                                                                           \
      (const char *space, const char *key, const char *file, uint32_t line, TorchLibrary *made))   \
    F(library_impl, (TorchLibrary library, const char *name, TorchKernel *kernel))                 \
    F(get_data_ptr, (TorchTensor tensor, void **data))                                             \
    F(get_dim, (TorchTensor tensor, int64_t * rank))                                               \
    F(get_sizes, (TorchTensor tensor, int64_t * *sizes))                                           \
    F(get_strides, (TorchTensor tensor, int64_t * *strides))                                       \
    F(get_dtype, (TorchTensor tensor, int32_t * dtype))                                            \
    F(get_device_type, (TorchTensor tensor, int32_t * type))                                       \
    F(get_device_index, (TorchTensor tensor, int32_t * index))                                     \
    F(empty_strided, (int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,   \
                      int32_t device_type, int32_t device_index, TorchTensor *made))               \
    F(copy_, (TorchTensor to, TorchTensor from, int32_t non_blocking))                             \
    F(delete_tensor_object, (TorchTensor tensor))

/* The functions that libfusec_torch found, one set a process. */
typedef struct {
#define TORCH_MEMBER(name, arguments) int32_t(*name) arguments;
    TORCH_FUNCTIONS(TORCH_MEMBER)
#undef TORCH_MEMBER
    /* Throws a C++ exception where `condition` is false, through the kernel that calls it. */
    void (*check)(bool condition, const char *function, const char *file, uint32_t line,
                  const char *message);
    /* NULL until a tensor on a GPU needs it: only torch with CUDA has it. */
    int32_t (*get_current_cuda_stream)(int32_t device_index, void **stream);
    int32_t cpu, cuda;  /* device types */
    int32_t dtypes[11]; /* torch's number of each fusec_dtype */
} Torch;

extern Torch torch;

/* Looks all of it up; the name of what is missing, NULL: nothing. */
const char *torch_find(void);
/* False where this torch has no CUDA. */
bool torch_find_stream(void);

#endif
