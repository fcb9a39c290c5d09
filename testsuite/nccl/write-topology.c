/* write-topology: for a chain, in the form of a plan's "links", on standard input: what the shim's
 * islands and graph make of it on this machine. "write-topology VERSION PXB GRAPH TOPOLOGY
 * NIC-IN NIC-OUT": NCCL's version as a number, 1 where NCCL_P2P_LEVEL=PXB is set, files to write,
 * and NCCL's numbers of the NICs. NVML's numbers are those in the order of the bus ids of "all",
 * the machine's GPUs. Prints "graph" or "graph topology", or "none: why". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "nccl/graph.h"
#include "nccl/islands.h"
#include "plan/plan.h"

enum { TEXT = 65536 };

static int fail(const char *what)
{
    fprintf(stderr, "write-topology: %s\n", what);
    return 2;
}

static int write_file(const char *path, const struct shim_text *text)
{
    FILE *file = fopen(path, "w");
    return file && fwrite(text->at, 1, text->length, file) == text->length && fclose(file) == 0
               ? 0
               : -1;
}

/* Positions in the list of all GPUs. */
static int number_gpus(struct shim_json all, const struct shim_chain *chain,
                       struct shim_numbers *numbers)
{
    struct shim_json item = {0};
    char text[SHIM_BUS_TEXT];
    shim_bus bus;
    int found = 0;
    for (int index = 0; (item = shim_json_next(all, item)).text; index++)
        for (int i = 0; i < chain->n; i++)
            if (shim_json_text(item, text, sizeof text) > 0 && shim_bus_parse(text, &bus) == 0 &&
                bus == chain->gpus[i]) {
                numbers->gpus[i] = index;
                found++;
            }
    return found == chain->n ? 0 : -1;
}

static int read_pci(const struct shim_chain *chain, struct shim_pci *pci, struct shim_why *why)
{
    shim_bus devices[SHIM_PCI_DEVICES];
    memcpy(devices, chain->gpus, sizeof chain->gpus);
    devices[chain->n] = chain->entry.bus;
    devices[chain->n + 1] = chain->exit.bus;
    return shim_pci_read(devices, chain->closed ? chain->n : chain->n + 2, pci, why);
}

static enum shim_path farthest(const struct shim_chain *chain, const struct shim_pci *pci,
                               bool islands)
{
    enum shim_path path = SHIM_PIX;
    for (int i = 0; i < chain->n - !chain->closed; i++) {
        enum shim_path next =
            shim_islands_path(chain, pci, islands, chain->gpus[i], chain->gpus[(i + 1) % chain->n]);
        path = next > path ? next : path;
    }
    return path;
}

static int write_both(const struct shim_chain *chain, const struct shim_numbers *numbers,
                      uint32_t version, bool pxb, const char *graph_file, const char *topo_file)
{
    static char graph[TEXT], topology[TEXT];
    static bool linked[SHIM_GPUS][SHIM_GPUS];
    struct shim_text graph_text = {graph, TEXT, 0, false}, topo_text = {topology, TEXT, 0, false};
    struct shim_why why = {""};
    struct shim_pci pci;
    if (read_pci(chain, &pci, &why) != 0)
        return fail(why.text);
    int islands = shim_islands(chain, &pci, linked, pxb, version, &topo_text, &why);
    if (islands < 0) {
        printf("none: %s\n", why.text);
        return 0;
    }
    enum shim_path intra = farthest(chain, &pci, islands > 0);
    if (shim_graph(chain, numbers, intra, SHIM_SYS, shim_graph_gives_tree(version), &graph_text,
                   &why) != 0)
        return fail(why.text);
    if (write_file(graph_file, &graph_text) != 0 ||
        (islands && write_file(topo_file, &topo_text) != 0))
        return fail("a file can't be written");
    printf("graph%s\n", islands ? " topology" : "");
    return 0;
}

int main(int count, char **arguments)
{
    static char text[TEXT];
    struct shim_json object;
    struct shim_why why = {""};
    struct shim_chain chain;
    struct shim_numbers numbers;
    if (count != 7)
        return fail("six arguments are needed");
    size_t size = fread(text, 1, sizeof text, stdin);
    if (shim_json_parse(text, size, &object, &why) != 0)
        return fail(why.text);
    shim_bus gpus[SHIM_GPUS];
    int n = 0;
    bool closed;
    struct shim_json links = shim_json_member(object, "links"), item = {0};
    char bus[SHIM_BUS_TEXT];
    while ((item = shim_json_next(shim_json_member(links, "gpus"), item)).text && n < SHIM_GPUS)
        if (shim_json_text(item, bus, sizeof bus) < 0 || shim_bus_parse(bus, &gpus[n++]) != 0)
            return fail("a bus id");
    if (shim_json_bool(shim_json_member(links, "closed"), &closed) != 0 ||
        shim_chain_parse(text, size, gpus, n, closed, &chain, &why) != 0)
        return fail(why.text);
    if (number_gpus(shim_json_member(object, "all"), &chain, &numbers) != 0)
        return fail("a GPU is not in the list of all");
    numbers.entry = atoi(arguments[5]);
    numbers.exit = atoi(arguments[6]);
    return write_both(&chain, &numbers, (uint32_t)atoi(arguments[1]), *arguments[2] == '1',
                      arguments[3], arguments[4]);
}
