/* settings.c: reads what the user has set (environment and nccl.conf, as NCCL does) and keeps the
 * table of what the shim may add. */
#include "nccl/settings.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "chain/nccl-version.h"
#include "nccl/islands.h"

enum {
    CONF_SIZE = 8192,  /* longest nccl.conf */
    VALUE_SIZE = 1024, /* NCCL cuts values there */
    TOPOLOGY_SIZE = 16384
};

/* ---- What the user has set ---- */

/* Which values count. Numbers as NCCL reads them: those of strtoll, 0 if it is none. */
enum test {
    SET,
    NONZERO,
    IS_ZERO,
    NOT_ONE,
    NOT_TWO,
    IS_ONE,
    LEVEL_PXB,
    NOT_LEVEL_PXB,
    NOT_IB,
    NOT_NONE,
    OTHER_PLUGIN,
    NO_RING
};

static const struct variable {
    const char *name;
    uint32_t bit;
    enum test test;
} variables[] = {
    {"NCCL_GRAPH_FILE", SHIM_USER_FILES, SET},
    {"NCCL_TOPO_FILE", SHIM_USER_FILES, SET},
    {"NCCL_ENV_PLUGIN", SHIM_USER_FILES, OTHER_PLUGIN},
    {"NCCL_P2P_DISABLE", SHIM_USER_P2P, NONZERO},
    {"NCCL_P2P_LEVEL", SHIM_USER_P2P, NOT_LEVEL_PXB},
    {"NCCL_P2P_LEVEL", SHIM_USER_PXB, LEVEL_PXB},
    {"NCCL_P2P_READ_ENABLE", SHIM_USER_P2P, NONZERO},
    {"NCCL_P2P_READ_ENABLE", SHIM_USER_READ, SET},
    {"NCCL_P2P_USE_CUDA_MEMCPY", SHIM_USER_P2P, NONZERO},
    {"NCCL_SHM_DISABLE", SHIM_USER_SHM, NONZERO},
    {"NCCL_SHM_LOCALITY", SHIM_USER_SHM, NOT_TWO},
    {"NCCL_SHM_USE_CUDA_MEMCPY", SHIM_USER_SHM, NONZERO},
    {"NCCL_CUMEM_HOST_ENABLE", SHIM_USER_HOST, NONZERO},
    {"NCCL_CUMEM_HOST_ENABLE", SHIM_USER_NO_HOST, IS_ZERO},
    {"NCCL_CUMEM_ENABLE", SHIM_USER_NO_HOST, IS_ZERO},
    {"NCCL_NET", SHIM_USER_NET, NOT_IB},
    {"NCCL_NET_PLUGIN", SHIM_USER_NET, NOT_NONE},
    {"NCCL_IB_DISABLE", SHIM_USER_NET, NONZERO},
    {"NCCL_NET_MERGE_LEVEL", SHIM_USER_NET, SET},
    {"NCCL_NET_MERGE_POLICY", SHIM_USER_NET, SET},
    {"NCCL_NET_FORCE_MERGE", SHIM_USER_NET, SET},
    {"NCCL_IB_MERGE_VFS", SHIM_USER_NET, SET},
    {"NCCL_IB_MERGE_NICS", SHIM_USER_NET, NONZERO},
    {"NCCL_NET_DISABLE_INTRA", SHIM_USER_NET, NOT_ONE},
    {"NCCL_NET_DISABLE_INTRA", SHIM_USER_NO_NET_INTRA, IS_ONE},
    {"NCCL_NET_GDR_LEVEL", SHIM_USER_GDR, SET},
    {"NCCL_NET_GDR_READ", SHIM_USER_GDR, SET},
    {"NCCL_COLLNET_ENABLE", SHIM_USER_SHARP, NONZERO},
    {"NCCL_ALGO", SHIM_USER_ALGO, NO_RING},
    {"NCCL_CROSS_NIC", SHIM_USER_ALGO, IS_ONE},
};
enum { VARIABLES = sizeof(variables) / sizeof(*variables) };

