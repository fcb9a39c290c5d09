/* acct-ring.c: the ring of a record read, with equal chains once and repetitions grouped; and as
 * SVG, text and JSON. */
#include "acct/acct.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/chain.h"

/* The index of the chains, added if they are new; -1 if out of memory. */
static int find_set(struct acct_ring *ring, const struct tccl_named_rings *set)
{
    for (int i = ring->n_sets - 1; i >= 0; i--)
        if (!memcmp(ring->sets[i].chains, set->chains, (size_t)set->n * sizeof(*set->chains)))
            return i;
    struct tccl_named_rings *sets =
        reallocarray(ring->sets, (size_t)ring->n_sets + 1, sizeof(*sets));
    if (!sets)
        return -1;
    ring->sets = sets;
    sets[ring->n_sets] = *set;
    return ring->n_sets++;
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
    if (known < 0 || !(ring->names[ring->n_nodes] = strdup(name)))
        return tccl_fail(err, "out of memory for a ring");
    if (ring->n_runs == 0 || ring->runs[ring->n_runs - 1].set != known)
        ring->runs[ring->n_runs++] = (struct acct_run){.set = known, .first = ring->n_nodes};
    ring->runs[ring->n_runs - 1].count++;
    ring->n_nodes++;
    ring->n_gpus += set->chains[0].n_gpus;
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
    size_t most = 1; /* nodes */
    *ring = (struct acct_ring){.n_sets = 0};
    for (const char *at = text; (at = strchr(at, '[')); at++)
        most++;
    cleanup_free char *copy = strdup(text);
    ring->names = calloc(most, sizeof(*ring->names));
    ring->runs = calloc(most, sizeof(*ring->runs));
    ring->groups = calloc(most, sizeof(*ring->groups));
    if (!copy || !ring->names || !ring->runs || !ring->groups)
        return tccl_fail(err, "out of memory for a ring");
    /* The dots at the end of a truncated text go, with the node that they cut. */
    static const char dots[] = "…";
    size_t length = strlen(copy);
    ring->cut = length >= strlen(dots) && !strcmp(copy + length - strlen(dots), dots);
    char *end = ring->cut ? strrchr(copy, ']') : NULL;
    if (ring->cut)
        copy[end ? end + 1 - copy : 0] = '\0';
    if (!*copy)
        return tccl_fail(err, ring->cut ? "its text ends within the first node" : "it is empty");
    struct tccl_ring_reader reader = {.text = copy};
    if (read_nodes(&reader, alone, ring, err) != 0)
        return -1;
    for (int run = 0; run < ring->n_runs;) {
        /* The group that begins at a run: the repetition that covers most runs, else the run alone.
         */
        enum { LONGEST = 8 };
        struct acct_group group = {.first = run, .n_runs = 1, .times = 1};
        for (int n = 2; n <= LONGEST && run + 2 * n <= ring->n_runs; n++) {
            const struct acct_run *a = &ring->runs[run], *end = ring->runs + ring->n_runs - n;
            int same = 0;
            while (a + same < end && a[same].set == a[same + n].set &&
                   a[same].count == a[same + n].count)
                same++;
            int times = 1 + same / n;
            if (times > 1 && times * n > group.times * group.n_runs)
                group = (struct acct_group){.first = run, .n_runs = n, .times = times};
        }
        ring->groups[ring->n_groups++] = group;
        run += group.n_runs * group.times;
    }
    return 0;
}

void acct_ring_clear(struct acct_ring *ring)
{
    for (int i = 0; i < ring->n_nodes; i++)
        free(ring->names[i]);
    free(ring->names);
    free(ring->sets);
    free(ring->runs);
    free(ring->groups);
    *ring = (struct acct_ring){.n_sets = 0};
}

int acct_ring_svg(FILE *out, const json_t *record, struct tccl_error *err)
{
    struct acct_drawn drawn;
    int rc = acct_drawn_read(record, &drawn, err);
    if (rc == 0 && tccl_sheet_svg(&drawn.sheet, false, out) != 0)
        rc = tccl_fail(err, "out of memory");
    acct_drawn_clear(&drawn);
    return rc;
}

int acct_ring_text(FILE *out, const json_t *record, int columns, bool colour,
                   struct tccl_error *err)
{
    enum { LEAST_COLUMNS = 40 };
    struct acct_drawn drawn;
    struct tccl_pen pen = {.out = out,
                           .columns = columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns,
                           .colour = colour,
                           .utf8 = tccl_term_utf8()};
    int rc = acct_drawn_read(record, &drawn, err);
    if (rc == 0 && tccl_sheet_text(&drawn.sheet, &pen) != 0)
        rc = tccl_fail(err, "out of memory");
    acct_drawn_clear(&drawn);
    return rc;
}

/* ---- JSON ---- */

static json_t *chain_json(const struct tccl_named_chain *chain)
{
    json_t *gpus = json_array(), *links = json_array();
    for (int i = 0; i < chain->n_gpus; i++)
        json_array_append_new(gpus, json_integer((json_int_t)chain->gpus[i]));
    for (int i = 0; i < tccl_named_arrows(chain); i++) {
        struct tccl_text_arrow link = tccl_named_arrow(chain, i);
        const char *kind = link.kind == 'w'   ? "write"
                           : link.kind == 'r' ? "read"
                           : link.kind == 'm' ? "memory"
                           : link.kind == 'n' ? "nics"
                                              : "gpudirect";
        json_t *json = json_pack("{s:s, s:o}", "kind", kind, "memory",
                                 link.memory >= 0 ? json_integer(link.memory) : json_null());
        if (link.kind == 'n')
            json_object_update_new(
                json, json_pack("{s:i, s:i, s:o}", "from_nic", link.from_nic, "to_nic", link.to_nic,
                                "to_memory",
                                link.to_memory >= 0 ? json_integer(link.to_memory) : json_null()));
        json_array_append_new(links, json);
    }
    return json_pack("{s:s?, s:o, s:o, s:s?}", "entry", chain->closed ? NULL : chain->entry.nic,
                     "gpus", gpus, "links", links, "exit", chain->closed ? NULL : chain->exit.nic);
}

json_t *acct_ring_json(json_t *record, struct tccl_error *err)
{
    struct acct_drawn drawn;
    const struct acct_ring *ring = &drawn.ring;
    json_t *json = NULL, *nodes = json_array(), *sets = json_array();
    bool good = acct_drawn_read(record, &drawn, err) == 0;
    for (int run = 0; good && run < ring->n_runs; run++)
        for (int i = 0; i < ring->runs[run].count; i++)
            json_array_append_new(nodes, json_pack("{s:s, s:i}", "name",
                                                   ring->names[ring->runs[run].first + i], "chains",
                                                   ring->runs[run].set));
    for (int i = 0; good && i < ring->n_sets; i++) {
        json_t *chains = json_array();
        for (int r = 0; r < ring->n_rings; r++)
            json_array_append_new(chains, chain_json(&ring->sets[i].chains[r]));
        json_array_append_new(sets, chains);
    }
    if (good) {
        json = json_pack("{s:O, s:{s:b, s:b, s:i, s:O, s:O}}", "step", record, "ring", "closed",
                         ring->sets[0].chains[0].closed, "cut", ring->cut, "rings", ring->n_rings,
                         "nodes", nodes, "chains", sets);
        if (!json)
            tccl_fail(err, "out of memory for a ring");
    }
    json_decref(nodes);
    json_decref(sets);
    acct_drawn_clear(&drawn);
    return json;
}
