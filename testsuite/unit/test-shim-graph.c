/* The graph file: read back character by character, as strictly as NCCL reads it. */
#include <locale.h>

#include "check.h"
#include "nccl/shim-nccl.h"

enum { TEXT = 65536, ATTRIBUTES = 16 };

/* One tag: "<name key="value" …>"; NCCL takes exactly one space before each key, and nothing but
 * white space between tags. */
struct tag {
    char name[16], keys[ATTRIBUTES][16], values[ATTRIBUTES][16];
    int n;
    bool ends, alone; /* "</name>", "<name/>" */
};

static const char *read_word(const char *at, const char *until, char *word, size_t size)
{
    size_t length = strcspn(at, until);
    CHECK(length < size && length > 0);
    snprintf(word, size, "%.*s", (int)length, at);
    return at + length;
}

/* Returns what follows the tag, or NULL at the end. */
static const char *read_tag(const char *at, struct tag *tag)
{
    memset(tag, 0, sizeof(*tag));
    while (*at == '\n')
        at++;
    if (!*at)
        return NULL;
    CHECK_INT(*at, '<');
    tag->ends = at[1] == '/';
    at = read_word(at + 1 + tag->ends, " />", tag->name, sizeof(tag->name));
    while (*at == ' ' && tag->n < ATTRIBUTES) {
        at = read_word(at + 1, "=", tag->keys[tag->n], sizeof(tag->keys[0]));
        CHECK(at[0] == '=' && at[1] == '"');
        at = read_word(at + 2, "\"", tag->values[tag->n++], sizeof(tag->values[0])) + 1;
    }
    tag->alone = *at == '/';
    at += tag->alone;
    CHECK_INT(*at, '>');
    return at + 1;
}

static const char *value_of(const struct tag *tag, const char *key)
{
    const char *found = NULL;
    for (int i = 0; i < tag->n; i++) {
        if (strcmp(tag->keys[i], key) == 0) {
            CHECK(!found);
            found = tag->values[i];
        }
    }
    CHECK(found);
    return found ? found : "";
}

/* rank: -1 where NCCL is not told. */
static const char *check_device(const char *at, const char *name, int number, int rank)
{
    struct tag tag;
    at = read_tag(at, &tag);
    CHECK_STR(tag.name, name);
    CHECK(tag.alone && tag.n == 1 + (rank >= 0) && strncmp(value_of(&tag, "dev"), "0x", 2) == 0);
    CHECK_INT(strtol(value_of(&tag, "dev"), NULL, 0), number);
    CHECK_INT(strtol(value_of(&tag, "dev"), NULL, 16), number);
    if (rank >= 0)
        CHECK_INT(strtol(value_of(&tag, "rank"), NULL, 0), rank);
    return at;
}

static const char *check_tag(const char *at, const char *name, bool ends)
{
    struct tag tag;
    at = read_tag(at, &tag);
    CHECK_STR(tag.name, name);
    CHECK(tag.ends == ends && !tag.alone);
    return at;
}

static const char *check_channel(const char *at, const struct shim_chain *chain, int ring,
                                 const struct shim_numbers *numbers)
{
    const struct tccl_named_chain *path = &chain->rings.chains[ring];
    at = check_tag(at, "channel", false);
    if (!path->closed)
        at = check_device(at, "net", numbers->entry[ring], -1);
    for (int i = 0; i < path->n_gpus; i++) {
        int place = (int)(path->gpus[i] >> 8); /* as make_ring has them */
        at = check_device(at, "gpu", numbers->gpus[place],
                          numbers->by_rank ? numbers->ranks[place] : -1);
    }
    if (!path->closed)
        at = check_device(at, "net", numbers->exit[ring], -1);
    return check_tag(at, "channel", true);
}

/* A multiple of the rings: the next one to NCCL's own channels, or the one before them, beyond 16.
 */
static int channels_of(int own, int rings)
{
    int channels = own;
    while (channels % rings)
        channels++;
    if (channels > 16 && channels > own)
        channels -= rings;
    return channels;
}

/* "12.500" */
static double speed_of(const struct tag *tag, const char *key)
{
    int whole = 0, thousandths = 0;
    CHECK_INT(sscanf(value_of(tag, key), "%d.%3d", &whole, &thousandths), 2);
    return whole + thousandths / 1000.0;
}

static bool is_near(double a, double b)
{
    return a > b - 0.001 && a < b + 0.001;
}

