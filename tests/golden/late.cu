// mean_cross_entropy for sm_90a, by fusec 0.3.0:
//   fusec late.fuse N=300 --arch sm_90a --prelude include
#include "fusec.cuh"

// mean_cross_entropy (column), from late.fuse:2-18
//   counted = sum[M](counts), over the rows of this CTA
// where
//   counts  = label != 3
//
// launch         1 of 5; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(ceil(M / 128), 2112), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// registers      at most 255 a thread
// rows           a CTA walks 128 at a time, from blockIdx.x * 128, + gridDim.x * 128, ...; its sums
//                over rows stay in registers
// columns        one thread a row, each with one column
// workspace      counted_partial: i64[1] for each CTA of mean_cross_entropy
extern "C" __global__ __launch_bounds__(128)
void mean_cross_entropy(
    const long long *__restrict__ label,
    long long *__restrict__ counted_partial,
    long long M) {
    constexpr int threads_per_row = 1, teams = 128, threads = threads_per_row * teams;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;

    long long counted_sum = 0;
    const long long first_row = (long long)blockIdx.x * teams;
    const long long row_step = (long long)gridDim.x * teams;
    #pragma unroll 1
    for (long long cta_row = first_row; cta_row < M; cta_row += row_step) {
        // a team without a row reads the first team's, and stores nothing
        const bool has_row = cta_row + team < M;
        const long long row = has_row ? cta_row + team : cta_row;
        const long long label_ = label[row];
        const bool counts = label_ != 3;
        if (thread_in_row == 0 && has_row)
            counted_sum += (long long)counts;
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    __shared__ double cta_scratch[1][2][threads / 32];
    int cta_parity = 0;
    row_reduce<threads>(cta_scratch, cta_parity, sum_of(counted_sum));
    if (threadIdx.x == 0) {
        counted_partial[blockIdx.x] = counted_sum;
    }
}

// mean_cross_entropy_finish (finish), from late.fuse:2-18
//   counted = sum[M](counts), from the partials
//
// launch         2 of 5; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(1 / 8), 1)
// block          1024 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                unused: it keeps an SM to 1 CTA; 0 is correct too, but CTAs that start early then
//                crowd on the first free SMs
// registers      at most 64 a thread
// rows           the partials of mean_cross_entropy, one from each CTA
// columns        up to 8 for each CTA; 128 threads a column, which take its partials in turn
// arguments      partials: min(ceil(M / 128), 2112)
// workspace      counted_partial: i64[1] for each CTA of mean_cross_entropy
//                counted_value: i64[1]
extern "C" __global__ __launch_bounds__(1024)
void mean_cross_entropy_finish(
    const long long *__restrict__ counted_partial,
    long long *__restrict__ counted,
    long long *__restrict__ counted_value,
    int partials) {
    constexpr int width = 8, slices = 128, batch = 9;
    __shared__ double scratch[1][32 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    long long counted_sum = 0;
    if (col < 1) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = p + t * slices;
                    counted_sum += counted_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(counted_sum));
    if (slice == 0 && col < 1) {
        counted[0] = counted_sum;
        counted_value[0] = counted_sum;
    }
}

// mean_cross_entropy_2 (grid-stride), from late.fuse:2-18
//   dx            = where(counts, e / s - where(index(N) == label, 1.0, 0.0), 0.0) / counted
//   sum_2_partial = sum[M](where(counts, each, 0.0)), over the rows of this CTA
// where
//   counts        = label != 3
//   m             = max[N](x)
//   e             = exp(x - m)
//   s             = sum[N](e)
//   each          = m + log(s) - sum[N](where(index(N) == label, x, 0.0))
//
// launch         3 of 5; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(ceil(M / 8), 1056), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// registers      at most 255 a thread
// rows           a CTA walks 8 at a time, from blockIdx.x * 8, + gridDim.x * 8, ...; its sums over
//                rows stay in registers
// columns        16 threads a row, each with 5 tiles of 4 adjacent columns, 64 apart, the last not
//                full
// arguments      x_M, dx_M: strides, in elements
// workspace      counted_value: i64[1], sum[M](counts)
//                sum_2_partial: f32[1] for each CTA of mean_cross_entropy_2
extern "C" __global__ __launch_bounds__(128)
void mean_cross_entropy_2(
    const bf16 *__restrict__ x, long long x_M,
    const long long *__restrict__ label,
    const long long *__restrict__ counted_value,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ sum_2_partial,
    long long M) {
    constexpr int N = 300;
    constexpr int threads_per_row = 16, teams = 8, threads = threads_per_row * teams;
    constexpr int vec = 4, tiles = 5, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;
    const long long counted = counted_value[0];

    float column_sum = 0;
    const long long first_row = (long long)blockIdx.x * teams;
    const long long row_step = (long long)gridDim.x * teams;
    #pragma unroll 1
    for (long long cta_row = first_row; cta_row < M; cta_row += row_step) {
        // a team without a row reads the first team's, and stores nothing
        const bool has_row = cta_row + team < M;
        const long long row = has_row ? cta_row + team : cta_row;
        const long long label_ = label[row];
        const bool counts = label_ != 3;
        vector<bf16, vec> x_v[tiles];
        load_row<step>(x_v, x + row * x_M, first_column, N);
        float m = -infinity();
        float s_ = 0;
        float row_sum = 0;    // sum[N](where(index(N) == label, x, 0.0))
        const int label_at = as_column(label_);
        if (thread_in_row == 0 && label_at >= 0 && label_at < N)
            row_sum += (float)x[row * x_M + label_at];
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            float m_of[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                m_of[i] = has_row && col < N ? x_ : -infinity();
            }
            online_add(m, s_, m_of);
        }
        lanes_reduce<threads_per_row>(online_of(m, s_), sum_of(row_sum));
        online_end(m, s_);

        const float inverse_s_ = quick_inverse(s_);
        const float each = m + logf(s_) - row_sum;
        if (thread_in_row == 0 && has_row)
            column_sum += counts ? each : 0.0f;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float e = quick_exp(x_ - m);
                dx_out[i] = (counts ? e * inverse_s_ - (i == label_at - col ? 1.0f : 0.0f) : 0.0f) / (float)counted;
            }
            if (has_row)
                store_row(dx + row * dx_M, col, dx_out, N);
        }
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    __shared__ float cta_scratch[1][2][threads / 32];
    int cta_parity = 0;
    row_reduce<threads>(cta_scratch, cta_parity, sum_of(column_sum));
    if (threadIdx.x == 0) {
        sum_2_partial[blockIdx.x] = column_sum;
    }
}

