// odd_two_sums for sm_90a, by fusec 0.3.0:
//   fusec odd_two_sums.fuse N=12287 --arch sm_90a --schedule warp-specialized:cluster=2,paced=1 --prelude include
#include "fusec.cuh"

// odd_two_sums (warp-specialized), from odd_two_sums.fuse:3-7
//   dx = dy - x * mean[N](dy * x) - mean[N](dy)
//   dw = sum[M](dy * x), over the rows of this cluster
//   db = sum[M](dy), over the rows of this cluster
//
// launch         1 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (2 * min(M, 66), 1)
// block          800 threads: 768 compute, one warp copies
// cluster        2 CTAs, an attribute of the launch
// shared memory  99328 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 80 a thread
// rows           a cluster walks blockIdx.x / 2, + gridDim.x / 2, ...; its sums over rows stay in
//                registers
// columns        a slice of 6144 for each CTA of a cluster; 768 threads a slice, each with 8
//                columns, 768 apart
//                reads whole blocks of 16 bytes: up to 15 bytes before and behind a row
// arguments      x_M, dy_M, dx_M: strides, in elements
//                interval: ns between two rows that a cluster asks for; 0 is always correct, and
//                for twice the data that L2 holds, or more,
//                78329 * min(M, 66) / (0.92 * peak memory bandwidth in bytes/ns) is faster
// workspace      dw_partial: f32[N] for each cluster of odd_two_sums
//                db_partial: f32[N] for each cluster of odd_two_sums
extern "C" __global__ __launch_bounds__(800, 1)
void odd_two_sums(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ dy, long long dy_M,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ dw_partial,
    float *__restrict__ db_partial,
    long long M,
    unsigned interval) {
    constexpr int N = 12287;
    constexpr int cluster = 2, slice = 6144;    // CTAs that share a row, columns of each
    constexpr int threads = 768;
    constexpr int vec = 1, tiles = 8, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int slice_begin = blockIdx.x % cluster * slice;
    const int slice_end = slice_begin + slice < N ? slice_begin + slice : N;
    const int local_column = thread_in_row * vec, first_column = slice_begin + local_column;
    __shared__ float scratch[1][2][2 * (threads / 32)];
    __shared__ Exchange<float, 2, cluster> exchange;
    int round = 0;    // of the exchange
    exchange_init(exchange);
    const long long first_row = blockIdx.x / cluster, row_step = gridDim.x / cluster;

    // one warp copies rows into a ring of stages, the others compute
    constexpr int stages = 4;
    struct Stage {
        alignas(128) bf16 x[tiles * step + 64];
        alignas(128) bf16 dy[tiles * step + 64];
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
            bytes += copy_blocks(into.x, x + row * x_M + slice_begin, slice_end - slice_begin, full[stage]);
            bytes += copy_blocks(into.dy, dy + row * dy_M + slice_begin, slice_end - slice_begin, full[stage]);
            copies_end(bytes, full[stage]);
            if (++stage == stages) {
                stage = 0;
                stage_parity ^= 1;
            }
        }
        cluster_wait();    // as the others do before they first send
        return;
    }

    float dw_sum[tiles][vec] = {};
    float db_sum[tiles][vec] = {};
    int stage = 0, stage_parity = 0;
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        barrier_wait(full[stage], stage_parity);
        const Stage &current = ring[stage];
        float row_mean = 0;    // mean[N](dy * x)
        float row_mean2 = 0;    // mean[N](dy)
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            const vector<bf16, vec> x_v = elements_at<vec>(current.x, local_column + t * step, x + row * x_M + slice_begin);
            const vector<bf16, vec> dy_v = elements_at<vec>(current.dy, local_column + t * step, dy + row * dy_M + slice_begin);
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = widen_by_cvt(x_v[i]);
                const float dy_ = widen_by_cvt(dy_v[i]);
                const float product = dy_ * x_;
                if (col < slice_end) {
                    row_mean += product;
                    row_mean2 += dy_;
                    dw_sum[t][i] += product;
                    db_sum[t][i] += dy_;
                }
            }
        }
        cluster_reduce<threads>(scratch, exchange, round, sum_of(row_mean), sum_of(row_mean2));
        row_mean /= N;
        row_mean2 /= N;

        #pragma unroll 1
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            const vector<bf16, vec> x_v = elements_at<vec>(current.x, local_column + t * step, x + row * x_M + slice_begin);
            const vector<bf16, vec> dy_v = elements_at<vec>(current.dy, local_column + t * step, dy + row * dy_M + slice_begin);
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = widen_by_cvt(x_v[i]);
                const float dy_ = widen_by_cvt(dy_v[i]);
                dx_out[i] = dy_ - x_ * row_mean - row_mean2;
            }
            store_row(dx + row * dx_M, col, dx_out, slice_end);
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
        store_aligned(dw_partial + blockIdx.x / cluster * (long long)N, first_column + t * step, dw_sum[t], slice_end);
        store_aligned(db_partial + blockIdx.x / cluster * (long long)N, first_column + t * step, db_sum[t], slice_end);
    }
}

// odd_two_sums_finish (finish), from odd_two_sums.fuse:3-7
//   dw = sum[M](dy * x), from the partials
//   db = sum[M](dy), from the partials
//
// launch         2 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(N / 32), 1)
// block          512 threads
// shared memory  0 bytes, dynamic
// registers      at most 128 a thread
// rows           the partials of odd_two_sums, one from each cluster
// columns        up to 32 for each CTA; 16 threads a column, which take its partials in turn
// arguments      partials: min(M, 66)
// workspace      dw_partial: f32[N] for each cluster of odd_two_sums
//                db_partial: f32[N] for each cluster of odd_two_sums
extern "C" __global__ __launch_bounds__(512)
void odd_two_sums_finish(
    const float *__restrict__ dw_partial,
    const float *__restrict__ db_partial,
    bf16 *__restrict__ dw,
    bf16 *__restrict__ db,
    int partials) {
    constexpr int N = 12287, width = 32, slices = 16, batch = 5;
    __shared__ float scratch[2][16 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float dw_sum = 0;
    float db_sum = 0;
    if (col < N) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = (p + t * slices) * (long long)N + col;
                    dw_sum += dw_partial[item];
                    db_sum += db_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(dw_sum), sum_of(db_sum));
    if (slice == 0 && col < N) {
        dw[col] = as<bf16>(dw_sum);
        db[col] = as<bf16>(db_sum);
    }
}
