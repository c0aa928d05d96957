// window_softmax for sm_90a, by fusec 0.3.0:
//   fusec window.fuse K=1024 --arch sm_90a --prelude include
#include "fusec.cuh"

// window_softmax (row), from window.fuse:3-16
//   y    = e / (sum[K](e) + exp(sink - m))
// where
//   back = index(Q) + size(K) - size(Q) - index(K)
//   s    = where(back >= 0 && back < window, x * scale, -inf)
//   m    = max(max[K](s), sink)
//   e    = exp(s - m)
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(B * H * Q / 8), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 8, from blockIdx.x * 8
// columns        16 threads a row, each with 8 tiles of 8 adjacent columns, 128 apart
// arguments      x_B, x_H, x_Q, y_B, y_H, y_Q: strides, in elements
extern "C" __global__ __launch_bounds__(128)
void window_softmax(
    const bf16 *__restrict__ x, long long x_B, long long x_H, long long x_Q,
    const float *__restrict__ sink,
    bf16 *__restrict__ y, long long y_B, long long y_H, long long y_Q,
    float scale, long long window,
    long long B, long long H, long long Q) {
    constexpr int K = 1024;
    constexpr int threads_per_row = 16, teams = 8;
    constexpr int vec = 8, tiles = 8, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    const long long rows = B * H * Q;
    const long long cta_row = (long long)blockIdx.x * teams;
    // a team without a row reads the first team's, and stores nothing
    const bool has_row = cta_row + team < rows;
    const long long row = has_row ? cta_row + team : cta_row;
    long long rest, q;
    split(row, Q, rest, q);
    long long b, h;
    split(rest, H, b, h);
    const float sink_ = sink[h];
    const long long difference = q + (long long)K - Q;
    const int place = as_column(difference - as_distance(window));
    const int place_ = as_column(difference);
    // a mask excludes the other columns of the row: x is not read there
    const int from = lesser(place, K - 1) + 1, to = lesser(place_, K - 1);
    vector<bf16, vec> x_v[tiles];
    load_window<step>(x_v, x + b * x_B + h * x_H + q * x_Q, first_column, from, to);
    float row_max = -infinity();    // max[K](s)
    float s[tiles][vec];    // for later phases
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        if (col > to || col + vec <= from) continue;
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            s[t][i] = i <= place_ - col && i > place - col ? x_ * scale : -infinity();
            if (has_row) {
                row_max = max_nan(row_max, s[t][i]);
            }
        }
    }
    lanes_reduce<threads_per_row>(max_of(row_max));

    const float m = max_nan(row_max, sink_);
    float row_sum = 0;    // sum[K](e)
    float e[tiles][vec];    // for later phases
    const float e_outside = quick_exp(-infinity() - m);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        if (col <= to && col + vec > from) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                e[t][i] = quick_exp(s[t][i] - m);
                if (has_row) {
                    row_sum += e[t][i];
                }
            }
        } else if (e_outside != 0) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                if (has_row)
                    row_sum += e_outside;
            }
        }
    }
    lanes_reduce<threads_per_row>(sum_of(row_sum));

    const float total = row_sum + quick_exp(sink_ - m);
    const Divisor total_divisor = divisor(total);    // x / total_divisor: a product with the inverse, corrected once
    const float y_outside = quick_exp(-infinity() - m) / total_divisor;
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float y_out[vec];
        if (col <= to && col + vec > from) {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                y_out[i] = e[t][i] / total_divisor;
            }
        } else {
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                y_out[i] = y_outside;
            }
        }
        if (has_row)
            store_vector(y + b * y_B + h * y_H + q * y_Q, col, y_out);
    }
}
