//: column_moments.cuh: means and their squares over rows, in one pass.
//@ add_distance
// adds a value's distance from a column's shift, and its square
DEVICE void add_distance(float &sum, float &squares, float distance)
{
    sum += distance;
    squares += distance * distance;
}

//@ count_row
// Counts a row of which columns have taken their values. As often as the number of rows doubles, the shifts move to the means
// of what was seen: so they are never much farther from them than the values are. The first row was taken about 0, and its
// values are the first shifts. Infinity and NaN are near nothing, nor need numbers beyond 2^96 be, whose squares are infinite.
template <int tiles, int vec>
DEVICE void count_row(float (&sum)[tiles][vec], float (&squares)[tiles][vec], float (&shift)[tiles][vec], int &seen)
{
    seen++;
    if (seen & (seen - 1))
        return;
    const float inverse = 1.0f / seen;
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < vec; i++) {
            const float to = shift[t][i] + sum[t][i] * inverse, by = to - shift[t][i];
            if (seen == 1 ? fabsf(to) < 0x1p96f : squares[t][i] < infinity()) {
                squares[t][i] = seen == 1 ? 0 : squares[t][i] - by * (2 * sum[t][i] - seen * by);
                sum[t][i] -= seen * by;
                shift[t][i] = to;
            }
        }
}

//@ settle_columns
// From squares about the shifts to squares about the means. Infinite ones stay so, unless the sum is infinite too: then they are NaN.
template <int tiles, int vec>
DEVICE void settle_columns(const float (&sum)[tiles][vec], float (&squares)[tiles][vec], int seen)
{
    const float inverse = 1.0f / (seen > 1 ? seen : 1);
    #pragma unroll
    for (int t = 0; t < tiles; t++)
        #pragma unroll
        for (int i = 0; i < vec; i++)
            squares[t][i] -= squares[t][i] < infinity() ? sum[t][i] * (sum[t][i] * inverse) : sum[t][i] - sum[t][i];
}

//@ join_warp_moments
// Joins the moments of teams that share a warp, the `row_threads` of each of which have the same columns: the first team gets
// them, and their number of rows; the others keep none. The first has a row if any has.
template <int row_threads, int vec>
DEVICE float join_warp_moments(float (&sum)[vec], float (&squares)[vec], float (&shift)[vec], float seen)
{
    const unsigned warp = 0xffffffff;
    const bool first = threadIdx.x % 32 < row_threads;
    float all = seen;
    #pragma unroll
    for (int distance = row_threads; distance < 32; distance *= 2)
        all += __shfl_xor_sync(warp, all, distance);
    #pragma unroll
    for (int i = 0; i < vec; i++) {
        const float to = __shfl_sync(warp, shift[i], threadIdx.x % row_threads);
        float total = sum[i] + seen * (shift[i] - to);
        const float mean = total / fmaxf(seen, 1);
        #pragma unroll
        for (int distance = row_threads; distance < 32; distance *= 2)
            total += __shfl_xor_sync(warp, total, distance);
        const float off = mean - total / fmaxf(all, 1);
        squares[i] += off * (off * seen);
        #pragma unroll
        for (int distance = row_threads; distance < 32; distance *= 2)
            squares[i] += __shfl_xor_sync(warp, squares[i], distance);
        sum[i] = first ? total : 0;
        squares[i] = first ? squares[i] : 0;
        shift[i] = to;
    }
    return first ? all : 0;
}

