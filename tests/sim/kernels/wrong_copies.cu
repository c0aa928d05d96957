// wrong_copies.cu: kernels with one thing planted wrong: transaction barriers and bulk copies.

extern "C" __global__ void bad_bulk_no_wait(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    out[threadIdx.x] = s[threadIdx.x];
    barrier_wait(full, 0);
}

extern "C" __global__ void bad_bulk_early_parity(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 1);
    out[threadIdx.x] = s[threadIdx.x];
    barrier_wait(full, 0);
}

extern "C" __global__ void bad_bulk_parity(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
    barrier_wait(full, 1);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_bulk_bytes(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, 128);
    }
    barrier_wait(full, 0);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_bulk_overwrite(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
    out[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 1);
}

extern "C" __global__ void bad_bulk_misaligned(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in + 1, 64, full);
        barrier_expect(full, 64);
    }
    barrier_wait(full, 0);
}

extern "C" __global__ void bad_bulk_size(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, 20, full);
        barrier_expect(full, 20);
    }
    barrier_wait(full, 0);
}

extern "C" __global__ void bad_bulk_past_end(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in + 4, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
}

extern "C" __global__ void bad_bulk_shared_past_end(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s + 4, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
}

extern "C" __global__ void bad_bulk_unwaited(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    out[threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void bad_bulk_source(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    out[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, out, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    if (threadIdx.x == 0)
        out[7] = 0;
    barrier_wait(full, 0);
}

extern "C" __global__ void bad_bulk_no_fence(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    s[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_barrier_init_race(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_barrier_no_init(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        s[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_barrier_arrivals(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(full, sizeof s);
    }
    if (threadIdx.x == 0)
        barrier_arrive(full);
    barrier_wait(full, 0);
    out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_barrier_written(const float *in, float *out, unsigned *count)
{
    __shared__ __align__(16) float s[256];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0)
        barrier_init(full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_copy(s, in, sizeof s, full);
        barrier_expect(full, sizeof s);
    }
    barrier_wait(full, 0);
    out[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 99)
        full = 0;
}
