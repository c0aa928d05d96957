// g for sm_90a, by fusec 0.3.0:
//   fusec unused.fuse M=4 --arch sm_90a --prelude include
#include "fusec.cuh"

// g (pointwise), from unused.fuse:1-4
//   y = x + 1.0
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (1, 1)
// block          32 threads
// shared memory  0 bytes, dynamic
// rows           one
// columns        32 threads a row, each with 4 adjacent columns, or none
extern "C" __global__ __launch_bounds__(32)
void g(
    const float *__restrict__ x,
    float *__restrict__ y) {
    constexpr int M = 4;
    constexpr int threads = 32;
    constexpr int vec = 4, tiles = 1, step = threads * vec;
    wait_for_previous_kernel();
    const int lane = threadIdx.x;
    __builtin_assume(lane < threads);
    const int first_column = lane * vec;
    vector<float, vec> x_v[tiles];
    load_row<step>(x_v, x, first_column, M);

    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            y_out[i] = x_ + 1.0f;
        }
        store_row(y, col, y_out, M);
    }
}
