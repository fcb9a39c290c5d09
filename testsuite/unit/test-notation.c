/* test-notation.c: chains and rings on one line. */
#include "chain/chain.h"
#include "machines.h"

static struct tccl_port random_port(const struct tccl_machine *machine, int gpu)
{
    struct tccl_port port = {(uint8_t)(rand() % machine->n_nics), {TCCL_GPU, (uint8_t)gpu}};
    if (rand() % 2)
        port.via = (struct tccl_device){TCCL_MEMORY, (uint8_t)(rand() % machine->n_memories)};
    return port;
}

/* A random chain that the machine allows (all P2P and GPUDirect). */
static struct tccl_chain random_chain(const struct tccl_machine *machine)
{
    struct tccl_chain chain = {.closed = rand() % 2};
    uint32_t seen = 0;
    chain.n_gpus = (uint8_t)((chain.closed ? 2 : 1) + rand() % (machine->n_gpus - 1));
    for (int i = 0; i < chain.n_gpus; i++) {
        int gpu;
        do
            gpu = rand() % machine->n_gpus;
        while (seen & 1u << gpu);
        seen |= 1u << gpu;
        chain.gpus[i] = (uint8_t)gpu;
    }
    for (int i = 0; i < tccl_chain_edges(&chain); i++) {
        struct tccl_edge *edge = &chain.edges[i];
        edge->kind = (uint8_t)(rand() % (machine->n_nics ? 4 : 3));
        if (edge->kind == TCCL_BOUNCE)
            edge->memory = (uint8_t)(rand() % machine->n_memories);
        if (edge->kind == TCCL_BY_NICS) {
            edge->from = random_port(machine, chain.gpus[i]);
            edge->to = random_port(machine, chain.gpus[(i + 1) % chain.n_gpus]);
        }
    }
    if (!chain.closed) {
        chain.entry = random_port(machine, chain.gpus[0]);
        chain.exit = random_port(machine, chain.gpus[chain.n_gpus - 1]);
    }
    return chain;
}

/* Written and read again, also without spaces, a chain is the same. */
static void check_round_trips(const struct tccl_machine *machine)
{
    for (int round = 0; round < 1000; round++) {
        struct tccl_chain chain = random_chain(machine), back;
        char text[TCCL_CHAIN_TEXT], dense[TCCL_CHAIN_TEXT] = "";
        tccl_chain_format(&chain, machine, text);
        CHECK_OK(tccl_chain_parse(text, machine, &back, ERR));
        CHECK(memcmp(&chain, &back, sizeof(chain)) == 0);
        for (char *at = text, *to = dense; *at; at++)
            if (*at != ' ')
                *to++ = *at;
        CHECK_OK(tccl_chain_parse(dense, machine, &back, ERR));
        CHECK(memcmp(&chain, &back, sizeof(chain)) == 0);
        if (check_err.text[0])
            fprintf(stderr, "%s: %s\n", text, check_err.text);
    }
}

/* The longest text there can be still fits. */
TEST(longest)
{
    struct tccl_machine machine = {.n_gpus = 16, .n_memories = 16, .n_nics = 16};
    struct tccl_chain chain = {
        .n_gpus = 16, .entry = {15, {TCCL_MEMORY, 15}}, .exit = {15, {TCCL_MEMORY, 15}}};
    struct tccl_chain back;
    char text[TCCL_CHAIN_TEXT];
    for (int i = 0; i < 16; i++) {
        snprintf(machine.nics[i].name, TCCL_NAME, "%c%061d", 'a' + i, 0);
        chain.gpus[i] = (uint8_t)i;
        if (i < 15)
            chain.edges[i] = (struct tccl_edge){.kind = TCCL_BY_NICS,
                                                .from = {15, {TCCL_MEMORY, 15}},
                                                .to = {15, {TCCL_MEMORY, 15}}};
    }
    tccl_chain_format(&chain, &machine, text);
    CHECK_INT(tccl_chain_parse(text, &machine, &back, NULL), 0);
    CHECK(memcmp(&chain, &back, sizeof(chain)) == 0);
}

static void check_refused(const struct tccl_machine *machine, const char *text, const char *why)
{
    struct tccl_chain chain;
    CHECK_FAILS(tccl_chain_parse(text, machine, &chain, ERR), why);
}

