/* Bandwidths of transfer sets as a back end measures them: single transfers and several at once. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "measure/backends/backend.h"

static const char help[] =
    "Usage: bench-gpu [OPTION]... [SET]...\n"
    "Measure transfer sets, each written as in \"g0>m0 g1<m0\": g GPU, m memory, n NIC, the one\n"
    "that starts first, > writes to, < reads from. Without sets: each GPU with each memory, each\n"
    "direction and both at once; all GPUs with one memory; each pair of GPUs.\n"
    "  --backend NAME    cuda (default) or host: cores copy in place of GPUs\n"
    "  --devices N       stand-ins\n"
    "  --copy KIND       kernel (default) or engine\n"
    "  --window MS       of each run      --repeats N\n"
    "  --force           also next to others, and under MIG and MPS\n"
    "  --json            one object instead of a table\n";

struct bench {
    const char *name;
    struct tccl_backend_options options;
    struct tccl_backend *backend;
    bool json; /* in place of a table */
    int rows;  /* of it so far */
};

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "tccl: bench: %s%s\n", what, why);
    return 2;
}

static double number_of(const char *text, double most)
{
    char *end;
    double value = strtod(text, &end);
    return end != text && !*end && value > 0 && value <= most ? value : -1;
}

static int parse_number(struct bench *bench, int option, const char *text)
{
    double value = number_of(text, option == 'w' ? 10000 : 100);
    if (value < 0)
        return complain(text, ": is no number that fits there");
    if (option == 'w')
        bench->options.window = value * 1e-3;
    else if (option == 'd')
        bench->options.devices = (int)value;
    else
        bench->options.repeats = (int)value;
    return 0;
}

static int parse_copy(struct bench *bench, const char *text)
{
    bench->options.engine = strcmp(text, "engine") == 0;
    return bench->options.engine || strcmp(text, "kernel") == 0
               ? 0
               : complain("--copy: kernel or engine, not ", text);
}

