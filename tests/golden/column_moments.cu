// column_moments for sm_90a, by fusec 0.3.0:
//   fusec column_moments.fuse C=96 --arch sm_90a --prelude include
#include "fusec.cuh"

// column_moments (column), from column_moments.fuse:2-15
//   mu = mean[M](x), over the rows of this CTA
//   mu_squares_partial = mean[M](x_centred * x_centred), over the rows of this CTA
//
// launch         1 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(ceil(M / 32), 264), 1)
// block          512 threads
// shared memory  49152 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 64 a thread, for 2 CTAs an SM
// rows           a CTA walks 32 at a time, from blockIdx.x * 32, + gridDim.x * 32, ...; its sums
//                over rows stay in registers
// columns        16 threads a row, each with 8 adjacent columns, or none
// arguments      x_M: stride, in elements
// workspace      mu_partial: f32[C] for each CTA of column_moments
//                mu_shift_partial: f32[C] for each CTA of column_moments
//                mu_squares_partial: f32[C] for each CTA of column_moments
extern "C" __global__ __launch_bounds__(512, 2)
void column_moments(
    const bf16 *__restrict__ x, long long x_M,
    float *__restrict__ mu_partial,
    float *__restrict__ mu_shift_partial,
    float *__restrict__ mu_squares_partial,
    long long M) {
    constexpr int C = 96;
    constexpr int threads_per_row = 16, teams = 32, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 1, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    // distances from a shift near each column's mean, their squares, and how many rows
    float mu_sum[tiles][vec] = {}, mu_squares[tiles][vec] = {}, mu_shift[tiles][vec] = {};
    int mu_seen = 0;
    const long long first_row = (long long)blockIdx.x * teams;
    const long long row_step = (long long)gridDim.x * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    constexpr int stages = 6;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step>(into.x, x + row * x_M, first_column, C);
        }
        fetch_commit();
    };
    int stage = 1;    // passes before first_row only start copies: first_row's to stage 0, and so on
    #pragma unroll 1
    for (long long cta_row = first_row - row_step * (stages - 1); cta_row < M; cta_row += row_step) {
        const Stage &current = ring[stage];
        fetch(ring[(stage + stages - 1) % stages], cta_row + team + row_step * (stages - 1));
        stage = (stage + 1) % stages;
        if (cta_row < first_row)
            continue;
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        // a team without a row reads the first team's, and stores nothing
        const bool has_row = cta_row + team < M;
        const long long row = has_row ? cta_row + team : cta_row;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            const packed<bf16, vec> x_v = current.x[t][threadIdx.x];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[i];
                if (has_row && col < C) {
                    add_distance(mu_sum[t][i], mu_squares[t][i], x_ - mu_shift[t][i]);
                }
            }
        }
        if (has_row)
            count_row(mu_sum, mu_squares, mu_shift, mu_seen);
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    __shared__ float team_scratch[threads / 32 * threads_per_row * vec];
    settle_columns(mu_sum, mu_squares, mu_seen);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        team_moments<threads, threads_per_row>(team_scratch, mu_sum[t], mu_squares[t], mu_shift[t], mu_seen);
        if (team == 0)
            store_aligned(mu_partial + blockIdx.x * (long long)C, first_column + t * step, mu_sum[t], C);
        if (team == 0)
            store_aligned(mu_squares_partial + blockIdx.x * (long long)C, first_column + t * step, mu_squares[t], C);
        if (team == 0)
            store_aligned(mu_shift_partial + blockIdx.x * (long long)C, first_column + t * step, mu_shift[t], C);
    }
}