static void check_bad(const struct tccl_machine *machine)
{
    static const char arrow[] = "an arrow such as -w>, -r> or -m0> was expected, found";
    check_refused(machine, "", "column 1: a GPU was expected, found the end");
    check_refused(machine, "0 -w> 4 -w> 0", "GPU 4 does not exist: the machine has 4");
    check_refused(machine, "0 -w> 16 -w> 0", "GPU 16 is out of range: 0 to 15");
    check_refused(machine, "0 -w> 1000 -w> 0",
                  "column 7: a GPU was expected, found \"1000 -w> 0\"");
    check_refused(machine, "0 -x> 1", check_printf("column 3: %s \"-x> 1\"", arrow));
    check_refused(machine, "0 -m4> 1 -w> 0",
                  "g0>m4: no such transfer: the machine has 4 GPUs, 4 memories, 1 NICs");
    check_refused(machine, "0 -m16> 1 -w> 0", "memory 16 is out of range: 0 to 15");
    check_refused(machine, "0 -m1000> 1 -w> 0",
                  check_printf("column 3: %s \"-m1000> 1 -w\"", arrow));
    check_refused(machine, "0 -w> 1", check_printf("column 8: %s the end", arrow));
    check_refused(machine, "0 -w> 1 -w> 0 x", "column 15: the end was expected, found \"x\"");
    check_refused(machine, "0 -w> 1 -w> 1 -w> 0", "GPU 1 is in the chain twice");
    check_refused(machine, "0 -w> 0", "a ring needs at least two GPUs");
    check_refused(machine, "mlx5_9 -g> 0 -g> mlx5_0", "this machine has no NIC mlx5_9");
    check_refused(machine, "mlx5_0 -g> 0000:ff:00.0 -g> mlx5_0",
                  "this machine has no GPU 0000:ff:00.0");
    check_refused(machine, "0 -w> 0000:41:00.0 -w> 0",
                  "column 7: a number, as before, was expected, found \"0000:41:00.0\"");
    check_refused(machine, "0000:41:00.0 -w> 0 -w> 0000:41:00.0",
                  "column 18: a bus id, as before, was expected, found \"0 -w> 0000:4\"");
    check_refused(machine, "0 -w> 1 -g> mlx5_0", "column 13: a GPU was expected, found \"mlx5_0\"");
    check_refused(machine, "mlx5_0 -w> 0 -g> mlx5_0",
                  "column 8: an arrow such as -g> or -m0> was expected, found \"-w> 0 -g> ml\"");
    check_refused(machine, "mlx5_0 -g> 0 -w> mlx5_0",
                  "column 14: an arrow such as -g> or -m0> was expected, found \"-w> mlx5_0\"");
    check_refused(machine, "mlx5_0 -g> 0 -g>", check_printf("column 14: %s \"-g>\"", arrow));
    check_refused(machine, "0 -m", check_printf("column 3: %s \"-m\"", arrow));
}

/* Names: chains of machines that nobody has described. */

static bool same_named_port(const struct tccl_named_port *a, const struct tccl_named_port *b)
{
    return strcmp(a->nic, b->nic) == 0 && a->gpudirect == b->gpudirect && a->memory == b->memory;
}

static bool same_named(const struct tccl_named_chain *a, const struct tccl_named_chain *b)
{
    if (a->closed != b->closed || a->numbers != b->numbers || a->n_gpus != b->n_gpus)
        return false;
    for (int i = 0; i < a->n_gpus; i++)
        if (a->gpus[i] != b->gpus[i])
            return false;
    for (int i = 0; i < tccl_named_edges(a); i++)
        if (a->edges[i].kind != b->edges[i].kind || a->edges[i].memory != b->edges[i].memory ||
            a->edges[i].to_memory != b->edges[i].to_memory ||
            a->edges[i].from_nic != b->edges[i].from_nic ||
            a->edges[i].to_nic != b->edges[i].to_nic)
            return false;
    return a->closed ||
           (same_named_port(&a->entry, &b->entry) && same_named_port(&a->exit, &b->exit));
}

static int16_t random_number(void)
{
    return (int16_t)(rand() % (rand() % 4 ? 16 : 1000));
}

static void random_nic(struct tccl_named_port *port)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEF", more[] = "0123456789_.abcdef";
    int length = rand() % (TCCL_CHAIN_NIC - 1);
    port->nic[0] = letters[(size_t)rand() % (sizeof(letters) - 1)];
    for (int i = 1; i <= length; i++)
        port->nic[i] = more[(size_t)rand() % (sizeof(more) - 1)];
    port->gpudirect = rand() % 2;
    port->memory = port->gpudirect ? -1 : random_number();
}

