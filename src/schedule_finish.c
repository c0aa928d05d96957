/* schedule_finish.c: the kernel that adds the partials that another kernel's CTAs left. It
 * moves few bytes, so its time is latency: the GPU should be full, and all that a thread
 * adds under way at once. */
#include "scheduling.h"

enum { REGISTERS = 50 };

/* Columns of a CTA: neighbours fill sectors of 32 bytes at least, lines of 128 where half
 * of the SMs get a CTA even so. */
static int finish_width(const Scheduler *s, int64_t columns)
{
    enum { SECTOR = 8, LINE = 32 };
    int width = LINE;
    while (width > SECTOR && 2 * ceil_div(columns, width) < s->target->sms) width /= 2;
    return width;
}

/* Threads of a CTA: few enough that all CTAs live at once, while none adds too many. */
static int finish_threads(const Scheduler *s, int64_t ctas, int width, int64_t partials)
{
    enum { LEAST = 256, AT_ONCE = 8, THREADS_PER_SM = 2048 };
    int threads = MOST_THREADS;
    while (threads > LEAST && ctas * threads > (int64_t)s->target->sms * THREADS_PER_SM &&
           ceil_div(partials, threads / 2 / width) <= AT_ONCE)
        threads /= 2;
    return threads;
}

bool map_finish(const Scheduler *s, Kernel *k)
{
    enum { AT_ONCE = 12 };
    int64_t columns = axes_size(&s->a->sizes, k->columns);
    int64_t partials = resident_ctas(s, &s->kernels.data[k->finishes]);
    k->threads_per_row = finish_width(s, columns);
    int64_t ctas = ceil_div(columns, k->threads_per_row);
    k->teams = finish_threads(s, ctas, k->threads_per_row, partials) / k->threads_per_row;
    int64_t each = ceil_div(partials, k->teams), rounds = ceil_div(each, AT_ONCE);
    k->tiles = (int)ceil_div(each, rounds);
    k->vec = 1;
    k->registers = REGISTERS;
    return true;
}
