// small_matrix for sm_90a, by fusec 0.3.0:
//   fusec small_matrix.fuse I=4 J=4 --arch sm_90a --schedule row:threads=1,rows=128,vec=4 --prelude include
#include "fusec.cuh"

// small_matrix (row), from small_matrix.fuse:4-9
//   y = b / (sum[I](b) + 1e-6)
// where
//   e = exp(x - max[I, J](x))
//   a = e / sum[I, J](e)
//   b = a / (sum[J](a) + 1e-6)
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(T / 128), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 128, from blockIdx.x * 128
// columns        one thread a row, each with 4 tiles of 4 adjacent columns, 4 apart
//                col counts I * J; a vector lies along J
// arguments      x_T, y_T: strides, in elements
//                columns, numbered along [I, J], lie side by side; small_matrix_strided is for
//                others
extern "C" __global__ __launch_bounds__(128)
void small_matrix(
    const float *__restrict__ x, long long x_T,
    float *__restrict__ y, long long y_T,
    long long T) {
    constexpr int I = 4, J = 4;
    constexpr int columns = I * J;
    constexpr int threads_per_row = 1, teams = 128;
    constexpr int vec = 4, tiles = 4, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    const long long cta_row = (long long)blockIdx.x * teams;
    // a team without a row reads the first team's, and stores nothing
    const bool has_row = cta_row + team < T;
    const long long row = has_row ? cta_row + team : cta_row;
    vector<float, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_T, first_column, columns);
    float row_max = -infinity();    // max[I, J](x)
    float row_sum = 0;    // sum[I, J](e)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        float row_max_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            row_max_of[i] = x_;
        }
        online_add(row_max, row_sum, row_max_of);
    }
    online_end(row_max, row_sum);

    const float inverse_row_sum = quick_inverse(row_sum);
    float part_sum[tiles] = {};    // sum[J](a)
    float a[tiles][vec];    // for later phases
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float e = quick_exp(x_ - row_max);
            a[t][i] = e * inverse_row_sum;
            part_sum[t] += a[t][i];
        }
    }

    float part_sum2[vec] = {};    // sum[I](b)
    float b[tiles][vec];    // for later phases
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const Divisor total_divisor = divisor(part_sum[t] + 1e-06f);    // x / total_divisor: a product with the inverse, corrected once
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            b[t][i] = a[t][i] / total_divisor;
            part_sum2[i] += b[t][i];
        }
    }

    Divisor total2_divisor[vec];
    #pragma unroll
    for (int i = 0; i < vec; i++)
        total2_divisor[i] = divisor(part_sum2[i] + 1e-06f);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            y_out[i] = b[t][i] / total2_divisor[i];
        }
        if (has_row)
            store_vector(y + row * y_T, col, y_out);
    }
}

// small_matrix_strided (row): small_matrix for tensors whose columns do not lie side by side,
// with a stride for each axis of [I, J]. Grid, block, cluster and shared memory are the same; the
// arguments are those below.
extern "C" __global__ __launch_bounds__(128)
void small_matrix_strided(
    const float *__restrict__ x, long long x_T, long long x_I,
    float *__restrict__ y, long long y_T, long long y_I,
    long long T) {
    constexpr int I = 4, J = 4;
    constexpr int columns = I * J;
    constexpr int threads_per_row = 1, teams = 128;
    constexpr int vec = 4, tiles = 4, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    const long long cta_row = (long long)blockIdx.x * teams;
    // a team without a row reads the first team's, and stores nothing
    const bool has_row = cta_row + team < T;
    const long long row = has_row ? cta_row + team : cta_row;
    vector<float, vec> x_v[tiles];
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, j = col % J, i_ = col / J;
        load_once(x_v[t], x + row * x_T + i_ * x_I + j, 0, columns - col);
    }
    float row_max = -infinity();    // max[I, J](x)
    float row_sum = 0;    // sum[I, J](e)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        float row_max_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            row_max_of[i] = x_;
        }
        online_add(row_max, row_sum, row_max_of);
    }
    online_end(row_max, row_sum);

    const float inverse_row_sum = quick_inverse(row_sum);
    float part_sum[tiles] = {};    // sum[J](a)
    float a[tiles][vec];    // for later phases
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float e = quick_exp(x_ - row_max);
            a[t][i] = e * inverse_row_sum;
            part_sum[t] += a[t][i];
        }
    }

    float part_sum2[vec] = {};    // sum[I](b)
    float b[tiles][vec];    // for later phases
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const Divisor total_divisor = divisor(part_sum[t] + 1e-06f);    // x / total_divisor: a product with the inverse, corrected once
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            b[t][i] = a[t][i] / total_divisor;
            part_sum2[i] += b[t][i];
        }
    }

    Divisor total2_divisor[vec];
    #pragma unroll
    for (int i = 0; i < vec; i++)
        total2_divisor[i] = divisor(part_sum2[i] + 1e-06f);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, j = col % J, i_ = col / J;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            y_out[i] = b[t][i] / total2_divisor[i];
        }
        if (has_row)
            store_vector(y + row * y_T + i_ * y_I + j, 0, y_out);
    }
}
