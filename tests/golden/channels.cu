// channels for sm_90a, by fusec 0.3.0:
//   fusec channels.fuse C=100 --arch sm_90a --schedule row:threads=16,rows=16,lanes=4,vec=4 --prelude include
#include "fusec.cuh"

// channels (row), from channels.fuse:3-13
//   y         = x_centred * rstd * gamma + beta
//   rstd      = rsqrt(mean[C](x_centred * x_centred) + 1e-6)
// where
//   x_mean    = mean[C](x)
//   x_centred = x - x_mean
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(S / 64), min(B, 65535))
// block          256 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 64 neighbours along S, from blockIdx.x * 64 on, of lines blockIdx.y, +
//                gridDim.y, ...; a line is the rows of the same index along B
// columns        16 threads a row (4 lanes of each of 4 warps); a thread has columns thread_in_row,
//                + 16, ... (6 or 7 of them) of 4 rows: neighbours if `together`, else teams apart
// arguments      x_B, x_C, y_B, y_C, rstd_B: strides, in elements
extern "C" __global__ __launch_bounds__(256)
void channels(
    const bf16 *__restrict__ x, long long x_B, long long x_C,
    const float *__restrict__ gamma,
    const float *__restrict__ beta,
    bf16 *__restrict__ y, long long y_B, long long y_C,
    float *__restrict__ rstd, long long rstd_B,
    long long B, long long S) {
    constexpr int C = 100;
    constexpr int threads_per_row = 16, teams = 16;
    constexpr int vec = 4, tiles = 7, step = threads_per_row;    // vec rows of each column
    wait_for_previous_kernel();
    // a row has `lanes` of each of `warps` warps; their other lanes have the rows beside
    constexpr int lanes = 4, warps = 4;
    const int team = threadIdx.x / (32 * warps) * (32 / lanes) + threadIdx.x % 32 / lanes;
    const int thread_in_row = threadIdx.x / 32 % warps * lanes + threadIdx.x % lanes;
    const int first_column = thread_in_row;
    __shared__ float scratch[2][13 * warps][teams];
    int parity = 0;

    const bool aligned = is_aligned<vec>(x, x_B, x_C) && is_aligned<vec>(y, y_B, y_C);
    const bool together = aligned && ((long long)blockIdx.x + 1) * (teams * vec) <= S;
    const int apart = together ? 1 : teams;    // from one of a thread's rows to the next
    const long long s = (long long)blockIdx.x * (teams * vec) + team * (together ? vec : 1), left = S - s;
    const int here = rows_here<vec>(left, apart);    // rows that this thread has
    #pragma unroll 1
    for (long long line = blockIdx.y; line < B; line += gridDim.y) {
        vector<bf16, vec> x_v[tiles];
        load_span<step, teams>(x_v, x + line * x_B + s, x_C, first_column, C, left, together);
        float x_mean[vec] = {};
        float row_variance[vec] = {};    // mean[C](x_centred * x_centred)
        float x_mean_seen = 0, x_mean_shift[vec] = {};
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            float x_mean_of[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = widen_anew(x_v[t], i);
                x_mean_of[i] = x_;
            }
            if (col < C)
                each_moments_add(each_moments_of(x_mean, row_variance, x_mean_seen, x_mean_shift), x_mean_of);
        }
        moments_settle(each_moments_of(x_mean, row_variance, x_mean_seen, x_mean_shift));
        span_reduce<lanes, warps>(scratch, parity, team, each_moments_of(x_mean, row_variance, x_mean_seen, x_mean_shift));
        #pragma unroll
        for (int i = 0; i < vec; i++)
            x_mean[i] = quotient(x_mean[i], C);
        float x_mean_rest[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++)
            x_mean_rest[i] = moments_end(x_mean[i], x_mean_shift[i]);
        #pragma unroll
        for (int i = 0; i < vec; i++)
            row_variance[i] = quotient(row_variance[i], C);

        float rstd_[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            rstd_[i] = rsqrtf(row_variance[i] + 1e-06f);
        }
        vector<bf16, vec> y_v[tiles];    // stored behind the last column
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            const float gamma_ = col < C ? (float)gamma[col] : 0;
            const float beta_ = col < C ? (float)beta[col] : 0;
            float y_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = widen_again(x_v[t], i);
                y_out[i] = fmaf(x_ - x_mean[i], rstd_[i], -x_mean_rest[i] * rstd_[i]) * gamma_ + beta_;
            }
            fill(y_v[t], y_out);
        }
        store_span<step, teams>(y_v, y + line * y_B + s, y_C, first_column, C, here, together);
        if (thread_in_row == 0) {
            float rstd_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++)
                rstd_out[i] = rstd_[i];
            store_some(&rstd[line * rstd_B + s], rstd_out, here, apart);
        }
    }
}
