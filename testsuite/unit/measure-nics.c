/* measure-nics PEER MUNGE MILLISECONDS NICS SET...: what "tccl-profile run --peer" does for the
 * transfers of NICs, for tests: runs each set against the peer ("": loopback), which proves itself
 * by the munged with that socket ("": nobody proves anything), with NICs of these names (separated
 * by commas) and two memories, and prints its members' GB/s, or its error. Between sets it waits
 * for a line from standard input if MILLISECONDS is negative. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/pool/mover.h"
#include "measure/pool/workers.h"

enum { REGION = 8 << 20, FIRST_SHARE = 1 << 23, REPEATS = 3, TRIES = 50 };

static int compare(const void *a, const void *b)
{
    const double *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

/* A run whose members were together for some time, which takes several on a busy machine. */
static int run_together(struct tccl_workers *workers, const struct tccl_set *set, uint64_t share,
                        struct tccl_run_result *run, struct tccl_error *err)
{
    int rc = 0;
    *run = (struct tccl_run_result){0};
    for (int i = 0; i < TRIES && rc == 0 && run->window == 0; i++)
        rc = tccl_workers_run(workers, set, share, run, err);
    return rc;
}

/* Some runs, each of the time wanted: the median of each member's bandwidth goes to run. */
static int measure_again(struct tccl_workers *workers, const struct tccl_set *set, uint64_t share,
                         struct tccl_run_result *run, struct tccl_error *err)
{
    double seen[TCCL_MAX_SET][REPEATS];
    int rc = 0;
    for (int i = 0; rc == 0 && i < REPEATS; i++) {
        rc = run_together(workers, set, share, run, err);
        for (int k = 0; k < set->count; k++)
            seen[k][i] = run->gbps[k];
    }
    for (int k = 0; rc == 0 && k < set->count; k++) {
        qsort(seen[k], REPEATS, sizeof(double), compare);
        run->gbps[k] = seen[k][REPEATS / 2];
    }
    return rc;
}

/* The first run finds the share that takes the time wanted. */
static int measure(struct tccl_workers *workers, const struct tccl_set *set, double seconds,
                   struct tccl_run_result *run, struct tccl_error *err)
{
    int rc = run_together(workers, set, FIRST_SHARE, run, err);
    double share = rc == 0 ? run->slowest * 1e9 * seconds : 0;
    return rc == 0 && share > FIRST_SHARE ? measure_again(workers, set, (uint64_t)share, run, err)
                                          : rc;
}

static void print_set(struct tccl_workers *workers, const char *text, double seconds)
{
    struct tccl_error err = {0};
    struct tccl_set set;
    struct tccl_run_result run;
    printf("%s:", text);
    if (tccl_set_parse(text, &set, &err) < 0 || measure(workers, &set, seconds, &run, &err) != 0) {
        printf(" %s\n", err.text);
    } else {
        for (int i = 0; i < set.count; i++)
            printf(" %.4f", run.gbps[i]);
        printf("\n");
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct tccl_site site = {.machine = {.n_memories = 2}};
    struct tccl_workspace_settings settings = {.region = REGION};
    const struct tccl_workers_options options = {
        .gpu = &tccl_mover_tcp, .nic = &tccl_mover_nic, .prepare_limit = 20, .run_limit = 20};
    struct tccl_error err = {0};
    char line[16];
    if (argc < 6)
        return 2;
    snprintf(settings.peer, sizeof(settings.peer), "%s", argv[1]);
    if (tccl_trust_fill(&settings.trust, argv[2], "root", &err) != 0)
        return 1;
    settings.trust.anybody = !*argv[2];
    for (char *name = strtok(argv[4], ","); name; name = strtok(NULL, ","))
        snprintf(site.machine.nics[site.machine.n_nics++].name, TCCL_NAME, "%s", name);
    double seconds = atof(argv[3]) / 1e3;
    struct tccl_workspace *workspace = tccl_workspace_new(&site, &settings, &err);
    struct tccl_workers *workers = workspace ? tccl_workers_new(workspace, &options, &err) : NULL;
    for (int i = 5; workers && i < argc; i++) {
        print_set(workers, argv[i], fabs(seconds));
        if (seconds < 0 && !fgets(line, sizeof(line), stdin))
            break;
    }
    tccl_workers_free(workers);
    tccl_workspace_free(workspace);
    if (err.text[0])
        fprintf(stderr, "%s\n", err.text);
    return err.text[0] != '\0';
}
