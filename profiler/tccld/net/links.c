/* Chains for the runtime shim, which knows no machine: indices become bus ids and names. */
#include "tccld/net/links.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const kinds[] = {
    [TCCL_P2P_WRITE] = "p2p-write", [TCCL_P2P_READ] = "p2p-read", [TCCL_BOUNCE] = "bounce"};

static json_t *edges_to_json(const struct tccl_chain *chain, const struct tccl_machine *machine)
{
    cleanup_json json_t *edges = json_array();
    for (int i = 0; i < tccl_chain_edges(chain); i++) {
        struct tccl_edge edge = chain->edges[i];
        int node = edge.kind == TCCL_BOUNCE ? machine->nodes[edge.memory] : -1;
        if (json_array_append_new(
                edges, json_pack("{s:s,s:i}", "kind", kinds[edge.kind], "node", node)) != 0)
            return NULL;
    }
    return tccl_steal(edges);
}

static json_t *port_to_json(struct tccl_port port, const struct tccl_machine *machine)
{
    const struct tccl_nic *nic = &machine->nics[port.nic];
    bool direct = port.via.kind == TCCL_GPU;
    return json_pack("{s:s,s:s,s:b,s:i}", "nic", nic->name, "busid", nic->busid, "gpudirect",
                     direct, "node", direct ? -1 : machine->nodes[port.via.index]);
}

json_t *links_to_json(const struct tccl_chain *chain, const struct tccl_machine *machine)
{
    cleanup_json json_t *gpus = json_array();
    for (int i = 0; i < chain->n_gpus; i++)
        if (json_array_append_new(gpus, json_string(machine->gpus[chain->gpus[i]].busid)) != 0)
            return NULL;
    cleanup_json json_t *links = json_pack("{s:b,s:O,s:o}", "closed", chain->closed, "gpus", gpus,
                                           "edges", edges_to_json(chain, machine));
    if (!links)
        return NULL;
    if (!chain->closed &&
        (json_object_set_new(links, "entry", port_to_json(chain->entry, machine)) != 0 ||
         json_object_set_new(links, "exit", port_to_json(chain->exit, machine)) != 0))
        return NULL;
    return tccl_steal(links);
}

json_t *links_busids(uint32_t gpus, const struct tccl_machine *machine)
{
    cleanup_json json_t *busids = json_array();
    for (int i = 0; i < machine->n_gpus; i++)
        if (gpus & 1u << i &&
            json_array_append_new(busids, json_string(machine->gpus[i].busid)) != 0)
            return NULL;
    return tccl_steal(busids);
}

double links_gbps(double gbps)
{
    return round(gbps * 1e4) / 1e4;
}

bool links_one_fabric(const struct tccl_machine *machine)
{
    for (int i = 1; i < machine->n_nics; i++)
        if (strcmp(machine->nics[i].fabric, machine->nics[0].fabric) != 0)
            return false;
    return machine->n_nics > 0;
}
