// paced for sm_90a, by fusec 0.3.0:
//   fusec paced.fuse N=12288 --arch sm_90a --schedule warp-specialized:threads=256,cluster=2,paced=1 --prelude include
#include "fusec.cuh"

// paced (warp-specialized), from paced.fuse:3-21
//   dx     = (wdy - xhat * c1 - c2) * rstd
//   dgamma = sum[M](dy * xhat), over the rows of this cluster
//   dbeta  = sum[M](dy), over the rows of this cluster
// where
//   xhat   = (x - mean) * rstd
//   wdy    = dy * gamma
//   c1     = mean[N](wdy * xhat)
//   c2     = mean[N](wdy)
//
// launch         1 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (2 * min(M, 66), 1)
// block          288 threads: 256 compute, one warp copies
// cluster        2 CTAs, an attribute of the launch
// shared memory  98304 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 224 a thread
// rows           a cluster walks blockIdx.x / 2, + gridDim.x / 2, ...; its sums over rows stay in
//                registers
// columns        a slice of 6144 for each CTA of a cluster; 256 threads a slice, each with 3 tiles
//                of 8 adjacent columns, 2048 apart
// arguments      x_M, dy_M, dx_M: strides, in elements
//                interval: ns between two rows that a cluster asks for; 0 is always correct, and
//                for twice the data that L2 holds, or more,
//                73736 * min(M, 66) / (0.92 * peak memory bandwidth in bytes/ns) is faster
// workspace      dgamma_partial: f32[N] for each cluster of paced
//                dbeta_partial: f32[N] for each cluster of paced
extern "C" __global__ __launch_bounds__(288, 1)
void paced(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ dy, long long dy_M,
    const bf16 *__restrict__ gamma,
    const float *__restrict__ mean,
    const float *__restrict__ rstd,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ dgamma_partial,
    float *__restrict__ dbeta_partial,
    long long M,
    unsigned interval) {
    constexpr int N = 12288;
    constexpr int cluster = 2, slice = 6144;    // CTAs that share a row, columns of each
    constexpr int threads = 256;
    constexpr int vec = 8, tiles = 3, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int slice_begin = blockIdx.x % cluster * slice;
    const int local_column = thread_in_row * vec, first_column = slice_begin + local_column;
    __shared__ float scratch[1][2][2 * (threads / 32)];
    __shared__ Exchange<float, 2, cluster> exchange;
    int round = 0;    // of the exchange
    exchange_init(exchange);
    const long long first_row = blockIdx.x / cluster, row_step = gridDim.x / cluster;

    // one warp copies rows into a ring of stages, the others compute
    constexpr int stages = 4;
    struct Stage {
        alignas(128) bf16 x[slice];
        alignas(128) bf16 dy[slice];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    __shared__ unsigned long long full[stages], empty[stages];
    if (threadIdx.x < stages) {
        barrier_init(full[threadIdx.x], 1);
        barrier_init(empty[threadIdx.x], threads / 32);
    }
    __syncthreads();
    if (threadIdx.x >= threads) {
        int stage = 0, stage_parity = 1;    // the first time round, every stage is empty
        unsigned due = clock_ns();    // when the next row may be asked for
        for (long long row = first_row; row < M; row += row_step) {
            Stage &into = ring[stage];
            barrier_wait(empty[stage], stage_parity);
            keep_pace(due, interval);
            int bytes = 0;
            bytes += copy_row<vec>(into.x, x + row * x_M + slice_begin, slice, full[stage]);
            bytes += copy_row<vec>(into.dy, dy + row * dy_M + slice_begin, slice, full[stage]);
            copies_end(bytes, full[stage]);
            if (++stage == stages) {
                stage = 0;
                stage_parity ^= 1;
            }
        }
        cluster_wait();    // as the others do before they first send
        return;
    }
    vector<bf16, vec> gamma_v[tiles];
    load_columns<step>(gamma_v, gamma + slice_begin, local_column, slice);

    float dgamma_sum[tiles][vec] = {};
    float dbeta_sum[tiles][vec] = {};
    int stage = 0, stage_parity = 0;
    long long next = first_row;
    float mean_next = arrived(next < M ? (float)mean[next] : 0);
    float rstd_next = arrived(next < M ? (float)rstd[next] : 0);
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        barrier_wait(full[stage], stage_parity);
        const Stage &current = ring[stage];
        const float mean_ = mean_next;
        const float rstd_ = rstd_next;
        float c1 = 0;
        float c2 = 0;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const packed<bf16, vec> x_v = vector_at<vec>(current.x, local_column + t * step);
            const packed<bf16, vec> dy_v = vector_at<vec>(current.dy, local_column + t * step);
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[i];
                const float dy_ = dy_v[i];
                const float gamma_ = gamma_v[t][i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                c1 += wdy * xhat;
                c2 += wdy;
                dgamma_sum[t][i] += dy_ * xhat;
                dbeta_sum[t][i] += dy_;
            }
        }
        next += row_step;
        mean_next = next < M ? (float)mean[next] : 0;
        rstd_next = next < M ? (float)rstd[next] : 0;
        cluster_reduce<threads>(scratch, exchange, round, sum_of(c1), sum_of(c2));
        c1 /= N;
        c2 /= N;

        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            const packed<bf16, vec> x_v = vector_at<vec>(current.x, local_column + t * step);
            const packed<bf16, vec> dy_v = vector_at<vec>(current.dy, local_column + t * step);
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[i];
                const float dy_ = dy_v[i];
                const float gamma_ = gamma_v[t][i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                dx_out[i] = (wdy - xhat * c1 - c2) * rstd_;
            }
            store_row(dx + row * dx_M, col, dx_out, N);
        }
        release(empty[stage]);
        if (++stage == stages) {
            stage = 0;
            stage_parity ^= 1;
        }
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        store_aligned(dgamma_partial + blockIdx.x / cluster * (long long)N, first_column + t * step, dgamma_sum[t], N);
        store_aligned(dbeta_partial + blockIdx.x / cluster * (long long)N, first_column + t * step, dbeta_sum[t], N);
    }
}

// paced_finish (finish), from paced.fuse:3-21
//   dgamma = sum[M](dy * xhat), from the partials
//   dbeta  = sum[M](dy), from the partials
//
// launch         2 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(N / 32), 1)
// block          512 threads
// shared memory  0 bytes, dynamic
// registers      at most 128 a thread
// rows           the partials of paced, one from each cluster
// columns        up to 32 for each CTA; 16 threads a column, which take its partials in turn
// arguments      partials: min(M, 66)
// workspace      dgamma_partial: f32[N] for each cluster of paced
//                dbeta_partial: f32[N] for each cluster of paced
extern "C" __global__ __launch_bounds__(512)
void paced_finish(
    const float *__restrict__ dgamma_partial,
    const float *__restrict__ dbeta_partial,
    bf16 *__restrict__ dgamma,
    bf16 *__restrict__ dbeta,
    int partials) {
    constexpr int N = 12288, width = 32, slices = 16, batch = 5;
    __shared__ float scratch[2][16 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float dgamma_sum = 0;
    float dbeta_sum = 0;
    if (col < N) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = (p + t * slices) * (long long)N + col;
                    dgamma_sum += dgamma_partial[item];
                    dbeta_sum += dbeta_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(dgamma_sum), sum_of(dbeta_sum));
    if (slice == 0 && col < N) {
        dgamma[col] = as<bf16>(dgamma_sum);
        dbeta[col] = as<bf16>(dbeta_sum);
    }
}
