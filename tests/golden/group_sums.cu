// adaln_bwd for sm_90a, by fusec 0.3.0:
//   fusec group_sums.fuse C=1152 --arch sm_90a --prelude include
#include "fusec.cuh"

// adaln_bwd (column), from group_sums.fuse:2-8
//   dshift = sum[T](dy)
//   dscale = sum[T](dy * xhat)
//
// launch         1 of 2; programmatic stream serialization is allowed: the kernel itself waits
// grid           (min(alone ? B : B * parts, 132), 1)
// block          512 threads
// shared memory  196608 bytes, dynamic: set CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES first
// registers      at most 128 a thread
// rows           those of one B are a group, which is cut into parts; a CTA walks the rows of its
//                parts, 8 at a time, and stores the sums of each, or, where it has whole groups
//                (alone), adds them as the finish kernel would and stores the results
// columns        64 threads a row, each with 3 tiles of 8 adjacent columns, 512 apart, the last not
//                full
// arguments      dy_B, dy_T, xhat_B, xhat_T, dshift_B, dscale_B: strides, in elements
//                parts: of a group, the first of 132, 66, 44, 33 that leaves 56 rows a part or
//                more, else min(ceil(T / 64), 132)
//                alone: whether each CTA has whole groups, parts == 1 or (132 - B % 132) % 132 <= B
//                / 8
// workspace      dshift_partial: f32[parts * min(B, 1056) * C]
//                dscale_partial: f32[parts * min(B, 1056) * C]
extern "C" __global__ __launch_bounds__(512, 1)
void adaln_bwd(
    const bf16 *__restrict__ dy, long long dy_B, long long dy_T,
    const bf16 *__restrict__ xhat, long long xhat_B, long long xhat_T,
    float *__restrict__ dshift, long long dshift_B,
    float *__restrict__ dscale, long long dscale_B,
    float *__restrict__ dshift_partial,
    float *__restrict__ dscale_partial,
    long long B, long long T,
    int parts,
    int alone) {
    constexpr int C = 1152;
    constexpr int threads_per_row = 64, teams = 8, threads = threads_per_row * teams;
    constexpr int vec = 8, tiles = 3, step = threads_per_row * vec;
    wait_for_previous_kernel();
    const int team = threadIdx.x / threads_per_row;
    const int thread_in_row = threadIdx.x % threads_per_row;
    const int first_column = thread_in_row * vec;

    constexpr int chunk = 16;    // so many parts are added, then chunks
    // the CTAs share out the parts of all groups, or, alone, whole groups: this one has `count` parts
    long long group;
    int part = 0, count;
    if (alone) {
        share_out(B, group, count);
        count *= parts;
    } else {
        long long first_part;
        share_out(B * parts, first_part, count);
        split(first_part, parts, group, part);
    }
    const long long row_step = (long long)parts * teams;

    // while a row is computed, the next stages - 1 are on their way to shared memory
    constexpr int stages = 2;
    struct Stage {
        vector<bf16, vec> dy[tiles][threads];
        vector<bf16, vec> xhat[tiles][threads];
    };
    alignas(128) extern __shared__ uint4 smem[];
    Stage *const ring = (Stage *)smem;
    // the row that is copied next, and how many parts are left from its own on
    long long ahead_group = group;
    int ahead_part = part, left = count;
    long long ahead_row = ahead_part * teams + team - row_step;
    const auto fetch = [&](Stage &into) {
        ahead_row += row_step;
        while (left > 0 && ahead_row >= T) {
            next_part(ahead_group, ahead_part, parts);    // until one has a row for this team
            ahead_row = ahead_part * teams + team;
            left--;
        }
        if (left > 0) {
            const long long group = ahead_group, row = ahead_row;
            fetch_row<step, dropped_from_l2>(into.dy, dy + group * dy_B + row * dy_T, first_column, C);
            fetch_row<step, dropped_from_l2>(into.xhat, xhat + group * xhat_B + row * xhat_T, first_column, C);
        }
        fetch_commit();
    };
    int stage = 0;
    #pragma unroll 1
    for (int s = 0; s < stages - 1; s++)
        fetch(ring[s]);
    for (; count > 0; count--) {
        const long long first_row = part * teams + team;
        float dshift_sum[tiles][vec] = {};
        float dscale_sum[tiles][vec] = {};
        #pragma unroll 1
        for (long long row = first_row; row < T; row += row_step) {
            const Stage &current = ring[stage];
            fetch(ring[(stage + stages - 1) % stages]);
            stage = (stage + 1) % stages;
            fetch_wait<stages - 1>();    // a thread reads what it has copied itself
            #pragma unroll
            for (int t = 0; t < tiles; t++) {
                const int col = first_column + t * step;
                const packed<bf16, vec> dy_v = current.dy[t][threadIdx.x];
                const packed<bf16, vec> xhat_v = current.xhat[t][threadIdx.x];
                #pragma unroll
                for (int i = 0; i < vec; i++) {
                    const float dy_ = dy_v[i];
                    const float xhat_ = xhat_v[i];
                    if (col < C) {
                        dshift_sum[t][i] += dy_;
                        dscale_sum[t][i] += dy_ * xhat_;
                    }
                }
            }
        }
        // the next kernel waits, in its wait_for_previous_kernel(), until this one is done
        if (count == 1) let_next_kernel_start();

        struct Sums {
            alignas(16) float dshift_sum[teams][tiles * step];
            alignas(16) float dscale_sum[teams][tiles * step];
        };
        Sums &sums = *(Sums *)(ring + stages);
        __syncthreads();
        leave_sums<Sum>(sums.dshift_sum, dshift_sum);
        leave_sums<Sum>(sums.dscale_sum, dscale_sum);
        __syncthreads();
        if (parts == 1) {    // which is alone: these are the group's sums
            for (int col = threadIdx.x; col < C; col += threads) {
                const float dshift_sum_all = sum_of_teams<vec, Sum>((float)0, sums.dshift_sum, col);
                const float dscale_sum_all = sum_of_teams<vec, Sum>((float)0, sums.dscale_sum, col);
                dshift[group * dshift_B + col] = dshift_sum_all;
                dscale[group * dscale_B + col] = dscale_sum_all;
            }
        } else {
            // a part's sums go to the workspace; alone, the CTA adds them behind the last
            const long long own = alone ? part * (long long)gridDim.x + blockIdx.x : part * B + group;
            store_sums<threads, vec, Sum>(dshift_partial + own * C, sums.dshift_sum, C);
            store_sums<threads, vec, Sum>(dscale_partial + own * C, sums.dscale_sum, C);
            if (alone && part == parts - 1) {
                __syncthreads();    // all of them are there
                for (int col = threadIdx.x; col < C; col += threads) {
                    const float dshift_sum_all_ = add_parts<Sum, chunk>((float)0, dshift_partial, parts, col, C);
                    const float dscale_sum_all_ = add_parts<Sum, chunk>((float)0, dscale_partial, parts, col, C);
                    dshift[group * dshift_B + col] = dshift_sum_all_;
                    dscale[group * dscale_B + col] = dscale_sum_all_;
                }
            }
        }
        next_part(group, part, parts);
    }
}

