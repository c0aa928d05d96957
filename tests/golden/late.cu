// mean_cross_entropy for sm_90a, by fusec 0.3.0:
//   fusec late.fuse N=300 --arch sm_90a --prelude include
#include "fusec.cuh"

// mean_cross_entropy (row), from late.fuse:2-18
//   convert_0_value = sum[M](counts)
//   counted         = sum[M](counts)
// where
//   counts          = label != 3
//
// launch         1 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (8, 1)
// block          512 threads
// cluster        8 CTAs, by __cluster_dims__
// shared memory  0 bytes, dynamic
// registers      at most 128 a thread
// rows           one, which all CTAs share
// columns        8 CTAs of 512 threads a row, each takes one column at a time
// workspace      convert_0_value: f32[1]
extern "C" __global__ __cluster_dims__(8, 1, 1) __launch_bounds__(512)
void mean_cross_entropy(
    const long long *__restrict__ label,
    float *__restrict__ convert_0_value,
    long long *__restrict__ counted,
    long long M) {
    constexpr int cluster = 8;    // CTAs that share a row
    constexpr int threads = 512;
    constexpr int vec = 1, step = cluster * threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int first_column = (blockIdx.x % cluster * threads + thread_in_row) * vec;
    __shared__ double scratch[1][2][threads / 32];
    __shared__ Exchange<double, 1, cluster> exchange;
    int round = 0;    // of the exchange
    exchange_init(exchange);

    long long counted_ = 0;
    #pragma unroll 1
    for (long long at = first_column; at < M; at += 8 * step) {
        vector<long long, vec> label_v[8];
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            load_once(label_v[t], label, col, M);
        }
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const long long label_ = label_v[t][i];
                const bool counts = label_ != 3;
                counted_ += (long long)counts;
            }
        }
    }
    cluster_reduce<threads>(scratch, exchange, round, sum_of(counted_));

    if (thread_in_row == 0 && blockIdx.x % cluster == 0) {
        convert_0_value[0] = (float)counted_;
        counted[0] = counted_;
    }
}

// mean_cross_entropy_2 (row), from late.fuse:2-18
//   dx             = where(counts, e / s - where(index(N) == label, 1.0, 0.0), 0.0) / counted
//   number_1_value = where(counts, each, 0.0)
// where
//   counts         = label != 3
//   m              = max[N](x)
//   e              = exp(x - m)
//   s              = sum[N](e)
//   each           = m + log(s) - sum[N](where(index(N) == label, x, 0.0))
//
// launch         2 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (ceil(M / 16), 1)
// block          128 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has 16, from blockIdx.x * 16
// columns        8 threads a row, each with 10 tiles of 4 adjacent columns, 32 apart, the last not
//                full
// arguments      x_M, dx_M: strides, in elements
// workspace      convert_0_value: f32[1], sum[M](counts)
//                number_1_value: f32[M]
extern "C" __global__ __launch_bounds__(128)
void mean_cross_entropy_2(
    const bf16 *__restrict__ x, long long x_M,
    const long long *__restrict__ label,
    const float *__restrict__ convert_0_value,
    bf16 *__restrict__ dx, long long dx_M,
    float *__restrict__ number_1_value,
    long long M) {
    constexpr int N = 300;
    constexpr int threads_per_row = 8, teams = 16;
    constexpr int vec = 4, tiles = 10, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;
    const float widened = convert_0_value[0];

    const long long cta_row = (long long)blockIdx.x * teams;
    // a team without a row reads the first team's, and stores nothing
    const bool has_row = cta_row + team < M;
    const long long row = has_row ? cta_row + team : cta_row;
    const long long label_ = label[row];
    const bool counts = label_ != 3;
    vector<bf16, vec> x_v[tiles];
    load_row<step>(x_v, x + row * x_M, first_column, N);
    float m = -infinity();
    float s = 0;
    float row_sum = 0;    // sum[N](where(index(N) == label, x, 0.0))
    const int label_at = as_column(label_);
    if (thread_in_row == 0 && label_at >= 0 && label_at < N)
        row_sum += (float)x[row * x_M + label_at];
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float m_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = x_v[t][i];
            m_of[i] = col < N ? x_ : -infinity();
        }
        online_add(m, s, m_of);
    }
    lanes_reduce<threads_per_row>(online_of(m, s), sum_of(row_sum));
    online_end(m, s);

    const float inverse_s = quick_inverse(s);
    const float each = m + logf(s) - row_sum;
    const Divisor widened_divisor = divisor(widened);    // x / widened_divisor: a product with the inverse, corrected once
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float dx_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float x_ = widen_again(x_v[t], i);
            const float e = quick_exp(x_ - m);
            dx_out[i] = (counts ? e * inverse_s - (i == label_at - col ? 1.0f : 0.0f) : 0.0f) / widened_divisor;
        }
        if (has_row)
            store_row(dx + row * dx_M, col, dx_out, N);
    }
    if (thread_in_row == 0 && has_row)
        number_1_value[row] = counts ? each : 0.0f;
}

// mean_cross_entropy_3 (row), from late.fuse:2-18
//   loss = sum[M](where(counts, each, 0.0)) / counted
//
// launch         3 of 3; programmatic stream serialization is allowed: the kernel itself waits
// grid           (8, 1)
// block          512 threads
// cluster        8 CTAs, by __cluster_dims__
// shared memory  0 bytes, dynamic
// registers      at most 128 a thread
// rows           one, which all CTAs share
// columns        8 CTAs of 512 threads a row, each takes one column at a time
// workspace      convert_0_value: f32[1], sum[M](counts)
//                number_1_value: f32[M], where(counts, each, 0.0)
extern "C" __global__ __cluster_dims__(8, 1, 1) __launch_bounds__(512)
void mean_cross_entropy_3(
    const float *__restrict__ convert_0_value,
    const float *__restrict__ number_1_value,
    float *__restrict__ loss,
    long long M) {
    constexpr int cluster = 8;    // CTAs that share a row
    constexpr int threads = 512;
    constexpr int vec = 1, step = cluster * threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int first_column = (blockIdx.x % cluster * threads + thread_in_row) * vec;
    __shared__ float scratch[1][2][threads / 32];
    __shared__ Exchange<float, 1, cluster> exchange;
    int round = 0;    // of the exchange
    exchange_init(exchange);
    const float widened = convert_0_value[0];

    float row_sum = 0;    // sum[M](where(counts, each, 0.0))
    #pragma unroll 1
    for (long long at = first_column; at < M; at += 8 * step) {
        vector<float, vec> number_1_value_v[8];
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            load_once(number_1_value_v[t], number_1_value, col, M);
        }
        float row_sum_of = 0;
        #pragma unroll
        for (int t = 0; t < 8; t++) {
            const long long col = at + t * step;
            if (col >= M) break;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float chosen = number_1_value_v[t][i];
                row_sum_of += chosen;
            }
        }
        row_sum += row_sum_of;
    }
    cluster_reduce<threads>(scratch, exchange, round, sum_of(row_sum));

    if (thread_in_row == 0 && blockIdx.x % cluster == 0)
        loss[0] = row_sum / widened;
}
