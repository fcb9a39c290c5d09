/* shim-verdict.c: compares one rank's part of what NCCL built with the chain. */
#include "verify/verify.h"

#include <stdio.h>
#include <string.h>

enum { NAME = TCCL_BUS_TEXT };

static const char *const ways[] = {"something unknown", "P2P", "SHM", "NET"};

/* "41" for 0000:41:00.0: what goes without saying is left out. */
static const char *name_of(tccl_bus gpu, char name[static NAME])
{
    size_t length;
    if (gpu == SHIM_NO_BUS)
        return "another node";
    tccl_bus_format(gpu, name);
    length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ":00.0") == 0)
        name[length -= 5] = '\0';
    return strncmp(name, "0000:", 5) == 0 ? name + 5 : name;
}

/* The GPU of the ring beside place i; SHIM_NO_BUS beyond its ends. */
static tccl_bus beside(const struct tccl_named_chain *path, int i, int step)
{
    int other = i + step;
    if (path->closed)
        return path->gpus[(other + path->n_gpus) % path->n_gpus];
    return other >= 0 && other < path->n_gpus ? path->gpus[other] : SHIM_NO_BUS;
}

/* SHIM_NO_BUS: none of the local ones. */
static tccl_bus gpu_of(const struct shim_member *members, int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (members[i].rank == rank)
            return members[i].gpu;
    return SHIM_NO_BUS;
}

