/* write-topology: for a chain, as tccld's answer to CHAIN has it, on standard input: what the
 * shim's islands and graph make of it on this machine. "write-topology VERSION PXB GRAPH TOPOLOGY
 * NIC-IN NIC-OUT READS": NCCL's version as a number, 1 where NCCL_P2P_LEVEL=PXB is set, files to
 * write, NCCL's numbers of the NICs, and 1 where it sends directly from the chain's last GPU.
 * NVML's numbers are those in the order of the bus ids of the line "all", the machine's GPUs;
 * "gpus" and "closed" are what was asked for. Prints "graph" or "graph topology", or "none: why".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/shim-nccl.h"
#include "plan/plan.h"

enum { TEXT = 65536, MOST = 64 };

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

/* The bus ids of a line. Returns how many. */
static int read_list(const struct tccl_lines *lines, const char *key, tccl_bus list[static MOST])
{
    static char text[TEXT];
    char *rest;
    int n = 0;
    tccl_line_text(lines, key, text, sizeof(text));
    for (char *word = strtok_r(text, " ", &rest); word && n < MOST;
         word = strtok_r(NULL, " ", &rest))
        if (tccl_bus_parse(word, &list[n++]) != 0)
            return -1;
    return n;
}

/* Positions in the list of all GPUs. */
static int number_gpus(const tccl_bus *all, int n_all, const struct shim_chain *chain,
                       struct shim_numbers *numbers)
{
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        if ((numbers->gpus[i] = shim_bus_find(all, n_all, chain->rings.chains[0].gpus[i])) < 0)
            return -1;
    return 0;
}

static enum shim_path farthest(const struct shim_chain *chain, const struct shim_pci *seen)
{
    enum shim_path path = SHIM_PIX;
    for (int i = 0; i < tccl_named_edges(&chain->rings.chains[0]); i++) {
        const tccl_bus *gpus = chain->rings.chains[0].gpus;
        enum shim_path next =
            shim_pci_path(seen, gpus[i], gpus[(i + 1) % chain->rings.chains[0].n_gpus]);
        path = next > path ? next : path;
    }
    return path;
}

static int write_both(const struct shim_chain *chain, const struct shim_numbers *numbers,
                      uint32_t version, bool pxb, bool reads, const char *graph_file,
                      const char *topo_file)
{
    static char graph[TEXT], topology[TEXT];
    static bool linked[SHIM_GPUS][SHIM_GPUS];
    struct shim_text graph_text = {graph, TEXT, 0, false}, topo_text = {topology, TEXT, 0, false};
    struct tccl_error why = {""};
    struct shim_pci pci, seen;
    if (shim_islands_read(chain, &pci, &why) != 0)
        return fail(why.text);
    pci.reads = reads;
    pci.net_intra = false;
    int islands = shim_islands(chain, &pci, linked, pxb, version, &topo_text, &seen, &why);
    if (islands < 0) {
        printf("none: %s\n", why.text);
        return 0;
    }
    enum shim_path intra = farthest(chain, &seen);
    if (shim_graph(chain, numbers, shim_chain_baseline(chain, (int)version), intra, SHIM_SYS,
                   &graph_text, &why) != 0)
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
    struct tccl_lines lines;
    struct tccl_error err = {""};
    struct tccl_error why = {""};
    struct shim_chain chain;
    struct shim_numbers numbers = {.by_rank = false};
    tccl_bus gpus[MOST], all[MOST];
    bool closed;
    if (count != 8)
        return fail("seven arguments are needed");
    size_t size = fread(text, 1, sizeof(text), stdin);
    if (tccl_lines_open(text, size, &lines, &err) != 0)
        return fail(err.text);
    int n = read_list(&lines, "gpus", gpus), n_all = read_list(&lines, "all", all);
    if (tccl_line_bool(&lines, "closed", &closed) != 0 ||
        shim_chain_parse(text, size, gpus, n, closed, &chain, &why) != 0)
        return fail(why.text);
    if (number_gpus(all, n_all, &chain, &numbers) != 0)
        return fail("a GPU is not in the list of all");
    numbers.entry[0] = atoi(arguments[5]);
    numbers.exit[0] = atoi(arguments[6]);
    return write_both(&chain, &numbers, (uint32_t)atoi(arguments[1]), *arguments[2] == '1',
                      *arguments[7] == '1', arguments[3], arguments[4]);
}
