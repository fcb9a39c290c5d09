/* What the user has set, and what processes are given for a plan. */
#include "check.h"
#include "nccl/shim-nccl.h"

enum { VERSION = 22907 };

/* The user's own ~/.nccl.conf of whoever runs the tests is left out of sight. */
static const char *conf;

/* ---- What the user has set ---- */

TEST(user)
{
    static const struct {
        const char *name, *value;
        uint32_t bits;
    } cases[] = {
        {"NCCL_GRAPH_FILE", "x", SHIM_USER_FILES},
        {"NCCL_GRAPH_FILE", "", SHIM_USER_FILES},
        {"NCCL_TOPO_FILE", "/x", SHIM_USER_FILES},
        {"NCCL_ENV_PLUGIN", "y", SHIM_USER_FILES},
        {"NCCL_ENV_PLUGIN", "none", 0},
        {"NCCL_ENV_PLUGIN", "/usr/lib/tccl/libtccl-nccl.so", 0},
        {"NCCL_ENV_PLUGIN", "libtccl-nccl.so.x", SHIM_USER_FILES},
        {"NCCL_P2P_DISABLE", "1", SHIM_USER_P2P},
        {"NCCL_P2P_DISABLE", "0", 0},
        {"NCCL_P2P_DISABLE", "no", 0},
        {"NCCL_P2P_LEVEL", "SYS", SHIM_USER_P2P},
        {"NCCL_P2P_LEVEL", "0", SHIM_USER_P2P},
        {"NCCL_P2P_LEVEL", "PXB", SHIM_USER_PXB},
        {"NCCL_P2P_LEVEL", "2", SHIM_USER_PXB},
        {"NCCL_P2P_READ_ENABLE", "1", SHIM_USER_KIND | SHIM_USER_READ},
        {"NCCL_P2P_READ_ENABLE", "0", SHIM_USER_KIND},
        {"NCCL_P2P_READ_ENABLE", "", SHIM_USER_KIND},
        {"NCCL_P2P_USE_CUDA_MEMCPY", "1", SHIM_USER_P2P},
        {"NCCL_SHM_DISABLE", "0x1", SHIM_USER_SHM},
        {"NCCL_SHM_LOCALITY", "1", SHIM_USER_SHM},
        {"NCCL_SHM_LOCALITY", "2", 0},
        {"NCCL_SHM_LOCALITY", "", 0},
        {"NCCL_CUMEM_HOST_ENABLE", "1", SHIM_USER_HOST},
        {"NCCL_CUMEM_HOST_ENABLE", "0", SHIM_USER_NO_HOST},
        {"NCCL_CUMEM_ENABLE", "0", SHIM_USER_NO_HOST},
        {"NCCL_CUMEM_ENABLE", "1", 0},
        {"NCCL_NET", "Socket", SHIM_USER_NET},
        {"NCCL_NET", "ib", 0},
        {"NCCL_NET_PLUGIN", "aws", SHIM_USER_NET},
        {"NCCL_NET_PLUGIN", "none", 0},
        {"NCCL_IB_DISABLE", "1", SHIM_USER_NET},
        {"NCCL_NET_MERGE_LEVEL", "LOC", SHIM_USER_NET},
        {"NCCL_NET_DISABLE_INTRA", "0", SHIM_USER_NET},
        {"NCCL_NET_DISABLE_INTRA", "1", SHIM_USER_NO_NET_INTRA},
        {"NCCL_NET_GDR_LEVEL", "SYS", SHIM_USER_GDR},
        {"NCCL_NET_GDR_READ", "0", SHIM_USER_GDR},
        {"NCCL_COLLNET_ENABLE", "1", SHIM_USER_SHARP},
        {"NCCL_COLLNET_ENABLE", "0", 0},
        {"NCCL_ALGO", "Tree", SHIM_USER_ALGO},
        {"NCCL_ALGO", "Ring", 0},
        {"NCCL_ALGO", "tree,RING", 0},
        {"NCCL_ALGO", "^Tree", 0},
        {"NCCL_ALGO", "^Tree,Ring", SHIM_USER_ALGO},
        {"NCCL_ALGO", "allreduce:tree;broadcast:ring", SHIM_USER_ALGO},
        {"NCCL_ALGO", "allreduce:tree,ring;broadcast:ring", 0},
        {"NCCL_ALGO", "ringer", SHIM_USER_ALGO},
        {"NCCL_CROSS_NIC", "1", SHIM_USER_ALGO},
        {"NCCL_CROSS_NIC", "0", 0},
        {"NCCL_DEBUG", "INFO", 0},
        {"NCCL_IB_HCA", "mlx5_0", 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char words[200] = "", line[100];
        struct shim_text text = {words, sizeof(words), 0, false};
        setenv(cases[i].name, cases[i].value, 1);
        if (shim_settings_user() != cases[i].bits) {
            fprintf(stderr, "%s=%s\n", cases[i].name, cases[i].value);
            CHECK_INT(shim_settings_user(), cases[i].bits);
        }
        snprintf(line, sizeof(line), "%s=%s", cases[i].name, cases[i].value);
        shim_settings_user_words(cases[i].bits, &text);
        CHECK(cases[i].bits ? strstr(words, line) != NULL : !words[0]);
        unsetenv(cases[i].name);
        /* The same from a file. */
        strcat(line, "\n");
        check_write_file(conf, line);
        CHECK_INT(shim_settings_user(), cases[i].bits);
        check_write_file(conf, "");
    }
}

TEST(conf)
{
    check_write_file(conf, "# NCCL_P2P_DISABLE=1\nX=1\nNCCL_P2P_DISABLE=1\nNCCL_P2P_DISABLE=0\n"
                           " NCCL_SHM_DISABLE=1\nNCCL_SHM_DISABLE\nNCCL_NET=Socket");
    CHECK_INT(shim_settings_user(), SHIM_USER_P2P | SHIM_USER_NET);
    setenv("NCCL_P2P_DISABLE", "0", 1); /* counts more than the file */
    CHECK_INT(shim_settings_user(), SHIM_USER_NET);
    unsetenv("NCCL_P2P_DISABLE");
    CHECK_INT(truncate(conf, 1 << 20), 0);
    char words[200] = "";
    struct shim_text text = {words, sizeof(words), 0, false};
    CHECK_INT(shim_settings_user(), SHIM_USER_FILES);
    shim_settings_user_words(SHIM_USER_FILES, &text);
    CHECK_STR(words, "an nccl.conf that is too long to be read");
    CHECK_INT(unlink(conf), 0);
    CHECK_INT(shim_settings_user(), 0);
}

/* From 2.30 on NCCL goes by HOME. */
TEST(home)
{
    check_write_file(check_at(".nccl.conf"), "NCCL_P2P_DISABLE=1\n");
    cleanup_free char *before = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", check_folder(), 1);
    CHECK_INT(shim_settings_user(), 0); /* there is NCCL_CONF_FILE */
    unsetenv("NCCL_CONF_FILE");
    CHECK(shim_settings_user() & SHIM_USER_P2P);
    setenv("NCCL_CONF_FILE", conf, 1);
    if (before)
        setenv("HOME", before, 1);
}

/* ---- Do settings suit a chain? ---- */

/* Two GPUs below one switch on node 0, one GPU on node 1; a NIC at node 0's CPU. */
static const struct shim_pci machine = {
    .n = 4,
    .net_intra = true,
    .cautious = true,
    .devices = {{.bus = 0x100, .node = 0, .depth = 1, .above = {0x8000}},
                {.bus = 0x200, .node = 0, .depth = 1, .above = {0x8000}},
                {.bus = 0x300, .node = 1},
                {.bus = 0x400, .node = 0}},
};

static struct shim_plan ring(void)
{
    return (struct shim_plan){
        .chain.rings.n = 1,
        .chain.rings.chains[0] = {
            .n_gpus = 3,
            .closed = true,
            .gpus = {0x100, 0x200, 0x300},
            .edges = {{TCCL_P2P_WRITE, -1}, {TCCL_BOUNCE, 1}, {TCCL_BOUNCE, 0}}}};
}

static struct shim_plan open_chain(bool entry, bool exit)
{
    struct shim_plan plan = ring();
    plan.chain.rings.chains[0].closed = false;
    plan.chain.entry[0] = plan.chain.exit[0] = 0x400;
    plan.chain.rings.chains[0].entry =
        (struct tccl_named_port){.gpudirect = entry, .memory = (int16_t)(entry ? -1 : 0)};
    plan.chain.rings.chains[0].exit =
        (struct tccl_named_port){.gpudirect = exit, .memory = (int16_t)(exit ? -1 : 1)};
    return plan;
}

enum { ASIDE = -1, SUITS, NO_NET };
static bool step_reads;

/* Do settings leave the chain to the shim, and can it be expressed? */
static int suit(const struct shim_chain *chain, const struct shim_pci *pci, const uint32_t *user,
                uint32_t version, struct tccl_error *why)
{
    static bool none[SHIM_GPUS][SHIM_GPUS];
    static char topology[16384];
    struct shim_text text = {topology, sizeof(topology), 0, false};
    struct shim_pci seen;
    if (shim_settings_suit(chain, user, step_reads, why) != 0 ||
        shim_islands(chain, pci, none, user[0] & SHIM_USER_PXB, version, &text, &seen, why) < 0)
        return ASIDE;
    return seen.net_intra ? SUITS : NO_NET;
}

/* Of a chain, where all users have set the same. */
static int suits(const struct shim_plan *plan, const struct shim_pci *pci, uint32_t version,
                 uint32_t user)
{
    struct shim_pci known = *pci;
    uint32_t users[SHIM_GPUS];
    for (int i = 0; i < SHIM_GPUS; i++)
        users[i] = user;
    int answer = -1, least = plan->chain.rings.chains[0].n_gpus == 1;
    for (int reads = 1; answer < 0 && reads >= least; reads--) { /* the last GPU sends directly */
        known.reads = reads ? UINT8_MAX : 0;
        answer = suit(&plan->chain, &known, users, version, ERR);
    }
    CHECK((answer < 0) == (check_err.text[0] != '\0'));
    return answer;
}

TEST(ring)
{
    struct shim_plan plan = ring();
    struct shim_pci amd = machine;
    CHECK_INT(suits(&plan, &machine, VERSION, 0), SUITS);
    CHECK(!shim_settings_move(&plan.chain, &machine, 0x100));
    plan.chain.rings.chains[0].edges[2].memory = 1; /* not the receiver's own */
    CHECK(shim_settings_move(&plan.chain, &machine, 0x100));
    CHECK(!shim_settings_move(&plan.chain, &machine, 0x300));
    CHECK_INT(suits(&plan, &machine, VERSION, 0), SUITS);
    plan.chain.rings.chains[0].edges[2].memory = 0;
    amd.cautious = false;
    amd.amd = true;
    CHECK_INT(suits(&plan, &amd, VERSION, 0), SUITS);
    CHECK_INT(suits(&plan, &amd, 22203, 0), SUITS); /* P2P at any distance: by the topology file */
    CHECK_INT(suits(&plan, &amd, 22203, SHIM_USER_PXB), SUITS);
}

/* What the process does by P2P, by the user's word or else the step's, is what the edges are. */
TEST(kind)
{
    struct shim_plan plan = ring();
    for (int chain = 0; chain < 2; chain++) {
        plan.chain.rings.chains[0].edges[0].kind = chain ? TCCL_P2P_READ : TCCL_P2P_WRITE;
        for (int step = 0; step < 2; step++) {
            step_reads = step;
            CHECK_INT(suits(&plan, &machine, VERSION, 0), chain == step ? SUITS : ASIDE);
            CHECK_INT(suits(&plan, &machine, VERSION, SHIM_USER_KIND), chain ? ASIDE : SUITS);
            CHECK_INT(suits(&plan, &machine, VERSION, SHIM_USER_KIND | SHIM_USER_READ),
                      chain ? SUITS : ASIDE);
        }
    }
    plan.chain.rings.chains[0].edges[0] = (struct tccl_named_edge){TCCL_BOUNCE, 0};
    CHECK_INT(suits(&plan, &machine, VERSION, SHIM_USER_KIND | SHIM_USER_READ), SUITS);
    step_reads = false;
}

/* Where NCCL has its buffers between processes, by its version and the driver's. */
TEST(host)
{
    CHECK(shim_settings_cumem_host(22907, 13000, 0));
    CHECK(shim_settings_cumem_host(22403, 12060, SHIM_USER_HOST));
    CHECK(!shim_settings_cumem_host(22907, 12050, 0));
    CHECK(shim_settings_cumem_host(22907, 12050, SHIM_USER_HOST));
    CHECK(!shim_settings_cumem_host(22907, 12010, SHIM_USER_HOST));
    CHECK(!shim_settings_cumem_host(22304, 13000, 0));
    CHECK(shim_settings_cumem_host(22304, 13000, SHIM_USER_HOST));
    CHECK(!shim_settings_cumem_host(22203, 13000, SHIM_USER_HOST));
    CHECK(!shim_settings_cumem_host(22907, 13000, SHIM_USER_NO_HOST));
}

/* NCCL takes the network within a node between GPUs that both have a NIC. Of a ring the topology
 * file takes them away; of a chain between nodes the ends need theirs. */
TEST(near_nics)
{
    struct shim_plan plan = ring(), open = open_chain(true, true);
    struct shim_pci near = machine;
    near.n = 5;
    near.devices[2] =
        (struct shim_pci_device){.bus = 0x300, .node = 1, .depth = 1, .above = {0x9000}};
    near.devices[3] = machine.devices[0]; /* at the switch */
    near.devices[3].bus = 0x400;
    near.devices[4] =
        (struct shim_pci_device){.bus = 0x500, .node = 1, .depth = 1, .above = {0x9000}};
    CHECK_INT(suits(&plan, &near, VERSION, 0), SUITS);
    open.chain.exit[0] = 0x500;
    CHECK_INT(suits(&open, &near, VERSION, 0), NO_NET);
}

TEST(hindrances)
{
    static const uint32_t hindrances[] = {SHIM_USER_FILES, SHIM_USER_P2P, SHIM_USER_SHM,
                                          SHIM_USER_SHARP, SHIM_USER_ALGO};
    struct shim_plan plan = ring(), open = open_chain(true, false);
    for (size_t i = 0; i < COUNT(hindrances); i++)
        CHECK_INT(suits(&plan, &machine, VERSION, hindrances[i]), ASIDE);
    CHECK_INT(suits(&plan, &machine, VERSION, SHIM_USER_NET | SHIM_USER_GDR | SHIM_USER_READ),
              SUITS);
    CHECK_INT(suits(&open, &machine, VERSION, SHIM_USER_NET), ASIDE);
    CHECK_INT(suits(&open, &machine, VERSION, SHIM_USER_GDR), ASIDE);
    plan.chain.rings.chains[0].edges[1].kind = TCCL_P2P_WRITE; /* one bounce in a ring */
    CHECK_INT(suits(&plan, &machine, VERSION, 0), ASIDE);
}

/* GPUDirect at either end comes from the topology file. */
TEST(ends)
{
    for (int i = 0; i < 4; i++) {
        struct shim_plan plan = open_chain(i & 1, i & 2);
        /* One NIC can't be near two GPUs that are to be far from each other. */
        CHECK_INT(suits(&plan, &machine, VERSION, 0), i == 3 ? ASIDE : SUITS);
    }
    struct shim_plan direct = open_chain(true, true);
    direct.chain.rings.chains[0].edges[1].kind = TCCL_P2P_WRITE;
    direct.chain.rings.chains[0].gpus[2] = 0x200;
    direct.chain.rings.chains[0].n_gpus = 2;
    CHECK_INT(suits(&direct, &machine, VERSION, 0), SUITS);
    /* Below one bridge with the NIC, the last GPU may be one that does not send directly. */
    direct.chain.rings.chains[0].exit = (struct tccl_named_port){.memory = 1};
    CHECK_INT(suits(&direct, &machine, VERSION, 0), SUITS);
    struct shim_plan one = open_chain(true, true);
    one.chain.rings.chains[0].n_gpus = 1;
    CHECK_INT(suits(&one, &machine, VERSION, 0), SUITS);
    one.chain.rings.chains[0].exit.gpudirect = false;
    CHECK_INT(suits(&one, &machine, VERSION, 0), ASIDE); /* one GPU is near the NIC, or is not */
}

static void check_suit(const struct shim_plan *plan, const uint32_t *user, bool reads, int wanted)
{
    struct shim_pci pci = machine;
    pci.reads = reads;
    CHECK_INT(suit(&plan->chain, &pci, user, VERSION, ERR), wanted);
    CHECK((wanted < 0) == (check_err.text[0] != '\0'));
}

/* The plan suits; and does not when the user of one GPU's process has set something. */
static void check_suits(const struct shim_plan *plan)
{
    uint32_t user[SHIM_GPUS] = {0};
    check_suit(plan, user, true, 0);
    check_suit(plan, user, false, plan->chain.rings.chains[0].exit.gpudirect ? -1 : 0);
    for (int i = 0; i < plan->chain.rings.chains[0].n_gpus; i++) {
        user[i] = SHIM_USER_P2P;
        check_suit(plan, user, true, -1);
        user[i] = SHIM_USER_PXB; /* not the same everywhere */
        check_suit(plan, user, true, -1);
        user[i] = 0;
    }
}

TEST(suit)
{
    struct shim_plan plans[5] = {ring(), ring()};
    plans[1].chain.rings.chains[0].edges[1].memory = 0;
    for (int i = 0; i < 3; i++)
        plans[2 + i] = open_chain(i & 1, i & 2);
    for (size_t i = 0; i < COUNT(plans); i++)
        check_suits(&plans[i]);
}

SETUP
{
    extern char **environ;
    for (char **at = environ; *at;) {
        if (strncmp(*at, "NCCL_", 5) != 0 || strncmp(*at, "NCCL_CONF_FILE=", 15) == 0) {
            at++;
            continue;
        }
        unsetenv(check_printf("%.*s", (int)strcspn(*at, "="), *at));
    }
    check_write_file(conf = check_at("nccl.conf"), "");
    setenv("NCCL_CONF_FILE", conf, 1);
}