/* 1 to 16 GPUs, all kinds of edges and ports, numbers or bus ids of any domain. */
static struct tccl_named_chain random_named(void)
{
    struct tccl_named_chain chain = {.closed = rand() % 2, .numbers = rand() % 2};
    int n = (chain.closed ? 2 : 1) + rand() % (TCCL_CHAIN_GPUS - chain.closed);
    while (chain.n_gpus < n) {
        tccl_bus gpu = chain.numbers ? (tccl_bus)(rand() % 1000)
                       : rand() % 2  ? (tccl_bus)(rand() & 0xffff)
                                     : (tccl_bus)rand() << 17 ^ (tccl_bus)rand();
        bool there = false;
        gpu &= (UINT64_C(1) << 48) - 1;
        for (int i = 0; i < chain.n_gpus; i++)
            there = there || chain.gpus[i] == gpu;
        if (!there)
            chain.gpus[chain.n_gpus++] = gpu;
    }
    for (int i = 0; i < tccl_named_edges(&chain); i++) {
        struct tccl_named_edge *edge = &chain.edges[i];
        edge->kind = (uint8_t)(rand() % 4);
        edge->memory = edge->kind == TCCL_BOUNCE ? random_number() : -1;
        if (edge->kind == TCCL_BY_NICS)
            *edge = (struct tccl_named_edge){TCCL_BY_NICS, rand() % 2 ? random_number() : -1,
                                             rand() % 2 ? random_number() : -1, random_number(),
                                             random_number()};
    }
    if (!chain.closed) {
        random_nic(&chain.entry);
        random_nic(&chain.exit);
    }
    return chain;
}

/* Every chain survives printing and parsing; a text that was changed is refused, or says just what
 * is read from it: printed again, it is the same but for blanks, leading zeros and capitals. */
static void check_mutated(const char *text)
{
    static const char bytes[] = "0123456789abcdefmnwrg->:. |[]x\t\1\377";
    char changed[TCCL_CHAIN_TEXT + 2], printed[TCCL_CHAIN_TEXT];
    size_t length = strlen(text), at = (size_t)rand() % length;
    struct tccl_named_chain chain, again;
    strcpy(changed, text);
    if (rand() % 3 == 0)
        memmove(changed + at, changed + at + 1, length - at);
    else if (rand() % 2)
        changed[at] = bytes[(size_t)rand() % (sizeof(bytes) - 1)];
    else
        memmove(changed + at + 1, changed + at, length - at + 1);
    if (tccl_named_parse(changed, &chain, ERR) != 0) {
        CHECK(check_err.text[0]);
        return;
    }
    tccl_named_format(&chain, printed);
    CHECK_INT(tccl_named_parse(printed, &again, NULL), 0);
    CHECK(same_named(&chain, &again));
    CHECK_INT(tccl_named_parse(text, &again, NULL), 0);
    if (!same_named(&chain, &again)) /* then it is to be seen in the printed texts */
        CHECK(strcmp(printed, text) != 0);
    else
        CHECK_STR(printed, text);
}

TEST(named)
{
    char text[TCCL_CHAIN_TEXT];
    for (int round = 0; round < 5000 && !check_failures; round++) {
        struct tccl_named_chain chain = random_named(), back;
        tccl_named_format(&chain, text);
        CHECK_INT(tccl_named_parse(text, &back, NULL), 0);
        CHECK(same_named(&chain, &back));
        for (int i = 0; i < 20; i++)
            check_mutated(text);
    }
}

/* Arrows stand in the order of the text. */
TEST(arrows)
{
    struct tccl_named_chain chain;
    const struct tccl_text_arrow wanted[] = {{'m', 3}, {'w', -1}, {'m', 0}, {'g', -1}};
    CHECK_INT(tccl_named_parse("a -m3> 5 -w> 6 -m0> 7 -g> b", &chain, NULL), 0);
    CHECK_INT(tccl_named_arrows(&chain), 4);
    for (int i = 0; i < 4; i++) {
        struct tccl_text_arrow arrow = tccl_named_arrow(&chain, i);
        CHECK_INT(arrow.kind, wanted[i].kind);
        CHECK_INT(arrow.memory, wanted[i].memory);
    }
    CHECK_INT(tccl_named_parse("5 -r> 6 -m1> 5", &chain, NULL), 0);
    CHECK_INT(tccl_named_arrows(&chain), 2);
    CHECK(tccl_named_arrow(&chain, 0).kind == 'r' && tccl_named_arrow(&chain, 0).memory == -1);
    CHECK(tccl_named_arrow(&chain, 1).kind == 'm' && tccl_named_arrow(&chain, 1).memory == 1);
}