//@ leave_moments
// leave_sums for a mean and its squares
template <int writers, int columns, int tiles, int vec>
DEVICE void leave_moments(float (&left_sum)[writers][columns], float (&left_squares)[writers][columns],
                          float (&left_shift)[writers][columns], float (&left_seen)[writers], float (&sum)[tiles][vec],
                          float (&squares)[tiles][vec], float (&shift)[tiles][vec], int rows)
{
    constexpr int row_threads = columns / (tiles * vec), width = row_threads < 32 ? 32 : row_threads;
    float seen = rows;
    settle_columns(sum, squares, rows);
    if (row_threads < 32)
        #pragma unroll
        for (int t = 0; t < tiles; t++) {
            const float all = join_warp_moments<row_threads>(sum[t], squares[t], shift[t], rows);
            seen = t + 1 < tiles ? seen : all;
        }
    #pragma unroll
    for (int t = 0; t < tiles && row_threads < 32; t++)
        #pragma unroll
        for (int i = 0; i < vec; i++)
            shift[t][i] = threadIdx.x % 32 < row_threads ? shift[t][i] : 0;
    leave_sums<Sum>(left_sum, sum);
    leave_sums<Sum>(left_squares, squares);
    leave_sums<Sum>(left_shift, shift);
    if (threadIdx.x % width == 0)
        left_seen[threadIdx.x / width] = seen;
}

//@ store_moments
// Joins what the teams left, in their order, and stores it from `row` on: all threads of the CTA, a column each at a time.
template <int threads, int vec, int writers, int columns>
DEVICE void store_moments(float *sums, float *all_squares, float *shifts, long long row, const float (&sum)[writers][columns],
                          const float (&squares)[writers][columns], const float (&shift)[writers][columns],
                          const float (&seen)[writers], int size)
{
    #pragma unroll 1
    for (int col = threadIdx.x; col < columns && col < size; col += threads) {
        const int place = place_of_sum<float, vec>(col);
        const float to = shift[0][place];
        float all = 0, total = 0, more = 0;
        #pragma unroll
        for (int g = 0; g < writers; g++) {
            all += seen[g];
            total += sum[g][place] + seen[g] * (shift[g][place] - to);
        }
        const float mean = total / fmaxf(all, 1);
        #pragma unroll
        for (int g = 0; g < writers; g++) {
            const float own = sum[g][place] + seen[g] * (shift[g][place] - to), off = own / fmaxf(seen[g], 1) - mean;
            more += squares[g][place] + off * (off * seen[g]);
        }
        sums[row + col] = total;
        all_squares[row + col] = more;
        shifts[row + col] = to;
    }
}

//@ team_share
// gives all teams of a CTA what the first has
template <int row_threads, class S, int slots, int vec> DEVICE void team_share(S (&scratch)[slots], float (&value)[vec])
{
    #pragma unroll
    for (int i = 0; i < vec; i++)
        if (threadIdx.x < row_threads)
            *(float *)(scratch + i * row_threads + threadIdx.x) = value[i];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < vec; i++)
        value[i] = *(const float *)(scratch + i * row_threads + threadIdx.x % row_threads);
    __syncthreads();
}

//@ team_moments
// team_reduce for a mean and its squares, which are settled
template <int threads, int row_threads, class S, int slots, int vec>
DEVICE void team_moments(S (&scratch)[slots], float (&sum)[vec], float (&squares)[vec], float (&shift)[vec], int rows)
{
    float seen[1] = {(float)rows}, all[1], mean[vec];
    if (row_threads < 32)
        seen[0] = join_warp_moments<row_threads>(sum, squares, shift, rows);
    all[0] = seen[0];
    team_reduce<threads, row_threads, Sum>(scratch, all);
    team_share<row_threads>(scratch, all);
    #pragma unroll
    for (int i = 0; i < vec; i++)
        mean[i] = shift[i];
    team_share<row_threads>(scratch, mean);
    #pragma unroll
    for (int i = 0; i < vec; i++) {
        sum[i] += seen[0] * (shift[i] - mean[i]);
        shift[i] = mean[i];
        mean[i] = sum[i];
    }
    team_reduce<threads, row_threads, Sum>(scratch, mean);
    team_share<row_threads>(scratch, mean);
    #pragma unroll
    for (int i = 0; i < vec; i++) {
        const float off = sum[i] / fmaxf(seen[0], 1) - mean[i] / fmaxf(all[0], 1);
        squares[i] += off * (off * seen[0]);
        sum[i] = mean[i];
    }
    team_reduce<threads, row_threads, Sum>(scratch, squares);
}

