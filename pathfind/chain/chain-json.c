/* chain-json.c: a chain as JSON, for users of tccl-path. */
#include "chain/chain.h"

/* "via": "gpu" or "memory", and which. */
static json_t *port_json(struct tccl_port port, const struct tccl_machine *machine)
{
    const char *via = port.via.kind == TCCL_GPU ? "gpu" : "memory";
    return json_pack("{s:s, s:s, s:i}", "nic", machine->nics[port.nic].name, "via", via, via,
                     port.via.index);
}

static json_t *edge_json(const struct tccl_chain *chain, const struct tccl_machine *machine, int i)
{
    static const char *const kinds[] = {"p2p-write", "p2p-read", "bounce", "nics"};
    struct tccl_edge edge = chain->edges[i];
    json_t *json = json_pack("{s:s, s:i, s:i}", "kind", kinds[edge.kind], "from", chain->gpus[i],
                             "to", chain->gpus[(i + 1) % chain->n_gpus]);
    if (edge.kind == TCCL_BOUNCE)
        json_object_set_new(json, "memory", json_integer(edge.memory));
    if (edge.kind == TCCL_BY_NICS) {
        json_object_set_new(json, "exit", port_json(edge.from, machine));
        json_object_set_new(json, "entry", port_json(edge.to, machine));
    }
    return json;
}

json_t *tccl_chain_to_json(const struct tccl_chain *chain, const struct tccl_machine *machine)
{
    char text[TCCL_CHAIN_TEXT], set_text[TCCL_SET_TEXT];
    json_t *gpus = json_array(), *busids = json_array(), *edges = json_array();
    bool ports = !chain->closed && chain->n_gpus > 0;
    struct tccl_set set;
    for (int i = 0; i < chain->n_gpus; i++) {
        json_array_append_new(gpus, json_integer(chain->gpus[i]));
        json_array_append_new(busids, json_string(machine->gpus[chain->gpus[i]].busid));
    }
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        json_array_append_new(edges, edge_json(chain, machine, i));
    tccl_chain_format(chain, machine, text);
    tccl_chain_set(chain, &set);
    tccl_set_format(&set, set_text);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:s}", "gpus", gpus, "busids", busids, "edges",
                     edges, "entry", ports ? port_json(chain->entry, machine) : json_null(), "exit",
                     ports ? port_json(chain->exit, machine) : json_null(), "chain", text, "load",
                     set_text);
}
