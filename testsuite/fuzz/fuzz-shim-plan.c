/* What the runtime shim reads from tccld: plan files, and chains; what it makes of these is a graph
 * and a topology file. */
#include "fuzz.h"
#include "nccl/shim-nccl.h"

static void check_ring(const struct tccl_named_chain *path, const struct tccl_named_chain *first)
{
    char text[TCCL_CHAIN_TEXT];
    FUZZ_CHECK(path->n_gpus >= 1 && path->n_gpus <= SHIM_GPUS);
    FUZZ_CHECK((path->n_gpus > 1 || !path->closed) && !path->numbers);
    FUZZ_CHECK(path->n_gpus == first->n_gpus && path->closed == first->closed);
    for (int i = 0; i < path->n_gpus; i++) {
        FUZZ_CHECK(path->edges[i].kind <= TCCL_BOUNCE && path->edges[i].memory < 1024);
        FUZZ_CHECK(path->edges[i].kind == TCCL_BOUNCE || path->edges[i].memory <= 0);
        FUZZ_CHECK(shim_bus_find(first->gpus, first->n_gpus, path->gpus[i]) >= 0);
        for (int other = 0; other < i; other++)
            FUZZ_CHECK(path->gpus[i] != path->gpus[other]);
    }
    tccl_named_format(path, text);
    for (size_t i = 0; text[i]; i++)
        FUZZ_CHECK(text[i] >= ' ' && text[i] < 0x7f);
}

static void check_chain(const struct shim_chain *chain)
{
    const struct tccl_named_chain *path = &chain->rings.chains[0];
    uint32_t tree = 0;
    FUZZ_CHECK(chain->rings.n >= 1 && chain->rings.n <= TCCL_CHAIN_RINGS);
    FUZZ_CHECK(chain->gbps > 0 && chain->gbps <= 1e6 &&
               shim_chain_baseline(chain, 22907)->gbps >= 0);
    for (int i = 0; i < chain->rings.n; i++)
        check_ring(&chain->rings.chains[i], path);
    for (int i = 0; chain->tree.gbps > 0 && i < path->n_gpus; i++)
        tree |= UINT32_C(1) << chain->tree.order[i];
    FUZZ_CHECK(chain->tree.gbps == 0 ||
               (!path->closed && tree == (UINT32_C(1) << path->n_gpus) - 1));
}

static void check_files(const struct shim_chain *chain)
{
    static struct shim_pci pci, seen;
    static char text[65536];
    static bool linked[SHIM_GPUS][SHIM_GPUS];
    struct shim_numbers numbers = {.entry = {1}, .exit = {2}};
    struct shim_text file = {text, sizeof(text), 0, false};
    memset(&pci, 0, sizeof(pci));
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        pci.devices[pci.n++] = (struct shim_pci_device){.bus = chain->rings.chains[0].gpus[i],
                                                        .node = (int16_t)(i % 3)};
    const struct shim_baseline *own = shim_chain_baseline(chain, 22907);
    FUZZ_CHECK(shim_graph(chain, &numbers, own, SHIM_SYS, SHIM_SYS, &file, ERR) == 0 ||
               own->ring.channels == 0 || own->ring.channels > 32);
    file = (struct shim_text){text, sizeof(text), 0, false};
    int islands = shim_islands(chain, &pci, linked, true, 22907, &file, &seen, ERR);
    FUZZ_CHECK((islands < 0) == (check_err.text[0] != '\0'));
}

static void check_plan(const struct shim_plan *plan)
{
    FUZZ_CHECK(plan->socket[0] == '/' && plan->index < plan->n_nodes && plan->n_gpus >= 1);
    FUZZ_CHECK(plan->chain.rings.chains[0].n_gpus == plan->n_gpus &&
               plan->chain.rings.chains[0].closed == (plan->n_nodes == 1));
    FUZZ_CHECK(strlen(plan->cluster) < SHIM_NAME);
    check_chain(&plan->chain);
    check_files(&plan->chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tccl_bus gpus[] = {0x100, 0x4100};
    static struct shim_plan plan;
    struct shim_chain chain;
    cleanup_free char *text = fuzz_exact(data, size);
    if (shim_plan_parse(text, size, &plan, ERR) == 0)
        check_plan(&plan);
    else
        FUZZ_CHECK(check_err.text[0]);
    for (int closed = 0; closed < 2; closed++) {
        int answer = shim_chain_parse(text, size, gpus, 2, closed, &chain, ERR);
        FUZZ_CHECK(!answer == !check_err.text[0]);
        if (answer == 0)
            check_chain(&chain);
    }
    return 0;
}

#define CHAIN                                                                                      \
    "gbps 12.5\nbaseline 22900 ring 6.25 4 2 10 12 PHB SYS 1 2 20 12 PIX SYS\nsource model\n"      \
    "chain 0000:41:00.0 -m1> 0000:01:00.0 -w> 0000:41:00.0\nnodes 0 1\nend\n"
#define OPEN                                                                                       \
    "gbps 3\nbaseline 22600 own 0 0 0 0 0 DIS DIS 0 0 0 0 LOC LOC\nsource host\n"                  \
    "chain mlx5_0 -g> 0000:01:00.0 -r> 0000:41:00.0 -m0> ib.1\nnodes 2\n"                          \
    "nic mlx5_0 0000:02:00.0\nnic ib.1 0000:02:00.1\nend\n"
#define PLAN(nodes)                                                                                \
    "tccl-plan 1\ncluster c\njob 7\nhet_job 0\nhet_offset 0\nstep 4294967291\nrestart 0\nrun 17\n" \
    "index 0\nn_nodes " nodes "\nsocket /s\nuid 1\ngpus 0000:01:00.0 0000:41:00.0\nstep_gpus 0\n"

FUZZ_SEEDS(PLAN("1") CHAIN, PLAN("3") "root n1\n" OPEN, "tccl-chain 1\nstate planned\n" CHAIN,
           "tccl-chain 1\nstate planned\n" OPEN,
           "tccl-chain 1\nstate left\nreason as \xc3\xa9\nend\n")
