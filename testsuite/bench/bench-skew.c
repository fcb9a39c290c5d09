/* bench-skew.c: two transfers that share one core, the second one late by a known time: what comes
 * out if each is timed by itself, and what comes out of the common window. */
#include <math.h>
#include <sched.h>
#include <sys/mman.h>

#include "bench.h"
#include "measure/pool/pool-run.h"
#include "measure/pool/workers.h"

enum { REPEATS = 9, BUFFER = 16 << 10, PIECE = 256 << 10, MEMBERS = 2 };

static const double planted_ms[] = {0, 0.1, 1, 2, 5, 10, 20};
enum { SKEWS = sizeof(planted_ms) / sizeof(*planted_ms) };
static const double together_ms = 20; /* of a run in which both start at once */

/* What the workers are told, and what a transfer that is timed by itself reports. */
static struct orders {
    double late_ms; /* of GPU 1's transfer */
    bool by_itself; /* stops when it has moved its share, and takes its own time */
    double gbps[MEMBERS];
} * orders;

struct state {
    struct tccl_seat seat;
    unsigned char *region, buffer[BUFFER];
};

static void nap_until(int64_t time)
{
    struct timespec at = {time / 1000000000, time % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int late_prepare(void *context, tccl_transfer transfer, struct tccl_error *err)
{
    struct state *state = context;
    state->region = tccl_workspace_region(state->seat.workspace, tccl_transfer_target(transfer),
                                          state->seat.place, err);
    return state->region ? 0 : -1;
}

static uint64_t copy_piece(struct state *state, uint64_t total)
{
    size_t region = state->seat.workspace->settings.region;
    unsigned char *piece = state->region + total % region;
    for (size_t at = 0; at < PIECE; at += BUFFER)
        memcpy(piece + at, state->buffer, BUFFER);
    return total + PIECE;
}

static int late_move(void *context, struct tccl_member *member, struct tccl_error *err)
{
    struct state *state = context;
    uint64_t total = 0, share = member->run->share;
    int64_t start = tccl_member_wait(member);
    (void)err;
    if (start < 0)
        return 0;
    if (state->seat.device.index == 1 && orders->late_ms > 0)
        nap_until(start + (int64_t)(orders->late_ms * 1e6));
    double begun = bench_clock();
    bool more = tccl_member_moved(member, 0);
    while (more && !(orders->by_itself && total >= share)) {
        total = copy_piece(state, total);
        more = tccl_member_moved(member, total);
    }
    orders->gbps[state->seat.device.index] = (double)total * 1e-9 / (bench_clock() - begun);
    while (more && tccl_member_moved(member, total))
        nanosleep(&(struct timespec){0, 100000}, NULL);
    return 0;
}

static const struct tccl_mover late_mover = {
    .size = sizeof(struct state), .prepare = late_prepare, .move = late_move};

static struct tccl_workers *make_pool(void)
{
    static struct tccl_site site = {.machine = {.n_gpus = MEMBERS, .n_memories = 1}};
    const struct tccl_workspace_settings settings = {.region = 64 << 20};
    const struct tccl_workers_options options = {
        .gpu = &late_mover, .prepare_limit = 10, .run_limit = 10};
    cpu_set_t usable;
    int cpu = CPU_SETSIZE - 1;
    sched_getaffinity(0, sizeof(usable), &usable);
    while (cpu > 0 && !CPU_ISSET(cpu, &usable))
        cpu--;
    for (int i = 0; i < MEMBERS; i++)
        CPU_SET(cpu, &site.gpu_cpus[i]);
    struct tccl_workspace *workspace = tccl_workspace_new(&site, &settings, ERR);
    struct tccl_workers *workers = workspace ? tccl_workers_new(workspace, &options, ERR) : NULL;
    MUST(!workers);
    return workers;
}

static struct tccl_run_result run_set(struct tccl_workers *workers, const char *text, double share)
{
    struct tccl_set set = {0};
    struct tccl_run_result run = {0};
    MUST(tccl_set_parse(text, &set, ERR) < 0 ||
         tccl_workers_run(workers, &set, (uint64_t)share, &run, ERR) != 0);
    return run;
}

struct results {
    double skew[SKEWS][REPEATS], naive[SKEWS][REPEATS], ours[SKEWS][REPEATS];
    double overlap[SKEWS][REPEATS];
};

static void measure(struct tccl_workers *workers, double share, int skew, int repeat,
                    struct results *results)
{
    static const char both[] = "g0>m0 g1>m0";
    orders->late_ms = planted_ms[skew];
    orders->by_itself = true;
    run_set(workers, both, share);
    results->naive[skew][repeat] = fmin(orders->gbps[0], orders->gbps[1]);
    orders->by_itself = false;
    struct tccl_run_result run = run_set(workers, both, share);
    results->ours[skew][repeat] = run.slowest;
    results->skew[skew][repeat] = run.skew;
    results->overlap[skew][repeat] = run.overlap;
}

/* In percent, of the median; the values are sorted. */
static double spread_of(double *values)
{
    return 100 * tccl_spread(values, REPEATS);
}

static void print_row(int skew, struct results *results, double naive0, double ours0)
{
    double naive = tccl_median(results->naive[skew], REPEATS);
    double ours = tccl_median(results->ours[skew], REPEATS);
    double measured = tccl_median(results->skew[skew], REPEATS);
    double overlap = tccl_median(results->overlap[skew], REPEATS);
    double naive_error = 100 * (naive / naive0 - 1), ours_error = 100 * (ours / ours0 - 1);
    if (bench_rows)
        json_array_append_new(
            bench_rows, json_pack("{s:f s:f s:f s:f s:f s:f s:f s:f s:f s:i}", "planted_ms",
                                  planted_ms[skew], "measured_us", measured, "overlap", overlap,
                                  "naive", naive, "naive_error_percent", naive_error,
                                  "naive_spread_percent", spread_of(results->naive[skew]), "ours",
                                  ours, "ours_error_percent", ours_error, "ours_spread_percent",
                                  spread_of(results->ours[skew]), "repeats", REPEATS));
    else
        printf("  %7.1f %12.1f %8.3f %9.3f %+7.1f %% %6.1f %% %9.3f %+7.1f %% %6.1f %%\n",
               planted_ms[skew], measured, overlap, naive, naive_error,
               spread_of(results->naive[skew]), ours, ours_error, spread_of(results->ours[skew]));
}

static void print_heads(double alone, double together)
{
    if (bench_rows) {
        json_array_append_new(bench_rows,
                              json_pack("{s:f s:f s:f}", "alone", alone, "together", together,
                                        "alone_over_together", alone / together));
        return;
    }
    printf("\nTwo writers on one core: %.3f GB/s alone, %.3f GB/s each together (%.2f times)\n\n",
           alone, together, alone / together);
    printf("  %7s %12s %8s %9s %9s %8s %9s %9s %8s\n", "planted", "measured", "overlap", "each by",
           "error", "spread", "common", "error", "spread");
    printf("  %7s %12s %8s %9s %9s %8s %9s %9s %8s\n", "ms", "skew, us", "", "itself", "", "",
           "window", "", "");
}

int main(int argc, char **argv)
{
    static struct results results;
    double alone[REPEATS], together[REPEATS];
    bench_begin(argc, argv);
    orders = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(orders == MAP_FAILED);
    struct tccl_workers *workers = make_pool();
    double share = 64 << 20;
    for (int i = 0; i < 3; i++)
        share = run_set(workers, "g0>m0 g1>m0", share).slowest * 1e6 * together_ms;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        orders->late_ms = 0;
        alone[repeat] = run_set(workers, "g0>m0", share).slowest;
        together[repeat] = run_set(workers, "g0>m0 g1>m0", share).slowest;
        for (int skew = 0; skew < SKEWS; skew++)
            measure(workers, share, skew, repeat, &results);
    }
    print_heads(tccl_median(alone, REPEATS), tccl_median(together, REPEATS));
    double naive0 = tccl_median(results.naive[0], REPEATS);
    double ours0 = tccl_median(results.ours[0], REPEATS);
    for (int skew = 0; skew < SKEWS; skew++)
        print_row(skew, &results, naive0, ours0);
    tccl_workers_free(workers);
    return bench_end();
}