//@ rows_of_part
// how many of some rows one of `parts` has, each of which takes so many neighbours in turn
DEVICE float rows_of_part(long long rows, int neighbours, int parts, int part)
{
    const long long round = (long long)neighbours * parts, turns = rows / round;
    const long long left = rows - turns * round - (long long)part * neighbours;
    return turns * neighbours + (left < 0 ? 0 : left < neighbours ? left : neighbours);
}

//@ join_moments
// Joins to r what others have seen of the same values: the sum of distances from a shift, the squares about the mean and their
// number (Chan, Golub and LeVeque). No term is negative, so nothing cancels.
DEVICE void join_moments(Moments r, float sum, float squares, float seen, float shift)
{
    if (r.seen == 0)
        r.shift = shift;
    sum = fmaf(seen, shift - r.shift, sum);
    const float all = r.seen + seen, mean = r.sum * quick_inverse(fmaxf(r.seen, 1));
    const float off = fmaf(sum, quick_inverse(fmaxf(seen, 1)), -mean);
    const float weight = r.seen * (seen * quick_inverse(fmaxf(all, 1)));
    r.squares = fmaf(off * weight, off, r.squares + squares);
    r.sum += sum;
    r.seen = all;
}

//@ slice_moments
// slice_reduce for a mean and its squares
template <int width, int slots> DEVICE void slice_moments(float (&scratch)[4][slots], Moments r)
{
    #pragma unroll
    for (int distance = width; distance < 32; distance *= 2) {
        const float sum = __shfl_xor_sync(0xffffffff, r.sum, distance), squares = __shfl_xor_sync(0xffffffff, r.squares, distance);
        const float seen = __shfl_xor_sync(0xffffffff, r.seen, distance), shift = __shfl_xor_sync(0xffffffff, r.shift, distance);
        join_moments(r, sum, squares, seen, shift);
    }
    const int lane = threadIdx.x % 32, place = width < 32 ? threadIdx.x / 32 * width + lane : threadIdx.x;
    if (lane < width) {
        scratch[0][place] = r.sum;
        scratch[1][place] = r.squares;
        scratch[2][place] = r.seen;
        scratch[3][place] = r.shift;
    }
    __syncthreads();
    if (threadIdx.x < width) {
        r.sum = scratch[0][threadIdx.x];
        r.squares = scratch[1][threadIdx.x];
        r.seen = scratch[2][threadIdx.x];
        r.shift = scratch[3][threadIdx.x];
        #pragma unroll
        for (int i = width + threadIdx.x; i < slots; i += width)
            join_moments(r, scratch[0][i], scratch[1][i], scratch[2][i], scratch[3][i]);
    }
}

//@ add_part_moments
// add_parts for a mean and its squares, of groups of `rows` rows that teams take in turn
template <int chunk, int teams>
DEVICE void add_part_moments(Moments r, const float *sum, const float *squares, const float *shift, long long rows, int parts, int col,
                             long long size)
{
    #pragma unroll 1
    for (int begin = 0; begin < parts; begin += chunk) {
        const int end = begin + chunk < parts ? begin + chunk : parts;
        float some = 0, some_squares = 0, some_seen = 0, some_shift = 0;
        #pragma unroll 4
        for (int p = begin; p < end; p++) {
            const long long at = (p * (long long)gridDim.x + blockIdx.x) * size + col;
            join_moments(moments_of(some, some_squares, some_seen, some_shift), sum[at], squares[at],
                         rows_of_part(rows, teams, parts, p), shift[at]);
        }
        if (begin)
            join_moments(r, some, some_squares, some_seen, some_shift);
        else {
            r.sum = some;
            r.squares = some_squares;
            r.seen = some_seen;
            r.shift = some_shift;
        }
    }
}
