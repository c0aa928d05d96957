// wrong_clusters.cu: kernels with one thing planted wrong: teams, clusters.

// a cluster's barrier that orders everything, which generated text does not need
SIM_CALL void cluster_release() { sim_link.api->cluster_arrive(sim_link.machine, 0, SIM_HERE); }
DEVICE void cluster_sync()
{
    cluster_release();
    cluster_wait();
}

extern "C" __global__ void bad_team_neighbour(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    team_barrier<64, 2>();
    out[threadIdx.x] = s[255 - threadIdx.x];
}

extern "C" __global__ void bad_team_sizes(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x < 32)
        team_barrier<64, 2>();
    else if (threadIdx.x < 128)
        team_barrier<128, 2>();
}

extern "C" __global__ void bad_team_skipped(const float *in, float *out, unsigned *count)
{
    out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x % 64 < 32)
        team_barrier<64, 2>();
}

extern "C" __global__ void bad_cluster_no_sync(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    *peer(&s[threadIdx.x], cluster_rank() ^ 1) = in[threadIdx.x];
    cluster_sync();
    if (cluster_rank() == 0)
        out[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void bad_cluster_syncthreads(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    cluster_sync();
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float x = *peer(&s[threadIdx.x], cluster_rank() ^ 1);
    cluster_sync();
    if (cluster_rank() == 0)
        out[threadIdx.x] = x;
}

extern "C" __global__ void bad_cluster_relaxed(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    cluster_arrive();
    cluster_wait();
    const float x = *peer(&s[threadIdx.x], cluster_rank() ^ 1);
    cluster_sync();
    if (cluster_rank() == 0)
        out[threadIdx.x] = x;
}

extern "C" __global__ void bad_cluster_exit(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    if (cluster_rank() == 0)
        out[threadIdx.x] = *peer(&s[threadIdx.x], 1);
}

extern "C" __global__ void bad_cluster_rank(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    out[threadIdx.x] = *peer(&s[threadIdx.x], cluster_rank() + 1);
    cluster_sync();
}

extern "C" __global__ void bad_cluster_past_end(const float *in, float *out, unsigned *count)
{
    __shared__ float s[256];
    s[threadIdx.x] = in[threadIdx.x];
    cluster_sync();
    const float x = *peer(&s[threadIdx.x], cluster_rank() ^ 1);
    const float y = peer(s, cluster_rank() ^ 1)[threadIdx.x + 1];
    cluster_sync();
    if (cluster_rank() == 0)
        out[threadIdx.x] = x + y;
}

extern "C" __global__ void bad_cluster_half(const float *in, float *out, unsigned *count)
{
    __shared__ unsigned long long never;
    if (cluster_rank() == 0)
        out[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 0)
        barrier_init(never, 1);
    __syncthreads();
    if (cluster_rank() == 0)
        cluster_sync();
    else
        barrier_wait(never, 0);
}

extern "C" __global__ void bad_cluster_wait_only(const float *in, float *out, unsigned *count)
{
    if (cluster_rank() == 0)
        out[threadIdx.x] = in[threadIdx.x];
    cluster_wait();
}

extern "C" __global__ void bad_send_early(const float *in, float *out, unsigned *count)
{
    __shared__ Exchange<float, 1, 2> x;
    float sum = in[threadIdx.x];
    int round = 0, same = 2;    // the very first send would wait
    if (threadIdx.x == 0)
        barrier_init(x.landed[0], 1);
    __syncthreads();
    cluster_send(x, same, sum_of(sum));
    cluster_collect(x, round, sum_of(sum));
    if (cluster_rank() == 0)
        out[threadIdx.x] = sum;
}

extern "C" __global__ void bad_send_not_collected(const float *in, float *out, unsigned *count)
{
    __shared__ Exchange<float, 1, 2> x;
    float sum = in[threadIdx.x];
    int round = 0;
    exchange_init(x);
    cluster_send(x, round, sum_of(sum));
    cluster_sync();
    if (cluster_rank() == 0)
        out[threadIdx.x] = x.slot[0][0][0];
}

extern "C" __global__ void bad_send_two_ahead(const float *in, float *out, unsigned *count)
{
    __shared__ Exchange<float, 1, 2> x;
    float sum = in[threadIdx.x];
    int round = 0, same = 0;
    exchange_init(x);
    for (int i = 0; i < 3; i++)
        cluster_send(x, same, sum_of(sum));
    for (int i = 0; i < 3; i++)
        cluster_collect(x, round, sum_of(sum));
    if (cluster_rank() == 0)
        out[threadIdx.x] = sum;
}
