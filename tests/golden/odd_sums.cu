// odd_sums for sm_90a, by fusec 0.3.0:
//   fusec odd_sums.fuse N=1023 --arch sm_90a --schedule grid-stride:threads=128,rows=4,lines=1 --prelude include
#include "fusec.cuh"

// odd_sums (grid-stride), from odd_sums.fuse:3-6
//   dx = dy - x * mean[N](dy * x)
//   dw = sum[M](dy * x), over the rows of this CTA
//
// launch         1 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(ceil(M / 4), 264), 1)
// block          512 threads
// shared memory  52224 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 64 a thread, for 2 CTAs an SM
// rows           a CTA walks 4 at a time, from blockIdx.x * 4, + gridDim.x * 4, ...; its sums over
//                rows stay in registers
// columns        128 threads a row, each with 8 columns, 128 apart
//                reads whole blocks of 16 bytes: up to 15 bytes before a row
// arguments      x_M, dy_M, dx_M: strides, in elements
// workspace      dw_partial: f32[N] for each CTA of odd_sums
extern "C" __global__ __launch_bounds__(512, 2)
void odd_sums(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ dy, long long dy_M,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ dw_partial,
    long long M) {
    constexpr int N = 1023;
    constexpr int threads_per_row = 128, teams = 4, threads = threads_per_row * teams;
    constexpr int vec = 1, tiles = 8, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[teams][2][threads_per_row / 32];
    int parity = 0;

    float dw_sum[tiles][vec] = {};
    const long long first_row = (long long)blockIdx.x * teams + team;
    const long long row_step = (long long)gridDim.x * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    // rows begin anywhere in a line of memory: threads copy whole blocks of 16 bytes, for each other
    constexpr int stages = 3;
    struct Stage {
        lines<bf16, tiles * step> x[teams];
        lines<bf16, tiles * step> dy[teams];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_lines<threads_per_row, vec>(into.x[team], x + row * x_M, N);
            fetch_lines<threads_per_row, vec>(into.dy[team], dy + row * dy_M, N);
        }
        fetch_commit();
    };
    int stage = 1;    // passes before first_row only start copies: first_row's to stage 0, and so on
    #pragma unroll 1
    for (long long row = first_row - row_step * (stages - 1); row < M; row += row_step) {
        const Stage &current = ring[stage];
        fetch(ring[(stage + stages - 1) % stages], row + row_step * (stages - 1));
        stage = (stage + 1) % stages;
        if (row < first_row)
            continue;
        if (row == first_row) {
            fetch_wait<stages - 1>();
            team_barrier<threads_per_row, teams>();    // later rows are shown to all by a reduction of the row before
        }
        vector<bf16, vec> x_v[tiles];
        read_lines<step>(x_v, current.x[team], x + row * x_M, first_column);
        vector<bf16, vec> dy_v[tiles];
        read_lines<step>(dy_v, current.dy[team], dy + row * dy_M, first_column);
        float row_mean = 0;    // mean[N](dy * x)
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float dy_ = dy_v[t][i];
                const float product = dy_ * x_;
                if (col < N) {
                    row_mean += product;
                    dw_sum[t][i] += product;
                }
            }
        }
        fetch_wait<stages - 2>();    // the next row's blocks: row_reduce shows them to all
        row_reduce<threads_per_row>(scratch, parity, sum_of(row_mean));
        row_mean /= N;

        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            float dx_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float dy_ = dy_v[t][i];
                dx_out[i] = dy_ - x_ * row_mean;
            }
            store_row(dx + row * dx_M, col, dx_out, N);
        }
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    // what the teams have summed meets where the ring was: all its copies have been waited for
    struct Sums {
        alignas(16) float dw_sum[teams][tiles * step];
    };
    Sums &sums = *(Sums *)smem;
    __syncthreads();
    leave_sums<Sum>(sums.dw_sum, dw_sum);
    __syncthreads();
    store_sums<threads, vec, Sum>(dw_partial + blockIdx.x * (long long)N, sums.dw_sum, N);
}

// odd_sums_finish (finish), from odd_sums.fuse:3-6
//   dw = sum[M](dy * x), from the partials
//
// launch         2 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(N / 8), 1)
// block          512 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                reserved only to keep a second CTA off the SM; 0 is correct too, but CTAs that
//                start early then crowd on the first free SMs
// registers      at most 128 a thread
// rows           the partials of odd_sums, one from each CTA
// columns        up to 8 for each CTA; 64 threads a column, which take its partials in turn
// arguments      partials: min(ceil(M / 4), 264)
// workspace      dw_partial: f32[N] for each CTA of odd_sums
extern "C" __global__ __launch_bounds__(512)
void odd_sums_finish(
    const float *__restrict__ dw_partial,
    bf16 *__restrict__ dw,
    int partials) {
    constexpr int N = 1023, width = 8, slices = 64, batch = 5;
    __shared__ float scratch[1][16 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float dw_sum = 0;
    if (col < N) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = (p + t * slices) * (long long)N + col;
                    dw_sum += dw_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(dw_sum));
    if (slice == 0 && col < N) {
        dw[col] = as<bf16>(dw_sum);
    }
}
