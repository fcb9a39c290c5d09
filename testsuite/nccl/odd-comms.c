/* odd-comms.c: a program that makes communicators of all GPUs it sees, in one process, in ways that
 * programs seldom use, and prints what NCCL returns. Usage: odd-comms WAY [COUNT]. */
#include "comms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GPUS = 16 };

static int n;
static ncclComm_t comms[GPUS], others[GPUS];

static void say(const char *what, ncclResult_t result)
{
    printf("%s: %s\n", what, ncclGetErrorString(result));
    fflush(stdout); /* ahead of what children print */
}

/* Rank r on the r-th GPU from the end. */
static void make(const char *what, ncclConfig_t *config)
{
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != ncclSuccess)
        exit(1);
    ncclGroupStart();
    for (int rank = 0; rank < n; rank++) {
        cudaSetDevice(n - 1 - rank);
        if (config)
            ncclCommInitRankConfig(&comms[rank], n, id, rank, config);
        else
            ncclCommInitRank(&comms[rank], n, id, rank);
    }
    say(what, ncclGroupEnd());
}

/* Uses and destroys them. */
static void drop(ncclComm_t *list)
{
    say("used", use_comms(list, n));
    for (int i = 0; i < n; i++) {
        if (list[i])
            ncclCommDestroy(list[i]);
        list[i] = NULL;
    }
}

static void configs(int count)
{
    (void)count;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.minCTAs = config.maxCTAs = 2;
    config.cgaClusterSize = 0;
    make("two channels", &config);
    drop(comms);
    config = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
    config.minCTAs = 4;
    config.maxCTAs = 8;
    config.commName = "named";
    make("many channels", &config);
    drop(comms);
    config.minCTAs = 8;
    config.maxCTAs = 4;
    make("contradiction", &config);
}

/* Each Nth rank, from the first, takes no part. */
static void split(const char *what, int each, ncclConfig_t *config)
{
    ncclGroupStart();
    for (int rank = 0; rank < n; rank++)
        ncclCommSplit(comms[rank], each && rank % each == 0 ? NCCL_SPLIT_NOCOLOR : 7, n - rank,
                      &others[rank], config);
    say(what, ncclGroupEnd());
    for (int rank = 0; rank < n; rank++)
        printf("rank %d: %s\n", rank, others[rank] ? "in" : "out");
    drop(others);
}

static void splits(int count)
{
    (void)count;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = 1;
    make("made", &config);
    split("shared", 0, NULL);
    split("without some", 2, NULL);
    split("without all", 1, NULL);
    drop(comms);
    config.splitShare = 0;
    make("made", &config);
    say("used", use_comms(comms, n)); /* ahead of its children: two at once are not told apart */
    split("not shared", 0, NULL);
    split("without some", 2, &config);
    drop(comms);
}

/* In one group a communicator of all GPUs, and one of each GPU by itself. */
static void mixed(int count)
{
    (void)count;
    ncclUniqueId id;
    ncclGroupStart();
    make("inside", NULL);
    for (int rank = 0; rank < n; rank++) {
        cudaSetDevice(n - 1 - rank);
        ncclGetUniqueId(&id);
        ncclCommInitRank(&others[rank], 1, id, 0);
    }
    say("both", ncclGroupEnd());
    drop(others);
    drop(comms);
}

/* Splits that nobody is in, then one that all are in. */
static void nobody(int count)
{
    make("made", NULL);
    for (int i = 0; i < count; i++) {
        ncclGroupStart();
        for (int rank = 0; rank < n; rank++)
            ncclCommSplit(comms[rank], NCCL_SPLIT_NOCOLOR, rank, &others[rank], NULL);
        if (ncclGroupEnd() != ncclSuccess)
            printf("split %d failed\n", i);
    }
    split("with all", 0, NULL);
    drop(comms);
}

static void again(int count)
{
    for (int i = 0; i < count; i++) {
        make("made", NULL);
        say("used", use_comms(comms, n));
        for (int rank = 0; rank < n; rank++)
            ncclCommFinalize(comms[rank]);
        for (int rank = 0; rank < n; rank++)
            ncclCommDestroy(comms[rank]);
    }
}

/* Arguments that NCCL refuses, then one that it does not. */
static void wrong(int count)
{
    (void)count;
    ncclUniqueId id;
    int devices[GPUS] = {0};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclGetUniqueId(&id);
    cudaSetDevice(0);
    say("no place for handles", ncclCommInitAll(NULL, n, NULL));
    say("one GPU for all", ncclCommInitAll(comms, n, devices));
    say("a device that is not there", ncclCommInitAll(comms, n, (int[GPUS]){99, 0, 1}));
    say("no place for a handle", ncclCommInitRank(NULL, n, id, 0));
    say("no ranks", ncclCommInitRank(comms, 0, id, 0));
    say("a rank too high", ncclCommInitRank(comms, n, id, n));
    say("a rank below zero", ncclCommInitRank(comms, n, id, -1));
    config.magic = 1;
    say("no configuration", ncclCommInitRankConfig(comms, n, id, 0, &config));
    say("no communicator to split", ncclCommSplit(NULL, 0, 0, comms, NULL));
    say("none to end", ncclCommDestroy(NULL));
    memset(comms, 0, sizeof(comms));
    make("made", NULL);
    drop(comms);
}

/* A child of a process that has communicators makes its own, after exec; and one that does not. */
static void forks(int count)
{
    (void)count;
    make("made", NULL);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        int status = 0;
        if (child == 0) {
            if (i == 0)
                execl("/proc/self/exe", "odd-comms", "again", "1", (char *)NULL);
            _exit(getenv("NCCL_GRAPH_FILE") ? 1 : 0);
        }
        waitpid(child, &status, 0);
        printf("child: %d\n", status);
    }
    drop(comms);
    make("made", NULL);
    drop(comms);
}

/* Communicators that are given up while they are made, at different moments; then one that is not.
 */
static void aborts(int count)
{
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    for (int i = 0; i < count; i++) {
        ncclGetUniqueId(&id);
        ncclGroupStart();
        for (int rank = 0; rank < n; rank++) {
            cudaSetDevice(rank);
            ncclCommInitRankConfig(&comms[rank], n, id, rank, &config);
        }
        ncclGroupEnd();
        usleep((unsigned)i * 20000);
        for (int rank = 0; rank < n; rank++)
            if (comms[rank])
                ncclCommAbort(comms[rank]);
        memset(comms, 0, sizeof(comms));
    }
    make("made", NULL);
    drop(comms);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int count);
    } ways[] = {{"configs", configs}, {"splits", splits}, {"nobody", nobody}, {"again", again},
                {"wrong", wrong},     {"forks", forks},   {"aborts", aborts}, {"mixed", mixed}};
    if (argc < 2 || cudaGetDeviceCount(&n) != cudaSuccess || n > GPUS)
        return 1;
    for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        if (strcmp(argv[1], ways[i].name) == 0) {
            ways[i].run(argc > 2 ? atoi(argv[2]) : 0);
            return 0;
        }
    return 2;
}
