// amax for sm_90a, by fusec 0.3.0:
//   fusec amax.fuse N=512 --arch sm_90a --prelude include
#include "fusec.cuh"

// amax (column), from amax.fuse:1-4
//   max_1_partial = max[M, N](abs(x)), over the rows of this CTA
//
// launch         1 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(ceil(M / 8), 1056), 1)
// block          128 threads
// shared memory  8192 bytes, dynamic
// registers      at most 64 a thread, for 8 CTAs an SM
// rows           a CTA walks 8 at a time, from blockIdx.x * 8, + gridDim.x * 8, ...; its sums over
//                rows stay in registers
// columns        16 threads a row, each with 4 tiles of 8 adjacent columns, 128 apart
// arguments      x_M: stride, in elements
// workspace      max_1_partial: f32[1] for each CTA of amax
extern "C" __global__ __launch_bounds__(128, 8)
void amax(
    const bf16 *__restrict__ x, long long x_M,
    float *__restrict__ max_1_partial,
    long long M) {
    constexpr int N = 512;
    constexpr int threads_per_row = 16, teams = 8, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 4, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    float column_max = -infinity();
    const long long first_row = (long long)blockIdx.x * teams;
    const long long row_step = (long long)gridDim.x * teams;

    // a row goes on to registers at once, and the next one to be copied takes its stage
    constexpr int stages = 1;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step>(into.x, x + row * x_M, first_column, N);
        }
        fetch_commit();
    };
    Stage &current = ring[0];
    fetch(current, first_row + team);
    #pragma unroll 1
    for (long long cta_row = first_row; cta_row < M; cta_row += row_step) {
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        // a team without a row reads the first team's, and stores nothing
        const bool has_row = cta_row + team < M;
        const long long row = has_row ? cta_row + team : cta_row;
        vector<bf16, vec> x_v[tiles];
        read_row(x_v, current.x);
        fetch(current, cta_row + team + row_step * stages);
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                if (has_row) {
                    column_max = max_nan(column_max, fabsf(x_));
                }
            }
        }
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    __shared__ float cta_scratch[1][2][threads / 32];
    int cta_parity = 0;
    row_reduce<threads>(cta_scratch, cta_parity, max_of(column_max));
    if (threadIdx.x == 0) {
        max_1_partial[blockIdx.x] = column_max;
    }
}

// amax_finish (finish), from amax.fuse:1-4
//   scale         = max[M, N](abs(x)) / 448.0
//   max_1_partial = max[M, N](abs(x)), from the partials
//
// launch         2 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(1 / 8), 1)
// block          1024 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                reserved only to keep a second CTA off the SM; 0 is correct too, but CTAs that
//                start early then crowd on the first free SMs
// registers      at most 64 a thread
// rows           the partials of amax, one from each CTA
// columns        up to 8 for each CTA; 128 threads a column, which take its partials in turn
// arguments      partials: min(ceil(M / 8), 1056)
// workspace      max_1_partial: f32[1] for each CTA of amax
//                scale_value: f32[1]
extern "C" __global__ __launch_bounds__(1024)
void amax_finish(
    const float *__restrict__ max_1_partial,
    float *__restrict__ scale,
    float *__restrict__ scale_value,
    int partials) {
    constexpr int width = 8, slices = 128, batch = 9;
    __shared__ float scratch[1][32 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float column_max = -infinity();
    if (col < 1) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = p + t * slices;
                    column_max = max_nan(column_max, max_1_partial[item]);
                }
    }
    slice_reduce<width>(scratch, max_of(column_max));
    if (slice == 0 && col < 1) {
        const float scale_ = column_max / 448.0f;
        scale[0] = scale_;
        scale_value[0] = scale_;
    }
}

// amax_2 (pointwise), from amax.fuse:1-4
//   q = x / scale
//
// launch         3 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(M / 8), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 8, from (gridDim.x - 1 - blockIdx.x) * 8
// columns        16 threads a row, each with 4 tiles of 8 adjacent columns, 128 apart
// arguments      x_M, q_M: strides, in elements
// workspace      scale_value: f32[1], max[M, N](abs(x)) / 448.0
extern "C" __global__ __launch_bounds__(128)
void amax_2(
    const bf16 *__restrict__ x, long long x_M,
    const float *__restrict__ scale_value,
    f8e4m3 *__restrict__ q, long long q_M,
    long long M) {
    constexpr int N = 512;
    constexpr int threads_per_row = 16, teams = 8;
    constexpr int vec = 8, tiles = 4, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;
    const float scale = scale_value[0];

    // the last rows first: L2 may still have them from the kernel before
    const long long cta_row = (long long)(gridDim.x - 1 - blockIdx.x) * teams;
    // a team without a row reads the first team's, and stores nothing
    const bool has_row = cta_row + team < M;
    const long long row = has_row ? cta_row + team : cta_row;
    vector<bf16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_M, first_column, N);
    const Divisor scale_divisor = divisor(scale);    // x / scale_divisor: a product with the inverse, corrected once
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float q_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            q_out[i] = x_ / scale_divisor;
        }
        if (has_row)
            store_vector(q + row * q_M, col, q_out);
    }
}
