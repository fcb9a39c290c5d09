/* graph.c: writes the graph file, and says what NCCL needs to read it. */
#include "nccl/shim-nccl.h"

#include <string.h>

#include "chain/nccl-version.h"
#include "chain/tree-rate.h"

/* Of a channel, with the point that NCCL reads in whatever locale it is. 0.1 is what NCCL takes
 * where its search finds nothing. */
static void add_speed(double gbps, const char *name, struct shim_text *text)
{
    unsigned thousandths = gbps < 0.1 ? 100 : (unsigned)(gbps * 1000 + 0.5);
    shim_text_add(text, " %s=\"%u.%03u\"", name, thousandths / 1000, thousandths % 1000);
}

static void add_net(int number, struct shim_text *text)
{
    if (number >= 0)
        shim_text_add(text, "<net dev=\"0x%x\"/>\n", (unsigned)number);
}

/* The GPUs at these places, between two NICs (-1: none). */
static void add_channel(const struct shim_numbers *numbers, const uint8_t *order, int n, int entry,
                        int exit, struct shim_text *text)
{
    shim_text_add(text, "<channel>\n");
    add_net(entry, text);
    for (int i = 0; i < n; i++) {
        shim_text_add(text, "<gpu dev=\"0x%x\"", (unsigned)numbers->gpus[order[i]]);
        if (numbers->by_rank)
            shim_text_add(text, " rank=\"%d\"", numbers->ranks[order[i]]);
        shim_text_add(text, "/>\n");
    }
    add_net(exit, text);
    shim_text_add(text, "</channel>\n");
}

static int check_numbers(const struct shim_chain *chain, const struct shim_numbers *numbers,
                         struct tccl_error *why)
{
    for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
        if (numbers->gpus[i] < 0)
            return tccl_fail(why, "NVML has no index for a GPU");
    for (int i = 0; numbers->by_rank && i < chain->rings.chains[0].n_gpus; i++)
        if (numbers->ranks[i] < 0)
            return tccl_fail(why, "ranks see only their own GPUs, and the number of a rank is not "
                                  "known");
    for (int i = 0; !chain->rings.chains[0].closed && i < chain->rings.n; i++)
        if (numbers->entry[i] < 0 || numbers->exit[i] < 0)
            return tccl_fail(why, "NCCL has no device number for a NIC");
    return 0;
}

int shim_graph_channels(int own, int n)
{
    enum { ROOM = 16 };
    int channels = (own + n - 1) / n * n;
    return channels > ROOM && channels > own ? own / n * n : channels;
}

/* Speeds are those of all channels. NCCL's reader wants one space between attributes, and no other
 * white space in a tag. */
static void begin_graph(int id, unsigned pattern, int channels, double intra, double inter,
                        const char *within, const char *outside, struct shim_text *text)
{
    shim_text_add(text, "<graph id=\"%d\" pattern=\"%u\" crossnic=\"0\" nchannels=\"%d\"", id,
                  pattern, channels);
    add_speed(intra / channels, "speedintra", text);
    add_speed(inter / channels, "speedinter", text);
    shim_text_add(text,
                  " latencyinter=\"0\" typeintra=\"%s\" typeinter=\"%s\" samechannels=\"1\">\n",
                  within, outside);
}

/* A graph of one ring after the other, each as a channel; speeds as begin_graph. */
static void add_rings(int id, unsigned pattern, double speed_intra, double speed_inter,
                      const struct shim_chain *chain, const struct shim_numbers *numbers,
                      int channels, enum shim_path intra, enum shim_path inter,
                      struct shim_text *text)
{
    const struct tccl_named_chain *first = &chain->rings.chains[0];
    begin_graph(id, pattern, channels, speed_intra, speed_inter,
                first->n_gpus > 1 ? shim_path_name(intra) : "LOC",
                first->closed ? "PIX" : shim_path_name(inter), text);
    for (int i = 0; i < channels; i++) {
        int at = i % chain->rings.n;
        const struct tccl_named_chain *path = &chain->rings.chains[at];
        uint8_t order[SHIM_GPUS];
        for (int j = 0; j < path->n_gpus; j++)
            order[j] = (uint8_t)shim_ring_find(first, path->gpus[j]);
        add_channel(numbers, order, path->n_gpus, path->closed ? -1 : numbers->entry[at],
                    path->closed ? -1 : numbers->exit[at], text);
    }
    shim_text_add(text, "</graph>\n");
}

double shim_graph_tree_gbps(const struct shim_chain *chain, const struct shim_baseline *own,
                            double tree, double speed_tree, double speed_ring)
{
    return tccl_tree_rate(own->ring.channels * speed_ring, own->tree.channels * speed_tree,
                          chain->gbps, tree);
}

