// scale_shift for sm_90a, by fusec 0.3.0:
//   fusec pointwise.fuse N=96 --arch sm_90a --prelude include
#include "fusec.cuh"

// scale_shift (pointwise), from pointwise.fuse:1-3
//   y = a * x + b
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(M / 32), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 32, from blockIdx.x * 32
// columns        4 threads a row, each with 3 tiles of 8 adjacent columns, 32 apart
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __launch_bounds__(128)
void scale_shift(
    const f16 *__restrict__ x, long long x_M,
    const float *__restrict__ b,
    bf16 *__restrict__ y, long long y_M,
    float a,
    long long M) {
    constexpr int N = 96;
    constexpr int threads_per_row = 4, teams = 32;
    constexpr int vec = 8, tiles = 3, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;
    vector<float, vec> b_v[tiles];
    load_columns<step>(b_v, b, first_column, N);

    const long long cta_row = (long long)blockIdx.x * teams;
    // a team without a row reads the first team's, and stores nothing
    const bool has_row = cta_row + team < M;
    const long long row = has_row ? cta_row + team : cta_row;
    vector<f16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_M, first_column, N);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float b_ = b_v[t][i];
            y_out[i] = a * x_ + b_;
        }
        if (has_row)
            store_vector(y + row * y_M, col, y_out);
    }
}