// mean_cross_entropy_finish_2 (finish), from late.fuse:2-18
//   sum_2_partial = sum[M](where(counts, each, 0.0)), from the partials
//
// launch         4 of 5; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(1 / 8), 1)
// block          1024 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                unused: it keeps an SM to 1 CTA; 0 is correct too, but CTAs that start early then
//                crowd on the first free SMs
// registers      at most 64 a thread
// rows           the partials of mean_cross_entropy_2, one from each CTA
// columns        up to 8 for each CTA; 128 threads a column, which take its partials in turn
// arguments      partials: min(ceil(M / 8), 1056)
// workspace      sum_2_partial: f32[1] for each CTA of mean_cross_entropy_2
//                sum_1_value: f32[1]
extern "C" __global__ __launch_bounds__(1024)
void mean_cross_entropy_finish_2(
    const float *__restrict__ sum_2_partial,
    float *__restrict__ sum_1_value,
    int partials) {
    constexpr int width = 8, slices = 128, batch = 9;
    __shared__ float scratch[1][32 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float column_sum = 0;
    if (col < 1) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = p + t * slices;
                    column_sum += sum_2_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(column_sum));
    if (slice == 0 && col < 1) {
        sum_1_value[0] = column_sum;
    }
}

// mean_cross_entropy_3 (pointwise), from late.fuse:2-18
//   loss = sum[M](where(counts, each, 0.0)) / counted
//
// launch         5 of 5; programmatic stream serialization is allowed: the kernel itself waits
// grid           (1, 1)
// block          32 threads
// shared memory  0 bytes, dynamic
// registers      at most 255 a thread
// rows           one
// columns        32 threads a row, each with one column
// workspace      counted_value: i64[1], sum[M](counts)
//                sum_1_value: f32[1], sum[M](where(counts, each, 0.0))
extern "C" __global__ __launch_bounds__(32)
void mean_cross_entropy_3(
    const long long *__restrict__ counted_value,
    const float *__restrict__ sum_1_value,
    float *__restrict__ loss) {
    constexpr int threads = 32;
    wait_for_previous_kernel();
    const int lane = threadIdx.x;
    const long long counted = counted_value[0];
    const float row_sum = sum_1_value[0];

    if (lane == 0)
        loss[0] = row_sum / (float)counted;
}