static bool knows_tree(const struct shim_nominal *tree)
{
    enum { BALANCED = 1, TREE = 3 };
    return tree->channels > 0 && (tree->pattern == BALANCED || tree->pattern == TREE) &&
           tree->speed_intra < 1e6 && tree->speed_inter < 1e6;
}

static double along_gbps(const struct shim_chain *chain, const struct shim_baseline *own,
                         double speed_tree, double speed_ring)
{
    double measured = chain->tree.along > 0 ? chain->tree.along : chain->tree.gbps;
    return measured > 0 ? shim_graph_tree_gbps(chain, own, measured, speed_tree, speed_ring)
                        : speed_tree * own->tree.channels;
}

/* The tree is graph 1, of which NCCL takes no more channels than the rings have, and of these no
 * more than it has. The longest paths are those that there may be: both are too long for LL128.
 */
static void add_tree(const struct shim_chain *chain, const struct shim_numbers *numbers,
                     const struct shim_baseline *own, int channels, struct shim_text *text)
{
    const struct shim_nominal *tree = &own->tree, *ring = &own->ring;
    double gbps = chain->tree.gbps;
    begin_graph(1, tree->pattern, channels,
                shim_graph_tree_gbps(chain, own, gbps, tree->speed_intra, ring->speed_intra),
                shim_graph_tree_gbps(chain, own, gbps, tree->speed_inter, ring->speed_inter), "SYS",
                "SYS", text);
    for (int i = 0; i < channels; i++) /* of a balanced tree the last NIC is the second GPU's */
        add_channel(numbers, chain->tree.order, chain->rings.chains[0].n_gpus, numbers->tree,
                    numbers->tree, text);
    shim_text_add(text, "</graph>\n");
}

bool shim_graph_tells_tree(const char *file)
{
    return strstr(file, "<graph id=\"1\"");
}

int shim_graph(const struct shim_chain *chain, const struct shim_numbers *numbers,
               const struct shim_baseline *own, enum shim_path intra, enum shim_path inter,
               struct shim_text *text, struct tccl_error *why)
{
    enum { RING = 4 }; /* NCCL's pattern; its graph is 0 */
    const struct tccl_named_chain *first = &chain->rings.chains[0];
    const struct shim_nominal *ring = &own->ring;
    if (check_numbers(chain, numbers, why) != 0)
        return -1;
    if (own->ring.channels == 0 || own->ring.speed_intra > 1e6 || own->ring.speed_inter > 1e6)
        return tccl_fail(why, "the plan does not say what NCCL's own rings are like");
    int channels = numbers->apart ? own->ring.channels
                                  : shim_graph_channels(own->ring.channels, chain->rings.n);
    shim_text_add(text, "<graphs version=\"1\">\n");
    add_rings(0, RING, ring->speed_intra * ring->channels, ring->speed_inter * ring->channels,
              chain, numbers, channels, intra, inter, text);
    struct shim_text without = *text;
    /* Within a node NCCL's search may find no trees with as many channels as there are rings, and
     * has a single one then, and a single ring. And of one GPU on each node whatever is connected
     * first is the way between two of them: trees, PAT (which has the trees' NICs), or the ring. No
     * tree is planned for a single GPU. */
    bool along = first->n_gpus == 1 || (first->closed && chain->rings.n > 1);
    if (along && knows_tree(&own->tree))
        add_rings(1, own->tree.pattern,
                  along_gbps(chain, own, own->tree.speed_intra, ring->speed_intra),
                  along_gbps(chain, own, own->tree.speed_inter, ring->speed_inter), chain, numbers,
                  channels, intra, inter, text);
    else if (!first->closed && chain->tree.gbps > 0 && numbers->tree >= 0 && knows_tree(&own->tree))
        add_tree(chain, numbers, own, shim_graph_channels(own->tree.channels, chain->rings.n),
                 text);
    shim_text_add(text, "</graphs>\n");
    if (text->full && !without.full) {
        *text = without;
        shim_text_add(text, "</graphs>\n");
    }
    return text->full ? tccl_fail(why, "the graph file is too long") : 0;
}

bool shim_graph_is_costly(uint32_t version)
{
    return tccl_release_does(version, TCCL_FACT_BIG_GRAPH);
}

/* Nodes of the table times their size: a name and 17 attributes with name and value of 256 bytes
 * each, and pointers to 128 or 640 nodes (src/graph/xml.h). */
uint64_t shim_graph_memory(uint32_t version)
{
    const uint64_t texts = 256 + 17 * 2 * 256 + 24;
    if (shim_graph_is_costly(version))
        return 65536 * (texts + 640 * sizeof(void *));
    return 4096 * (texts + 128 * sizeof(void *));
}