static enum shim_verdict compare_order(const struct tccl_named_chain *path, int i, tccl_bus prev,
                                       tccl_bus next, char text[static 256])
{
    tccl_bus planned_prev = beside(path, i, -1), planned_next = beside(path, i, 1);
    char a[NAME], b[NAME], c[NAME], d[NAME], e[NAME];
    const char *self = name_of(path->gpus[i], b);
    if (prev == planned_prev && next == planned_next)
        return SHIM_APPLIED;
    snprintf(text, 256, "order %s %s %s in place of %s %s %s", name_of(prev, a), self,
             name_of(next, c), name_of(planned_prev, d), self, name_of(planned_next, e));
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

static enum shim_verdict compare_edge(const struct tccl_named_chain *path, int i,
                                      const struct shim_reach *send, char text[static 256])
{
    struct tccl_named_edge edge = path->edges[i];
    char from[NAME], to[NAME], what[2 * NAME + 16];
    enum shim_verdict verdict;
    snprintf(what, sizeof(what), "edge %s -> %s", name_of(path->gpus[i], from),
             name_of(beside(path, i, 1), to));
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
        snprintf(text, 256, "%s: an unknown NIC in place of %s", what, planned->nic);
    else if (nic >= 0 && reach->nic != nic)
        snprintf(text, 256, "%s: NCCL's NIC %d in place of %d (%s)", what, reach->nic, nic,
                 planned->nic);
    else if (reach->gdr != planned->gpudirect)
        snprintf(text, 256, "%s: %s GPUDirect", what, reach->gdr ? "with" : "without");
    else
        return SHIM_APPLIED;
    return SHIM_DIFFERS;
}

/* One rank's part of a ring: place i. */
struct part {
    const struct tccl_named_chain *path;
    int i;
    int entry, exit; /* NCCL's numbers of the ring's NICs */
};

static enum shim_verdict compare_ways(const struct part *part, const struct shim_part *built,
                                      char text[static 256])
{
    const struct tccl_named_chain *path = part->path;
    enum shim_verdict in = SHIM_APPLIED, out;
    char name[NAME], what[NAME + 32], other[256] = "";
    int i = part->i;
    if (path->closed || i + 1 < path->n_gpus) {
        out = compare_edge(path, i, &built->send, text);
    } else {
        snprintf(what, sizeof(what), "%s to the network", name_of(path->gpus[i], name));
        out = compare_end(what, &built->send, &path->exit, part->exit, text);
    }
    if (!path->closed && i == 0) {
        snprintf(what, sizeof(what), "network to %s", name_of(path->gpus[i], name));
        in = compare_end(what, &built->receive, &path->entry, part->entry, other);
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

/* What a channel is compared with: the parts of all rings, and how many channels are still to come
 * of each. */
struct wanted {
    int n;
    struct part parts[TCCL_CHAIN_RINGS];
    int left[TCCL_CHAIN_RINGS];
    bool connected;
};

static enum shim_verdict compare_part(const struct wanted *wanted, int ring,
                                      const struct shim_member *members, int n,
                                      const struct shim_part *built, char text[static 256])
{
    const struct part *part = &wanted->parts[ring];
    /* Where the log has edges alone, what is received on the node is what another one sends, and
     * before they are connected nothing is known. */
    tccl_bus prev =
        built->prev < 0 ? beside(part->path, part->i, -1) : gpu_of(members, n, built->prev);
    tccl_bus next =
        built->next < 0 ? beside(part->path, part->i, 1) : gpu_of(members, n, built->next);
    enum shim_verdict verdict = compare_order(part->path, part->i, prev, next, text);
    return verdict == SHIM_APPLIED && wanted->connected ? compare_ways(part, built, text) : verdict;
}

/* Is the channel one of a ring of which some are left? Else text says how it differs from the ring
 * that is planned for it. */
static enum shim_verdict compare_channel(struct wanted *wanted, int channel,
                                         const struct shim_member *members, int n,
                                         const struct shim_part *built, char text[static 256])
{
    enum shim_verdict verdict = SHIM_DIFFERS, one;
    char ignored[256];
    for (int i = 0; i < wanted->n; i++) {
        int ring = (channel + i) % wanted->n;
        one = compare_part(wanted, ring, members, n, built, i == 0 ? text : ignored);
        if (one == SHIM_APPLIED && wanted->left[ring] > 0) {
            wanted->left[ring]--;
            text[0] = '\0';
            return SHIM_APPLIED;
        }
        verdict = i == 0 ? one : verdict;
    }
    if (verdict != SHIM_APPLIED)
        return verdict;
    snprintf(text, 256, "not all of the plan's rings have equally many channels");
    return SHIM_DIFFERS;
}

/* How many of the first rings there are, one channel after the other, again and again, but not all;
 * 0: that is not so. NCCL has each channel
 * twice, so where rings are alike for this rank half as many are the likely ones. */
static int first_rings(const struct wanted *wanted, const struct shim_member *members, int n,
                       const struct shim_built *built)
{
    char ignored[256];
    for (int i = 0; i < wanted->n; i++) {
        int rings = i == 0 ? built->channels / 2 : wanted->n - i;
        bool first = rings > 0 && rings < wanted->n && rings <= built->channels;
        for (int k = 0; first && k < built->channels; k++)
            first = compare_part(wanted, k % rings, members, n, &built->parts[k], ignored) ==
                    SHIM_APPLIED;
        if (first)
            return rings;
    }
    return 0;
}

enum shim_verdict shim_verdict_of(const struct shim_chain *chain, const struct shim_member *members,
                                  int n, tccl_bus gpu, const struct shim_built *built,
                                  const int32_t entry[static TCCL_CHAIN_RINGS],
                                  const int32_t exit[static TCCL_CHAIN_RINGS],
                                  char text[static 256])
{
    struct wanted wanted = {.n = chain->rings.n, .connected = built->connected};
    text[0] = '\0';
    for (int i = 0; i < chain->rings.n; i++) {
        const struct tccl_named_chain *ring = &chain->rings.chains[i];
        wanted.parts[i] = (struct part){ring, shim_ring_find(ring, gpu), entry[i], exit[i]};
        wanted.left[i] = built->channels / chain->rings.n;
        if (wanted.parts[i].i < 0)
            return unknown(text, "the GPU is not of the chain");
    }
    if (!built->complete || built->channels <= 0)
        return unknown(text, "NCCL's log does not say what it built");
    for (int i = 0; i < n; i++)
        if (members[i].rank < 0 || members[i].gpu == SHIM_NO_BUS)
            return unknown(text, "the ranks of the GPUs are not known");
    enum shim_verdict verdict = SHIM_APPLIED;
    for (int i = 0; i < built->channels; i++) {
        char why[256] = "";
        enum shim_verdict one = compare_channel(&wanted, i, members, n, &built->parts[i], why);
        if (one <= verdict)
            continue;
        verdict = one;
        memcpy(text, why, sizeof(why));
    }
    int rings = verdict == SHIM_DIFFERS ? first_rings(&wanted, members, n, built) : 0;
    if ((verdict == SHIM_APPLIED || rings > 0) && !built->connected)
        return unknown(text, "NCCL has not connected it so far");
    if (rings == 0)
        return verdict;
    snprintf(text, 256, "%d of %d rings", rings, wanted.n);
    return SHIM_FEWER;
}
