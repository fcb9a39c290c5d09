/* verdict.c: compares one rank's part of what NCCL built with the chain. */
#include "verify/verdict.h"

#include <stdio.h>
#include <string.h>

enum { NAME = TCCL_BUS_TEXT };

static const char *const ways[] = {"something unknown", "P2P", "SHM", "NET", "different ways"};

/* "41" for 0000:41:00.0: what goes without saying is left out. */
static const char *name_of(shim_bus gpu, char name[static NAME])
{
    size_t length;

    tccl_bus_format(gpu, name);
    length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ":00.0") == 0)
        name[length -= 5] = '\0';
    return strncmp(name, "0000:", 5) == 0 ? name + 5 : name;
}

/* The GPU of the chain beside place i; SHIM_NO_BUS beyond its ends. */
static shim_bus beside(const struct shim_chain *chain, int i, int step)
{
    int other = i + step;

    if (chain->path.closed)
        return chain->path.gpus[(other + chain->path.n_gpus) % chain->path.n_gpus];
    return other >= 0 && other < chain->path.n_gpus ? chain->path.gpus[other]
                                                    : (shim_bus)SHIM_NO_BUS;
}

/* SHIM_NO_BUS: none of the local ones. */
static shim_bus gpu_of(const struct shim_member *members, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (members[i].rank == rank)
            return members[i].gpu;
    return (shim_bus)SHIM_NO_BUS;
}

static const char *beside_name(shim_bus gpu, char name[static NAME])
{
    return gpu == (shim_bus)SHIM_NO_BUS ? "another node" : name_of(gpu, name);
}

static enum shim_verdict compare_order(const struct shim_chain *chain, int i, shim_bus prev,
                                       shim_bus next, char text[static 256])
{
    shim_bus planned_prev = beside(chain, i, -1), planned_next = beside(chain, i, 1);
    char a[NAME], b[NAME], c[NAME], d[NAME], e[NAME];
    const char *self = name_of(chain->path.gpus[i], b);

    if (prev == planned_prev && next == planned_next)
        return SHIM_APPLIED;
    snprintf(text, 256, "order %s %s %s in place of %s %s %s", beside_name(prev, a), self,
             beside_name(next, c), beside_name(planned_prev, d), self,
             beside_name(planned_next, e));
    return SHIM_DIFFERS;
}

/* what: "edge 41 -> 61", "41 to the network". */
static enum shim_verdict compare_way(const char *what, enum shim_way way, enum shim_way planned,
                                     char text[static 256])
{
    if (way == planned)
        return SHIM_APPLIED;
    if (way == SHIM_WAY_UNKNOWN)
        snprintf(text, 256, "%s: NCCL has not connected it so far", what);
    else
        snprintf(text, 256, "%s: %s in place of %s", what, ways[way], ways[planned]);
    return way == SHIM_WAY_UNKNOWN ? SHIM_UNKNOWN : SHIM_DIFFERS;
}

static enum shim_verdict compare_edge(const struct shim_chain *chain, int i,
                                      const struct shim_reach *send, char text[static 256])
{
    struct tccl_named_edge edge = chain->path.edges[i];
    char from[NAME], to[NAME], what[2 * NAME + 16];
    enum shim_verdict verdict;

    snprintf(what, sizeof(what), "edge %s -> %s", name_of(chain->path.gpus[i], from),
             name_of(beside(chain, i, 1), to));
    verdict =
        compare_way(what, send->way, edge.kind == TCCL_BOUNCE ? SHIM_WAY_SHM : SHIM_WAY_P2P, text);
    if (verdict == SHIM_APPLIED && edge.kind != TCCL_BOUNCE &&
        send->read != (edge.kind == TCCL_P2P_READ)) {
        snprintf(text, 256, "%s: P2P by %s", what,
                 send->read ? "reading in place of writing" : "writing in place of reading");
        return SHIM_DIFFERS;
    }
    return verdict;
}

static enum shim_verdict compare_end(const char *what, const struct shim_reach *reach,
                                     const struct tccl_named_port *planned, int nic,
                                     char text[static 256])
{
    enum shim_verdict verdict = compare_way(what, reach->way, SHIM_WAY_NET, text);

    if (verdict != SHIM_APPLIED)
        return verdict;
    if (reach->pxn)
        snprintf(text, 256, "%s: through another GPU", what);
    else if (nic >= 0 && reach->nic < 0)
        snprintf(text, 256, "%s: several NICs in place of %s", what, planned->nic);
    else if (nic >= 0 && reach->nic != nic)
        snprintf(text, 256, "%s: NCCL's NIC %d in place of %d (%s)", what, reach->nic, nic,
                 planned->nic);
    else if (reach->gdr != planned->gpudirect)
        snprintf(text, 256, "%s: %s GPUDirect", what, reach->gdr ? "with" : "without");
    else
        return SHIM_APPLIED;
    return SHIM_DIFFERS;
}

static enum shim_verdict compare_ways(const struct shim_chain *chain, int i,
                                      const struct shim_built *built, int entry, int exit,
                                      char text[static 256])
{
    enum shim_verdict in = SHIM_APPLIED, out;
    char name[NAME], what[NAME + 32], other[256] = "";

    if (chain->path.closed || i + 1 < chain->path.n_gpus) {
        out = compare_edge(chain, i, &built->send, text);
    } else {
        snprintf(what, sizeof(what), "%s to the network", name_of(chain->path.gpus[i], name));
        out = compare_end(what, &built->send, &chain->path.exit, exit, text);
    }
    if (!chain->path.closed && i == 0) {
        snprintf(what, sizeof(what), "network to %s", name_of(chain->path.gpus[i], name));
        in = compare_end(what, &built->receive, &chain->path.entry, entry, other);
    }
    if (in > out)
        memcpy(text, other, sizeof(other));
    return in > out ? in : out;
}

static enum shim_verdict unknown(char text[static 256], const char *why)
{
    snprintf(text, 256, "%s", why);
    return SHIM_UNKNOWN;
}

static bool ranks_known(const struct shim_member *members, int n)
{
    for (int i = 0; i < n; i++)
        if (members[i].rank < 0 || members[i].gpu == (shim_bus)SHIM_NO_BUS)
            return false;
    return true;
}

enum shim_verdict shim_verdict_of(const struct shim_chain *chain, const struct shim_member *members,
                                  int n, shim_bus gpu, const struct shim_built *built, int entry,
                                  int exit, char text[static 256])
{
    int i = shim_bus_find(chain->path.gpus, chain->path.n_gpus, gpu);
    enum shim_verdict verdict;

    text[0] = '\0';
    if (i < 0)
        return unknown(text, "the GPU is not of the chain");
    if (!built->complete || built->channels <= 0)
        return unknown(text, "NCCL's log does not say what it built");
    if (!ranks_known(members, n))
        return unknown(text, "the ranks of the GPUs are not known");
    if (!built->same) {
        snprintf(text, 256, "not all channels have the same ring");
        return SHIM_DIFFERS;
    }
    verdict = compare_order(chain, i, gpu_of(members, n, built->prev),
                            gpu_of(members, n, built->next), text);
    if (verdict == SHIM_APPLIED && !built->connected)
        return unknown(text, "NCCL has not connected it so far");
    return verdict == SHIM_APPLIED ? compare_ways(chain, i, built, entry, exit, text) : verdict;
}
