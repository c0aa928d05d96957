// several_axes for sm_90a, by fusec 0.3.0:
//   fusec several_axes.fuse C=16 S=64 --arch sm_90a --prelude include
#include "fusec.cuh"

// several_axes (row), from several_axes.fuse:2-4
//   y = (x - mean[C, S](x)) * gamma
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (B, 1)
// block          64 threads
// shared memory  8832 bytes, dynamic
//                unused: it keeps an SM to 23 CTAs; 0 is correct too
// registers      at most 255 a thread
// rows           a CTA has row blockIdx.x
// columns        64 threads a row, each with 2 tiles of 8 adjacent columns, 512 apart
//                col counts C * S; a vector lies along S
// arguments      x_B, x_C, y_B, y_C: strides, in elements
extern "C" __global__ __launch_bounds__(64)
void several_axes(
    const bf16 *__restrict__ x, long long x_B, long long x_C,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_B, long long y_C) {
    constexpr int C = 16, S = 64;
    constexpr int columns = C * S;
    constexpr int threads = 64;
    constexpr int vec = 8, tiles = 2, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[1][2][threads / 32];
    int parity = 0;

    const long long row = blockIdx.x;
    vector<bf16, vec> x_v[tiles];
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, s_ = col % S, c = col / S;
        load_once(x_v[t], x + row * x_B + c * x_C + s_, 0, columns - col);
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
    row_reduce<threads>(scratch, parity, sum_of(row_mean));
    row_mean /= (C * S);

    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, s_ = col % S, c = col / S;
        const float gamma_ = gamma[c];
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            y_out[i] = (x_ - row_mean) * gamma_;
        }
        store_vector(y + row * y_B + c * y_C + s_, 0, y_out);
    }
}
