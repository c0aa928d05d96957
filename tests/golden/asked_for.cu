// asked_for for sm_90a, by fusec 0.3.0:
//   fusec asked_for.fuse N=3584 --arch sm_90a --schedule row:threads=128,columns=memory --prelude include
#include "fusec.cuh"

// asked_for (row), from asked_for.fuse:3-14
//   y    = (x - mean) * rstd * gamma + beta
// where
//   mean = mean[N](x)
//   rstd = rsqrt(mean[N]((x - mean) * (x - mean)) + eps)
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (M, 1)
// block          128 threads
// shared memory  0 bytes, dynamic
//                16384 are faster in a grid of up to 512 CTAs
// rows           a CTA has row blockIdx.x
// columns        128 threads a row, each with 4 tiles of 8 adjacent columns, 1024 apart, the last
//                not full
// arguments      x_M, y_M: strides, in elements
extern "C" __global__ __launch_bounds__(128)
void asked_for(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ gamma,
    const bf16 *__restrict__ beta,
    bf16 *__restrict__ y, long long y_M,
    float eps) {
    constexpr int N = 3584;
    constexpr int threads = 128;
    constexpr int vec = 8, tiles = 4, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    __builtin_assume(thread_in_row < threads);
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[1][2][4 * (threads / 32)];
    int parity = 0;
    // few rows are given shared memory: what all of them share comes to it while the row comes to registers
    struct Columns {
        vector<bf16, vec> gamma[tiles][threads];
        vector<bf16, vec> beta[tiles][threads];
    };
    const bool few = dynamic_smem() >= sizeof(Columns);
    alignas(128) extern __shared__ uint4 smem[];
    Columns &held = *(Columns *)smem;
    // a later phase reads this tile by tile; so that none waits for memory then, a few CTAs have L2 fetch it now
    if (!few && blockIdx.x < 4) {
        ask_for_columns<threads>(gamma, N);
        ask_for_columns<threads>(beta, N);
    }

    const long long row = blockIdx.x;
    vector<bf16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_M, first_column, N);
    if (few) {
        fetch_row<step>(held.gamma, gamma, first_column, N);
        fetch_row<step>(held.beta, beta, first_column, N);
        fetch_commit();
    }
    float mean = 0;
    float row_variance = 0;    // mean[N]((x - mean) * (x - mean))
    float mean_seen = 0, mean_shift = 0;
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float mean_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            mean_of[i] = x_;
        }
        if (t + 1 < tiles || col < N)
            moments_add(moments_of(mean, row_variance, mean_seen, mean_shift), mean_of);
    }
    moments_settle(moments_of(mean, row_variance, mean_seen, mean_shift));
    fetch_wait<0>();    // a thread reads what it has copied itself
    // the next phase reads a tile while it computes the one before; this is the first
    vector<bf16, vec> gamma_next;
    vector<bf16, vec> beta_next;
    if (few) {
        gamma_next = held.gamma[0][threadIdx.x];
        beta_next = held.beta[0][threadIdx.x];
    } else {
        load(gamma_next, gamma, first_column, N);
        load(beta_next, beta, first_column, N);
    }
    row_reduce<threads>(scratch, parity, moments_of(mean, row_variance, mean_seen, mean_shift));
    mean /= N;
    const float mean_rest = moments_end(mean, mean_shift);
    row_variance /= N;

    const float rstd = rsqrtf(row_variance + eps);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        const vector<bf16, vec> gamma_v = gamma_next;
        const vector<bf16, vec> beta_v = beta_next;
        if (t + 1 < tiles) {
            if (few) {
                gamma_next = held.gamma[t + 1][threadIdx.x];
                beta_next = held.beta[t + 1][threadIdx.x];
            } else {
                load(gamma_next, gamma, col + step, N);
                load(beta_next, beta, col + step, N);
            }
        }
        float y_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = widen_again(x_v[t], i);
            const float gamma_ = gamma_v[i];
            const float beta_ = beta_v[i];
            y_out[i] = fmaf(x_ - mean, rstd, -mean_rest * rstd) * gamma_ + beta_;
        }
        store_row(y + row * y_M, col, y_out, N);
    }
}
