// block_scales for sm_90a, by fusec 0.3.0:
//   fusec block_scales.fuse G=12 K=64 --arch sm_90a --schedule row:threads=64,stages=2,reuse=1 --prelude include
#include "fusec.cuh"

// block_scales (row), from block_scales.fuse:3-13
//   q     = y / scale
//   scale = max(max[K](abs(y)), 0.0001) / 448.0
// where
//   y     = x * rsqrt(mean[G, K](x * x) + 1e-6) * gamma
//
// launch         1 of 1; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(M, 2112), 1)
// block          64 threads
// shared memory  4096 bytes, dynamic
// registers      at most 64 a thread, for 16 CTAs an SM
// rows           a CTA walks blockIdx.x, + gridDim.x, ...
// columns        64 threads a row, each with 2 tiles of 8 adjacent columns, 512 apart, the last not
//                full
//                col counts G * K; a vector lies along K
// arguments      x_M, q_M, scale_M: strides, in elements
//                columns, numbered along [G, K], lie side by side; block_scales_strided is for
//                others
extern "C" __global__ __launch_bounds__(64, 16)
void block_scales(
    const bf16 *__restrict__ x, long long x_M,
    const bf16 *__restrict__ gamma,
    f8e4m3 *__restrict__ q, long long q_M,
    float *__restrict__ scale, long long scale_M,
    long long M) {
    constexpr int G = 12, K = 64;
    constexpr int columns = G * K;
    constexpr int threads = 64;
    constexpr int vec = 8, tiles = 2, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    __builtin_assume(thread_in_row < threads);
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[1][2][threads / 32];
    int parity = 0;
    vector<bf16, vec> gamma_v[tiles];
    load_columns<step>(gamma_v, gamma, first_column, columns);

    const long long first_row = blockIdx.x, row_step = gridDim.x;

    // a row goes on to registers at once, and the next one to be copied takes its stage
    constexpr int stages = 2;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            fetch_row<step>(into.x, x + row * x_M, first_column, columns);
        }
        fetch_commit();
    };
    int stage = 0;
    for (int s = 0; s < stages; s++)
        fetch(ring[s], first_row + row_step * s);
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        Stage &current = ring[stage];
        stage = (stage + 1) % stages;
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        vector<bf16, vec> x_v[tiles];
        read_row(x_v, current.x);
        fetch(current, row + row_step * stages);
        float row_mean = 0;    // mean[G, K](x * x)
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                if (col < columns) {
                    row_mean += x_ * x_;
                }
            }
        }
        row_reduce<threads>(scratch, parity, sum_of(row_mean));
        row_mean /= G * K;

        const float rsqrt_value = rsqrtf(row_mean + 1e-06f);
        float part_max[tiles];    // max[K](abs(y))
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            part_max[t] = -infinity();
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float gamma_ = gamma_v[t][i];
                const float y = x_ * rsqrt_value * gamma_;
                if (col < columns) {
                    part_max[t] = max_nan(part_max[t], fabsf(y));
                }
            }
        }
        lanes_reduce<8>(each_of<Max>(part_max));

        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step, k = col % K, g = col / K;
            const float scale_ = quotient(max_nan(part_max[t], 0.0001f), 448.0f);
            const Divisor scale_divisor = divisor(scale_);    // x / scale_divisor: a product with the inverse, corrected once
            float q_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float gamma_ = gamma_v[t][i];
                const float y = x_ * rsqrt_value * gamma_;
                q_out[i] = y / scale_divisor;
            }
            if (col < columns && k == 0)
                scale[row * scale_M + g] = scale_;
            store_row(q + row * q_M, col, q_out, columns);
        }
    }
}

// block_scales_strided (row): block_scales for tensors whose columns do not lie side by side,
// with a stride for each axis of [G, K]. Grid, block, cluster and shared memory are the same; the
// arguments are those below.
extern "C" __global__ __launch_bounds__(64, 16)
void block_scales_strided(
    const bf16 *__restrict__ x, long long x_M, long long x_G,
    const bf16 *__restrict__ gamma, long long gamma_G,
    f8e4m3 *__restrict__ q, long long q_M, long long q_G,
    float *__restrict__ scale, long long scale_M,
    long long M) {
    constexpr int G = 12, K = 64;
    constexpr int columns = G * K;
    constexpr int threads = 64;
    constexpr int vec = 8, tiles = 2, step = threads * vec;
    wait_for_previous_kernel();
    const int thread_in_row = threadIdx.x;
    __builtin_assume(thread_in_row < threads);
    const int first_column = thread_in_row * vec;
    __shared__ float scratch[1][2][threads / 32];
    int parity = 0;
    vector<bf16, vec> gamma_v[tiles];
    #pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int col = first_column + t * step, k = col % K, g = col / K;
        load(gamma_v[t], gamma + g * gamma_G + k, 0, columns - col);
    }

    const long long first_row = blockIdx.x, row_step = gridDim.x;

    // a row goes on to registers at once, and the next one to be copied takes its stage
    constexpr int stages = 2;
    struct Stage {
        vector<bf16, vec> x[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    const auto fetch = [&](Stage &into, long long row) {
        if (row < M) {
            #pragma unroll
            for (int t = 0; t < tiles; t++) {
                const int col = first_column + t * step, k = col % K, g = col / K;
                fetch_vector(into.x[t][threadIdx.x], x + row * x_M + g * x_G + k, columns - col);
            }
        }
        fetch_commit();
    };
    int stage = 0;
    for (int s = 0; s < stages; s++)
        fetch(ring[s], first_row + row_step * s);
    #pragma unroll 1
    for (long long row = first_row; row < M; row += row_step) {
        Stage &current = ring[stage];
        stage = (stage + 1) % stages;
        fetch_wait<stages - 1>();    // a thread reads what it has copied itself
        vector<bf16, vec> x_v[tiles];
        read_row(x_v, current.x);
        fetch(current, row + row_step * stages);
        float row_mean = 0;    // mean[G, K](x * x)
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                if (col < columns) {
                    row_mean += x_ * x_;
                }
            }
        }
        row_reduce<threads>(scratch, parity, sum_of(row_mean));
        row_mean /= G * K;

        const float rsqrt_value = rsqrtf(row_mean + 1e-06f);
        float part_max[tiles];    // max[K](abs(y))
        #pragma unroll
        for (int t = 0; t < tiles; t++)
            part_max[t] = -infinity();
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step;
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float gamma_ = gamma_v[t][i];
                const float y = x_ * rsqrt_value * gamma_;
                if (col < columns) {
                    part_max[t] = max_nan(part_max[t], fabsf(y));
                }
            }
        }
        lanes_reduce<8>(each_of<Max>(part_max));

        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const int col = first_column + t * step, k = col % K, g = col / K;
            const float scale_ = quotient(max_nan(part_max[t], 0.0001f), 448.0f);
            const Divisor scale_divisor = divisor(scale_);    // x / scale_divisor: a product with the inverse, corrected once
            float q_out[vec];
            #pragma unroll
            for (int i = 0; i < vec; i++) {
                const float x_ = x_v[t][i];
                const float gamma_ = gamma_v[t][i];
                const float y = x_ * rsqrt_value * gamma_;
                q_out[i] = y / scale_divisor;
            }
            if (col < columns && k == 0)
                scale[row * scale_M + g] = scale_;
            store_row(q + row * q_M + g * q_G + k, 0, q_out, columns - col);
        }
    }
}
