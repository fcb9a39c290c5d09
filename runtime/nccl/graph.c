/* graph.c: writes the graph file, and says what NCCL needs to read it. */
#include "nccl/graph.h"

/* As NCCL numbers graphs and their patterns. */
enum { RING_ID = 0, TREE_ID = 1 };
enum { PATTERN_BALANCED_TREE = 1, PATTERN_TREE = 3, PATTERN_RING = 4 };

enum { XML_TABLE_2_21 = 22100, XML_TABLE_2_29_7 = 22907 };

/* By itself NCCL finds one channel within a node, and one or two between nodes with one or two
 * NICs; a communicator should not have fewer of them than without us, since sends and receives go
 * by these, too. The one block of threads that works for a channel copies about 20 GB/s. */
int shim_graph_channels(const struct shim_chain *chain)
{
    return chain->path.closed && chain->gbps <= 20 ? 1 : 2;
}

/* A channel's share in GB/s, with the point that NCCL reads in whatever locale it is. From speed
 * times channels NCCL reckons how long each algorithm and protocol takes for a size: LL to Simple
 * and tree to ring change places where they would at that bandwidth. */
static void add_speed(double gbps, const char *name, struct shim_text *text)
{
    unsigned thousandths = gbps < 1e-3 ? 1 : gbps > 1e6 ? 1000000000u : (unsigned)(gbps * 1000);
    shim_text_add(text, " %s=\"%u.%03u\"", name, thousandths / 1000, thousandths % 1000);
}

/* The tree is a chain inside the node. Where it has one GPU only, NCCL takes a second one, which is
 * not there, for the head of a balanced tree's other half. */
static int pattern(const struct shim_chain *chain, int id)
{
    if (id == RING_ID)
        return PATTERN_RING;
    return chain->path.n_gpus > 1 ? PATTERN_BALANCED_TREE : PATTERN_TREE;
}

static void add_channel(const struct shim_chain *chain, const struct shim_numbers *numbers,
                        struct shim_text *text)
{
    shim_text_add(text, "<channel>\n");
    if (!chain->path.closed)
        shim_text_add(text, "<net dev=\"0x%x\"/>\n", (unsigned)numbers->entry);
    for (int i = 0; i < chain->path.n_gpus; i++)
        shim_text_add(text, "<gpu dev=\"0x%x\"/>\n", (unsigned)numbers->gpus[i]);
    if (!chain->path.closed)
        shim_text_add(text, "<net dev=\"0x%x\"/>\n", (unsigned)numbers->exit);
    shim_text_add(text, "</channel>\n");
}

/* NCCL's reader wants one space between attributes, and no other white space in a tag. */
static void add_graph(const struct shim_chain *chain, const struct shim_numbers *numbers, int id,
                      const char *intra, const char *inter, struct shim_text *text)
{
    int channels = shim_graph_channels(chain);
    shim_text_add(text, "<graph id=\"%d\" pattern=\"%d\" crossnic=\"0\" nchannels=\"%d\"", id,
                  pattern(chain, id), channels);
    add_speed(chain->gbps / channels, "speedintra", text);
    add_speed(chain->gbps / channels, "speedinter", text);
    shim_text_add(text,
                  " latencyinter=\"0\" typeintra=\"%s\" typeinter=\"%s\" samechannels=\"1\">\n",
                  intra, inter);
    for (int i = 0; i < channels; i++)
        add_channel(chain, numbers, text);
    shim_text_add(text, "</graph>\n");
}

static int check_numbers(const struct shim_chain *chain, const struct shim_numbers *numbers,
                         struct shim_why *why)
{
    for (int i = 0; i < chain->path.n_gpus; i++)
        if (numbers->gpus[i] < 0)
            return shim_fail(why, "NVML has no index for a GPU");
    if (!chain->path.closed && (numbers->entry < 0 || numbers->exit < 0))
        return shim_fail(why, "NCCL has no device number for a NIC");
    return 0;
}

int shim_graph(const struct shim_chain *chain, const struct shim_numbers *numbers,
               enum shim_path intra, enum shim_path inter, bool tree, struct shim_text *text,
               struct shim_why *why)
{
    const char *within =
        chain->path.n_gpus > 1 ? shim_path_name(intra) : "LOC"; /* as NCCL has it for one */
    if (check_numbers(chain, numbers, why) != 0)
        return -1;
    shim_text_add(text, "<graphs version=\"1\">\n");
    for (int id = RING_ID; id <= (tree ? TREE_ID : RING_ID); id++)
        add_graph(chain, numbers, id, within, chain->path.closed ? within : shim_path_name(inter),
                  text);
    shim_text_add(text, "</graphs>\n");
    return text->full ? shim_fail(why, "the graph file is too long") : 0;
}

static bool has_huge_table(uint32_t version)
{
    return version == 0 || version >= XML_TABLE_2_29_7;
}

bool shim_graph_gives_tree(uint32_t version)
{
    return !has_huge_table(version);
}

/* Nodes of the table times their size: a name and 17 attributes with name and value of 256 bytes
 * each, and pointers to 32, 128 or 640 nodes (src/graph/xml.h). */
uint64_t shim_graph_memory(uint32_t version)
{
    const uint64_t texts = 256 + 17 * 2 * 256 + 24;
    if (has_huge_table(version))
        return 65536 * (texts + 640 * sizeof(void *));
    if (version >= XML_TABLE_2_21)
        return 4096 * (texts + 128 * sizeof(void *));
    return 1024 * (texts + 32 * sizeof(void *));
}