// adaln_bwd_finish (finish), from group_sums.fuse:2-8
//   dshift = sum[T](dy), from the partials
//   dscale = sum[T](dy * xhat), from the partials
//
// launch         2 of 2; programmatic stream serialization is allowed: the kernel itself waits
//                not after a launch of adaln_bwd that was `alone`: it has stored the results
// grid           (min(ceil(B * C / 32), 924), 1)
// block          288 threads
// shared memory  0 bytes, dynamic
// registers      at most 224 a thread
// rows           the parts of the groups of adaln_bwd
// columns        the threads of a column add 16 parts each, in order, and then meet
// arguments      dshift_B, dscale_B: strides, in elements
//                partials: the first of 132, 66, 44, 33 that leaves 56 rows a part or more, else
//                min(ceil(T / 64), 132)
// workspace      dshift_partial: f32[parts * min(B, 1056) * C]
//                dscale_partial: f32[parts * min(B, 1056) * C]
extern "C" __global__ __launch_bounds__(288, 1)
void adaln_bwd_finish(
    const float *__restrict__ dshift_partial,
    const float *__restrict__ dscale_partial,
    float *__restrict__ dshift, long long dshift_B,
    float *__restrict__ dscale, long long dscale_B,
    long long B,
    int partials) {
    constexpr int C = 1152, width = 32, slices = 9, threads = width * slices, chunk = 16;
    const int slice = threadIdx.x / width;
    const long long columns = B * C, spans = (columns - 1) / width + 1;
    // each slice adds all parts of columns of its own, or a chunk of those of all
    const bool whole = partials <= chunk;
    const int begin = whole ? 0 : slice * chunk;
    const int end = begin + chunk < partials ? begin + chunk : partials;
    wait_for_previous_kernel();

    const long long at_once = whole ? slices : 1;
    #pragma unroll 1
    for (long long span = blockIdx.x * at_once + (whole ? slice : 0); span < spans; span += gridDim.x * at_once) {
        const long long col = span * width + threadIdx.x % width;
        float dshift_sum[1] = {0};
        float dscale_sum[1] = {0};
        if (col < columns) {
            #pragma unroll 8
            for (int p = begin; p < end; p++) {
                dshift_sum[0] += dshift_partial[p * columns + col];
                dscale_sum[0] += dscale_partial[p * columns + col];
            }
        }
        if (!whole) {
            __shared__ float scratch[threads];
            team_reduce<threads, width, Sum>(scratch, dshift_sum);
            team_reduce<threads, width, Sum>(scratch, dscale_sum);
        }
        if ((whole || slice == 0) && col < columns) {
            const long long c = col % C, b = col / C;
            dshift[b * dshift_B + c] = dshift_sum[0];
            dscale[b * dscale_B + c] = dscale_sum[0];
        }
    }
}