struct conf {
    /* In the order in which NCCL reads them; of own and home only one, by its version. */
    char own[CONF_SIZE], home[CONF_SIZE], site[CONF_SIZE];
    bool unknown;
};

static void read_conf(const char *path, char text[static CONF_SIZE], struct conf *conf)
{
    *text = '\0';
    if (shim_read_file(path, text, CONF_SIZE) < 0 && errno == EFBIG) {
        conf->unknown = true;
        *text = '\0';
    }
}

/* NCCL finds it by the user database, from 2.30 on by HOME. */
static void read_own(struct conf *conf)
{
    const char *named = shim_env("NCCL_CONF_FILE"); /* 2.23 */
    char path[PATH_MAX], buffer[4096];
    struct shim_text text = {path, sizeof(path), 0, false};
    struct passwd entry, *user = NULL;
    if (named && *named) {
        read_conf(named, conf->own, conf);
        return;
    }
    const char *home = shim_env("HOME");
    shim_text_add(&text, "%s/.nccl.conf", home ? home : "");
    if (home && !text.full)
        read_conf(path, conf->home, conf);
    text = (struct shim_text){path, sizeof(path), 0, false};
    if (getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &user) != 0 || !user)
        return;
    shim_text_add(&text, "%s/.nccl.conf", user->pw_dir);
    if (!text.full)
        read_conf(path, conf->own, conf);
}

/* The value of "NAME=value", a line for itself, up to the end of that. */
static const char *find_line(const char *text, const char *name, size_t *length)
{
    size_t size = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, size) == 0 && line[size] == '=') {
            *length = strcspn(line + size + 1, "\n");
            return line + size + 1;
        }
    }
    return NULL;
}

