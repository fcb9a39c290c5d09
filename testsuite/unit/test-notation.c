/* test-notation.c: chains and rings on one line. */
#include "base/cleanup.h"
#include "chain/chain-text.h"
#include "machines.h"

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
        chain.edges[i].kind = (uint8_t)(rand() % 3);
        if (chain.edges[i].kind == TCCL_BOUNCE)
            chain.edges[i].memory = (uint8_t)(rand() % machine->n_memories);
    }
    struct tccl_port *ports[] = {&chain.entry, &chain.exit};
    for (int i = 0; i < 2 && !chain.closed; i++) {
        ports[i]->nic = (uint8_t)(rand() % machine->n_nics);
        ports[i]->via.kind = rand() % 2 ? TCCL_GPU : TCCL_MEMORY;
        ports[i]->via.index = ports[i]->via.kind == TCCL_MEMORY
                                  ? (uint8_t)(rand() % machine->n_memories)
                                  : chain.gpus[i == 0 ? 0 : chain.n_gpus - 1];
    }
    return chain;
}

/* Written and read again, also without spaces, a chain is the same. */
static void check_round_trips(const struct tccl_machine *machine)
{
    for (int round = 0; round < 1000; round++) {
        struct tccl_chain chain = random_chain(machine), back;
        struct tccl_error err = {0};
        char text[TCCL_CHAIN_TEXT], dense[TCCL_CHAIN_TEXT] = "";

        tccl_chain_format(&chain, machine, text);
        CHECK_INT(tccl_chain_parse(text, machine, &back, &err), 0);
        CHECK(memcmp(&chain, &back, sizeof chain) == 0);
        for (char *at = text, *to = dense; *at; at++)
            if (*at != ' ')
                *to++ = *at;
        CHECK_INT(tccl_chain_parse(dense, machine, &back, &err), 0);
        CHECK(memcmp(&chain, &back, sizeof chain) == 0);
        if (err.text[0])
            fprintf(stderr, "%s: %s\n", text, err.text);
    }
}

/* The longest text there can be still fits. */
static void check_longest(void)
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
            chain.edges[i] = (struct tccl_edge){TCCL_BOUNCE, 15};
    }
    tccl_chain_format(&chain, &machine, text);
    CHECK_INT(tccl_chain_parse(text, &machine, &back, NULL), 0);
    CHECK(memcmp(&chain, &back, sizeof chain) == 0);
}

static void check_refused(const struct tccl_machine *machine, const char *text, const char *why)
{
    struct tccl_chain chain;
    struct tccl_error err = {0};

    CHECK_INT(tccl_chain_parse(text, machine, &chain, &err), -1);
    CHECK_STR(err.text, why);
}

static void check_bad(const struct tccl_machine *machine)
{
    static const char arrow[] = "an arrow such as -w>, -r> or -m0>, with a memory of this machine,";
    char why[200];

    check_refused(machine, "", "column 1: a GPU of this machine was expected, found \"the end\"");
    check_refused(machine, "0 -w> 4 -w> 0",
                  "column 7: a GPU of this machine was expected, found \"4 -w> 0\"");
    snprintf(why, sizeof why, "column 3: %s was expected, found \"-x> 1\"", arrow);
    check_refused(machine, "0 -x> 1", why);
    snprintf(why, sizeof why, "column 3: %s was expected, found \"-m4> 1 -w> 0\"", arrow);
    check_refused(machine, "0 -m4> 1 -w> 0", why);
    snprintf(why, sizeof why, "column 8: %s was expected, found \"the end\"", arrow);
    check_refused(machine, "0 -w> 1", why);
    check_refused(machine, "0 -w> 1 -w> 0 x", "column 15: the end was expected, found \"x\"");
    check_refused(machine, "0 -w> 1 -w> 1 -w> 0", "GPU 1 stands in the chain twice");
    check_refused(machine, "mlx5_9 -g> 0 -g> mlx5_0",
                  "column 1: the name of a NIC of this machine was expected, found "
                  "\"mlx5_9 -g> 0\"");
    check_refused(machine, "mlx5_0 -w> 0 -g> mlx5_0",
                  "column 8: an arrow such as -g> or -m0>, with a memory of this machine, was "
                  "expected, found \"-w> 0 -g> ml\"");
    check_refused(machine, "mlx5_0 -g> 0 -g>",
                  "column 14: an arrow such as -w>, -r> or -m0>, with a memory of this machine, "
                  "was expected, found \"-g>\"");
    check_refused(machine, "0 -m",
                  "column 3: an arrow such as -w>, -r> or -m0>, with a memory "
                  "of this machine, was expected, found \"-m\"");
}

