// bias_grad for sm_90a, by fusec 0.3.0:
//   fusec column.fuse N=768 --arch sm_90a --prelude include
#include "fusec.cuh"

// bias_grad (column), from column.fuse:1-3
//   db = sum[M](dy), over the rows of this CTA
//
// launch         1 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(ceil(M / 32), 132), 1)
// block          512 threads
// shared memory  147456 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 128 a thread
// rows           a CTA walks 32 at a time, from blockIdx.x * 32, + gridDim.x * 32, ...; its sums
//                over rows stay in registers
// columns        16 threads a row, each with 6 tiles of 8 adjacent columns, 128 apart
// arguments      dy_M: stride, in elements
// workspace      db_partial: f32[N] for each CTA of bias_grad
extern "C" __global__ __launch_bounds__(512, 1)
void bias_grad(
    const bf16 *__restrict__ dy, long long dy_M,
    float *__restrict__ db_partial,
    long long M) {
    constexpr int N = 768;
    constexpr int threads_per_row = 16, teams = 32, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 6, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    float db_sum[tiles][vec] = {};
    const long long first_row = (long long)blockIdx.x * teams;
    const long long row_step = (long long)gridDim.x * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    constexpr int stages = 3;
    struct Stage {
        vector<bf16, vec> dy[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step, dropped_from_l2>(into.dy, dy + row * dy_M, first_column, N);
        }
        fetch_commit();
    };
    int stage = 1;    // passes before first_row only start copies: first_row's to stage 0, and so on
    #pragma unroll 1
    for (long long cta_row = first_row - row_step * (stages - 1); cta_row < M; cta_row += row_step) {
        const Stage &current = ring[stage];
        fetch(ring[(stage + stages - 1) % stages], cta_row + team + row_step * (stages - 1));
        stage = (stage + 1) % stages;
        if (cta_row < first_row)
            continue;
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        // a team without a row reads the first team's, and stores nothing
        const bool has_row = cta_row + team < M;
        const long long row = has_row ? cta_row + team : cta_row;
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const vector<bf16, vec> dy_v = current.dy[t][threadIdx.x];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float dy_ = dy_v[i];
                if (has_row) {
                    db_sum[t][i] += dy_;
                }
            }
        }
    }

    // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
    let_next_kernel_start();
    // what the teams have summed meets where the ring was: all its copies have been waited for
    struct Sums {
        alignas(16) float db_sum[threads / 32][tiles * step];
    };
    Sums &sums = *(Sums *)smem;
    __syncthreads();
    leave_sums<Sum>(sums.db_sum, db_sum);
    __syncthreads();
    store_sums<threads, vec, Sum>(db_partial + blockIdx.x * (long long)N, sums.db_sum, N);
}

// bias_grad_finish (finish), from column.fuse:1-3
//   db = sum[M](dy), from the partials
//
// launch         2 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(N / 8), 1)
// block          256 threads
// shared memory  115840 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
//                reserved only to keep a second CTA off the SM; 0 is correct too, but CTAs that
//                start early then crowd on the first free SMs
// rows           the partials of bias_grad, one from each CTA
// columns        up to 8 for each CTA; 32 threads a column, which take its partials in turn
// arguments      partials: min(ceil(M / 32), 132)
// workspace      db_partial: f32[N] for each CTA of bias_grad
extern "C" __global__ __launch_bounds__(256)
void bias_grad_finish(
    const float *__restrict__ db_partial,
    float *__restrict__ db,
    int partials) {
    constexpr int N = 768, width = 8, slices = 32, batch = 5;
    __shared__ float scratch[1][8 * width];
    const int slice = threadIdx.x / width, col = blockIdx.x * width + threadIdx.x % width;
    wait_for_previous_kernel();

    float db_sum = 0;
    if (col < N) {
        #pragma unroll 1
        for (int p = slice; p < partials; p += batch * slices)
            #pragma unroll
            for (int t = 0; t < batch; t++)
                if (p + t * slices < partials) {
                    const long long item = (p + t * slices) * (long long)N + col;
                    db_sum += db_partial[item];
                }
    }
    slice_reduce<width>(scratch, sum_of(db_sum));
    if (slice == 0 && col < N) {
        db[col] = db_sum;
    }
}