/* The first one counts. Returns value, or NULL: not set. */
static const char *find_value(const struct conf *conf, const char *name,
                              char value[static VALUE_SIZE])
{
    size_t length;
    const char *own = shim_env(name);
    if (own) {
        length = strlen(own);
    } else {
        own = find_line(conf->own, name, &length);
        own = own ? own : find_line(conf->home, name, &length);
        own = own ? own : find_line(conf->site, name, &length);
    }
    if (!own)
        return NULL;
    length = length < VALUE_SIZE ? length : VALUE_SIZE - 1;
    memcpy(value, own, length);
    value[length] = '\0';
    return value;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* strtoll(text, NULL, 0), which itself would be bound to the newest libc. Large ones stay large. */
static long number_of(const char *text)
{
    while (*text == ' ' || (*text >= '\t' && *text <= '\r'))
        text++;
    bool negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    int base = 10;
    if (*text == '0')
        base = (text[1] | 0x20) == 'x' && digit_of(text[2]) < 16 ? 16 : 8;
    if (base == 16)
        text += 2;
    long number = 0;
    for (; digit_of(*text) < base && number < LONG_MAX / 32; text++)
        number = number * base + digit_of(*text);
    return negative ? -number : number;
}

/* "2" is how it was written once. */
static bool is_level_pxb(const char *value)
{
    return strcmp(value, "PXB") == 0 || (*value == '2' && number_of(value) == 2);
}

/* NCCL_ALGO is a list of what may be used, ^ before one of what may not, each for all collectives
 * or, behind "name:", for one: "allreduce:tree,ring;broadcast:ring". */
static bool has_no_ring(const char *value)
{
    for (const char *part = value; *part;) {
        size_t length = strcspn(part, ";");
        const char *colon = memchr(part, ':', length);
        const char *list = colon ? colon + 1 : part, *end = part + length;
        bool excludes = list < end && *list == '^', ring = false;
        for (const char *at = list + excludes; at < end; at += strcspn(at, ",;") + 1)
            ring = ring || (strcspn(at, ",;") == 4 && strncasecmp(at, "ring", 4) == 0);
        if (list < end && ring == excludes)
            return true;
        part = *end ? end + 1 : end;
    }
    return false;
}

/* Neither none nor the shim itself (env.c). */
static bool is_other_plugin(const char *value)
{
    return strcasecmp(value, "none") != 0 && strcmp(shim_file_name(value), "libtccl-nccl.so") != 0;
}

static bool passes(enum test test, const char *value)
{
    bool empty = !*value; /* NCCL takes its default for an empty number */
    switch (test) {
    case SET:
        return true;
    case NONZERO:
        return !empty && number_of(value) != 0;
    case IS_ZERO:
        return !empty && number_of(value) == 0;
    case NOT_ONE:
        return !empty && number_of(value) != 1;
    case NOT_TWO:
        return !empty && number_of(value) != 2;
    case IS_ONE:
        return !empty && number_of(value) == 1;
    case LEVEL_PXB:
        return is_level_pxb(value);
    case NOT_LEVEL_PXB:
        return !is_level_pxb(value);
    case NOT_IB:
        return strcasecmp(value, "IB") != 0;
    case NOT_NONE:
        return strcasecmp(value, "none") != 0;
    case OTHER_PLUGIN:
        return is_other_plugin(value);
    case NO_RING:
        return has_no_ring(value);
    }
    return true;
}

static void read_all(struct conf *conf)
{
    read_own(conf);
    read_conf("/etc/nccl.conf", conf->site, conf);
}

/* The bits of variables that are set so that they count, and words for them. */
static uint32_t collect_from(const struct conf *conf, uint32_t wanted, struct shim_text *words)
{
    char value[VALUE_SIZE];
    uint32_t bits = 0;
    const char *between = "";
    if (conf->unknown && wanted & SHIM_USER_FILES) {
        bits = SHIM_USER_FILES;
        if (words)
            shim_text_add(words, "an nccl.conf that is too long to be read");
        between = ", ";
    }
    for (int i = 0; i < VARIABLES; i++) {
        if (!(variables[i].bit & wanted) || !find_value(conf, variables[i].name, value) ||
            !passes(variables[i].test, value))
            continue;
        bits |= variables[i].bit;
        if (words)
            shim_text_add(words, "%s%s=%.40s", between, variables[i].name, value);
        between = ", ";
    }
    return bits;
}

static uint32_t collect(uint32_t wanted, struct shim_text *words)
{
    struct conf *conf = shim_scratch(sizeof(*conf));
    if (!conf)
        return SHIM_USER_FILES & wanted;
    read_all(conf);
    uint32_t bits = collect_from(conf, wanted, words);
    shim_scratch_free(conf, sizeof(*conf));
    return bits;
}

uint32_t shim_settings_user(void)
{
    return collect(UINT32_MAX, NULL);
}

void shim_settings_user_words(uint32_t user, struct shim_text *text)
{
    if (text->size)
        text->at[text->length] = '\0';
    collect(user, text);
}

/* ---- Do settings suit a chain? ---- */

static bool has_edge(const struct shim_chain *chain, enum tccl_edge_kind kind)
{
    for (int i = 0; i < chain->n_rings; i++)
        for (int j = 0; j < tccl_named_edges(&chain->rings[i].path); j++)
            if (chain->rings[i].path.edges[j].kind == kind)
                return true;
    return false;
}

/* Is that another memory than the GPU's own, where NCCL puts a buffer by itself? */
static bool is_moved(const struct shim_pci *pci, shim_bus gpu, int node)
{
    int i = shim_pci_find(pci, gpu);
    return node >= 0 && (i < 0 || pci->devices[i].node != node);
}

bool shim_settings_move(const struct shim_chain *chain, const struct shim_pci *pci, shim_bus gpu)
{
    for (int i = 0; i < chain->n_rings; i++) {
        struct shim_memories memories = shim_ring_memories(&chain->rings[i], gpu);
        if (is_moved(pci, gpu, memories.in) || is_moved(pci, gpu, memories.out))
            return true;
    }
    return false;
}

/* ncclCuMemHostEnable. */
bool shim_settings_cumem_host(uint32_t version, int driver, uint32_t user)
{
    enum { DRIVER_CAN = 12020, DRIVER_DOES = 12060 };
    bool asked = user & SHIM_USER_HOST;
    if (user & SHIM_USER_NO_HOST)
        return false;
    return driver >= (asked ? DRIVER_CAN : DRIVER_DOES) &&
           tccl_release_does(version, asked ? TCCL_FACT_CAN_HOST_CUMEM : TCCL_FACT_HOST_CUMEM);
}

/* The chain's topology: 1 with islands, 0 without, -1: not to be had. pxb: NCCL_P2P_LEVEL is PXB.
 */
static int find_islands(const struct shim_chain *chain, const struct shim_pci *pci, bool pxb,
                        uint32_t version, struct shim_why *why)
{
    bool linked[SHIM_GPUS][SHIM_GPUS] = {{false}};
    struct shim_text text = {shim_scratch(TOPOLOGY_SIZE), TOPOLOGY_SIZE, 0, false};
    if (!text.at)
        return shim_fail(why, "out of memory");
    int islands = shim_islands(chain, pci, linked, pxb, version, &text, why);
    shim_scratch_free(text.at, TOPOLOGY_SIZE);
    return islands;
}

/* There is what stands against any chain, and what stands against this one. */
int shim_settings_user_allows(const struct shim_chain *chain, uint32_t user, struct shim_why *why)
{
    uint32_t against = SHIM_USER_FILES | SHIM_USER_SHARP | SHIM_USER_ALGO;
    if (chain->rings[0].path.n_gpus > 1)
        against |= SHIM_USER_P2P;
    if (has_edge(chain, TCCL_BOUNCE))
        against |= SHIM_USER_SHM;
    if (!chain->rings[0].path.closed)
        against |= SHIM_USER_NET;
    if (!(user & against))
        return 0;
    char words[160];
    struct shim_text text = {words, sizeof(words), 0, false};
    shim_settings_user_words(user & against, &text);
    return shim_fail(why, "the user has set %s", *words ? words : "something else for NCCL");
}

static int check_gdr(uint32_t user, struct shim_why *why)
{
    return user & SHIM_USER_GDR
               ? shim_fail(why, "the user has set NCCL_NET_GDR_LEVEL or NCCL_NET_GDR_READ")
               : 0;
}

/* P2P reads where a process is told so, for all of its communicators. */
static int check_reads(const struct shim_chain *chain, struct shim_why *why)
{
    return has_edge(chain, TCCL_P2P_READ)
               ? shim_fail(why, "P2P would read in other communicators, too")
               : 0;
}

static int check_level(const struct shim_chain *chain, const uint32_t *user, struct shim_why *why)
{
    for (int i = 1; i < chain->rings[0].path.n_gpus; i++)
        if ((user[i] ^ user[0]) & SHIM_USER_PXB)
            return shim_fail(why, "NCCL_P2P_LEVEL is not the same in all processes");
    return 0;
}

/* Of the members at a ring's ends. */
static int check_ends_gdr(const struct shim_chain *chain, const uint32_t *user,
                          struct shim_why *why)
{
    for (int i = 0; i < chain->n_rings && !chain->rings[i].path.closed; i++) {
        const struct tccl_named_chain *path = &chain->rings[i].path;
        int head = shim_ring_find(&chain->rings[0], path->gpus[0]);
        int tail = shim_ring_find(&chain->rings[0], path->gpus[path->n_gpus - 1]);
        if (check_gdr(user[head] | user[tail], why) != 0)
            return -1;
    }
    return 0;
}

int shim_settings_suit(const struct shim_chain *chain, struct shim_pci *pci, const uint32_t *user,
                       uint32_t version, struct shim_why *why)
{
    bool pxb = user[0] & SHIM_USER_PXB;
    if (check_ends_gdr(chain, user, why) != 0)
        return -1;
    for (int i = 0; i < chain->rings[0].path.n_gpus; i++) {
        if (shim_settings_user_allows(chain, user[i], why) != 0)
            return -1;
    }
    if (check_level(chain, user, why) != 0 || check_reads(chain, why) != 0)
        return -1;
    pci->net_intra = true;
    if (find_islands(chain, pci, pxb, version, NULL) >= 0)
        return 0;
    pci->net_intra = false;
    return find_islands(chain, pci, pxb, version, why) < 0 ? -1 : 0;
}
