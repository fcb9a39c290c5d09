/* acct-ring-read.c: the ring of a record, read without knowing its machines. */
#include "acct/acct-ring-read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "chain/chain-text.h"
#include "client/hostlist.h"

int acct_chain_links(const struct acct_chain *chain)
{
    return chain->closed ? chain->n_gpus : chain->n_gpus + 1;
}

static const char *skip_spaces(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* Each of these reads at *at, moves behind it, and returns whether it was there. */

static bool read_number(const char **at, int *number)
{
    int digits = 0;
    *at = skip_spaces(*at);
    *number = 0;
    for (; isdigit((unsigned char)**at) && digits < 3; digits++)
        *number = *number * 10 + (*(*at)++ - '0');
    return digits > 0;
}

static bool read_nic(const char **at, char name[static TCCL_NAME])
{
    size_t length = 0;
    *at = skip_spaces(*at);
    while (isalnum((unsigned char)(*at)[length]) || (*at)[length] == '_' || (*at)[length] == '.')
        length++;
    if (length == 0 || length >= TCCL_NAME || !isalpha((unsigned char)**at))
        return false;
    memcpy(name, *at, length);
    *at += length;
    return true;
}

static bool read_link(const char **at, struct acct_link *link)
{
    *at = skip_spaces(*at);
    if ((*at)[0] != '-' || !(*at)[1] || !strchr("wrgm", (*at)[1]))
        return false;
    link->kind = (*at)[1];
    *at += 2;
    if (link->kind == 'm' && !read_number(at, &link->memory))
        return false;
    return *(*at)++ == '>';
}

/* GPUs and links in turn, behind the entry if there is one, until the exit or the first GPU again.
 */
static bool read_gpus(const char **at, struct acct_chain *chain)
{
    int before = chain->closed ? 0 : 1, gpu; /* links that stand before the first GPU */
    for (;;) {
        if (!read_number(at, &gpu))
            return false;
        if (chain->closed && chain->n_gpus > 1 && gpu == chain->gpus[0])
            return true;
        if (chain->n_gpus == TCCL_MAX_GPUS)
            return false;
        chain->gpus[chain->n_gpus] = gpu;
        if (!read_link(at, &chain->links[before + chain->n_gpus++]))
            return false;
        if (!chain->closed && isalpha((unsigned char)*skip_spaces(*at)))
            return true;
    }
}

/* Returns 0, or -1 with err. */
static int read_chain(const char *text, struct acct_chain *chain, struct tccl_error *err)
{
    const char *at = skip_spaces(text);
    bool good = true;
    memset(chain, 0, sizeof *chain);
    chain->closed = !isalpha((unsigned char)*at);
    if (!chain->closed)
        good = read_nic(&at, chain->entry) && read_link(&at, &chain->links[0]);
    good = good && read_gpus(&at, chain);
    if (good && !chain->closed)
        good = read_nic(&at, chain->exit);
    at = skip_spaces(at);
    return good && !*at ? 0
                        : tccl_fail(err, "'%.60s' is not a chain of GPUs, at '%.20s'", text, at);
}

/* What grows while the text is read. */
struct reading {
    struct acct_ring *ring;
    const char *alone;
};

static void *grow(void *array, int count, size_t size)
{
    return count & (count - 1) ? array : realloc(array, (count ? 2 * (size_t)count : 1) * size);
}

/* The index of the chain among those known; -1 without memory. */
static int find_chain(struct acct_ring *ring, const struct acct_chain *chain)
{
    for (int i = ring->n_chains - 1; i >= 0; i--)
        if (!memcmp(&ring->chains[i], chain, sizeof *chain))
            return i;
    struct acct_chain *chains = grow(ring->chains, ring->n_chains, sizeof *chains);
    if (!chains)
        return -1;
    ring->chains = chains;
    chains[ring->n_chains] = *chain;
    return ring->n_chains++;
}

static int add_name(struct acct_ring *ring, const char *name)
{
    char **names = grow(ring->names, ring->n_nodes, sizeof *names);
    if (!names)
        return -1;
    ring->names = names;
    names[ring->n_nodes] = strdup(name);
    return names[ring->n_nodes] ? ring->n_nodes++ : -1;
}

static int add_run(struct acct_ring *ring, int chain, int node)
{
    if (ring->n_runs && ring->runs[ring->n_runs - 1].chain == chain) {
        ring->runs[ring->n_runs - 1].count++;
        return 0;
    }
    struct acct_run *runs = grow(ring->runs, ring->n_runs, sizeof *runs);
    if (!runs)
        return -1;
    ring->runs = runs;
    runs[ring->n_runs++] = (struct acct_run){.chain = chain, .first = node, .count = 1};
    return 0;
}

static int add_node(void *context, int index, const char *name, const char *text,
                    struct tccl_error *err)
{
    struct reading *reading = context;
    struct acct_ring *ring = reading->ring;
    struct acct_chain chain;
    (void)index;
    if (read_chain(text, &chain, err) != 0)
        return -1;
    int known = find_chain(ring, &chain);
    int node = known < 0 ? -1 : add_name(ring, *name ? name : reading->alone);
    if (node < 0 || add_run(ring, known, node) != 0)
        return tccl_fail(err, "no memory for a ring");
    ring->n_gpus += chain.n_gpus;
    return 0;
}

/* Takes the dots from a text that was cut, with the node that they cut; *cut: they were there. */
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
    return ring->runs[a].chain == ring->runs[b].chain && ring->runs[a].count == ring->runs[b].count;
}