static const char *check_graph(const char *at, const struct shim_chain *chain,
                               const struct shim_numbers *numbers, const struct shim_nominal *ring)
{
    static const char *const keys[] = {"id",         "pattern",     "crossnic",     "nchannels",
                                       "speedintra", "speedinter",  "latencyinter", "typeintra",
                                       "typeinter",  "samechannels"};
    struct tag tag;
    at = read_tag(at, &tag);
    CHECK_STR(tag.name, "graph");
    CHECK_INT(tag.n, COUNT(keys));
    for (size_t i = 0; i < COUNT(keys); i++)
        value_of(&tag, keys[i]);
    CHECK_STR(value_of(&tag, "id"), "0");
    CHECK_STR(value_of(&tag, "pattern"), "4");
    CHECK_STR(value_of(&tag, "crossnic"), "0");
    int channels = channels_of(ring->channels, chain->rings.n);
    double intra = ring->speed_intra * ring->channels / channels;
    double inter = ring->speed_inter * ring->channels / channels;
    CHECK_INT(atoi(value_of(&tag, "nchannels")), channels);
    CHECK(is_near(speed_of(&tag, "speedintra"), intra < 0.1 ? 0.1 : intra));
    CHECK(is_near(speed_of(&tag, "speedinter"), inter < 0.1 ? 0.1 : inter));
    CHECK_STR(value_of(&tag, "typeintra"), chain->rings.chains[0].n_gpus == 1 ? "LOC" : "PHB");
    CHECK_STR(value_of(&tag, "typeinter"), chain->rings.chains[0].closed ? "PIX" : "SYS");
    for (int i = 0; i < channels; i++)
        at = check_channel(at, chain, i % chain->rings.n, numbers);
    return check_tag(at, "graph", true);
}

/* NCCL's own, but no faster beside its ring than was measured beside the planned one, counted in
 * time of an all-reduce. */
static double tree_speed(const struct shim_chain *chain, const struct shim_baseline *own,
                         bool inter, int channels)
{
    double alone =
        (inter ? own->tree.speed_inter : own->tree.speed_intra) * own->tree.channels / channels;
    double ring = own->ring.channels * (inter ? own->ring.speed_inter : own->ring.speed_intra);
    double most = ring * chain->tree.gbps / (chain->gbps / 2) / channels;
    double wanted = chain->tree.gbps > 0 && most < alone ? most : alone;
    return wanted < 0.1 ? 0.1 : wanted;
}

/* The tree: its order, its NIC at both ends. Along each of several rings of one node: as many
 * channels as these, as fast together as NCCL's own trees. */
static const char *check_tree(const char *at, const struct shim_chain *chain, bool several,
                              const struct shim_numbers *numbers, const struct shim_baseline *own)
{
    struct tag tag;
    int channels = channels_of(several ? own->ring.channels : own->tree.channels, chain->rings.n);
    at = read_tag(at, &tag);
    CHECK_STR(tag.name, "graph");
    CHECK_STR(value_of(&tag, "id"), "1");
    CHECK_INT(atoi(value_of(&tag, "pattern")), own->tree.pattern);
    CHECK_INT(atoi(value_of(&tag, "nchannels")), channels);
    CHECK(is_near(speed_of(&tag, "speedintra"), tree_speed(chain, own, false, channels)));
    CHECK(is_near(speed_of(&tag, "speedinter"), tree_speed(chain, own, true, channels)));
    if (!several) {
        CHECK_STR(value_of(&tag, "crossnic"), "0");
        CHECK_STR(value_of(&tag, "typeintra"), "SYS");
        CHECK_STR(value_of(&tag, "typeinter"), "SYS");
    }
    for (int c = 0; c < channels; c++) {
        if (several) {
            at = check_channel(at, chain, c % chain->rings.n, numbers);
            continue;
        }
        at = check_device(check_tag(at, "channel", false), "net", numbers->tree, -1);
        for (int i = 0; i < chain->rings.chains[0].n_gpus; i++)
            at = check_device(at, "gpu", numbers->gpus[chain->tree.order[i]],
                              numbers->by_rank ? numbers->ranks[chain->tree.order[i]] : -1);
        at = check_tag(check_device(at, "net", numbers->tree, -1), "channel", true);
    }
    return check_tag(at, "graph", true);
}

