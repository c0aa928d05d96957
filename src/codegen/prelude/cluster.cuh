//: cluster.cuh: what CTAs of a cluster send each other.
//@ send_value
// Stores a value in the shared memory of CTA `rank`, whose barrier counts its bytes. `twin` and `barrier` are this CTA's own
// variables; mapa finds those at the same place there. Unlike a cluster barrier it does not wait for other stores.
DEVICE void send_value(float *twin, float value, unsigned long long &barrier, int rank)
{
    asm volatile("{\n"
                 ".reg .b32 to, at;\n"
                 "mapa.shared::cluster.u32 to, %0, %3;\n"
                 "mapa.shared::cluster.u32 at, %2, %3;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %1, [at];\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(twin)), "r"(__float_as_int(value)),
                        "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(rank) : "memory");
}
DEVICE void send_value(double *twin, double value, unsigned long long &barrier, int rank)
{
    asm volatile("{\n"
                 ".reg .b32 to, at;\n"
                 "mapa.shared::cluster.u32 to, %0, %3;\n"
                 "mapa.shared::cluster.u32 at, %2, %3;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [to], %1, [at];\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(twin)), "l"(__double_as_longlong(value)),
                        "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(rank) : "memory");
}

//@ width_of
// how many values a reduction sends
template <class R> constexpr int width_of = 1;

//@ Online+width_of
template <> constexpr int width_of<Online> = 2;

//@ Moments+width_of
template <> constexpr int width_of<Moments> = 4;

//@ WarpMoments+width_of
template <> constexpr int width_of<WarpMoments> = 4;

//@ EvenMoments+width_of
template <> constexpr int width_of<EvenMoments> = 3;

//@ Each+width_of
template <template <class> class R, class T, int n> constexpr int width_of<Each<R, T, n>> = n;

//@ send_slot
// an integer travels as the bits of a double
template <int stride, class S, template <class> class R, class T>
DEVICE void send_slot(S *&twin, R<T> r, unsigned long long &barrier)
{
    S bits;
    *(T *)&bits = r.value;
    send_value(twin, bits, barrier, threadIdx.x);
    twin += stride;
}

//@ Online+send_slot
template <int stride, class S> DEVICE void send_slot(S *&twin, Online r, unsigned long long &barrier)
{
    send_slot<stride>(twin, max_of(r.largest), barrier);
    send_slot<stride>(twin, sum_of(r.sum), barrier);
}

//@ Moments+send_slot
template <int stride, class S> DEVICE void send_slot(S *&twin, Moments r, unsigned long long &barrier)
{
    send_slot<stride>(twin, sum_of(r.sum), barrier);
    send_slot<stride>(twin, sum_of(r.squares), barrier);
    send_slot<stride>(twin, sum_of(r.shift), barrier);
    send_slot<stride>(twin, sum_of(r.seen), barrier);
}

//@ EvenMoments+send_slot
template <int stride, class S> DEVICE void send_slot(S *&twin, EvenMoments r, unsigned long long &barrier)
{
    send_slot<stride>(twin, sum_of(r.sum), barrier);
    send_slot<stride>(twin, sum_of(r.squares), barrier);
    send_slot<stride>(twin, sum_of(r.shift), barrier);
}

//@ Each+send_slot
template <int stride, class S, template <class> class R, class T, int n>
DEVICE void send_slot(S *&twin, Each<R, T, n> r, unsigned long long &barrier)
{
    #pragma unroll
    for (int i = 0; i < n; i++)
        send_slot<stride>(twin, R<T>{r.values[i]}, barrier);
}

//@ Exchange exchange_init cluster_send cluster_collect
// Where the CTAs of a cluster leave each other their results of a row. Two rounds fit: nobody can be
// two rounds ahead of a CTA from which it has not heard.
template <class S, int values, int cluster> struct Exchange {
    S slot[2][values][cluster];
    unsigned long long landed[2];
};
template <class X> DEVICE void exchange_init(X &x)
{
    if (threadIdx.x == 0) {
        barrier_init(x.landed[0], 1);
        barrier_init(x.landed[1], 1);
    }
    cluster_arrive();    // nobody may send to another before that one is ready
}
template <class S, int values, int cluster, class... R>
DEVICE void cluster_send(Exchange<S, values, cluster> &x, int &round, R... r)
{
    constexpr int bytes = (width_of<R> + ...) * cluster * (int)sizeof(S);
    if (round == 0)
        cluster_wait();    // for exchange_init of all CTAs
    S *twin = &x.slot[round & 1][0][cluster_rank()];
    if (threadIdx.x < cluster)
        (send_slot<cluster>(twin, r, x.landed[round & 1]), ...);
    if (threadIdx.x == 0)
        barrier_expect(x.landed[round & 1], bytes);
    round++;
}
template <class S, int values, int cluster, class... R>
DEVICE void cluster_collect(Exchange<S, values, cluster> &x, int &round, R... r)
{
    barrier_wait_cluster(x.landed[round & 1], round >> 1 & 1);
    const S *slots = x.slot[round & 1][0];
    (combine_slots<cluster>(slots, r), ...);
    round++;
}

//@ cluster_reduce
// Reduces each variable over a row that a whole cluster shares: each CTA tells all of them, itself as well, its result.
template <int threads, class S, int slots, int values, int cluster, class... R>
DEVICE void cluster_reduce(S (&scratch)[1][2][slots], Exchange<S, values, cluster> &x, int &round, R... r)
{
    int parity = round & 1, sent = round;    // both count rounds and go together
    row_reduce<threads>(scratch, parity, r...);
    cluster_send(x, sent, r...);
    cluster_collect(x, round, r...);
}

