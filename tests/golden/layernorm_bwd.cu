// layernorm_bwd for sm_90a, by fusec 0.3.0:
//   fusec layernorm_bwd.fuse N=4096 --arch sm_90a --prelude include
#include "fusec.cuh"

// layernorm_bwd (grid-stride), from layernorm_bwd.fuse:9-27
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
// grid           (min(ceil(M / 2), 132), 1)
// block          512 threads
// shared memory  98304 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 128 a thread
// rows           a CTA walks 2 at a time, from blockIdx.x * 2, + gridDim.x * 2, ...; its sums over
//                rows stay in registers
// columns        256 threads a row, each with 2 tiles of 8 adjacent columns, 2048 apart
// arguments      x_M, dy_M, dx_M: strides, in elements
// workspace      dgamma_partial: f32[N] for each CTA of layernorm_bwd
//                dbeta_partial: f32[N] for each CTA of layernorm_bwd
extern "C" __global__ __launch_bounds__(512, 1)
void layernorm_bwd(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ dy, long long dy_M,
    const bf16 *__restrict__ gamma,
    const float *__restrict__ mean,
    const float *__restrict__ rstd,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ dgamma_partial,
    float *__restrict__ dbeta_partial,
    long long M) {
    constexpr int N = 4096;
    constexpr int threads_per_row = 256, teams = 2, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 2, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[teams][2][2 * (threads_per_row / 32)];
    int parity = 0;
    vector<bf16, vec> gamma_v[tiles];
    load_columns<step>(gamma_v, gamma, first_column, N);

    float dgamma_sum[tiles][vec] = {};
    float dbeta_sum[tiles][vec] = {};
    const long long first_row = (long long)blockIdx.x * teams + team;
    const long long row_step = (long long)gridDim.x * teams;

    // a row goes on to registers at once, and the next one to be copied takes its stage
    constexpr int stages = 3;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
        vector<bf16, vec> dy[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step>(into.x, x + row * x_M, first_column, N);
            fetch_row<step>(into.dy, dy + row * dy_M, first_column, N);
        }
        fetch_commit();
    };
    int stage = 0;
    for (int s = 0; s < stages; s++)
        fetch(ring[s], first_row + row_step * s);
    long long next = first_row;
    float mean_next = arrived(next < M ? (float)mean[next] : 0);
    float rstd_next = arrived(next < M ? (float)rstd[next] : 0);
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        Stage &current = ring[stage];
        stage = (stage + 1) % stages;
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        const float mean_ = mean_next;
        const float rstd_ = rstd_next;
        vector<bf16, vec> x_v[tiles];
        read_row(x_v, current.x);
        vector<bf16, vec> dy_v[tiles];
        read_row(dy_v, current.dy);
        fetch(current, row + row_step * stages);
        float c1 = 0;
        float c2 = 0;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float dy_ = dy_v[t][i];
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
        row_reduce<threads_per_row>(scratch, parity, sum_of(c1), sum_of(c2));
        c1 /= N;
        c2 /= N;

        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float dy_ = dy_v[t][i];
                const float gamma_ = gamma_v[t][i];
                const float xhat = (x_ - mean_) * rstd_;
                const float wdy = dy_ * gamma_;
                dx_out[i] = (wdy - xhat * c1 - c2) * rstd_;
            }
            store_row(dx + row * dx_M, col, dx_out, N);
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
    __syncthreads();
    leave_sums<Sum>(sums.dgamma_sum, dgamma_sum);
    leave_sums<Sum>(sums.dbeta_sum, dbeta_sum);
    __syncthreads();
    store_sums<threads, vec, Sum>(dgamma_partial + blockIdx.x * (long long)N, sums.dgamma_sum, N);
    store_sums<threads, vec, Sum>(dbeta_partial + blockIdx.x * (long long)N, sums.dbeta_sum, N);
}

// layernorm_bwd_finish (finish), from layernorm_bwd.fuse:9-27
//   dgamma = sum[M](dy * xhat), from the partials
//   dbeta  = sum[M](dy), from the partials
//
// launch         2 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(N / 32), 1)
// block          1024 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                reserved only to keep a second CTA off the SM; 0 is correct too, but CTAs that
//                start early then crowd on the first free SMs
// registers      at most 64 a thread
// rows           the partials of layernorm_bwd, one from each CTA
// columns        up to 32 for each CTA; 32 threads a column, which take its partials in turn
// arguments      partials: min(ceil(M / 2), 132)
// workspace      dgamma_partial: f32[N] for each CTA of layernorm_bwd
//                dbeta_partial: f32[N] for each CTA of layernorm_bwd
extern "C" __global__ __launch_bounds__(1024)
void layernorm_bwd_finish(
    const float *__restrict__ dgamma_partial,
    const float *__restrict__ dbeta_partial,
    bf16 *__restrict__ dgamma,
    bf16 *__restrict__ dbeta,
    int partials) {
    constexpr int N = 4096, width = 32, slices = 32, batch = 5;
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
