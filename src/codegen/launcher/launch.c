/* ---- the same in every launcher: sizes of grids and workspaces ---- */

/* A launch. */
typedef struct {
    const Plan *plan;
    int64_t sizes[AXES];
    void *data[TENSORS];
    int64_t strides[TENSORS][AXES];
    Value scalars[SCALARS];
    char *workspace;
    size_t workspace_bytes;
    int64_t offsets[SLOTS];
    double rate; /* bytes of memory that are asked for in a ns */
    int64_t l2_bytes;
} Call;

/* a * b for numbers that are not negative; saturates. */
static int64_t multiply(int64_t a, int64_t b)
{
    return a > 0 && b > INT64_MAX / a ? INT64_MAX : a * b;
}

static int64_t product_of_sizes(const Call *call, AxisSet axes)
{
    int64_t product = 1;
    for (int i = 0; i < AXES; i++)
        if (axes >> i & 1) {
            if (call->sizes[i] == 0) return 0;
            product = multiply(product, call->sizes[i]);
        }
    return product;
}

/* Parts of a group of so many rows. */
static int64_t count_parts(const Grid *grid, int64_t rows)
{
    for (int of = 1; of <= PART_DIVISORS; of++) {
        int64_t share = grid->max_ctas / of;
        if (share > 1 && rows / share >= grid->per_cta - grid->per_cta / 8) return share;
    }
    int64_t parts = (rows - 1) / grid->per_cta + 1;
    return parts < grid->max_ctas ? parts : grid->max_ctas;
}

static int64_t count_groups(const Call *call, int kernel, int dim)
{
    const Grid *grid = &call->plan->kernels[kernel].grid[dim];
    int64_t product = product_of_sizes(call, grid->axes);
    if (product == 0) return 0;
    if (dim == PARTS_DIM && call->plan->kernels[kernel].part_groups)
        return count_parts(grid, product);
    int64_t groups = (product - 1) / grid->per_cta + 1;
    if (groups > grid->max_ctas) groups = grid->max_ctas;
    return grid->times > 1 ? multiply(groups, grid->times) : groups;
}

/* Whether the CTAs of a kernel with parts share out whole groups: a group is one part, or few CTAs
 * are idle while the others walk their last group. */
static int takes_whole_groups(const Call *call, int kernel)
{
    const Kernel *k = &call->plan->kernels[kernel];
    if (!k->part_groups) return 0;
    int64_t groups = product_of_sizes(call, k->grid[0].axes), ctas = k->grid[0].max_ctas;
    int64_t parts = count_groups(call, kernel, PARTS_DIM), last = groups % ctas;
    int64_t idle = last ? ctas - last : 0;
    return parts == 1 || (parts > 1 && idle <= groups / PARTS_SHARE);
}

static int64_t count_ctas(const Call *call, int kernel, int dim)
{
    const Kernel *k = &call->plan->kernels[kernel];
    if (k->adds_parts >= 0 && takes_whole_groups(call, k->adds_parts)) return 0;
    int64_t groups = count_groups(call, kernel, dim);
    if (k->part_groups > 0 && dim == PARTS_DIM) return groups > 0;
    if (k->part_groups == 0 || dim != 0) return dim == 0 ? multiply(groups, k->cluster) : groups;
    int64_t parts = count_groups(call, kernel, PARTS_DIM);
    if (!parts || takes_whole_groups(call, kernel)) return groups;
    int64_t items = multiply(product_of_sizes(call, k->grid[0].axes), parts);
    return items < k->part_ctas ? items : k->part_ctas;
}

/* The ns between two steps of a group with which all groups together ask for call->rate. */
static unsigned find_interval(const Call *call, int kernel)
{
    const Kernel *k = &call->plan->kernels[kernel];
    int64_t steps = product_of_sizes(call, k->grid[0].axes) / k->grid[0].per_cta;
    if (call->rate <= 0 || multiply(steps, k->step_bytes) < k->paced_from * call->l2_bytes)
        return 0;
    double ns = (double)k->step_bytes * (double)count_groups(call, kernel, 0) / call->rate;
    return ns < INT32_MAX ? (unsigned)ns : (unsigned)INT32_MAX;
}

