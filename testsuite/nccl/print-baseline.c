/* print-baseline.c: the baseline as nccl/ predicts it, for check-baseline to compare: a line for
 * each of its chains, then what it says of ring and tree, and 1 if all channels are the same.
 * Usage: print-baseline MODEL closed|open [VERSION] GPU... VERSION: of NCCL, such as 22907; or
 * "plan": the lines "baseline" of a plan file, with the bandwidth @. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "nccl/baseline.h"

static void print_port(const struct tccl_machine *machine, struct tccl_port port)
{
    printf(" %s/%s", machine->nics[port.nic].name, port.via.kind == TCCL_GPU ? "gpu" : "memory");
}

static void print_chain(const struct tccl_machine *machine, const struct tccl_chain *chain)
{
    static const char *const kinds[] = {"P2P", "P2P", "SHM", "NET"};
    for (int i = 0; i < chain->n_gpus; i++)
        printf("%s%d", i > 0 ? " " : "", chain->gpus[i]);
    printf(" |");
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        printf(" %s", kinds[chain->edges[i].kind]);
        if (chain->edges[i].kind != TCCL_BY_NICS)
            continue;
        print_port(machine, chain->edges[i].from);
        print_port(machine, chain->edges[i].to);
    }
    printf(" |");
    if (!chain->closed) {
        print_port(machine, chain->entry);
        print_port(machine, chain->exit);
    }
    printf("\n");
}

static int fail(const struct tccl_error *err)
{
    fprintf(stderr, "print-baseline: %s\n", err->text);
    return 1;
}

static void print_plan(const struct tccl_baseline *baseline, int generation)
{
    char ring[TCCL_NOMINAL_TEXT], tree[TCCL_NOMINAL_TEXT];
    tccl_nominal_format(&baseline->ring, ring);
    tccl_nominal_format(&baseline->tree, tree);
    printf("%d ring @ %s %s\n", tccl_generation(generation)->first, ring, tree);
}

static void print_baseline(const struct tccl_machine *machine, const struct tccl_baseline *baseline)
{
    char text[TCCL_NOMINAL_TEXT];
    for (int i = 0; i < baseline->set.n; i++)
        print_chain(machine, &baseline->set.rings[i]);
    tccl_nominal_format(&baseline->ring, text);
    printf("= %s %d\n", text, baseline->ring.alike);
    tccl_nominal_format(&baseline->tree, text);
    printf("= %s %d\n", text, baseline->tree.alike);
}

int main(int argc, char **argv)
{
    struct tccl_machine machine;
    struct tccl_baseline baseline;
    struct tccl_error err = {0};
    uint32_t gpus = 0;
    if (argc < 4)
        return 2;
    int first = 3, version = 0;
    bool plan = strcmp(argv[3], "plan") == 0;
    if (plan || atoi(argv[3]) > TCCL_MAX_GPUS)
        version = atoi(argv[first++]);
    cleanup_json json_t *model = tccl_read_json(argv[1], 1 << 22, &err);
    for (int i = first; i < argc; i++)
        gpus |= UINT32_C(1) << atoi(argv[i]) % TCCL_MAX_GPUS;
    if (!model || tccl_machine_from_json(json_object_get(model, "machine"), &machine, &err) < 0)
        return fail(&err);
    int generation = plan ? 0 : version ? tccl_generation_of(version) : TCCL_NEWEST;
    int last = plan ? TCCL_NEWEST : generation;
    for (; generation <= last; generation++) {
        if (tccl_baseline_find(&machine, gpus, strcmp(argv[2], "closed") == 0, generation,
                               &baseline, &err) != 0)
            return fail(&err);
        if (plan)
            print_plan(&baseline, generation);
        else
            print_baseline(&machine, &baseline);
    }
    return 0;
}
