// handed_on for sm_90a, by fusec 0.3.0:
//   fusec handed_on.fuse N=65536 --arch sm_90a --schedule row:cluster=4,threads=512,reuse=1 --prelude include
#include "fusec.cuh"

// handed_on (row), from handed_on.fuse:3-14
//   y    = (x - mean) * rstd * gamma + beta
// where
//   mean = mean[N](x)
//   rstd = rsqrt(mean[N]((x - mean) * (x - mean)) + eps)
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (4 * min(M, 60), 1)
// block          512 threads
// cluster        4 CTAs, by __cluster_dims__
// shared memory  98304 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 64 a thread, for 2 CTAs an SM
// rows           a cluster walks blockIdx.x / 4, + gridDim.x / 4, ...
// columns        a slice of 16384 for each CTA of a cluster; 512 threads a slice, each with 4 tiles
//                of 8 adjacent columns, 4096 apart
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __cluster_dims__(4, 1, 1) __launch_bounds__(512, 2)
void handed_on(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ gamma,
    const bf16 *__restrict__ beta,
    bf16 *__restrict__ y, long long y_M,
    float eps,
    long long M) {
    constexpr int N = 65536;
    constexpr int cluster = 4, slice = 16384;    // CTAs that share a row, columns of each
    constexpr int threads = 512;
    constexpr int vec = 8, tiles = 4, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int slice_begin = blockIdx.x % cluster * slice;
    const int local_column = thread_in_row * vec, first_column = slice_begin + local_column;
    __shared__ float scratch[1][2][4 * (threads / 32)];
    __shared__ Exchange<float, 4, cluster> exchange;
    int round = 0;    // of the exchange
    exchange_init(exchange);

    const long long first_row = blockIdx.x / cluster, row_step = gridDim.x / cluster;

    // a row goes on to registers at once, and the next one to be copied takes its stage
    constexpr int stages = 1;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    struct Columns {
        vector<bf16, vec> gamma[tiles][threads];
        vector<bf16, vec> beta[tiles][threads];
    };
    Columns &held = *(Columns *)(ring + stages);
    fetch_row<step>(held.gamma, gamma + slice_begin, local_column, slice);
    fetch_row<step>(held.beta, beta + slice_begin, local_column, slice);
    fetch_commit();
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step>(into.x, x + row * x_M + slice_begin, local_column, slice);
        }
        fetch_commit();
    };
    Stage &current = ring[0];
    fetch(current, first_row);
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        vector<bf16, vec> x_v[tiles];
        read_row(x_v, current.x);
        fetch(current, row + row_step * stages);
        float mean = 0;
        float row_variance = 0;    // mean[N]((x - mean) * (x - mean))
        float mean_seen = 0, mean_shift = 0;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            float mean_of[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                mean_of[i] = x_;
            }
            moments_add(moments_of(mean, row_variance, mean_seen, mean_shift), mean_of);
        }
        moments_settle(moments_of(mean, row_variance, mean_seen, mean_shift));
        cluster_reduce<threads>(scratch, exchange, round, moments_of(mean, row_variance, mean_seen, mean_shift));
        mean /= N;
        const float mean_rest = moments_end(mean, mean_shift);
        row_variance /= N;

        const float rstd = rsqrtf(row_variance + eps);
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            const packed<bf16, vec> gamma_v = held.gamma[t][threadIdx.x];
            const packed<bf16, vec> beta_v = held.beta[t][threadIdx.x];
            float y_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float gamma_ = gamma_v[i];
                const float beta_ = beta_v[i];
                y_out[i] = fmaf(x_ - mean, rstd, -mean_rest * rstd) * gamma_ + beta_;
            }
            store_row(y + row * y_M, col, y_out, N);
        }
    }
}