static void check_chain(const struct shim_chain *chain, const struct shim_numbers *numbers)
{
    char file[TEXT] = "";
    struct shim_text text = {file, sizeof(file), 0, false};
    struct tag rest;
    const struct shim_baseline *own = shim_chain_baseline(chain, 22907);
    CHECK_OK(shim_graph(chain, numbers, own, SHIM_PHB, SHIM_SYS, &text, ERR));
    CHECK(strlen(file) == text.length && !strchr(file, '\t') && !strchr(file, ','));
    const char *at = check_tag(file, "graphs", false);
    at = check_graph(at, chain, numbers, &own->ring);
    const struct tccl_named_chain *first = &chain->rings.chains[0];
    bool several = first->n_gpus == 1 || (first->closed && chain->rings.n > 1);
    if (several || (chain->tree.gbps > 0 && !first->closed && numbers->tree >= 0))
        at = check_tree(at, chain, several, numbers, own);
    at = check_tag(at, "graphs", true);
    CHECK(read_tag(at, &rest) == NULL);
}

static struct shim_baseline some_baseline(unsigned *seed)
{
    struct shim_nominal ring = {.pattern = 4,
                                .channels = (uint8_t)(1 + rand_r(seed) % 16),
                                .speed_intra = 0.1 + rand_r(seed) % 10000 / 100.0,
                                .speed_inter = 0.1 + rand_r(seed) % 10000 / 100.0};
    struct shim_nominal tree = ring;
    tree.pattern = rand_r(seed) % 2 ? 1 : 3;
    tree.channels = (uint8_t)(1 + rand_r(seed) % ring.channels);
    tree.speed_intra = 0.1 + rand_r(seed) % 10000 / 100.0;
    return (struct shim_baseline){.first = 22100, .ring = ring, .tree = tree};
}

/* The GPUs 0, 1, … by their places in the first ring, turned around. */
static void make_ring(struct tccl_named_chain *ring, int gpus, int turn, bool closed)
{
    ring->n_gpus = (uint8_t)gpus;
    ring->closed = closed;
    for (int i = 0; i < gpus; i++)
        ring->gpus[i] = (tccl_bus)((i + turn) % gpus) << 8;
}

TEST(random)
{
    unsigned seed = (unsigned)check_seed();
    for (int round = 0; round < 3000 && check_failures < 10; round++) {
        struct shim_numbers numbers = {.by_rank = rand_r(&seed) % 2};
        struct shim_chain chain = {.rings.n = rand_r(&seed) % 2 ? 1 : 1 + rand_r(&seed) % 8};
        int gpus = 1 + rand_r(&seed) % SHIM_GPUS;
        bool closed = gpus > 1 && rand_r(&seed) % 2;
        for (int i = 0; i < chain.rings.n; i++)
            make_ring(&chain.rings.chains[i], gpus, i ? rand_r(&seed) % gpus : 0, closed);
        chain.n_baselines = 1;
        chain.baselines[0] = some_baseline(&seed);
        for (int i = 0; i < SHIM_GPUS; i++)
            numbers.gpus[i] = rand_r(&seed) % (numbers.by_rank ? 2 : 32);
        for (int i = 0; i < SHIM_GPUS; i++)
            numbers.ranks[i] = 40 + i * (1 + rand_r(&seed) % 9);
        for (int i = 0; i < TCCL_CHAIN_RINGS; i++) {
            numbers.entry[i] = rand_r(&seed) % 200;
            numbers.exit[i] = rand_r(&seed) % 200;
        }
        chain.gbps = 0.5 + rand_r(&seed) % 100;
        chain.tree.gbps = rand_r(&seed) % 3 ? 0.5 + rand_r(&seed) % 50 : 0;
        for (int i = 0; i < chain.rings.chains[0].n_gpus; i++)
            chain.tree.order[i] = (uint8_t)((i + 2) % chain.rings.chains[0].n_gpus);
        numbers.tree = rand_r(&seed) % 9 - 1;
        check_chain(&chain, &numbers);
    }
}

static int write_one(const struct shim_chain *chain, const struct shim_numbers *numbers,
                     size_t size)
{
    char file[TEXT];
    struct shim_text text = {file, size, 0, false};
    int answer = shim_graph(chain, numbers, shim_chain_baseline(chain, 22907), SHIM_PIX, SHIM_PIX,
                            &text, ERR);
    CHECK((answer < 0) == (check_err.text[0] != '\0'));
    return answer;
}