struct pieces {
    char text[256];
    int stop_at;
};

static int collect(void *context, int index, const char *name, const char *chain,
                   struct tccl_error *err)
{
    struct pieces *pieces = context;
    size_t length = strlen(pieces->text);

    snprintf(pieces->text + length, sizeof pieces->text - length, "<%d|%s|%s>", index, name, chain);
    if (index == pieces->stop_at)
        return tccl_fail(err, "stopped") - 6;
    return 0;
}

static void check_split(const char *text, int stop_at, int result, const char *expected,
                        const char *why)
{
    struct pieces pieces = {.stop_at = stop_at};
    struct tccl_error err = {0};

    CHECK_INT(tccl_ring_split(text, collect, &pieces, &err), result);
    CHECK_STR(pieces.text, expected);
    CHECK_STR(err.text, why);
}

static void check_splits(void)
{
    char big[3000] = "n1[";

    check_split(" 0 -w> 1 -w> 0 ", -1, 1, "<0||0 -w> 1 -w> 0>", "");
    check_split("n1[a -g> 0 -g> a] n2[ x ]", -1, 2, "<0|n1|a -g> 0 -g> a><1|n2|x>", "");
    check_split("n1[a]n2[b]n3[c]", 1, -7, "<0|n1|a><1|n2|b>", "stopped");
    check_split("n1[a] n2", -1, -1, "<0|n1|a>",
                "node 2 of the ring: name[chain] was expected, found \"n2\"");
    check_split("n1[a", -1, -1, "", "node 1 of the ring: name[chain] was expected, found \"n1[a\"");
    memset(big + 3, 'x', 2000);
    strcpy(big + 2003, "]");
    check_split(big, -1, -1, "", "node 1 of the ring: the text is too long");
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
                   " \"set\": \"g1>g0 g3>m1 g1<m1 g3<m0 n0<g0 n0>m0\"}",
                   0, NULL);
    struct tccl_set a, b;
    CHECK_INT(tccl_set_parse(json_string_value(json_object_get(json, "set")), &a, NULL), 0);
    CHECK_INT(tccl_set_parse(json_string_value(json_object_get(expected, "set")), &b, NULL), 0);
    CHECK(tccl_set_equal(&a, &b));
    json_object_del(json, "set");
    json_object_del(expected, "set");
    CHECK(json_equal(json, expected));

    CHECK_INT(tccl_chain_parse("0 -r> 1 -r> 0", machine, &chain, NULL), 0);
    cleanup_json json_t *closed = tccl_chain_to_json(&chain, machine);
    CHECK(json_is_null(json_object_get(closed, "entry")));
    CHECK_INT(json_array_size(json_object_get(closed, "edges")), 2);
}

int main(void)
{
    srand((unsigned)check_seed());
    for (int i = 0; i < MACHINE_NAMES; i++) {
        struct tccl_model *model = load_machine(machine_names[i]);
        check_round_trips(tccl_model_machine(model));
        tccl_model_free(model);
    }
    struct tccl_model *amd = load_machine("amd-4gpu");
    check_bad(tccl_model_machine(amd));
    check_json(tccl_model_machine(amd));
    tccl_model_free(amd);
    check_longest();
    check_splits();
    return check_result();
}
