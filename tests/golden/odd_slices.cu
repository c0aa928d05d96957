// odd_slices for sm_90a, by fusec 0.3.0:
//   fusec odd_slices.fuse N=1601 --arch sm_90a --schedule row:cluster=4,threads=64 --prelude include
#include "fusec.cuh"

// odd_slices (row), from odd_slices.fuse:3-5
//   y         = x_centred * rsqrt(mean[N](x_centred * x_centred) + 0.001)
// where
//   x_mean    = mean[N](x)
//   x_centred = x - x_mean
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (4 * min(M, 480), 1)
// block          64 threads
// cluster        4 CTAs, by __cluster_dims__
// shared memory  0 bytes, dynamic
// registers      at most 64 a thread, for 16 CTAs an SM
// rows           a cluster walks blockIdx.x / 4, + gridDim.x / 4, ...
// columns        a slice of 408 for each CTA of a cluster; 64 threads a slice, each with 7 columns,
//                64 apart
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __cluster_dims__(4, 1, 1) __launch_bounds__(64, 16)
void odd_slices(
    const bf16 *__restrict__ x, long long x_M,
    bf16 *__restrict__ y, long long y_M,
    long long M) {
    constexpr int N = 1601;
    constexpr int cluster = 4, slice = 408;    // CTAs that share a row, columns of each
    constexpr int threads = 64;
    constexpr int vec = 1, tiles = 7, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    __builtin_assume(thread_in_row < threads);
    const int slice_begin = blockIdx.x % cluster * slice;
    const int slice_end = slice_begin + slice < N ? slice_begin + slice : N;
    const int local_column = thread_in_row * vec, first_column = slice_begin + local_column;
    __shared__ float scratch[1][2][4 * (threads / 32)];
    __shared__ Exchange<float, 4, cluster> exchange;
    int round = 0;    // of the exchange
    exchange_init(exchange);

    const long long first_row = blockIdx.x / cluster, row_step = gridDim.x / cluster;
    vector<bf16, vec> x_v[tiles];
    bool ready = false;    // whether a row was loaded while the one before was stored
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        if (!ready)
            load_row<step>(x_v, x + row * x_M + slice_begin, local_column, slice_end - slice_begin);
        float x_mean = 0;
        float row_variance = 0;    // mean[N](x_centred * x_centred)
        float x_mean_seen = 0, x_mean_shift = 0;
        float x_mean_of[tiles][vec];
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                x_mean_of[t][i] = x_;
            }
        }
        moments_take<step, tiles - 2>(warp_moments_of(x_mean, row_variance, x_mean_seen, x_mean_shift), x_mean_of, first_column, slice_end);
        cluster_reduce<threads>(scratch, exchange, round, warp_moments_of(x_mean, row_variance, x_mean_seen, x_mean_shift));
        x_mean = quotient(x_mean, N);
        const float x_mean_rest = moments_end(x_mean, x_mean_shift);
        row_variance = quotient(row_variance, N);

        const float rsqrt_value = rsqrtf(row_variance + 0.001f);
        const long long next = row + row_step;
        const bf16 *const x_next = x + next * x_M;
        ready = next < M && misalignment<vec>(x_next) == 0;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            float y_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                y_out[i] = fmaf(x_ - x_mean, rsqrt_value, -x_mean_rest * rsqrt_value);
            }
            store_row(y + row * y_M, col, y_out, slice_end);
            if (ready)
                load_aligned(x_v[t], x_next, col, slice_end);
        }
    }
}
