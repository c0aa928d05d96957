/* schedule/finish.c: the kernel that adds the partials that another kernel's CTAs left. It moves few
 * bytes, so its time is latency: columns are spread over the SMs, and each thread loads everything
 * that it adds before it waits.
 *
 * Where rows are summed by groups (sum[T] of [B, T, C]), the rows of each group are cut into parts.
 * The number of parts depends on the size of a group only. With few groups the CTAs divide the parts
 * of all groups, and the finish kernel adds them. With many groups each CTA takes whole groups, and
 * adds the same parts in the same order. So the number of groups does not change the bits of a
 * group's sums. */
#include "schedule/internal.h"

enum { STATIC_BYTES = 48 << 10 }; /* of shared memory that a kernel may declare */
enum { SECTOR = 8, LINE = 32 };   /* columns of 4 bytes that memory reads and moves at once */

/* Columns of a CTA: lines where half of the SMs get a CTA even so, else down to sectors. */
static int finish_width(const Scheduler *s, int64_t columns)
{
    int width = LINE;
    while (width > SECTOR && 2 * ceil_div(columns, width) < s->target->sms) width /= 2;
    return width;
}

static int count_moments(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->accumulator_count; i++) count += k->accumulators[i].squares.id != 0;
    return count;
}

/* Of a column and CTA. */
static int values_to_add(const Kernel *k)
{
    int count = 0;
    for (int i = 0; i < k->accumulator_count; i++) count += values_of(&k->accumulators[i]);
    return count;
}

/* Whether the largest CTA has registers for a pointer and a sum of each value. */
static bool has_registers(const Scheduler *s, const Kernel *k)
{
    enum { OF_VALUE = 4, OTHERS = 10 };
    return OF_VALUE * values_to_add(k) + OTHERS <= register_cap(s, MOST_THREADS);
}

/* Threads of a CTA: as few as leave none many partials to add, and the fewest where many values
 * meet, of which a thread has those of all warps at hand. */
static int finish_threads(const Scheduler *s, const Kernel *k, int width, int64_t partials)
{
    enum { LEAST = 256, FEW = 8 };
    int threads = has_registers(s, k) ? MOST_THREADS : LEAST;
    while (threads > LEAST && ceil_div(partials, threads / 2 / width) <= FEW) threads /= 2;
    return threads;
}

/* Shared memory in which the warps of so many threads meet; of a mean also the numbers of rows. */
static int64_t meeting_bytes(const Scheduler *s, const Kernel *k, int threads, int width)
{
    const int moments = count_moments(k);
    return (int64_t)(values_to_add(k) + moments) * (threads / WARP) * width *
           widest_accumulator(s->g, k);
}

/* Of so many columns that their threads are more than the GPU holds at once, or of many partials
 * twice that, a CTA has more columns, and a thread more of their partials. */
static int wider(const Scheduler *s, const Kernel *k, int width, int threads, int64_t columns)
{
    enum { OF_SM = 2048, FEW_PARTIALS = 256 };
    int64_t most = (threads > FEW_PARTIALS ? 2 : 1) * (int64_t)OF_SM * s->target->sms;
    while (ceil_div(columns, width) * threads > most && 2 * width < threads &&
           meeting_bytes(s, k, threads, 2 * width) <= STATIC_BYTES)
        width *= 2;
    return width;
}

/* The parts of a group are added in chunks: each by a thread, which has all of it under way at
 * once, then one thread adds the chunks. A CTA that has a whole group adds in the same order. */
static void map_group_finish(Kernel *k, Kernel *from, int64_t parts)
{
    enum { CHUNK = 16, MOST = MOST_THREADS / WARP };
    int64_t chunk = ceil_div(parts, MOST);
    k->chunk = from->chunk = (int)(chunk > CHUNK ? chunk : CHUNK);
    k->threads_per_row = WARP;
    k->teams = (int)ceil_div(parts, k->chunk);
    k->vec = 1;
    k->tiles = k->chunk;
    k->dynamic = true;
    k->wanted_ctas = 1; /* else ptxas spills, to have room for more CTAs than there are */
}

/* CTAs that may come while the kernel before it ends take what SMs are free first, up to eight
 * each; where every CTA can have an SM, it shall. */
static void spread(const Scheduler *s, Kernel *k, int64_t columns)
{
    if (s->target->timed && ceil_div(columns, k->threads_per_row) <= s->target->sms)
        keep_to(s, k, 1);
}

void map_finish(const Scheduler *s, Kernel *k)
{
    enum { AT_ONCE = 24, MOST = 12, LEAST = 1 };
    Kernel *from = &s->kernels.data[k->finishes];
    if (from->kept) {
        map_group_finish(k, from, resident_ctas(s, from));
        return;
    }
    int64_t columns = axes_size(&s->a->sizes, k->columns);
    int64_t partials = resident_ctas(s, from);
    int width = finish_width(s, columns);
    int threads = finish_threads(s, k, width, partials);
    while (width > SECTOR && meeting_bytes(s, k, threads, width) > STATIC_BYTES) width /= 2;
    while (threads > WARP && meeting_bytes(s, k, threads, width) > STATIC_BYTES) threads /= 2;
    width = wider(s, k, width, threads, columns);
    k->threads_per_row = width;
    k->teams = threads / width;
    /* in as few rounds of as few as there can be: registers hold what is under way */
    int values = values_to_add(k), at_once = values > 2 ? AT_ONCE / values : MOST;
    if (at_once < LEAST) at_once = LEAST;
    int64_t each = ceil_div(partials, k->teams), rounds = ceil_div(each, at_once);
    k->tiles = (int)ceil_div(each, rounds);
    k->vec = 1;
    spread(s, k, columns);
}