TEST(refused)
{
    unsigned seed = 1;
    struct shim_chain chain = {.rings.n = 1, .rings.chains[0].n_gpus = 2, .n_baselines = 1};
    struct shim_numbers numbers = {.gpus = {0, 1}, .entry = {0}, .exit = {0}};
    chain.baselines[0] = some_baseline(&seed);
    CHECK_INT(write_one(&chain, &numbers, TEXT), 0);
    CHECK_INT(write_one(&chain, &numbers, 100), -1);
    numbers.exit[1] = -1; /* of a second ring */
    CHECK_INT(write_one(&chain, &numbers, TEXT), 0);
    chain.rings.n = 2;
    chain.rings.chains[1] = chain.rings.chains[0];
    CHECK_INT(write_one(&chain, &numbers, TEXT), -1);
    chain.rings.n = 1;
    numbers.exit[0] = -1;
    CHECK_INT(write_one(&chain, &numbers, TEXT), -1);
    chain.rings.chains[0].closed = true;
    CHECK_INT(write_one(&chain, &numbers, TEXT), 0);
    numbers.gpus[1] = -1;
    CHECK_INT(write_one(&chain, &numbers, TEXT), -1);
    numbers.gpus[1] = 0;
    numbers.by_rank = true;
    numbers.ranks[1] = 7;
    CHECK_INT(write_one(&chain, &numbers, TEXT), 0);
    numbers.ranks[0] = -1;
    CHECK_INT(write_one(&chain, &numbers, TEXT), -1);
    numbers.by_rank = false;
    chain.n_baselines = 0; /* nothing known */
    CHECK_INT(write_one(&chain, &numbers, TEXT), -1);
}

/* Each number of a GPU and of a rank counts that the ring has, and none that it hasn't. */
TEST(numbers)
{
    unsigned seed = 2;
    for (int gpus = 2; gpus <= SHIM_GPUS; gpus++)
        for (int i = 0; i <= SHIM_GPUS; i++) {
            struct shim_chain chain = {.rings.n = 1, .n_baselines = 1};
            struct shim_numbers numbers = {.by_rank = true};
            chain.baselines[0] = some_baseline(&seed);
            make_ring(&chain.rings.chains[0], gpus, 0, false);
            for (int k = 0; k < SHIM_GPUS; k++)
                numbers.gpus[k] = numbers.ranks[k] = k;
            for (int k = i; k < SHIM_GPUS && i >= gpus; k++)
                numbers.gpus[k] = numbers.ranks[k] = -1; /* of others */
            CHECK_INT(write_one(&chain, &numbers, TEXT), 0);
            if (i >= gpus)
                continue;
            numbers.ranks[i] = -1;
            CHECK_INT(write_one(&chain, &numbers, TEXT), -1);
            numbers.ranks[i] = i;
            numbers.gpus[i] = -1;
            CHECK_INT(write_one(&chain, &numbers, TEXT), -1);
        }
}

/* Where the tree is too long, the ring is given alone. */
TEST(long)
{
    unsigned seed = 1;
    char with[TEXT], alone[TEXT];
    struct shim_text all = {with, TEXT, 0, false}, ring = {alone, TEXT, 0, false};
    struct shim_chain chain = {
        .rings.n = 1, .rings.chains[0].n_gpus = 2, .n_baselines = 1, .gbps = 9, .tree.gbps = 3};
    struct shim_numbers numbers = {.gpus = {0, 1}};
    const struct shim_baseline *own = &chain.baselines[0];
    chain.tree.order[1] = 1;
    chain.baselines[0] = some_baseline(&seed);
    CHECK_OK(shim_graph(&chain, &numbers, own, SHIM_PIX, SHIM_PIX, &all, ERR));
    numbers.tree = -1;
    CHECK_OK(shim_graph(&chain, &numbers, own, SHIM_PIX, SHIM_PIX, &ring, ERR));
    CHECK(all.length > ring.length + 50);
    numbers.tree = 0;
    all = (struct shim_text){with, all.length, 0, false}; /* one byte too few */
    CHECK_OK(shim_graph(&chain, &numbers, own, SHIM_PIX, SHIM_PIX, &all, ERR));
    CHECK_STR(with, alone);
}

/* sizeof(struct ncclXml) of these versions. */
TEST(memory)
{
    CHECK_INT(shim_graph_memory(22809), 4096 * 10008);
    CHECK_INT(shim_graph_memory(22907), 65536L * 14104);
}

TEST(channels)
{
    CHECK_INT(shim_graph_channels(1, 1), 1);
    CHECK_INT(shim_graph_channels(24, 1), 24);
    CHECK_INT(shim_graph_channels(1, 8), 8);
    CHECK_INT(shim_graph_channels(4, 2), 4);
    CHECK_INT(shim_graph_channels(4, 3), 6);
    CHECK_INT(shim_graph_channels(16, 7), 14); /* older ones have room for no more than 16 */
    CHECK_INT(shim_graph_channels(24, 7), 21);
}

SETUP
{
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        printf("only the locale C is here\n");
}
