// wrong.cu: small kernels for tests/test_sim.c, each with one thing planted wrong: bounds, barriers, races.
// in: 256 floats; out: 256 floats; count: workspace. The files of this folder are compiled as one text.

extern "C" __global__ void bad_missing_barrier(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void bad_second_barrier(const float *in, float *out, unsigned *count)
{
    __shared__ float s[8];
    float sum = 0;
    for (int i = 0; i < 2; i++) {
        if (threadIdx.x % 32 == 0)
            s[threadIdx.x / 32] = in[threadIdx.x] + i;
        __syncthreads();
        for (int w = 0; w < 8; w++)
            sum += s[w];
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void bad_no_syncwarp(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    const int warp = threadIdx.x & ~31, lane = threadIdx.x & 31;
    s[threadIdx.x] = in[threadIdx.x];
    __shfl_sync(0xffffffff, 0.0f, 0);
    out[threadIdx.x] = s[warp + (lane ^ 1)];
}

extern "C" __global__ void bad_scalar_race(const float *in, float *out, unsigned *count)
{
    __shared__ float total;
    if (threadIdx.x == 77)
        total = in[0];
    __syncwarp();
    out[threadIdx.x] = total;
}

extern "C" __global__ void bad_read_past_end(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x + 1];
}

extern "C" __global__ void bad_write_before(const float *in, float *out, unsigned *count)
{
    out[(int)threadIdx.x - 1] = in[threadIdx.x];
}

extern "C" __global__ void bad_shared_past_end(const float *in, float *out, unsigned *count)
{
    __shared__ float s[255];
    s[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_dynamic_past_end(const float *in, float *out, unsigned *count)
{
    extern __shared__ float smem[];
    smem[threadIdx.x + 1] = in[threadIdx.x];
    out[threadIdx.x] = smem[threadIdx.x + 1];
}

extern "C" __global__ void bad_misaligned(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x < 63) {
        vector<float, 4> v;
        copy_vector(&v, (const vector<float, 4> *)(in + 4 * threadIdx.x + 1));
        copy_vector((vector<float, 4> *)(out + 4 * threadIdx.x), &v);
    }
}

extern "C" __global__ void bad_divergent_barrier(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x % 2)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void bad_barrier_after_exit(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 100)
        return;
    __syncthreads();
}

extern "C" __global__ void bad_deadlock(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 128)
        __syncthreads();
    else
        __syncwarp(threadIdx.x % 2 ? 0xffffffff : 0x55555555);
    __syncthreads();
}

extern "C" __global__ void bad_partial_shuffle(const float *in, float *out, unsigned *count)
{
    float x = in[threadIdx.x];
    if (threadIdx.x % 32 < 16)
        x += __shfl_xor_sync(0xffffffff, x, 1);
    out[threadIdx.x] = x;
}

extern "C" __global__ void bad_uninitialised(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    if (threadIdx.x != 3)
        s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void bad_unwritten_workspace(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x] + count[0];
}

extern "C" __global__ void bad_unwritten_output(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x != 200)
        out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void bad_written_input(const float *in, float *out, unsigned *count)
{
    ((float *)in)[threadIdx.x] = 0;
}

extern "C" __global__ void bad_cta_race(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void bad_no_fence(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x % gridDim.x == blockIdx.x)
        out[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    __shared__ bool last;
    if (threadIdx.x == 0)
        last = atomicAdd(&count[1], 1u) == gridDim.x - 1;
    __syncthreads();
    if (last)
        out[threadIdx.x] += 1;
}

extern "C" __global__ void bad_local_pointer(const float *in, float *out, unsigned *count)
{
    __shared__ float *where;
    float mine = in[threadIdx.x];
    if (threadIdx.x == 0)
        where = &mine;
    __syncthreads();
    out[threadIdx.x] = mine + *where;
    __syncthreads();
}

extern "C" __global__ void bad_unwaited_copy(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    async_copy<4>(&s[threadIdx.x], in + threadIdx.x);
    fetch_commit();
    fetch_wait<1>();
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_copy_no_barrier(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    async_copy<4>(&s[threadIdx.x], in + threadIdx.x);
    fetch_commit();
    __syncthreads();
    fetch_wait<0>();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void bad_livelock(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 0)
        count[1] = 0;
    __syncthreads();
    while (atomicAdd(&count[1], 0u) == 0)
        ;
}

extern "C" __global__ void bad_overlapping(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = 0;
    wait_for_previous_kernel();
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void bad_overlapping_input(const float *in, float *out, unsigned *count)
{
    const float x = in[threadIdx.x];
    wait_for_previous_kernel();
    out[threadIdx.x] = x;
}

extern "C" __global__ void bad_overlapping_read(const float *in, float *out, unsigned *count)
{
    const unsigned before = count[0];
    wait_for_previous_kernel();
    out[threadIdx.x] = in[threadIdx.x] + before;
}

extern "C" __global__ void bad_registers_of_warps(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x >= 192)
        fewer_registers<24>();
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void bad_registers_of_each(const float *in, float *out, unsigned *count)
{
    if (threadIdx.x < 32)
        more_registers<64>();
    else
        more_registers<72>();
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void bad_registers_count(const float *in, float *out, unsigned *count)
{
    fewer_registers<28>();
    out[threadIdx.x] = in[threadIdx.x];
}