/* Rings */

enum { NODES = 200, RING_TEXT = 3 * NODES * (TCCL_CHAIN_TEXT + 16) };

/* Of many nodes, each with one chain or several. */
TEST(rings)
{
    static struct tccl_named_chain chains[NODES][3];
    static char text[RING_TEXT];
    int counts[NODES];
    char *at = text;
    for (int node = 0; node < NODES; node++) {
        counts[node] = 1 + (rand() % 3) * (rand() % 2);
        at += sprintf(at, "%snode-%d[", node && rand() % 2 ? " " : "", node);
        for (int i = 0; i < counts[node]; i++) {
            chains[node][i] = random_named();
            at += sprintf(at, "%s", i ? rand() % 2 ? " | " : "|" : "");
            tccl_named_format(&chains[node][i], at);
            at += strlen(at);
        }
        at += sprintf(at, "]");
    }
    struct tccl_ring_reader ring = {.text = text};
    struct tccl_named_chain chain;
    char name[32];
    for (int node = 0; node < NODES; node++) {
        for (int i = 0; i < counts[node]; i++) {
            snprintf(name, sizeof(name), "node-%d", node);
            CHECK_INT(tccl_ring_next(&ring, &chain, ERR), 1);
            CHECK(ring.node == node && ring.chain == i && same_named(&chain, &chains[node][i]));
            CHECK_STR(ring.name, name);
        }
    }
    CHECK_OK(tccl_ring_next(&ring, &chain, ERR));
}

/* Reads all of a ring; *read: what was there before the end, as <node|chain|name|text>. */
static void check_read(const char *text, int result, const char *expected, const char *why)
{
    struct tccl_ring_reader ring = {.text = text};
    struct tccl_named_chain chain;
    char read[2 * TCCL_CHAIN_TEXT + 512] = "", printed[TCCL_CHAIN_TEXT];
    int more;
    while ((more = tccl_ring_next(&ring, &chain, ERR)) > 0) {
        size_t length = strlen(read);
        tccl_named_format(&chain, printed);
        CHECK(length < 256);
        sprintf(read + length % 256, "<%d|%d|%s|%s>", ring.node, ring.chain, ring.name, printed);
    }
    CHECK_INT(more, result);
    CHECK_STR(read, expected);
    CHECK_STR(check_err.text, why);
}

TEST(reads)
{
    char big[600];
    memset(big, 'x', 300);
    strcpy(big + 300, "[0-w>1-w>0]");
    check_read(" 0 -w> 1 -w> 0 ", 0, "<0|0||0 -w> 1 -w> 0>", "");
    check_read("0-w>1-w>0|1-w>0-w>1", 0, "<0|0||0 -w> 1 -w> 0><0|1||1 -w> 0 -w> 1>", "");
    check_read("n1[a -g> 0 -g> a] n2[ 0 -w>1 -w> 0 ]", 0,
               "<0|0|n1|a -g> 0 -g> a><1|0|n2|0 -w> 1 -w> 0>", "");
    check_read("n1[a-g>0-g>a | b-g>0-g>b]n2[a-g>1-g>a]", 0,
               "<0|0|n1|a -g> 0 -g> a><0|1|n1|b -g> 0 -g> b><1|0|n2|a -g> 1 -g> a>", "");
    check_read("n1[a-g>0-g>a] n2", -1, "<0|0|n1|a -g> 0 -g> a>",
               "node 2 of the ring: name[chain] was expected, found \"n2\"");
    check_read("n1[0-w>1-w>0", -1, "",
               "node 1 of the ring: column 10: \"]\" was expected, found the end");
    check_read("n1[]", -1, "", "node 1 of the ring: column 1: a GPU was expected, found \"]\"");
    check_read("n1[0-w>1-w>0|]", -1, "<0|0|n1|0 -w> 1 -w> 0>",
               "node 1 of the ring: column 1: a GPU was expected, found \"]\"");
    check_read("n1[0-w>1-w>0]|0-w>1-w>0", -1, "<0|0|n1|0 -w> 1 -w> 0>",
               "node 2 of the ring: name[chain] was expected, found \"|0-w>1-w>0\"");
    check_read("[0-w>1-w>0]", -1, "",
               "node 1 of the ring: name[chain] was expected, found \"[0-w>1-w>0]\"");
    check_read("0-w>1-w>0]", -1, "", "column 10: the end was expected, found \"]\"");
    check_read(big, -1, "", "node 1 of the ring: its name is too long");
}