static int64_t slot_bytes(const Call *call, const Slot *slot)
{
    int64_t elements = slot->width, few = 0;
    AxisSet grouped = 0;
    if (slot->copies_kernel >= 0) {
        const Kernel *k = &call->plan->kernels[slot->copies_kernel];
        few = k->part_groups;
        grouped = few ? slot->axes & k->grid[0].axes : 0;
        elements = multiply(elements, count_groups(call, slot->copies_kernel, slot->copies_dim));
    }
    int64_t groups = product_of_sizes(call, grouped);
    if (few && groups > few) groups = few;
    elements = multiply(elements, multiply(groups, product_of_sizes(call, slot->axes & ~grouped)));
    int64_t bytes = multiply(elements, slot->bytes);
    if (bytes > INT64_MAX - WORKSPACE_ALIGNMENT) return INT64_MAX;
    return (bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT;
}

/* Lays out the workspace; its bytes. */
static int64_t lay_out_slots(Call *call)
{
    int64_t total = 0;
    for (int i = 0; i < call->plan->slot_count; i++) {
        call->offsets[i] = total;
        int64_t bytes = slot_bytes(call, &call->plan->slots[i]);
        total = bytes > INT64_MAX - total ? INT64_MAX : total + bytes;
    }
    return total;
}

/* ---- tensors ---- */

/* Takes a tensor with the strides of all axes but its last one; 0 and NULL: dense. */
static void take_tensor(Call *call, int tensor, const void *data, const int64_t *strides)
{
    int64_t dense = 1;
    int place = -2, is_last = 1;
    for (int axis = 0; axis < AXES; axis++) place += tensors[tensor].axes >> axis & 1;
    call->data[tensor] = (void *)(uintptr_t)data;
    for (int axis = AXES - 1; axis >= 0; axis--) {
        if (!(tensors[tensor].axes >> axis & 1)) continue;
        int64_t stride = is_last || !strides ? 0 : strides[place--];
        if (stride == 0) stride = dense;
        call->strides[tensor][axis] = stride;
        dense = stride < 0 ? -multiply(-stride, call->sizes[axis])
                           : multiply(stride, call->sizes[axis]);
        is_last = 0;
    }
}

static int check_tensors(const Call *call)
{
    for (int i = 0; i < AXES; i++)
        if (call->sizes[i] < 0) return BAD_SIZE;
    for (int i = 0; i < TENSORS; i++) {
        if (!tensors[i].wanted) continue;
        int64_t elements = product_of_sizes(call, tensors[i].axes);
        if (multiply(elements, tensors[i].bytes) == INT64_MAX) return BAD_SIZE;
        if (elements > 0 && !call->data[i]) return BAD_POINTER;
        if (elements > 0 && (uintptr_t)call->data[i] % (uintptr_t)tensors[i].bytes)
            return BAD_ALIGNMENT;
    }
    return 0;
}

static int check_workspace(Call *call)
{
    int64_t bytes = lay_out_slots(call);
    if (bytes == 0) return 0;
    if (!call->workspace || (uintptr_t)call->workspace % WORKSPACE_ALIGNMENT ||
        (uint64_t)bytes > call->workspace_bytes)
        return BAD_WORKSPACE;
    return 0;
}

/* Whether one stride leads from each row of a tensor to the next, last axis first. A tensor of
 * nothing but rows is to be dense. */
static int collapse_rows(const Call *call, int tensor, AxisSet rows, int64_t *stride)
{
    AxisSet axes = tensors[tensor].axes;
    int known = !(axes & ~rows);
    int64_t next = 1;
    *stride = 0;
    for (int axis = AXES - 1; axis >= 0; axis--) {
        if (!((axes & rows) >> axis & 1) || call->sizes[axis] == 1) continue;
        int64_t own = call->strides[tensor][axis];
        if (known && own != next) return 0;
        if (!known) *stride = own;
        known = 1;
        next = own < 0 ? -multiply(-own, call->sizes[axis]) : multiply(own, call->sizes[axis]);
    }
    return 1;
}

/* Whether the elements of a tensor that has all of some axes, its last, lie side by side. */
static int is_dense_along(const Call *call, int tensor, AxisSet dense)
{
    int64_t next = 1;
    if (dense & ~tensors[tensor].axes) return 1;
    for (int axis = AXES - 1; axis >= 0; axis--) {
        if (!(dense >> axis & 1)) continue;
        if (call->sizes[axis] > 1 && call->strides[tensor][axis] != next) return 0;
        next = multiply(next, call->sizes[axis]);
    }
    return 1;
}

static int choose_entry(const Call *call, const Kernel *k)
{
    int64_t stride;
    for (int i = 0; k->entry[1].name && i < k->entry[0].arg_count; i++) {
        const Arg *arg = &k->entry[0].args[i];
        if (arg->kind == ARG_TENSOR && (!is_dense_along(call, arg->index, k->dense) ||
                                        !collapse_rows(call, arg->index, k->collapsed, &stride)))
            return 1;
    }
    return 0;
}

static Value find_value(const Call *call, const Arg *arg, AxisSet rows)
{
    Value value;
    int64_t stride;
    value.integer = 0;
    switch (arg->kind) {
    case ARG_TENSOR: value.pointer = call->data[arg->index]; break;
    case ARG_STRIDE: value.integer = call->strides[arg->index][arg->axis]; break;
    case ARG_ROW_STRIDE:
        collapse_rows(call, arg->index, rows, &stride);
        value.integer = stride;
        break;
    case ARG_SIZE: value.integer = call->sizes[arg->axis]; break;
    case ARG_ROWS:
        value.integer = product_of_sizes(call, call->plan->kernels[arg->index].collapsed);
        break;
    case ARG_SCALAR: value = call->scalars[arg->index]; break;
    case ARG_SLOT: value.pointer = call->workspace + call->offsets[arg->index]; break;
    case ARG_GRID: value.number = (int)count_groups(call, arg->index, arg->axis); break;
    case ARG_INTERVAL: value.interval = find_interval(call, arg->index); break;
    case ARG_ALONE: value.number = takes_whole_groups(call, arg->index); break;
    }
    return value;
}

/* ---- the driver ---- */

#define DRIVER_CALLS(CALL)                                                                         \
    CALL(cuCtxGetDevice)                                                                           \
    CALL(cuDeviceGetAttribute)                                                                     \
    CALL(cuGetErrorString)                                                                         \
    CALL(cuKernelSetAttribute)                                                                     \
    CALL(cuLaunchKernelEx)                                                                         \
    CALL(cuLibraryGetKernel)                                                                       \
    CALL(cuLibraryLoadData)                                                                        \
    CALL(cuStreamIsCapturing)

#ifdef FUSEC_DLOPEN
#define DRIVER_POINTER(name) static __typeof__(&name) driver_##name;
#define DRIVER_TEXT(name) #name
#define DRIVER_FIND(name)                                                                          \
    symbol = dlsym(library, DRIVER_TEXT(name));                                                    \
    if (!symbol) return NO_DRIVER;                                                                 \
    memcpy(&driver_##name, &symbol, sizeof symbol);
#define DRIVER(name) driver_##name

DRIVER_CALLS(DRIVER_POINTER)

static int open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbol;
    if (!library) return NO_DRIVER;
    DRIVER_CALLS(DRIVER_FIND)
    return 0;
}
#else
#define DRIVER(name) name

static int open_driver(void)
{
    return 0;
}
#endif

typedef struct {
    int is_known, plan;
    double rate;
    int64_t l2_bytes;
} Device;

/* All of it under the lock. Libraries belong to no context, so they are loaded once a process. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_open;
static Device devices[MAX_DEVICES];
static CUlibrary libraries[PLANS];
static CUkernel functions[PLANS][KERNELS][2];

static int attribute_of(CUdevice device, CUdevice_attribute attribute, int *value)
{
    return (int)DRIVER(cuDeviceGetAttribute)(value, attribute, device);
}

/* The newest plan that runs on a device of this capability; -1: none does. */
static int choose_plan(int capability)
{
    int best = -1;
    for (int i = 0; i < PLANS; i++) {
        int fits = plans[i].exactly ? capability == plans[i].capability
                                    : capability / 10 == plans[i].capability / 10 &&
                                          capability >= plans[i].capability;
        if (fits && (best < 0 || plans[i].capability >= plans[best].capability)) best = i;
    }
    return best;
}

static int prepare_kernel(CUkernel function, const Kernel *k, CUdevice device)
{
    int64_t smem = k->few_bytes > k->smem_bytes ? k->few_bytes : k->smem_bytes;
    int status = 0;
    if (smem > 0)
        status = (int)DRIVER(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   (int)smem, function, device);
    if (status == 0 && k->cluster > 8 && k->mailbox < 0)
        status = (int)DRIVER(cuKernelSetAttribute)(
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, function, device);
    return status;
}

static int load_plan(int index, CUdevice device)
{
    const Plan *plan = &plans[index];
    int status = 0;
    if (!libraries[index])
        status = (int)DRIVER(cuLibraryLoadData)(&libraries[index], plan->cubin, NULL, NULL, 0, NULL,
                                                NULL, 0);
    for (int k = 0; k < plan->kernel_count; k++)
        for (int e = 0; e < 2 && status == 0; e++) {
            const Entry *entry = &plan->kernels[k].entry[e];
            if (!entry->name) continue;
            CUkernel *function = &functions[index][k][e];
            status = (int)DRIVER(cuLibraryGetKernel)(function, libraries[index], entry->name);
            if (status == 0) status = prepare_kernel(*function, &plan->kernels[k], device);
        }
    return status;
}

/* With the lock held: makes a device ready at its first launch. */
static int know_device(CUdevice gpu, Device *device)
{
    int major = 0, minor = 0, clock = 0, wires = 0, l2 = 0;
    int status = attribute_of(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major);
    if (!status) status = attribute_of(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor);
    if (!status) status = attribute_of(gpu, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &clock);
    if (!status) status = attribute_of(gpu, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &wires);
    if (!status) status = attribute_of(gpu, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2);
    if (status) return status;
    device->plan = choose_plan(major * 10 + minor);
    /* kHz and bits; each wire carries two bits a clock. */
    device->rate = clock > 0 && wires > 0 ? 2.0 * clock * wires / 8 / 1e6 : 0;
    device->l2_bytes = l2;
    if (device->plan < 0) return NO_KERNEL;
    status = load_plan(device->plan, gpu);
    device->is_known = status == 0;
    return status;
}

/* The plan for the device of the current context. */
static int find_plan(Call *call, int *index)
{
    CUdevice gpu = 0;
    Device *device = NULL;
    pthread_mutex_lock(&lock);
    int status = is_open ? 0 : open_driver();
    is_open = status == 0;
    if (!status) status = (int)DRIVER(cuCtxGetDevice)(&gpu);
    if (!status && (gpu < 0 || gpu >= MAX_DEVICES)) status = NO_KERNEL;
    if (!status) device = &devices[gpu];
    if (device && !device->is_known) status = know_device(gpu, device);
    if (device && !status) {
        *index = device->plan;
        call->plan = &plans[device->plan];
        call->rate = 0.92 * device->rate;
        call->l2_bytes = device->l2_bytes;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static unsigned set_attributes(const Kernel *k, int overlaps, CUlaunchAttribute attributes[2])
{
    unsigned count = 0;
    memset(attributes, 0, 2 * sizeof *attributes);
    if (k->mailbox >= 0) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[count++].value.cooperative = 1;
    } else if (k->cluster > 1) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[count].value.clusterDim.x = (unsigned)k->cluster;
        attributes[count].value.clusterDim.y = 1;
        attributes[count++].value.clusterDim.z = 1;
    }
    if (overlaps) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    return count;
}

static int is_captured(CUstream stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return DRIVER(cuStreamIsCapturing)(stream, &capture) == CUDA_SUCCESS &&
           capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static int find_grid(const Call *call, int kernel, int64_t grid[GRID_RANK])
{
    for (int dim = 0; dim < GRID_RANK; dim++) {
        grid[dim] = count_ctas(call, kernel, dim);
        if (grid[dim] > (dim == 0 ? INT32_MAX : MAX_GRID_Y)) return BAD_GRID;
    }
    return grid[0] % call->plan->kernels[kernel].cluster ? BAD_GRID : 0;
}

/* `is_first`: no kernel of the call was launched before. In a graph that one does not overlap. */
static int launch_kernel(const Call *call, int index, CUkernel const functions_of[2], int *is_first,
                         CUstream stream)
{
    const Kernel *k = &call->plan->kernels[index];
    int64_t grid[GRID_RANK];
    int status = find_grid(call, index, grid), which = choose_entry(call, k);
    if (status || grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return status;
    const Entry *entry = &k->entry[which];
    Value values[ARGS];
    void *parameters[ARGS];
    for (int i = 0; i < entry->arg_count; i++) {
        values[i] = find_value(call, &entry->args[i], k->collapsed);
        parameters[i] = &values[i];
    }
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = (unsigned)grid[0];
    config.gridDimY = (unsigned)grid[1];
    config.gridDimZ = (unsigned)grid[2];
    config.blockDimX = (unsigned)k->threads;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes =
        (unsigned)(k->few_ctas && grid[0] <= k->few_ctas ? k->few_bytes : k->smem_bytes);
    config.hStream = stream;
    config.attrs = attributes;
    config.numAttrs =
        set_attributes(k, entry->overlaps && !(*is_first && is_captured(stream)), attributes);
    *is_first = 0;
    return (int)DRIVER(cuLaunchKernelEx)(&config, (CUfunction)functions_of[which], parameters,
                                         NULL);
}

/* Checks all of a call before its first kernel is launched. */
static int launch_call(Call *call, CUstream stream)
{
    int index = 0, is_first = 1;
    int64_t grid[GRID_RANK];
    int status = check_tensors(call);
    if (!status) status = find_plan(call, &index);
    if (!status) status = check_workspace(call);
    if (status) return status;
    for (int k = 0; k < call->plan->kernel_count && !status; k++) status = find_grid(call, k, grid);
    for (int k = 0; k < call->plan->kernel_count && !status; k++)
        status = launch_kernel(call, k, functions[index][k], &is_first, stream);
    return status;
}

/* The most that any of the plans needs. */
static size_t most_workspace(Call *call)
{
    int64_t most = 0;
    for (int i = 0; i < AXES; i++)
        if (call->sizes[i] < 0) return SIZE_MAX;
    for (int i = 0; i < PLANS; i++) {
        call->plan = &plans[i];
        int64_t bytes = lay_out_slots(call);
        if (bytes > most) most = bytes;
    }
    return most == INT64_MAX ? SIZE_MAX : (size_t)most;
}

static const char *error_text(int status)
{
    const char *text = NULL;
    switch (status) {
    case 0: return "no error";
    case BAD_POINTER: return "a tensor's pointer is NULL";
    case BAD_SIZE: return "a size is negative or too large";
    case BAD_ALIGNMENT: return "a tensor is not aligned to its elements";
    case BAD_WORKSPACE: return "the workspace is NULL, too small, or not aligned to 256 bytes";
    case NO_KERNEL: return "no kernel for this GPU: it is compiled for " ARCHITECTURES;
    case NO_DRIVER: return "no CUDA driver, or one older than 12.0";
    case BAD_GRID: return "the sizes need too large a grid";
    default: break;
    }
#ifdef FUSEC_DLOPEN
    if (!driver_cuGetErrorString) return "a CUDA error";
#endif
    return DRIVER(cuGetErrorString)((CUresult)status, &text) == CUDA_SUCCESS && text
               ? text
               : "an unknown CUDA error";
}
