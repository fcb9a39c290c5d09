/* chain-lines.c: a chain as the runtime shim reads it: bus ids, NIC names with their bus ids, and
 * the kernel's numbers of NUMA nodes. */
#include "tccld/join/chain-lines.h"

#include <stdio.h>
#include <string.h>

static void put_nic(struct tccl_line_writer *writer, const struct tccl_nic *nic)
{
    tccl_line_put(writer, "nic", "%s %s", nic->name, nic->busid);
}

/* "tree", and the line "nic" of a NIC that the chain has not. Its bandwidth along the chain and its
 * own, its NIC, its GPUs. */
static void put_tree(struct tccl_line_writer *writer, const struct tccl_tree *tree,
                     const struct tccl_chain *chain, const struct tccl_machine *machine)
{
    char gpus[CHAIN_LINES_GPUS] = "";
    size_t length = 0;
    if (!(tree->gbps > 0 && tree->gbps < 1e6) || !tccl_tree_fits(tree, chain, machine->n_nics))
        return;
    for (int i = 0; i < chain->n_gpus; i++)
        length += (size_t)snprintf(gpus + length, sizeof(gpus) - length, " %s",
                                   machine->gpus[tree->gpus[i]].busid);
    long long along = (long long)(tree->along * 1e4 + .5), own = (long long)(tree->gbps * 1e4 + .5);
    tccl_line_put(writer, "tree", "%lld.%04lld %lld.%04lld %s%s", along / 10000, along % 10000,
                  own / 10000, own % 10000, machine->nics[tree->nic].name, gpus);
    if (tree->nic != chain->entry.nic && tree->nic != chain->exit.nic)
        put_nic(writer, &machine->nics[tree->nic]);
}

void chain_lines_put(struct tccl_line_writer *writer, const struct tccl_ring_set *set,
                     const struct tccl_tree *tree, const struct tccl_machine *machine)
{
    struct tccl_named_rings named = {.n = set->n};
    char text[TCCL_RINGS_TEXT];
    int length = 0;
    for (int r = 0; r < set->n; r++)
        tccl_chain_name(&set->rings[r], machine, false, &named.chains[r]);
    tccl_named_rings_format(&named, text);
    tccl_line_put(writer, "chain", "%s", text);
    for (int i = 0; i < machine->n_memories && length < (int)sizeof(text); i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%d", i ? " " : "",
                           machine->nodes[i]);
    tccl_line_put(writer, "nodes", "%s", text);
    if (set->rings[0].closed)
        return;
    uint32_t nics = 0;
    for (int r = 0; r < set->n; r++)
        for (int end = 0; end < 2; end++) {
            uint8_t nic = end ? set->rings[r].exit.nic : set->rings[r].entry.nic;
            if (!(nics >> nic & 1))
                put_nic(writer, &machine->nics[nic]);
            nics |= UINT32_C(1) << nic;
        }
    if (set->n == 1)
        put_tree(writer, tree, &set->rings[0], machine);
}

void chain_lines_put_rates(struct tccl_line_writer *writer, double gbps, const char *source)
{
    tccl_line_put_number(writer, "gbps", gbps);
    tccl_line_put(writer, "source", "%s", source);
}

void chain_lines_put_baseline(struct tccl_line_writer *writer,
                              const struct tccl_outcome_baseline *baseline,
                              const struct tccl_node_class *class, bool closed)
{
    const struct tccl_class_baseline *own = &class->baselines[tccl_generation_of(baseline->first)];
    char ring[TCCL_NOMINAL_TEXT], tree[TCCL_NOMINAL_TEXT];
    long long parts =
        baseline->gbps > 0 && baseline->gbps < 1e9 ? (long long)(baseline->gbps * 1e4 + .5) : 0;
    tccl_nominal_format(&own->ring[closed], ring);
    tccl_nominal_format(&own->tree[closed], tree);
    tccl_line_put(writer, "baseline", "%d %s %lld.%04lld %s %s", baseline->first,
                  baseline->better ? "own" : "ring", parts / 10000, parts % 10000, ring, tree);
}

void chain_lines_put_gpus(struct tccl_line_writer *writer, uint32_t gpus,
                          const struct tccl_machine *machine)
{
    char text[CHAIN_LINES_GPUS] = "";
    size_t length = 0;
    for (int i = 0; i < machine->n_gpus; i++)
        if (gpus & UINT32_C(1) << i)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
                                       length ? " " : "", machine->gpus[i].busid);
    tccl_line_put(writer, "gpus", "%s", text);
}

int chain_lines_get_gpus(const struct tccl_lines *lines, tccl_bus gpus[static TCCL_MAX_GPUS])
{
    char text[CHAIN_LINES_GPUS], *rest = NULL;
    int n = 0;
    if (tccl_line_text(lines, "gpus", text, sizeof(text)) < 0)
        return -1;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (n == TCCL_MAX_GPUS || tccl_bus_parse(word, &gpus[n++]) != 0)
            return -1;
    return n > 0 ? n : -1;
}