#define REFERENCE " of the ring: = and a node before it, with its chains, was expected, found \""

/* "n2[= n1]" has the chains that are written at n1, all of them; only a node before it that has
 * them written out can be named. */
TEST(references)
{
    check_read("n1[a-g>0-g>a]n2[b-g>1-g>b]n3[= n1] n4 [ =n2 ] n5[=n1]", 0,
               "<0|0|n1|a -g> 0 -g> a><1|0|n2|b -g> 1 -g> b><2|0|n3|a -g> 0 -g> a>"
               "<3|0|n4|b -g> 1 -g> b><4|0|n5|a -g> 0 -g> a>",
               "");
    check_read("n1 [ a-g>0-g>a | b-g>0-g>b ] n2[= n1]n3[a-g>1-g>a]", 0,
               "<0|0|n1|a -g> 0 -g> a><0|1|n1|b -g> 0 -g> b><1|0|n2|a -g> 0 -g> a>"
               "<1|1|n2|b -g> 0 -g> b><2|0|n3|a -g> 1 -g> a>",
               "");
    check_read("n1[= n1]", -1, "", "node 1" REFERENCE "= n1]\"");
    check_read("n1[= n2] n2[a-g>0-g>a]", -1, "", "node 1" REFERENCE "= n2] n2[a-g>0-g>a]\"");
    check_read("n1[a-g>0-g>a]n2[= n1]n3[= n2]", -1, "<0|0|n1|a -g> 0 -g> a><1|0|n2|a -g> 0 -g> a>",
               "node 3" REFERENCE "= n2]\"");
    check_read("n1[a-g>0-g>a]n2[= n]", -1, "<0|0|n1|a -g> 0 -g> a>", "node 2" REFERENCE "= n]\"");
    check_read("n1[a-g>0-g>a]n2[=", -1, "<0|0|n1|a -g> 0 -g> a>", "node 2" REFERENCE "=\"");
    check_read("n1[a-g>0-g>a]n2[= ]", -1, "<0|0|n1|a -g> 0 -g> a>", "node 2" REFERENCE "= ]\"");
    check_read("n1[a-g>0-g>a]n2[a-g>0-g>a | = n1]", -1,
               "<0|0|n1|a -g> 0 -g> a><1|0|n2|a -g> 0 -g> a>",
               "node 2 of the ring: column 1: a GPU was expected, found \"= n1]\"");
}

/* Ring sets */

/* A chain over the GPUs of another one, in another order, with edges and NICs of its own. */
static struct tccl_named_chain other_chain(const struct tccl_named_chain *first)
{
    struct tccl_named_chain chain;
    do
        chain = random_named();
    while (chain.n_gpus < first->n_gpus || chain.closed != first->closed);
    chain.n_gpus = first->n_gpus;
    chain.numbers = first->numbers;
    memcpy(chain.gpus, first->gpus, sizeof(chain.gpus));
    for (int i = first->n_gpus - 1; i > 0; i--) {
        int k = rand() % (i + 1);
        tccl_bus gpu = chain.gpus[i];
        chain.gpus[i] = chain.gpus[k];
        chain.gpus[k] = gpu;
    }
    return chain;
}

static struct tccl_named_rings random_rings(void)
{
    struct tccl_named_rings rings = {.n = 1 + rand() % TCCL_CHAIN_RINGS};
    rings.chains[0] = random_named();
    for (int i = 1; i < rings.n; i++)
        rings.chains[i] = other_chain(&rings.chains[0]);
    return rings;
}

/* Every set survives printing and parsing, and a place in the text of a ring has the same chains.
 */
TEST(sets)
{
    for (int round = 0; round < 300 && !check_failures; round++) {
        struct tccl_named_rings rings = random_rings(), back;
        struct tccl_named_chain chain;
        char text[TCCL_RINGS_TEXT], again[TCCL_RINGS_TEXT];
        tccl_named_rings_format(&rings, text);
        struct tccl_ring_reader ring = {.text = text};
        CHECK_OK(tccl_named_rings_parse(text, &back, ERR));
        CHECK_INT(back.n, rings.n);
        for (int i = 0; i < rings.n; i++) {
            CHECK(same_named(&rings.chains[i], &back.chains[i]));
            CHECK_INT(tccl_ring_next(&ring, &chain, NULL), 1);
            CHECK(same_named(&rings.chains[i], &chain));
        }
        tccl_named_rings_format(&back, again);
        CHECK_STR(again, text);
    }
}