/* How often the n_runs runs at first come one after the other. */
static int times_of(const struct acct_ring *ring, int first, int n_runs)
{
    int same = 0;
    while (first + n_runs + same < ring->n_runs &&
           runs_equal(ring, first + same, first + n_runs + same))
        same++;
    return 1 + same / n_runs;
}

/* The group that begins at a run: what repeats over the most runs, else the run alone. */
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
    ring->groups = calloc((size_t)ring->n_runs, sizeof *ring->groups);
    if (!ring->groups)
        return tccl_fail(err, "no memory for a ring");
    for (int run = 0; run < ring->n_runs;) {
        struct acct_group group = group_at(ring, run);
        ring->groups[ring->n_groups++] = group;
        run += group.n_runs * group.times;
    }
    return 0;
}

int acct_ring_read(const char *text, const char *alone, struct acct_ring *ring,
                   struct tccl_error *err)
{
    memset(ring, 0, sizeof *ring);
    struct reading reading = {.ring = ring, .alone = alone};
    cleanup_free char *copy = strdup(text);
    if (!copy)
        return tccl_fail(err, "no memory for a ring");
    drop_cut(copy, &ring->cut);
    if (!*copy)
        return tccl_fail(err, ring->cut ? "its text is cut within the first node" : "it is empty");
    if (tccl_ring_split(copy, add_node, &reading, err) < 0)
        return -1;
    return make_groups(ring, err);
}

void acct_ring_clear(struct acct_ring *ring)
{
    for (int i = 0; i < ring->n_nodes; i++)
        free(ring->names[i]);
    free(ring->names);
    free(ring->chains);
    free(ring->runs);
    free(ring->groups);
    memset(ring, 0, sizeof *ring);
}

char *acct_group_names(const struct acct_ring *ring, const struct acct_group *group, int place,
                       int *count)
{
    const struct acct_run *run = &ring->runs[group->first + place];
    cleanup_free const char **names = calloc((size_t)(group->times * run->count), sizeof *names);
    *count = 0;
    if (!names)
        return NULL;
    for (int i = 0; i < group->times; i++)
        for (int k = 0; k < run->count; k++)
            names[(*count)++] = ring->names[run[i * group->n_runs].first + k];
    return tccl_hosts_fold(names, (size_t)*count);
}
