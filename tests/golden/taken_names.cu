// taken_names for sm_90a, by fusec 0.3.0:
//   fusec taken_names.fuse N=4096 --arch sm_90a --prelude include
#include "fusec.cuh"

// taken_names (row), from taken_names.fuse:5-8
//   p = e / sum[N](e)
// where
//   s = t * i
//   e = exp(s - max[N](s))
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (M, 1)
// block          64 threads
// shared memory  0 bytes, dynamic
// rows           a CTA has row blockIdx.x
// columns        64 threads a row, each with 8 tiles of 8 adjacent columns, 512 apart
// arguments      t2_M, p_M: strides, in elements
extern "C" __global__ __launch_bounds__(64)
void taken_names(
    const bf16 *__restrict__ t2, long long t2_M,
    const float *__restrict__ i2,
    bf16 *__restrict__ p, long long p_M) {
    constexpr int N = 4096;
    constexpr int threads = 64;
    constexpr int vec = 8, tiles = 8, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[1][2][2 * (threads / 32)];
    int parity = 0;
    vector<float, vec> i2_v[tiles];
    load_columns<step>(i2_v, i2, first_column, N);

    const long long row = blockIdx.x;
    vector<bf16, vec> t2_v[tiles];
    load_row<step>(t2_v, t2 + row * t2_M, first_column, N);
    float row_max = -infinity();    // max[N](s)
    float row_sum = 0;    // sum[N](e)
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        float row_max_of[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float t2_ = t2_v[t][i];
            const float i2_ = i2_v[t][i];
            const float s = t2_ * i2_;
            row_max_of[i] = s;
        }
        online_add(row_max, row_sum, row_max_of);
    }
    row_reduce<threads>(scratch, parity, online_of(row_max, row_sum));
    online_end(row_max, row_sum);

    const float inverse_row_sum = quick_inverse(row_sum);
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step;
        float p_out[vec];
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float t2_ = widen_again(t2_v[t], i);
            const float i2_ = i2_v[t][i];
            const float s = t2_ * i2_;
            const float e = quick_exp(s - row_max);
            p_out[i] = e * inverse_row_sum;
        }
        store_vector(p + row * p_M, col, p_out);
    }
}
