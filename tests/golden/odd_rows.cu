// odd_rows for sm_90a, by fusec 0.3.0:
//   fusec odd_rows.fuse N=1023 --arch sm_90a --schedule row:threads=64,blocks=1 --prelude include
#include "fusec.cuh"

// odd_rows (row), from odd_rows.fuse:3-5
//   y = x * rsqrt(mean[N](x * x) + 0.001) * gamma
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (M, 1)
// block          64 threads
// shared memory  4160 bytes, dynamic
// rows           a CTA has row blockIdx.x
// columns        64 threads a row, each with 16 columns, 64 apart
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __launch_bounds__(64)
void odd_rows(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ gamma,
    bf16 *__restrict__ y, long long y_M) {
    constexpr int N = 1023;
    constexpr int threads = 64;
    constexpr int vec = 1, tiles = 16, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    __builtin_assume(thread_in_row < threads);
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[1][2][threads / 32];
    int parity = 0;
    vector<bf16, vec> gamma_v[tiles];
    load_columns<step>(gamma_v, gamma, first_column, N);

    const long long row = blockIdx.x;

    // rows begin anywhere in a block of 16 bytes: whole blocks are copied, and threads take their elements here
    struct Rows {
        blocks<bf16, tiles * step> x;
        blocks<bf16, tiles * step> y;
    };
    alignas(128) extern __shared__ uint4 smem[];
    Rows &through = *(Rows *)smem;

    read_blocks<threads>(through.x, x + row * x_M, N);
    team_barrier<threads, 1>();
    vector<bf16, vec> x_v[tiles];
    from_blocks<step>(x_v, through.x, x + row * x_M, first_column);
    float row_mean = 0;    // mean[N](x * x)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            if (col < N) {
                row_mean += x_ * x_;
            }
        }
    }
    row_reduce<threads>(scratch, parity, sum_of(row_mean));
    row_mean /= N;

    const float rsqrt_value = rsqrtf(row_mean + 0.001f);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            const float gamma_ = gamma_v[t][i];
            y_out[i] = x_ * rsqrt_value * gamma_;
        }
        to_blocks(through.y, y + row * y_M, col, y_out);
    }
    team_barrier<threads, 1>();
    write_blocks<threads>(y + row * y_M, through.y, N);
}
