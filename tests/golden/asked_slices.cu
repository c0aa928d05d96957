// asked_slices for sm_90a, by fusec 0.3.0:
//   fusec asked_slices.fuse N=50000 --arch sm_90a --schedule row:cluster=4,bulk=1 --prelude include
#include "fusec.cuh"

// asked_slices (row), from asked_slices.fuse:3-14
//   y    = (x - mean) * rstd * gamma + beta
// where
//   mean = mean[N](x)
//   rstd = rsqrt(mean[N]((x - mean) * (x - mean)) + eps)
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (4 * M, 1)
// block          320 threads
// cluster        4 CTAs, by __cluster_dims__
// shared memory  51328 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 200 a thread
// rows           a cluster has row blockIdx.x / 4
// columns        a slice of 12512 for each CTA of a cluster; 320 threads a slice, each with 10
//                tiles of 4 adjacent columns, 1280 apart, the last not full
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __cluster_dims__(4, 1, 1) __launch_bounds__(320)
void asked_slices(
    const float *__restrict__ x, long long x_M,
    const float *__restrict__ gamma,
    const float *__restrict__ beta,
    float *__restrict__ y, long long y_M,
    float eps) {
    constexpr int N = 50000;
    constexpr int cluster = 4, slice = 12512;    // CTAs that share a row, columns of each
    constexpr int threads = 320;
    constexpr int vec = 4, tiles = 10, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int slice_begin = blockIdx.x % cluster * slice;
    const int slice_end = slice_begin + slice < N ? slice_begin + slice : N;
    const int local_column = thread_in_row * vec, first_column = slice_begin + local_column;
    __shared__ float scratch[1][2][4 * (threads / 32)];
    __shared__ Exchange<float, 4, cluster> exchange;
    int round = 0;    // of the exchange
    const long long row = blockIdx.x / cluster;

    // the row comes to shared memory at once, and stays there
    struct Stage {
        alignas(128) float x[tiles * step + 32];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage &current = *(Stage *)smem;
    __shared__ unsigned long long full;
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            barrier_init(full, 1);
        int bytes = 0;
        bytes += copy_shifted<vec>(current.x, x + row * x_M + slice_begin, slice_end - slice_begin, full);
        copies_end(bytes, full);
    }
    exchange_init(exchange);
    __syncthreads();    // the barrier is there for all
    // a later phase reads this tile by tile; so that none waits for memory then, a few CTAs have L2 fetch it now
    if (blockIdx.x < 4 * cluster) {
        ask_for_columns<threads>(gamma + slice_begin, slice_end - slice_begin);
        ask_for_columns<threads>(beta + slice_begin, slice_end - slice_begin);
    }

    barrier_wait(full, 0);
    float mean = 0;
    float row_variance = 0;    // mean[N]((x - mean) * (x - mean))
    float mean_seen = 0, mean_shift = 0;
    #pragma unroll 4
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        const vector<float, vec> x_v = shifted_at<vec>(current.x, local_column + t * step, x + row * x_M + slice_begin);
        float mean_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            mean_of[i] = x_;
        }
        if (col < slice_end)
            moments_add(moments_of(mean, row_variance, mean_seen, mean_shift), mean_of);
    }
    moments_settle(moments_of(mean, row_variance, mean_seen, mean_shift));
    // the next phase reads a tile while it computes the one before; this is the first
    vector<float, vec> gamma_next;
    vector<float, vec> beta_next;
    load(gamma_next, gamma, first_column, slice_end);
    load(beta_next, beta, first_column, slice_end);
    cluster_reduce<threads>(scratch, exchange, round, moments_of(mean, row_variance, mean_seen, mean_shift));
    mean /= N;
    const float mean_rest = moments_end(mean, mean_shift);
    row_variance /= N;

    const float rstd = rsqrtf(row_variance + eps);
    #pragma unroll 4
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        const vector<float, vec> gamma_v = gamma_next;
        const vector<float, vec> beta_v = beta_next;
        if (t + 1 < tiles) {
            load(gamma_next, gamma, col + step, slice_end);
            load(beta_next, beta, col + step, slice_end);
        }
        const vector<float, vec> x_v = shifted_at<vec>(current.x, local_column + t * step, x + row * x_M + slice_begin);
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[i];
            const float gamma_ = gamma_v[i];
            const float beta_ = beta_v[i];
            y_out[i] = fmaf(x_ - mean, rstd, -mean_rest * rstd) * gamma_ + beta_;
        }
        store_row(y + row * y_M, col, y_out, slice_end);
    }
}
