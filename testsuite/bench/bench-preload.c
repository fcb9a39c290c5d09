/* bench-preload.c: what the shim costs programs that have no NCCL: a look into the environment, a
 * symbol that is looked up, and the start of a process; and what it costs to look NCCL's functions
 * up. */
#include <dlfcn.h>
#include <spawn.h>

#include "bench.h"

enum { REPEATS = 15, STARTS = 100, CALLS = 1000000, ENTRIES = 80 };

/* A Slurm job has some 80 variables; the one that is looked for stands in the middle. */
static char entries[ENTRIES][40];
static char *without[ENTRIES + 1], *with[ENTRIES + 2];
static char preload[] = "LD_PRELOAD=" BENCH_SHIM;

/* Runs a program; what it prints, as a number. */
static double run(char **command, char **environment)
{
    int ends[2], status;
    pid_t pid;
    char text[64] = "";
    posix_spawn_file_actions_t actions;
    MUST(pipe(ends) || posix_spawn_file_actions_init(&actions) ||
         posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) ||
         posix_spawn(&pid, command[0], &actions, NULL, command, environment));
    close(ends[1]);
    MUST(read(ends[0], text, sizeof(text) - 1) < 0 || waitpid(pid, &status, 0) != pid || status);
    close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
    return atof(text);
}

/* In a process of its own: nanoseconds of one getenv, or of one dlsym in the stand-in for NCCL (the
 * name begins with a colon). */
static int look_up(const char *name)
{
    long found = 0;
    void *library = name[0] == ':' ? dlopen(BENCH_NCCL, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (name[0] == ':' && !library)
        return 1;
    double start = bench_cpu();
    for (int i = 0; i < CALLS; i++) {
        found += (library ? dlsym(library, name + 1) : getenv(name)) != NULL;
        __asm__ volatile("" ::: "memory");
    }
    printf("%.3f %ld\n", (bench_cpu() - start) / CALLS * 1e9, found);
    return 0;
}

static double look_up_apart(char *self, char *name, char **environment)
{
    char option[] = "--look-up";
    return run((char *[]){self, option, name, NULL}, environment);
}

/* Microseconds from before the start of one process to its end, of many the least: others may run
 * on the machine. */
static double start_one(char **environment)
{
    char program[] = "/bin/true";
    double least = 1;
    for (int i = 0; i < STARTS; i++) {
        double start = bench_clock();
        run((char *[]){program, NULL}, environment);
        double took = bench_clock() - start;
        least = took < least ? took : least;
    }
    return least * 1e6;
}

/* In turn, and each of them first as often as the other. */
static void compare(const char *what, const char *unit, char *self, char *name)
{
    double times[2][REPEATS], ratios[REPEATS], added[REPEATS];
    char **environments[2] = {without, with};
    char line[80];
    for (int i = 0; i < REPEATS; i++) {
        for (int j = 0; j < 2; j++) {
            int k = (i + j) % 2;
            times[k][i] =
                name ? look_up_apart(self, name, environments[k]) : start_one(environments[k]);
        }
        ratios[i] = times[1][i] / times[0][i];
        added[i] = times[1][i] - times[0][i];
    }
    bench_spread(what, times[0], REPEATS, unit, "");
    snprintf(line, sizeof(line), "%s, under the shim", what);
    bench_spread(line, times[1], REPEATS, unit, "");
    snprintf(line, sizeof(line), "%s: ratio", what);
    bench_spread(line, ratios, REPEATS, "", "");
    snprintf(line, sizeof(line), "%s: added", what);
    bench_spread(line, added, REPEATS, unit, "");
}

int main(int argc, char **argv)
{
    static char place[] = "PLACE", missing[] = "MISSING", nccl[] = "NCCL_MISSING",
                other[] = ":printf", twin[] = ":pncclGetVersion", plain[] = ":ncclGetVersion",
                wrapped[] = ":ncclCommInitRank";
    if (argc == 3 && !strcmp(argv[1], "--look-up"))
        return look_up(argv[2]);
    bench_begin(argc, argv);
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(entries[i], sizeof(entries[i]), "SLURM_VARIABLE_%d=value", i);
        without[i] = with[i] = entries[i];
    }
    strcpy(entries[ENTRIES / 2], "PLACE=value");
    with[ENTRIES] = preload;
    bench_title("Programs without NCCL, with and without the shim");
    bench_heads();
    compare("getenv, set", "ns", argv[0], place);
    compare("getenv, not set", "ns", argv[0], missing);
    compare("getenv, NCCL's name, not set", "ns", argv[0], nccl);
    compare("dlsym", "ns", argv[0], other);
    compare("dlsym, pnccl...", "ns", argv[0], twin);
    compare("dlsym, NCCL's, without a wrapper", "ns", argv[0], plain);
    compare("dlsym, NCCL's, with a wrapper", "ns", argv[0], wrapped);
    compare("start and end of /bin/true", "us", NULL, NULL);
    return bench_end();
}
