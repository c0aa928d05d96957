//: group.cuh: what CTAs of a group exchange through global memory.
//@ put_mail look_at_mail
// 4 bytes of a result together with the round that they belong to, written and read as one
DEVICE void put_mail(unsigned long long *at, unsigned bits, int round)
{
    asm volatile("{ .reg .b64 mail; mov.b64 mail, {%1, %2}; st.relaxed.gpu.global.b64 [%0], mail; }"
                 :: "l"(at), "r"(bits), "r"(round + 1) : "memory");
}
DEVICE unsigned long long look_at_mail(const unsigned long long *at)
{
    unsigned long long mail;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(mail) : "l"(at) : "memory");
    return mail;
}

//@ take
// what put_slot<1> has left
template <class S, template <class> class R, class T> DEVICE void take(const S *&from, R<T> r) { r.value = *(const T *)from++; }

//@ Online+take
template <class S> DEVICE void take(const S *&from, Online r)
{
    take(from, max_of(r.largest));
    take(from, sum_of(r.sum));
}

//@ Moments+take
template <class S> DEVICE void take(const S *&from, Moments r)
{
    take(from, sum_of(r.sum));
    take(from, sum_of(r.squares));
    take(from, sum_of(r.shift));
    take(from, sum_of(r.seen));
}

//@ Mailbox News news_init group_send group_listen group_collect
// Where the others of a group, which is larger than a cluster can be, leave a CTA their results of a row:
// in global memory, zero at first. Each 4 bytes carry the number of their round, so nothing else needs to
// be ordered before a reader. Each CTA has a box of its own: where all read the same lines again and again,
// the part of the L2 cache that holds them kept all other traffic waiting (a quarter of the bandwidth).
template <class S, int values, int group, int rounds> struct Mailbox {
    unsigned long long mail[rounds][values][sizeof(S) / 4][group];
};
// What a CTA has heard: its listening warp leaves here what it `heard` of every 32 CTAs. It begins with a
// round when the CTA has `sent` its own: by then all its threads have read what is overwritten.
template <class S, int values, int group, int rounds> struct News {
    S value[rounds][values * (group / 32)];
    unsigned long long sent[rounds], heard[rounds];
};
// nobody may use it before the next __syncthreads()
template <class T> DEVICE void news_init(T &news)
{
    if (threadIdx.x < sizeof(news.sent) / sizeof(*news.sent)) {
        barrier_init(news.sent[threadIdx.x], 1);
        barrier_init(news.heard[threadIdx.x], 1);
    }
}
template <class S, int values, int group, int rounds, class... R>
DEVICE void group_send(Mailbox<S, values, group, rounds> *boxes, News<S, values, group, rounds> &news, int &round, R... r)
{
    constexpr int width = (width_of<R> + ...), words = sizeof(S) / 4;
    const int at = round % rounds;
    if (threadIdx.x < 32) {
        S mine[width], *slot = mine;
        (put_slot<1>(slot, true, r), ...);
        #pragma unroll
        for (int part = 0; part < group / 32; part++)
            #pragma unroll
            for (int i = 0; i < width * words; i++)
                put_mail(&boxes[part * 32 + threadIdx.x].mail[at][i / words][i % words][blockIdx.x % group],
                         ((const unsigned *)mine)[i], round);
    }
    if (threadIdx.x == 0)
        barrier_arrive(news.sent[at]);
    round++;
}
template <class S, int values, int group, int rounds, class... R>
DEVICE void group_listen(const Mailbox<S, values, group, rounds> *boxes, News<S, values, group, rounds> &news, int &round, R... r)
{
    const Mailbox<S, values, group, rounds> &own = boxes[blockIdx.x % group];
    constexpr int width = (width_of<R> + ...), words = sizeof(S) / 4;
    const int at = round % rounds, lane = threadIdx.x % 32;
    barrier_wait(news.sent[at], round / rounds & 1);
    for (int part = 0; part < group / 32; part++) {
        S theirs[width];
        bool complete;
        do {
            complete = true;
            #pragma unroll
            for (int i = 0; i < width * words; i++) {
                const unsigned long long mail = look_at_mail(&own.mail[at][i / words][i % words][part * 32 + lane]);
                ((unsigned *)theirs)[i] = (unsigned)mail;
                complete &= (int)(mail >> 32) == round + 1;
            }
        } while (!complete);
        const S *from = theirs;
        (take(from, r), ...);
        (lane_reduce<32>(r), ...);
        S *slot = news.value[at] + part;
        (put_slot<group / 32>(slot, lane == 0, r), ...);
    }
    release(news.heard[at]);
    round++;
}
template <class S, int values, int group, int rounds, class... R>
DEVICE void group_collect(News<S, values, group, rounds> &news, int &round, R... r)
{
    barrier_wait(news.heard[round % rounds], round / rounds & 1);
    const S *slots = news.value[round % rounds];
    (combine_slots<group / 32>(slots, r), ...);
    round++;
}

//@ group_reduce
// Reduces each variable over a row that a whole group shares.
template <int threads, class S, int slots, int values, int group, int rounds, class... R>
DEVICE void group_reduce(S (&scratch)[1][2][slots], Mailbox<S, values, group, rounds> *boxes, News<S, values, group, rounds> &news,
                         int &parity, int &round, R... r)
{
    int same = round;
    row_reduce<threads>(scratch, parity, r...);
    group_send(boxes, news, same, r...);
    group_collect(news, round, r...);
}

