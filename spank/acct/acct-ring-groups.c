/* acct-ring-groups.c: the ring of a record for drawing: equal chains once, repetitions grouped. */
#include "acct/acct-ring-groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/chain.h"
#include "client/hostlist.h"

static void *grow(void *array, int count, size_t size)
{
    return count & (count - 1) ? array : realloc(array, (count ? 2 * (size_t)count : 1) * size);
}

/* The index of the chains, added if they are new; -1 if out of memory. */
static int find_set(struct acct_ring *ring, const struct tccl_named_rings *set)
{
    for (int i = ring->n_sets - 1; i >= 0; i--)
        if (!memcmp(ring->sets[i].chains, set->chains, (size_t)set->n * sizeof(*set->chains)))
            return i;
    struct tccl_named_rings *sets = grow(ring->sets, ring->n_sets, sizeof(*sets));
    if (!sets)
        return -1;
    ring->sets = sets;
    sets[ring->n_sets] = *set;
    return ring->n_sets++;
}

static int add_name(struct acct_ring *ring, const char *name)
{
    char **names = grow(ring->names, ring->n_nodes, sizeof(*names));
    if (!names)
        return -1;
    ring->names = names;
    names[ring->n_nodes] = strdup(name);
    return names[ring->n_nodes] ? ring->n_nodes++ : -1;
}

static int add_run(struct acct_ring *ring, int set, int node)
{
    if (ring->n_runs && ring->runs[ring->n_runs - 1].set == set) {
        ring->runs[ring->n_runs - 1].count++;
        return 0;
    }
    struct acct_run *runs = grow(ring->runs, ring->n_runs, sizeof(*runs));
    if (!runs)
        return -1;
    ring->runs = runs;
    runs[ring->n_runs++] = (struct acct_run){.set = set, .first = node, .count = 1};
    return 0;
}

/* A node whose chains have all been read. */
static int add_node(struct acct_ring *ring, const char *name, const struct tccl_named_rings *set,
                    struct tccl_error *err)
{
    if (ring->n_nodes == 0)
        ring->n_rings = set->n;
    if (set->n != ring->n_rings)
        return tccl_fail(err, "node %d has another number of chains (%d, the first one has %d)",
                         ring->n_nodes + 1, set->n, ring->n_rings);
    int known = find_set(ring, set);
    int node = known < 0 ? -1 : add_name(ring, name);
    if (node < 0 || add_run(ring, known, node) != 0)
        return tccl_fail(err, "out of memory for a ring");
    ring->n_gpus += set->chains[0].n_gpus;
    return 0;
}

/* Removes the dots at the end of a truncated text, with the node that they cut. *cut: were there
 * any? */
static void drop_cut(char *text, bool *cut)
{
    static const char dots[] = "…";
    size_t length = strlen(text);
    *cut = length >= strlen(dots) && !strcmp(text + length - strlen(dots), dots);
    if (!*cut)
        return;
    char *end = strrchr(text, ']');
    text[end ? end + 1 - text : 0] = '\0';
}

static bool runs_equal(const struct acct_ring *ring, int a, int b)
{
    return ring->runs[a].set == ring->runs[b].set && ring->runs[a].count == ring->runs[b].count;
}

/* How often the n_runs runs from first on repeat consecutively. */
static int times_of(const struct acct_ring *ring, int first, int n_runs)
{
    int same = 0;
    while (first + n_runs + same < ring->n_runs &&
           runs_equal(ring, first + same, first + n_runs + same))
        same++;
    return 1 + same / n_runs;
}

/* The group that begins at a run: the repetition that covers most runs, else the run alone. */
static struct acct_group group_at(const struct acct_ring *ring, int first)
{
    enum { LONGEST = 8 };
    struct acct_group best = {.first = first, .n_runs = 1, .times = 1};
    for (int n = 2; n <= LONGEST && first + 2 * n <= ring->n_runs; n++) {
        int times = times_of(ring, first, n);
        if (times > 1 && times * n > best.times * best.n_runs)
            best = (struct acct_group){.first = first, .n_runs = n, .times = times};
    }
    return best;
}

static int make_groups(struct acct_ring *ring, struct tccl_error *err)
{
    ring->groups = calloc((size_t)ring->n_runs, sizeof(*ring->groups));
    if (!ring->groups)
        return tccl_fail(err, "out of memory for a ring");
    for (int run = 0; run < ring->n_runs;) {
        struct acct_group group = group_at(ring, run);
        ring->groups[ring->n_groups++] = group;
        run += group.n_runs * group.times;
    }
    return 0;
}

/* Node by node. name: of the one that is being read. */
static int read_nodes(struct tccl_ring_reader *reader, const char *alone, struct acct_ring *ring,
                      struct tccl_error *err)
{
    cleanup_free struct tccl_named_rings *set = calloc(1, sizeof(*set));
    char name[TCCL_CHAIN_NODE] = "";
    struct tccl_named_chain chain;
    int more;
    if (!set)
        return tccl_fail(err, "out of memory for a ring");
    while ((more = tccl_ring_next(reader, &chain, err)) > 0) {
        if (reader->chain == 0 && set->n > 0 &&
            add_node(ring, name[0] ? name : alone, set, err) != 0)
            return -1;
        if (reader->chain >= TCCL_CHAIN_RINGS)
            return tccl_fail(err, "node %d has more than %d chains", reader->node + 1,
                             TCCL_CHAIN_RINGS);
        memcpy(name, reader->name, sizeof(name));
        set->chains[reader->chain] = chain;
        set->n = reader->chain + 1;
    }
    if (more < 0)
        return -1;
    return set->n > 0 ? add_node(ring, name[0] ? name : alone, set, err)
                      : tccl_fail(err, "it is empty");
}

int acct_ring_read(const char *text, const char *alone, struct acct_ring *ring,
                   struct tccl_error *err)
{
    memset(ring, 0, sizeof(*ring));
    cleanup_free char *copy = strdup(text);
    if (!copy)
        return tccl_fail(err, "out of memory for a ring");
    drop_cut(copy, &ring->cut);
    if (!*copy)
        return tccl_fail(err, ring->cut ? "its text ends within the first node" : "it is empty");
    struct tccl_ring_reader reader = {.text = copy};
    return read_nodes(&reader, alone, ring, err) != 0 ? -1 : make_groups(ring, err);
}

void acct_ring_clear(struct acct_ring *ring)
{
    for (int i = 0; i < ring->n_nodes; i++)
        free(ring->names[i]);
    free(ring->names);
    free(ring->sets);
    free(ring->runs);
    free(ring->groups);
    memset(ring, 0, sizeof(*ring));
}

char *acct_group_names(const struct acct_ring *ring, const struct acct_group *group, int place,
                       int *count)
{
    const struct acct_run *run = &ring->runs[group->first + place];
    cleanup_free const char **names = calloc((size_t)(group->times * run->count), sizeof(*names));
    *count = 0;
    if (!names)
        return NULL;
    for (int i = 0; i < group->times; i++)
        for (int k = 0; k < run->count; k++)
            names[(*count)++] = ring->names[run[i * group->n_runs].first + k];
    return tccl_hosts_fold(names, (size_t)*count);
}