static void check_refused_set(const char *text, const char *why)
{
    struct tccl_named_rings rings;
    CHECK_FAILS(tccl_named_rings_parse(text, &rings, ERR), why);
}

TEST(bad_sets)
{
    char many[200] = "0-w>1-w>0";
    check_refused_set("", "column 1: a GPU was expected, found the end");
    check_refused_set("0-w>1-w>0|", "ring 2: column 1: a GPU was expected, found "
                                    "the end");
    check_refused_set("0-w>1-w>0]", "column 10: the end was expected, found \"]\"");
    check_refused_set("0-w>1-w>0|a-g>0-w>1-g>a", "ring 2 is open, the first one isn't");
    check_refused_set("0-w>1-w>0 | 0-w>2-w>0", "ring 2 has other GPUs than the first one");
    check_refused_set("0-w>1-w>0 | 1-w>0-w>1 | 0-w>1-w>2-w>0",
                      "ring 3 has other GPUs than the first one");
    check_refused_set("a-g>0-g>a | a-g>0000:00:00.0-g>a",
                      "ring 2 has other GPUs than the first one");
    for (int i = 0; i < 8; i++)
        strcat(many, "|0-w>1-w>0");
    check_refused_set(many, "at most 8 rings can run at once");
}

static void check_json(const struct tccl_machine *machine)
{
    struct tccl_chain chain;
    CHECK_INT(tccl_chain_parse("mlx5_0 -m0> 3 -m1> 1 -w> 0 -g> mlx5_0", machine, &chain, NULL), 0);
    cleanup_json json_t *json = tccl_chain_to_json(&chain, machine);
    cleanup_json json_t *expected =
        json_loads("{\"gpus\": [3, 1, 0],"
                   " \"busids\": [\"0000:61:00.0\", \"0000:41:00.0\", \"0000:01:00.0\"],"
                   " \"edges\": [{\"kind\": \"bounce\", \"from\": 3, \"to\": 1, \"memory\": 1},"
                   "  {\"kind\": \"p2p-write\", \"from\": 1, \"to\": 0}],"
                   " \"entry\": {\"nic\": \"mlx5_0\", \"via\": \"memory\", \"memory\": 0},"
                   " \"exit\": {\"nic\": \"mlx5_0\", \"via\": \"gpu\", \"gpu\": 0},"
                   " \"chain\": \"mlx5_0 -m0> 3 -m1> 1 -w> 0 -g> mlx5_0\","
                   " \"load\": \"g1>g0 g3>m1 g1<m1 g3<m0 n0<g0 n0>m0\"}",
                   0, NULL);
    struct tccl_set a = parse_set(json_string_value(json_object_get(json, "load")));
    struct tccl_set b = parse_set(json_string_value(json_object_get(expected, "load")));
    CHECK(tccl_set_equal(&a, &b));
    json_object_del(json, "load");
    json_object_del(expected, "load");
    CHECK(json_equal(json, expected));
    CHECK_INT(tccl_chain_parse("0 -r> 1 -r> 0", machine, &chain, NULL), 0);
    cleanup_json json_t *closed = tccl_chain_to_json(&chain, machine);
    CHECK(json_is_null(json_object_get(closed, "entry")));
    CHECK_INT(json_array_size(json_object_get(closed, "edges")), 2);
}

TEST(notation)
{
    for (int i = 0; i < MACHINE_NAMES; i++) {
        /* Chains by chance want all ways between devices. */
        struct tccl_machine machine = *machine_of(machine_names[i]);
        memset(machine.p2p, true, sizeof(machine.p2p));
        memset(machine.gpudirect, true, sizeof(machine.gpudirect));
        check_round_trips(&machine);
        /* By bus ids a chain of a machine is the same. */
        for (int round = 0; round < 300; round++) {
            struct tccl_chain chain = random_chain(&machine), back;
            struct tccl_named_chain named;
            char text[TCCL_CHAIN_TEXT];
            tccl_chain_name(&chain, &machine, false, &named);
            tccl_named_format(&named, text);
            CHECK(strstr(text, machine.gpus[chain.gpus[0]].busid));
            CHECK_INT(tccl_chain_parse(text, &machine, &back, NULL), 0);
            CHECK(tccl_chain_equal(&chain, &back) && memcmp(&chain, &back, sizeof(chain)) == 0);
        }
    }
    const struct tccl_model *amd = load_machine("amd-4gpu");
    check_bad(tccl_model_machine(amd));
    check_json(tccl_model_machine(amd));
}
