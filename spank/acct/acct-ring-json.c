/* acct-ring-json.c: the ring of a record as JSON, for other programs. */
#include "acct/acct-ring-json.h"

#include "acct/acct-ring-facts.h"
#include "base/cleanup.h"

static json_t *link_json(struct tccl_text_arrow link)
{
    const char *kind = link.kind == 'w'   ? "write"
                       : link.kind == 'r' ? "read"
                       : link.kind == 'm' ? "memory"
                                          : "gpudirect";
    return json_pack("{s:s, s:o}", "kind", kind, "memory",
                     link.kind == 'm' ? json_integer(link.memory) : json_null());
}

static json_t *chain_json(const struct tccl_named_chain *chain)
{
    json_t *gpus = json_array(), *links = json_array();
    for (int i = 0; i < chain->n_gpus; i++)
        json_array_append_new(gpus, json_integer((json_int_t)chain->gpus[i]));
    for (int i = 0; i < tccl_named_arrows(chain); i++)
        json_array_append_new(links, link_json(tccl_named_arrow(chain, i)));
    return json_pack("{s:s?, s:o, s:o, s:s?}", "entry", chain->closed ? NULL : chain->entry.nic,
                     "gpus", gpus, "links", links, "exit", chain->closed ? NULL : chain->exit.nic);
}

static json_t *ring_json(const struct acct_ring *ring)
{
    json_t *nodes = json_array(), *sets = json_array();
    for (int run = 0; run < ring->n_runs; run++)
        for (int i = 0; i < ring->runs[run].count; i++)
            json_array_append_new(nodes, json_pack("{s:s, s:i}", "name",
                                                   ring->names[ring->runs[run].first + i], "set",
                                                   ring->runs[run].set));
    for (int i = 0; i < ring->n_sets; i++) {
        json_t *chains = json_array();
        for (int r = 0; r < ring->n_rings; r++)
            json_array_append_new(chains, chain_json(&ring->sets[i].chains[r]));
        json_array_append_new(sets, chains);
    }
    return json_pack("{s:b, s:b, s:i, s:o, s:o}", "closed", ring->sets[0].chains[0].closed, "cut",
                     ring->cut, "rings", ring->n_rings, "nodes", nodes, "sets", sets);
}

json_t *acct_ring_json(json_t *record, struct tccl_error *err)
{
    struct acct_ring ring;
    struct acct_ring_facts facts;
    json_t *json = NULL;
    if (acct_ring_facts_read(record, &ring, &facts, err) == 0) {
        json = json_pack("{s:O, s:o}", "step", record, "ring", ring_json(&ring));
        if (!json)
            tccl_fail(err, "out of memory for a ring");
    }
    acct_ring_facts_clear(&ring, &facts);
    return json;
}
