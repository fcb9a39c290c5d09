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
    shim_text_add(text, "<net dev=\"0x%x\"/>\n", (unsigned)number);
}

static void add_gpu(const struct shim_numbers *numbers, int i, struct shim_text *text)
{
    shim_text_add(text, "<gpu dev=\"0x%x\"", (unsigned)numbers->gpus[i]);
    if (numbers->by_rank)
        shim_text_add(text, " rank=\"%d\"", numbers->ranks[i]);
    shim_text_add(text, "/>\n");
}

static void add_channel(const struct shim_chain *chain, const struct shim_numbers *numbers,
                        int ring, struct shim_text *text)
{
    const struct tccl_named_chain *path = &chain->rings.chains[ring];
    shim_text_add(text, "<channel>\n");
    if (!path->closed)
        add_net(numbers->entry[ring], text);
    for (int i = 0; i < path->n_gpus; i++)
        add_gpu(numbers, shim_ring_find(&chain->rings.chains[0], path->gpus[i]), text);
    if (!path->closed)
        add_net(numbers->exit[ring], text);
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

/* The ring is graph 0, its pattern 4. NCCL's reader wants one space between attributes, and no
 * other white space in a tag. */
static void add_graph(const struct shim_chain *chain, const struct shim_nominal *ring, int channels,
                      enum shim_path intra, enum shim_path inter, struct shim_text *text)
{
    const char *within = chain->rings.chains[0].n_gpus > 1 ? shim_path_name(intra) : "LOC";
    const char *outside = chain->rings.chains[0].closed ? "PIX" : shim_path_name(inter);
    shim_text_add(text, "<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"%d\"", channels);
    add_speed(ring->speed_intra * ring->channels / channels, "speedintra", text);
    add_speed(ring->speed_inter * ring->channels / channels, "speedinter", text);
    shim_text_add(text,
                  " latencyinter=\"0\" typeintra=\"%s\" typeinter=\"%s\" samechannels=\"1\">\n",
                  within, outside);
}

double shim_graph_tree_gbps(const struct shim_chain *chain, const struct shim_baseline *own,
                            double tree, double speed_tree, double speed_ring)
{
    return tccl_tree_rate(own->ring.channels * speed_ring, own->tree.channels * speed_tree,
                          chain->gbps, tree);
}

static bool has_tree(const struct shim_chain *chain, const struct shim_numbers *numbers,
                     const struct shim_baseline *own)
{
    enum { BALANCED = 1, TREE = 3 };
    return !chain->rings.chains[0].closed && chain->tree.gbps > 0 && numbers->tree >= 0 &&
           own->tree.channels > 0 && (own->tree.pattern == BALANCED || own->tree.pattern == TREE) &&
           own->tree.speed_intra < 1e6 && own->tree.speed_inter < 1e6;
}

/* The tree is graph 1, of which NCCL takes no more channels than the rings have, and of these no
 * more than it has. The longest paths are those that there may be: both are too long for LL128.
 */
static void add_tree(const struct shim_chain *chain, const struct shim_numbers *numbers,
                     const struct shim_baseline *own, int channels, struct shim_text *text)
{
    const struct shim_nominal *tree = &own->tree;
    double gbps = chain->tree.gbps;
    shim_text_add(text, "<graph id=\"1\" pattern=\"%u\" crossnic=\"0\" nchannels=\"%d\"",
                  tree->pattern, channels);
    add_speed(shim_graph_tree_gbps(chain, own, gbps, tree->speed_intra, own->ring.speed_intra) /
                  channels,
              "speedintra", text);
    add_speed(shim_graph_tree_gbps(chain, own, gbps, tree->speed_inter, own->ring.speed_inter) /
                  channels,
              "speedinter", text);
    shim_text_add(text,
                  " latencyinter=\"0\" typeintra=\"SYS\" typeinter=\"SYS\" samechannels=\"1\">\n");
    for (int i = 0; i < channels; i++) {
        shim_text_add(text, "<channel>\n");
        add_net(numbers->tree, text);
        for (int at = 0; at < chain->rings.chains[0].n_gpus; at++)
            add_gpu(numbers, chain->tree.order[at], text);
        add_net(numbers->tree, text); /* of a balanced tree: that of the second GPU */
        shim_text_add(text, "</channel>\n");
    }
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
    if (check_numbers(chain, numbers, why) != 0)
        return -1;
    if (own->ring.channels == 0 || own->ring.speed_intra > 1e6 || own->ring.speed_inter > 1e6)
        return tccl_fail(why, "the plan does not say what NCCL's own rings are like");
    int channels = numbers->apart ? own->ring.channels
                                  : shim_graph_channels(own->ring.channels, chain->rings.n);
    shim_text_add(text, "<graphs version=\"1\">\n");
    add_graph(chain, &own->ring, channels, intra, inter, text);
    for (int i = 0; i < channels; i++)
        add_channel(chain, numbers, i % chain->rings.n, text);
    shim_text_add(text, "</graph>\n");
    struct shim_text without = *text;
    if (has_tree(chain, numbers, own))
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
    return version == 0 || tccl_release_does(version, TCCL_FACT_BIG_GRAPH);
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
