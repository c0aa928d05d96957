// streamed for sm_90a, by fusec 0.3.0:
//   fusec streamed.fuse N=22528 --arch sm_90a --schedule row:threads=704,reads=2 --prelude include
#include "fusec.cuh"

// streamed (row), from streamed.fuse:3-7
//   y    = (x - mean) * rstd * gamma
// where
//   mean = mean[N](x)
//   rstd = rsqrt(mean[N]((x - mean) * (x - mean)) + eps)
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (M, 1)
// block          704 threads
// shared memory  0 bytes, dynamic
// registers      at most 88 a thread
// rows           a CTA has row blockIdx.x
// columns        704 threads a row, each takes 8 adjacent columns at a time, and again in each
//                phase
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __launch_bounds__(704)
void streamed(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_M,
    float eps) {
    constexpr int N = 22528;
    constexpr int threads = 704;
    constexpr int vec = 8, tiles = 4, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[1][2][4 * (threads / 32)];
    int parity = 0;

    const long long row = blockIdx.x;
    float mean = 0;
    float row_variance = 0;    // mean[N]((x - mean) * (x - mean))
    float mean_seen = 0, mean_shift = 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        vector<bf16, vec> x_v;
        load_hinted<read_again>(x_v, x + row * x_M, col);
        float mean_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            mean_of[i] = x_;
        }
        moments_add(moments_of(mean, row_variance, mean_seen, mean_shift), mean_of);
    }
    moments_settle(moments_of(mean, row_variance, mean_seen, mean_shift));
    row_reduce<threads>(scratch, parity, moments_of(mean, row_variance, mean_seen, mean_shift));
    mean /= N;
    const float mean_rest = moments_end(mean, mean_shift);
    row_variance /= N;

    const float rstd = rsqrtf(row_variance + eps);
    #pragma unroll 1
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        vector<bf16, vec> x_v;
        load_hinted<read_last>(x_v, x + row * x_M, col);
        vector<bf16, vec> gamma_v;
        load(gamma_v, gamma, col, N);
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            const float gamma_ = gamma_v[i];
            y_out[i] = fmaf(x_ - mean, rstd, -mean_rest * rstd) * gamma_;
        }
        store_streamed(y + row * y_M, col, y_out);
    }
}
