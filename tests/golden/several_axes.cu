// several_axes for sm_90a, by fusec 0.3.0:
//   fusec several_axes.fuse C=16 S=64 --arch sm_90a --prelude include
#include "fusec.cuh"

// several_axes (row), from several_axes.fuse:2-4
//   y = (x - mean[C, S](x)) * gamma
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(B / 4), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 4, from blockIdx.x * 4
// columns        32 threads a row, each with 4 tiles of 8 adjacent columns, 256 apart
//                col counts C * S; a vector lies along S
// arguments      x_B, y_B: strides, in elements
//                columns, numbered along [C, S], lie side by side; several_axes_strided is for
//                others
extern "C" __global__ __launch_bounds__(128)
void several_axes(
    const bf16 *__restrict__ x, long long x_B,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_B,
    long long B) {
    constexpr int C = 16, S = 64;
    constexpr int columns = C * S;
    constexpr int threads_per_row = 32, teams = 4;
    constexpr int vec = 8, tiles = 4, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int lane = threadIdx.x % threads_per_row;
    const int first_column = lane * vec;

    const long long row = (long long)blockIdx.x * teams + team;
    if (row >= B)
        return;
    vector<bf16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_B, first_column, columns);
    float row_mean = 0;    // mean[C, S](x)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            row_mean += x_;
        }
    }
    lanes_reduce<threads_per_row>(sum_of(row_mean));
    row_mean /= C * S;

    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, c = col / S;
        const float gamma_ = gamma[c];
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = widen_again(x_v[t], i);
            y_out[i] = (x_ - row_mean) * gamma_;
        }
        store_vector(y + row * y_B, col, y_out);
    }
}

// several_axes_strided (row): several_axes for tensors whose columns do not lie side by side,
// with a stride for each axis of [C, S]. Grid, block, cluster and shared memory are the same; the
// arguments are those below.
extern "C" __global__ __launch_bounds__(128)
void several_axes_strided(
    const bf16 *__restrict__ x, long long x_B, long long x_C,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_B, long long y_C,
    long long B) {
    constexpr int C = 16, S = 64;
    constexpr int columns = C * S;
    constexpr int threads_per_row = 32, teams = 4;
    constexpr int vec = 8, tiles = 4, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int lane = threadIdx.x % threads_per_row;
    const int first_column = lane * vec;

    const long long row = (long long)blockIdx.x * teams + team;
    if (row >= B)
        return;
    vector<bf16, vec> x_v[tiles];
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, s = col % S, c = col / S;
        load_once(x_v[t], x + row * x_B + c * x_C + s, 0, columns - col);
    }
    float row_mean = 0;    // mean[C, S](x)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            row_mean += x_;
        }
    }
    lanes_reduce<threads_per_row>(sum_of(row_mean));
    row_mean /= C * S;

    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, s = col % S, c = col / S;
        const float gamma_ = gamma[c];
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = widen_again(x_v[t], i);
            y_out[i] = (x_ - row_mean) * gamma_;
        }
        store_vector(y + row * y_B + c * y_C + s, 0, y_out);
    }
}
