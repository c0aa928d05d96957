// right.cu: kernels that are right where they could have been wrong.

extern "C" __global__ void prepare(const float *in, float *out, unsigned *count)
{
    if (blockIdx.x == 0 && threadIdx.x < 4)
        count[threadIdx.x] = 0;
}

extern "C" __global__ void good_reverse(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void good_dynamic(const float *in, float *out, unsigned *count)
{
    extern __shared__ float smem[];
    smem[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = smem[255 - threadIdx.x];
}

extern "C" __global__ void good_syncwarp(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void good_reduce(const float *in, float *out, unsigned *count)
{
    __shared__ double scratch[1][2][8];
    int turn = 0;
    float sum = 0;
    for (int i = 0; i < 5; i++) {
        float x = in[threadIdx.x] + i;
        row_reduce<256>(scratch, turn, sum_of(x));
        sum += x;
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void good_extremes(const float *in, float *out, unsigned *count)
{
    __shared__ double scratch[1][2][16];
    int turn = 0;
    float highest = in[threadIdx.x] - 50, lowest = highest;
    row_reduce<256>(scratch, turn, max_of(highest), min_of(lowest));
    out[threadIdx.x] = 1000 * max_nan(highest, -infinity()) + min_nan(-lowest, lowest);
}

extern "C" __global__ void good_unused_garbage(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    if (threadIdx.x % 2)
        s[threadIdx.x] = in[threadIdx.x];
    const float mine = s[threadIdx.x];
    out[threadIdx.x] = threadIdx.x % 2 ? mine : in[threadIdx.x];
}

extern "C" __global__ void good_vectors(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x < 64) {
        vector<float, 4> v;
        copy_vector(&v, (const vector<float, 4> *)(in + 4 * threadIdx.x));
        copy_vector((vector<float, 4> *)(out + 4 * threadIdx.x), &v);
    }
}

extern "C" __global__ void good_shuffles(const float *in, float *out, unsigned *count)
{
    const float x = in[threadIdx.x];
    const int lane = threadIdx.x % 32;
    float y = __shfl_xor_sync(0xffffffff, x, 5) + 2 * __shfl_sync(0xffffffff, x, lane / 2);
    y += 4 * __shfl_down_sync(0xffffffff, x, 3) + 8 * __shfl_up_sync(0xffffffff, x, 3, 16);
    if (lane < 16)
        y += __ballot_sync(0xffff, lane % 3 == 0);
    out[threadIdx.x] = y;
}

extern "C" __global__ void good_overlapping(const float *in, float *out, unsigned *count)
{
    wait_for_previous_kernel();
    if (threadIdx.x % 2 == blockIdx.x)
        out[threadIdx.x] = in[threadIdx.x] + count[0];
}

extern "C" __global__ void good_last_cta(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x % gridDim.x == blockIdx.x)
        out[threadIdx.x] = in[threadIdx.x];
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&count[1], 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last)
        out[threadIdx.x] += 1;
}

extern "C" __global__ void good_early_warps(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 64)
        return;
    lane_reduce<32>(sum_of(out[threadIdx.x]));
}

extern "C" __global__ void good_copy(const float *in, float *out, unsigned *count)
{
    __shared__ float s[2][256];
    async_copy<4>(&s[0][threadIdx.x], in + threadIdx.x);
    fetch_commit();
    async_copy<4>(&s[1][threadIdx.x], in + 255 - threadIdx.x);
    fetch_commit();
    fetch_wait<1>();
    __syncthreads();
    float sum = s[0][255 - threadIdx.x];
    fetch_wait<0>();
    out[threadIdx.x] = (sum + s[1][threadIdx.x]) / 2;
}

// no row is asked for before its time nor long after it, though the clock wraps on the way
extern "C" __global__ void good_pace(const float *in, float *out, unsigned *count)
{
    bool right = true;
    if (threadIdx.x == 0) {
        const unsigned interval = 400;
        unsigned due = clock_ns();
        for (int row = 0; row < 100; row++) {
            const unsigned time = due;
            keep_pace(due, interval);
            const int late = (int)(clock_ns() - time);
            right &= late >= 0 && late < 200;
        }
    }
    out[threadIdx.x] = right ? in[threadIdx.x] : -1;
}

extern "C" __global__ void good_teams(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    const int turned = threadIdx.x ^ 63;
    for (int i = 0; i < (int)threadIdx.x / 64 + 1; i++) {
        s[threadIdx.x] = in[threadIdx.x];
        team_barrier<64, 2>();
        out[threadIdx.x] = s[turned];
        team_barrier<64, 2>();
    }
}

extern "C" __global__ void good_cluster(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    const int other = cluster_rank() ^ 1;
    s[threadIdx.x] = in[threadIdx.x] + cluster_rank();
    cluster_sync();
    const float x = *peer(&s[255 - threadIdx.x], other);
    cluster_sync();
    if (threadIdx.x % gridDim.x == blockIdx.x)
        out[threadIdx.x] = x - other;
}

extern "C" __global__ void good_send(const float *in, float *out, unsigned *count)
{
    __shared__ Exchange<float, 1, 2> x;
    int round = 0, same = 0;
    float sum = in[threadIdx.x];
    exchange_init(x);
    for (int i = 0; i < 5; i++) {
        float part = in[i] + cluster_rank();
        cluster_send(x, same, sum_of(part));
        cluster_collect(x, round, sum_of(part));
        sum += part - 2 * in[i] - 1;
        __syncthreads();
    }
    if (threadIdx.x % gridDim.x == blockIdx.x)
        out[threadIdx.x] = sum;
}

extern "C" __global__ void good_ring(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[2][64];
    __shared__ unsigned long long full[2], empty[2];
    if (threadIdx.x < 2) {
        barrier_init(full[threadIdx.x], 1);
        barrier_init(empty[threadIdx.x], 64);
    }
    __syncthreads();
    for (int i = 0; i < 4; i++) {
        const int stage = i % 2, parity = i / 2;
        if (threadIdx.x == 255) {
            barrier_wait(empty[stage], parity ^ 1);
            bulk_copy(s[stage], in + 64 * i, 128, full[stage]);
            bulk_copy(s[stage] + 32, in + 64 * i + 32, 128, full[stage]);
            barrier_expect(full[stage], 256);
        } else if (threadIdx.x < 64) {
            barrier_wait(full[stage], parity);
            out[255 - 64 * i - threadIdx.x] = s[stage][threadIdx.x];
            barrier_arrive(empty[stage]);
        }
    }
}

extern "C" __global__ void good_fenced_copy(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    s[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    async_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
    out[threadIdx.x] = s[255 - threadIdx.x];
}

// ---- numbers: in holds bit patterns ----

extern "C" __global__ void numbers(const float *in, unsigned *bits)
{
    for (int i = threadIdx.x; i < 65536; i += blockDim.x) {
        const float x = in[i];
        bits[4 * i] = as<bf16>(x).bits;
        bits[4 * i + 1] = as<f16>(x).bits;
        bits[4 * i + 2] = as<f8e4m3>(x).bits;
        bits[4 * i + 3] = as<f8e5m2>(x).bits;
    }
}

extern "C" __global__ void values(float *of)
{
    for (int i = threadIdx.x; i < 65536; i += blockDim.x) {
        of[4 * i] = bf16{(unsigned short)i};
        of[4 * i + 1] = f16{(unsigned short)i};
        of[4 * i + 2] = f8e4m3{(unsigned char)i};
        of[4 * i + 3] = f8e5m2{(unsigned char)i};
    }
}

extern "C" __global__ void good_registers(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x >= 128) {
        fewer_registers<24>();
        out[threadIdx.x] = in[threadIdx.x];
        return;
    }
    more_registers<240>();
    out[threadIdx.x] = in[threadIdx.x];
}