// column_moments_finish (finish), from column_moments.fuse:2-15
//   mu_rest_value = where(abs(mean[M](x_centred)) < inf, mean[M](x_centred), 0.0)
//   rsqrt_2_value = rsqrt(mean[M](x_centred * x_centred) + eps)
//   new           = 0.9 * acc + 0.1 * mu
//   mu            = mean[M](x), from the partials
//   mu_squares_partial = mean[M](x_centred * x_centred), from the partials
//
// launch         2 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(C / 8), 1)
// block          512 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                reserved only to keep a second CTA off the SM; 0 is correct too, but CTAs that
//                start early then crowd on the first free SMs
// registers      at most 128 a thread
// rows           the partials of column_moments, one from each CTA
// columns        up to 8 for each CTA; 64 threads a column, which take its partials in turn
// arguments      partials: min(ceil(M / 32), 264)
// workspace      mu_partial: f32[C] for each CTA of column_moments
//                mu_shift_partial: f32[C] for each CTA of column_moments
//                mu_squares_partial: f32[C] for each CTA of column_moments
//                mu_value: f32[C]
//                mu_rest_value: f32[C]
//                rsqrt_2_value: f32[C]
extern "C" __global__ __launch_bounds__(512)
void column_moments_finish(
    const float *__restrict__ acc,
    const float *__restrict__ mu_partial,
    const float *__restrict__ mu_shift_partial,
    const float *__restrict__ mu_squares_partial,
    float *__restrict__ mu,
    float *__restrict__ mu_value,
    float *__restrict__ mu_rest_value,
    float *__restrict__ rsqrt_2_value,
    float *__restrict__ new2,
    float eps,
    long long M,
    int partials) {
    constexpr int C = 96, width = 8, slices = 64, batch = 5, teams = 32;
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    const bool stores = slice == 0 && col < C;
    const float acc_ = stores ? acc[col] : 0;

    float mu_sum = 0, mu_squares = 0, mu_seen = 0, mu_shift = 0;
    if (col < C) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = (p + t * slices) * (long long)C + col;
                    join_moments(moments_of(mu_sum, mu_squares, mu_seen, mu_shift), mu_partial[item], mu_squares_partial[item],
                                 rows_of_part(M, teams, partials, p + t * slices), mu_shift_partial[item]);
                }
    }
    __shared__ float mu_scratch[4][16 * width];
    slice_moments<width>(mu_scratch, moments_of(mu_sum, mu_squares, mu_seen, mu_shift));
    if (stores) {
        float mu_ = mu_sum / M;
        const float rest = moments_end(mu_, mu_shift);
        const float variance = mu_squares / M;
        mu[col] = mu_;
        mu_value[col] = mu_;
        mu_rest_value[col] = fabsf(rest) < infinity() ? rest : 0.0f;
        rsqrt_2_value[col] = rsqrtf(variance + eps);
        new2[col] = 0.9f * acc_ + 0.1f * mu_;
    }
}

// column_moments_2 (pointwise), from column_moments.fuse:2-15
//   y         = (x_centred - mu_rest) * rsqrt(mean[M](x_centred * x_centred) + eps) * gamma
// where
//   x_centred = x - mu
//
// launch         3 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(M / 32), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 32, from (gridDim.x - 1 - blockIdx.x) * 32
// columns        4 threads a row, each with 3 tiles of 8 adjacent columns, 32 apart
// arguments      x_M, y_M: strides, in elements
// workspace      mu_value: f32[C], mean[M](x)
//                mu_rest_value: f32[C], where(abs(mean[M](x_centred)) < inf, mean[M](x_centred),
//                0.0)
//                rsqrt_2_value: f32[C], rsqrt(mean[M](x_centred * x_centred) + eps)
extern "C" __global__ __launch_bounds__(128)
void column_moments_2(
    const bf16 *__restrict__ x, long long x_M,
    const float *__restrict__ gamma,
    const float *__restrict__ mu_value,
    const float *__restrict__ mu_rest_value,
    const float *__restrict__ rsqrt_2_value,
    bf16 *__restrict__ y, long long y_M,
    long long M) {
    constexpr int C = 96;
    constexpr int threads_per_row = 4, teams = 32;
    constexpr int vec = 8, tiles = 3, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    // the last rows first: L2 may still have them from the kernel before
    const long long cta_row = (long long)(gridDim.x - 1 - blockIdx.x) * teams;
    // a team without a row reads the first team's, and stores nothing
    const bool has_row = cta_row + team < M;
    const long long row = has_row ? cta_row + team : cta_row;
    vector<bf16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_M, first_column, C);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        vector<float, vec> gamma_v;
        load(gamma_v, gamma, col, C);
        vector<float, vec> mu_value_v;
        load(mu_value_v, mu_value, col, C);
        vector<float, vec> mu_rest_value_v;
        load(mu_rest_value_v, mu_rest_value, col, C);
        vector<float, vec> rsqrt_2_value_v;
        load(rsqrt_2_value_v, rsqrt_2_value, col, C);
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float gamma_ = gamma_v[i];
            const float mu = mu_value_v[i];
            const float x_centred = x_ - mu;
            const float mu_rest = mu_rest_value_v[i];
            const float rsqrt_value = rsqrt_2_value_v[i];
            y_out[i] = (x_centred - mu_rest) * rsqrt_value * gamma_;
        }
        if (has_row)
            store_vector(y + row * y_M, col, y_out);
    }
}