/* Returns 0, -1 for help, or the exit status. */
static int parse(struct bench *bench, int argc, char **argv)
{
    static const struct option options[] = {{"backend", required_argument, NULL, 'b'},
                                            {"devices", required_argument, NULL, 'd'},
                                            {"copy", required_argument, NULL, 'c'},
                                            {"window", required_argument, NULL, 'w'},
                                            {"repeats", required_argument, NULL, 'r'},
                                            {"force", no_argument, NULL, 'f'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    int option, rc = 0;
    while (rc == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            bench->name = optarg;
        else if (option == 'c')
            rc = parse_copy(bench, optarg);
        else if (option == 'f')
            bench->options.force = true;
        else if (option == 'j')
            bench->json = true;
        else if (option == 'h')
            rc = -1;
        else
            rc = option == '?' ? 2 : parse_number(bench, option, optarg);
    }
    return rc;
}

static void print_row(const char *text, int rc, const struct tccl_measurement *measured,
                      const char *why)
{
    if (rc != 0)
        printf("%-44s %9s  %s\n", text, "-", why);
    else
        printf("%-44s %9.2f %7.1f%% %9.1f %8.1f%%%s\n", text, measured->gbps,
               measured->spread * 100, measured->skew, measured->overlap * 100,
               measured->noisy ? "  noisy" : "");
    fflush(stdout);
}

/* At once: should the rest never come, this much is known. */
static void print_json_row(struct bench *bench, const char *text, int rc,
                           const struct tccl_measurement *measured, const char *why)
{
    cleanup_json json_t *row =
        rc != 0 ? json_pack("{s:s s:s}", "set", text, "error", why)
                : json_pack("{s:s s:f s:f s:f s:f s:b}", "set", text, "gbps", measured->gbps,
                            "spread", measured->spread, "skew_us", measured->skew, "overlap",
                            measured->overlap, "noisy", measured->noisy);
    fputs(bench->rows++ > 0 ? ",\n " : "\n ", stdout);
    json_dumpf(row, stdout, JSON_COMPACT);
    fflush(stdout);
}

/* Returns 0, or -1: nothing more can be measured. */
static int measure(struct bench *bench, const struct tccl_set *set)
{
    struct tccl_measurement measured = {0};
    struct tccl_error err = {0};
    char text[TCCL_SET_TEXT];
    int rc = tccl_backend_measure(bench->backend, set, &measured, &err);
    tccl_set_format(set, text);
    if (bench->json)
        print_json_row(bench, text, rc, &measured, err.text);
    else
        print_row(text, rc, &measured, err.text);
    return rc < 0 ? -1 : 0;
}

static int measure_text(struct bench *bench, const char *text)
{
    struct tccl_set set = {0};
    struct tccl_error err = {0};
    if (tccl_set_parse(text, &set, &err) == 0)
        return measure(bench, &set);
    complain(err.text, "");
    return -1;
}

static tccl_transfer transfer(int gpu, bool reads, int kind, int target)
{
    return tccl_transfer_make((struct tccl_device){TCCL_GPU, (uint8_t)gpu}, reads,
                              (struct tccl_device){(uint8_t)kind, (uint8_t)target});
}

/* One way, the other, both at once. ways: 1 writes, 2 reads. */
static int measure_ways(struct bench *bench, int first, int last, int kind, int target)
{
    for (int ways = 1; ways <= 3; ways++) {
        struct tccl_set set = {0};
        for (int gpu = first; gpu <= last; gpu++) {
            if (ways & 1)
                tccl_set_add(&set, transfer(gpu, false, kind, target));
            if (ways & 2)
                tccl_set_add(&set, transfer(gpu, true, kind, target));
        }
        if (measure(bench, &set) < 0)
            return -1;
    }
    return 0;
}

static int measure_memories(struct bench *bench, const struct tccl_machine *machine)
{
    for (int memory = 0; memory < machine->n_memories; memory++) {
        for (int gpu = 0; gpu < machine->n_gpus; gpu++)
            if (measure_ways(bench, gpu, gpu, TCCL_MEMORY, memory) < 0)
                return -1;
        if (machine->n_gpus > 1 &&
            measure_ways(bench, 0, machine->n_gpus - 1, TCCL_MEMORY, memory) < 0)
            return -1;
    }
    return 0;
}

static int measure_all(struct bench *bench, const struct tccl_machine *machine)
{
    if (measure_memories(bench, machine) < 0)
        return -1;
    for (int gpu = 0; gpu < machine->n_gpus; gpu++)
        for (int peer = 0; peer < machine->n_gpus; peer++)
            if (gpu != peer && machine->p2p[gpu][peer] &&
                measure_ways(bench, gpu, gpu, TCCL_GPU, peer) < 0)
                return -1;
    return 0;
}

static void print_head(const struct bench *bench, const struct tccl_machine *machine)
{
    if (bench->json) {
        cleanup_json json_t *head = json_pack(
            "{s:s s:s s:i s:o}", "backend", bench->name, "conditions", bench->backend->conditions,
            "marks", (int)bench->backend->marks, "machine", tccl_machine_to_json(machine));
        putchar('{');
        json_dumpf(head, stdout, JSON_COMPACT | JSON_EMBED);
        fputs(",\n\"sets\": [", stdout);
        fflush(stdout);
        return;
    }
    printf("%s: %s; GB/s of the slowest member while all run, median\n", machine->name,
           bench->backend->conditions);
    printf("%-44s %9s %8s %9s %9s\n", "transfer set", "GB/s", "spread", "skew us", "overlap");
}

static int run(struct bench *bench, char **sets)
{
    const struct tccl_machine *machine = bench->backend->machine;
    int rc = 0;
    print_head(bench, machine);
    if (!*sets)
        rc = measure_all(bench, machine);
    for (; *sets && rc == 0; sets++)
        rc = measure_text(bench, *sets);
    if (bench->json)
        puts("]}");
    return rc == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct bench bench = {.name = "cuda"};
    struct tccl_error err = {0};
    int rc = parse(&bench, argc, argv);
    if (rc < 0)
        fputs(help, stdout);
    if (rc != 0)
        return rc < 0 ? 0 : rc;
    if (tccl_backend_open(bench.name, &bench.options, &bench.backend, &err) < 0) {
        complain(err.text, "");
        return 1;
    }
    rc = run(&bench, argv + optind);
    tccl_backend_close(bench.backend);
    return rc;
}
