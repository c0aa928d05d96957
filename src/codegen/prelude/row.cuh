//: row.cuh: the reductions of a row by its threads.
//@ row_post row_collect
// The two halves of a reduction over the threads of a row; between them a thread may do other work.
// The halves of `scratch` are used in turn, so that a fast warp's next post cannot overwrite what a
// slow warp still reads: one barrier of the row's team a reduction is enough.
template <int threads, class S, int teams, int slots, class... R>
DEVICE void row_post(S (&scratch)[teams][2][slots], int parity, R... r)
{
    constexpr int warps = threads / 32;
    S *slot = scratch[threadIdx.x / threads][parity] + threadIdx.x % threads / 32;
    (lane_reduce<32>(r), ...);
    (put_slot<warps>(slot, threadIdx.x % 32 == 0, r), ...);
}
template <int threads, class S, int teams, int slots, class... R>
DEVICE void row_collect(S (&scratch)[teams][2][slots], int &parity, R... r)
{
    constexpr int warps = threads / 32;
    const S *slot = scratch[threadIdx.x / threads][parity];
    team_barrier<threads, teams>();
    (combine_slots<warps>(slot, r), ...);
    parity ^= 1;
}

//@ row_reduce
// reduces each variable over the threads of a row; all of them get the result
template <int threads, class S, int teams, int slots, class... R>
DEVICE void row_reduce(S (&scratch)[teams][2][slots], int &parity, R... r)
{
    row_post<threads>(scratch, parity, r...);
    row_collect<threads>(scratch, parity, r...);
}

//@ lanes_reduce
// the same for rows of up to 32 threads, which need no shared memory
template <int threads, class... R> DEVICE void lanes_reduce(R... r) { (lane_reduce<threads>(r), ...); }

//@ blocks_reduce
// Over blocks of a row, each the vectors of `shares` times `lanes` neighbouring threads; n tiles of vectors follow each other
// along the row. What lanes have shuffled meets in shared memory, whose halves are used in turn.
template <int threads, int lanes, int shares, int n> DEVICE constexpr int share_places()
{
    return (n * threads + lanes * shares - 1) / (lanes * shares) * shares;
}
template <int threads, int lanes, int shares, class S, template <class> class R, class T, int n>
DEVICE void put_shares(S *&places, Each<R, T, n> r)
{
    lane_reduce<lanes>(r);
    #pragma unroll
    for (int t = 0; t < n; t++)
        if (threadIdx.x % lanes == 0)
            *(T *)(places + (t * threads + threadIdx.x % threads) / lanes) = r.values[t];
    places += share_places<threads, lanes, shares, n>();
}
template <int threads, int lanes, int shares, class S, template <class> class R, class T, int n>
DEVICE void combine_shares(const S *&places, Each<R, T, n> r)
{
    #pragma unroll
    for (int t = 0; t < n; t++) {
        const S *own = places + (t * threads + threadIdx.x % threads) / (lanes * shares) * shares;
        r.values[t] = *(const T *)own;
        #pragma unroll
        for (int k = 1; k < shares; k++)
            r.values[t] = R<T>::combine(r.values[t], *(const T *)(own + k));
    }
    places += share_places<threads, lanes, shares, n>();
}
template <int threads, int lanes, int shares, class S, int teams, int slots, class... R>
DEVICE void blocks_reduce(S (&scratch)[teams][2][slots], int &parity, R... r)
{
    S *places = scratch[threadIdx.x / threads][parity];
    const S *all = places;
    (put_shares<threads, lanes, shares>(places, r), ...);
    if constexpr (threads <= 32)
        __syncwarp();
    else
        team_barrier<threads, teams>();
    (combine_shares<threads, lanes, shares>(all, r), ...);
    parity ^= 1;
}

//@ span_reduce
// over a row's threads, which are `lanes` neighbouring lanes in each of `warps` neighbouring warps; `team` counts the rows,
// whose slots are in different banks
template <int lanes, int warps, class S, int slots, int teams, class... R>
DEVICE void span_reduce(S (&scratch)[2][slots][teams], int &parity, int team, R... r)
{
    S *slot = &scratch[parity][threadIdx.x / 32 % warps][team];
    const S *all = &scratch[parity][0][team];
    (lane_reduce<lanes>(r), ...);
    (put_slot<warps * teams>(slot, threadIdx.x % lanes == 0, r), ...);
    __syncthreads();
    (combine_slots<warps, teams>(all, r), ...);
    parity ^= 1;
}
