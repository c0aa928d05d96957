// in_turn for sm_90a, by fusec 0.3.0:
//   fusec in_turn.fuse N=2000 --arch sm_90a --schedule warp-specialized:threads=128,groups=2,stages=6,columns=shared,ride=yes --prelude include
#include "fusec.cuh"

// in_turn (warp-specialized), from in_turn.fuse:3-21
//   dx     = (wdy - xhat * c1 - c2) * rstd
//   dgamma = sum[M](dy * xhat), over the rows of this CTA
//   dbeta  = sum[M](dy), over the rows of this CTA
// where
//   xhat   = (x - mean) * rstd
//   wdy    = dy * gamma
//   c1     = mean[N](wdy * xhat)
//   c2     = mean[N](wdy)
//
// launch         1 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(M, 264), 1)
// block          288 threads: 256 compute, one warp copies
// shared memory  54784 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 112 a thread, for 2 CTAs an SM
// rows           a CTA walks blockIdx.x, + gridDim.x, ..., which 2 teams take in turn; its sums
//                over rows stay in registers
// columns        128 threads a row, each with 2 tiles of 8 adjacent columns, 1024 apart, the last
//                not full
// arguments      x_M, dy_M, dx_M: strides, in elements
//                interval: ns between two rows that a CTA asks for; 0 is always correct, and for
//                twice the data that L2 holds, or more,
//                12008 * min(M, 264) / (0.92 * peak memory bandwidth in bytes/ns) is faster
// workspace      dgamma_partial: f32[N] for each CTA of in_turn
//                dbeta_partial: f32[N] for each CTA of in_turn
extern "C" __global__ __launch_bounds__(288, 2)
void in_turn(
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
    constexpr int N = 2000;
    constexpr int threads_per_row = 128, teams = 2, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 2, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[teams][2][2 * (threads_per_row / 32)];
    int parity = 0;
    const long long first_row = blockIdx.x + (long long)team * gridDim.x;
    const long long row_step = (long long)gridDim.x * teams;

    // one warp copies rows into a ring of stages, which 2 teams of 4 warps take in turn
    constexpr int stages = 6;
    struct Stage {
        alignas(128) bf16 x[tiles * step + 64];
        alignas(128) bf16 dy[tiles * step + 64];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    __shared__ unsigned long long full[stages], empty[stages];
    if (threadIdx.x < stages) {
        barrier_init(full[threadIdx.x], 1);
        barrier_init(empty[threadIdx.x], threads_per_row / 32);
    }
    __syncthreads();
    if (threadIdx.x >= threads) {
        int stage = 0, stage_parity = 1;    // the first time round, every stage is empty
        unsigned due = clock_ns();    // when the next row may be asked for
        for (long long row = blockIdx.x; row < M; row += gridDim.x) {
            Stage &into = ring[stage];
            barrier_wait(empty[stage], stage_parity);
            keep_pace(due, interval);
            int bytes = 0;
            bytes += copy_shifted<vec>(into.x, x + row * x_M, N, full[stage]);
            bytes += copy_shifted<vec>(into.dy, dy + row * dy_M, N, full[stage]);
            copies_end(bytes, full[stage]);
            if (++stage == stages) {
                stage = 0;
                stage_parity ^= 1;
            }
        }
        return;
    }
    const int local_column = first_column;

    float dgamma_sum[tiles][vec] = {};
    float dbeta_sum[tiles][vec] = {};
    struct Columns {
        vector<bf16, vec> gamma[tiles][threads_per_row];
    };
    Columns &held = *(Columns *)(ring + stages);
    if (team == 0) {
        fetch_row<step>(held.gamma, gamma, first_column, N);
        fetch_commit();
        fetch_wait<0>();
    }
    team_barrier<threads, 1>();    // it is there for all
    int stage = team, stage_parity = 0;
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
            const int col = first_column + t * step;
            const packed<bf16, vec> x_v = shifted_at<vec>(current.x, local_column + t * step, x + row * x_M);
            const packed<bf16, vec> dy_v = shifted_at<vec>(current.dy, local_column + t * step, dy + row * dy_M);
            const packed<bf16, vec> gamma_v = held.gamma[t][thread_in_row];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[i];
                const float dy_ = dy_v[i];
                const float gamma_ = gamma_v[i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                if (col < N) {
                    c1 += wdy * xhat;
                    c2 += wdy;
                    dgamma_sum[t][i] += dy_ * xhat;
                    dbeta_sum[t][i] += dy_;
                }
            }
        }
        next += row_step;
        mean_next = next < M ? (float)mean[next] : 0;
        rstd_next = next < M ? (float)rstd[next] : 0;
        row_reduce<threads_per_row>(scratch, parity, sum_of(c1), sum_of(c2));
        c1 /= N;
        c2 /= N;

        #pragma unroll 1
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            const packed<bf16, vec> x_v = shifted_at<vec>(current.x, local_column + t * step, x + row * x_M);
            const packed<bf16, vec> dy_v = shifted_at<vec>(current.dy, local_column + t * step, dy + row * dy_M);
            const packed<bf16, vec> gamma_v = held.gamma[t][thread_in_row];
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[i];
                const float dy_ = dy_v[i];
                const float gamma_ = gamma_v[i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                dx_out[i] = (wdy - xhat * c1 - c2) * rstd_;
            }
            store_row(dx + row * dx_M, col, dx_out, N);
        }
        release(empty[stage]);
        if ((stage += teams) >= stages) {
            stage -= stages;
            stage_parity ^= 1;
        }
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    // what the teams have summed meets where the ring was: all its copies have been waited for
    struct Sums {
        alignas(16) float dgamma_sum[teams][tiles * step];
        alignas(16) float dbeta_sum[teams][tiles * step];
    };
    Sums &sums = *(Sums *)smem;
    team_barrier<threads, 1>();
    leave_sums<Sum>(sums.dgamma_sum, dgamma_sum);
    leave_sums<Sum>(sums.dbeta_sum, dbeta_sum);
    team_barrier<threads, 1>();
    store_sums<threads, vec, Sum>(dgamma_partial + blockIdx.x * (long long)N, sums.dgamma_sum, N);
    store_sums<threads, vec, Sum>(dbeta_partial + blockIdx.x * (long long)N, sums.dbeta_sum, N);
}

// in_turn_finish (finish), from in_turn.fuse:3-21
//   dgamma = sum[M](dy * xhat), from the partials
//   dbeta  = sum[M](dy), from the partials
//
// launch         2 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(N / 16), 1)
// block          1024 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                reserved only to keep a second CTA off the SM; 0 is correct too, but CTAs that
//                start early then crowd on the first free SMs
// registers      at most 64 a thread
// rows           the partials of in_turn, one from each CTA
// columns        up to 16 for each CTA; 64 threads a column, which take its partials in turn
// arguments      partials: min(M, 264)
// workspace      dgamma_partial: f32[N] for each CTA of in_turn
//                dbeta_partial: f32[N] for each CTA of in_turn
extern "C" __global__ __launch_bounds__(1024)
void in_turn_finish(
    const float *__restrict__ dgamma_partial,
    const float *__restrict__ dbeta_partial,
    bf16 *__restrict__ dgamma,
    bf16 *__restrict__ dbeta,
    int partials) {
    constexpr int N = 2000, width = 16, slices = 64, batch = 5;
    __shared__ float scratch[2][32 * width];
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
