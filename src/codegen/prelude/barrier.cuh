//: barrier.cuh: barriers of a team, a cluster and of copies; the clock; bulk copies.
//@ team_barrier
// A barrier of the `threads` neighbouring threads that this one belongs to. A single team has barrier 0, a constant, so that
// ptxas reserves that one alone; several have one of 1 to 15 each, by a number in a register, and ptxas reserves all sixteen.
template <int threads, int teams> DEVICE void team_barrier()
{
    if constexpr (teams == 1)
        asm volatile("bar.sync 0, %0;" :: "n"(threads) : "memory");
    else
        asm volatile("bar.sync %0, %1;" :: "r"((int)threadIdx.x / threads + 1), "n"(threads) : "memory");
}

//@ cluster_rank cluster_arrive cluster_wait
// which of its cluster's CTAs this is
DEVICE int cluster_rank()
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
// A barrier of all threads of a cluster, which orders nothing but what barrier_init has done: that has a fence of its
// own, so the arrival may be relaxed. One that releases waits for earlier accesses to memory as well: a microsecond.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

//@ peer
// the twin of a shared variable in another CTA of the cluster
template <class T> DEVICE T *peer(T *shared, int rank)
{
    T *twin;
    asm("mapa.u64 %0, %1, %2;" : "=l"(twin) : "l"(shared), "r"(rank));
    return twin;
}

//@ clock_ns clock_cycles
// ns, on a clock that all SMs share, and cycles of this SM, of which a ns has two at most; both wrap
DEVICE unsigned clock_ns()
{
    unsigned ns;
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(ns));
    return ns;
}
DEVICE unsigned clock_cycles()
{
    unsigned cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles));
    return cycles;
}

//@ keep_pace
// Rows are asked for one each `interval` ns; of what they are late one interval is made up for. Memory that is asked for more
// than it can do does less: what waits for it piles up, reads and writes get in each other's way. `due`: when the next row
// may be asked for; differences of such times are right though they wrap.
DEVICE void keep_pace(unsigned &due, unsigned interval)
{
    const unsigned begin = clock_cycles();
    unsigned now = clock_ns();
    // while it is to come, in 1 to `interval` ns; but a clock that goes on in longer steps, or stands, is not waited for
    while (due - now - 1 < interval && clock_cycles() - begin < 4 * interval)
        now = clock_ns();
    due = now - due < interval ? due + interval : now;
}

//@ fewer_registers more_registers
// Threads give back registers, or wait until the CTA has so many for each. All warps of a warpgroup, four from a multiple of
// four on, must do the same (PTX ISA, setmaxnreg).
template <int count> DEVICE void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(count)); }
template <int count> DEVICE void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(count)); }

//@ barrier_wait_cluster
// waits for a phase that other CTAs of the cluster have ended: what they sent is there then
DEVICE void barrier_wait_cluster(unsigned long long &barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(parity) : "memory");
}

//@ barrier_init
// A transaction barrier in shared memory: a phase ends when `count` arrivals and the bytes announced
// with barrier_expect (which is an arrival too) have come; waiters name the phase's parity, 0 first.
DEVICE void barrier_init(unsigned long long &barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

//@ barrier_arrive
DEVICE void barrier_arrive(unsigned long long &barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)) : "memory");
}

//@ barrier_expect
DEVICE void barrier_expect(unsigned long long &barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(bytes) : "memory");
}

//@ barrier_wait
DEVICE void barrier_wait(unsigned long long &barrier, int parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" :: "r"((unsigned)__cvta_generic_to_shared(&barrier)), "r"(parity) : "memory");
}

//@ bulk_copy
// one thread copies 16-byte aligned bytes to shared memory; the barrier counts them as they land
template <class L2 = kept_in_l2> DEVICE void bulk_copy(void *to, const void *from, int bytes, unsigned long long &barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes),
                    "r"((unsigned)__cvta_generic_to_shared(&barrier)), "l"(l2_policy(L2())) : "memory");
}

