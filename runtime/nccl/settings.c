/* settings.c: reads what the user has set (environment and nccl.conf, as NCCL does) and keeps the
 * table of what the shim may add. */
#include "nccl/shim-nccl.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "chain/nccl-version.h"

enum {
    CONF_SIZE = 8192, /* longest nccl.conf */
    VALUE_SIZE = 1024 /* NCCL cuts values there */
};

/* ---- What the user has set ---- */

/* Which values count. Numbers as NCCL reads them: those of strtoll, 0 if it is none. */
enum test {
    SET,
    IS, /* that number */
    UNLIKE,
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
    uint8_t test, number; /* enum test; small: each program that is started has it to relocate */
} variables[] = {
    {"NCCL_GRAPH_FILE", SHIM_USER_FILES, SET, 0},
    {"NCCL_TOPO_FILE", SHIM_USER_FILES, SET, 0},
    {"NCCL_ENV_PLUGIN", SHIM_USER_FILES, OTHER_PLUGIN, 0},
    {"NCCL_P2P_DISABLE", SHIM_USER_P2P, UNLIKE, 0},
    {"NCCL_P2P_LEVEL", SHIM_USER_P2P, NOT_LEVEL_PXB, 0},
    {"NCCL_P2P_LEVEL", SHIM_USER_PXB, LEVEL_PXB, 0},
    {"NCCL_P2P_READ_ENABLE", SHIM_USER_READ, UNLIKE, 0},
    {"NCCL_P2P_READ_ENABLE", SHIM_USER_KIND, SET, 0},
    {"NCCL_P2P_USE_CUDA_MEMCPY", SHIM_USER_P2P, UNLIKE, 0},
    {"NCCL_SHM_DISABLE", SHIM_USER_SHM, UNLIKE, 0},
    {"NCCL_SHM_LOCALITY", SHIM_USER_SHM, UNLIKE, 2},
    {"NCCL_SHM_USE_CUDA_MEMCPY", SHIM_USER_SHM, UNLIKE, 0},
    {"NCCL_CUMEM_HOST_ENABLE", SHIM_USER_HOST, UNLIKE, 0},
    {"NCCL_CUMEM_HOST_ENABLE", SHIM_USER_NO_HOST, IS, 0},
    {"NCCL_CUMEM_ENABLE", SHIM_USER_NO_HOST, IS, 0},
    {"NCCL_NET", SHIM_USER_NET, NOT_IB, 0},
    {"NCCL_NET_PLUGIN", SHIM_USER_NET, NOT_NONE, 0},
    {"NCCL_IB_DISABLE", SHIM_USER_NET, UNLIKE, 0},
    {"NCCL_NET_MERGE_LEVEL", SHIM_USER_NET, SET, 0},
    {"NCCL_NET_MERGE_POLICY", SHIM_USER_NET, SET, 0},
    {"NCCL_NET_FORCE_MERGE", SHIM_USER_NET, SET, 0},
    {"NCCL_IB_MERGE_VFS", SHIM_USER_NET, SET, 0},
    {"NCCL_IB_MERGE_NICS", SHIM_USER_NET, UNLIKE, 0},
    {"NCCL_NET_DISABLE_INTRA", SHIM_USER_NET, UNLIKE, 1},
    {"NCCL_NET_DISABLE_INTRA", SHIM_USER_NO_NET_INTRA, IS, 1},
    {"NCCL_NET_GDR_LEVEL", SHIM_USER_GDR, SET, 0},
    {"NCCL_NET_GDR_READ", SHIM_USER_GDR, SET, 0},
    {"NCCL_COLLNET_ENABLE", SHIM_USER_SHARP, UNLIKE, 0},
    {"NCCL_ALGO", SHIM_USER_ALGO, NO_RING, 0},
    {"NCCL_CROSS_NIC", SHIM_USER_ALGO, IS, 1},
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

/* "2" is how it was written once. */
static bool is_level_pxb(const char *value)
{
    return strcmp(value, "PXB") == 0 || (*value == '2' && strtoll(value, NULL, 0) == 2);
}

/* NCCL takes its default for an empty number. */
static bool passes(const struct variable *variable, const char *value)
{
    switch ((enum test)variable->test) {
    case SET:
        return true;
    case IS:
        return *value && strtoll(value, NULL, 0) == variable->number;
    case UNLIKE:
        return *value && strtoll(value, NULL, 0) != variable->number;
    case LEVEL_PXB:
        return is_level_pxb(value);
    case NOT_LEVEL_PXB:
        return !is_level_pxb(value);
    case NOT_IB:
        return strcasecmp(value, "IB") != 0;
    case NOT_NONE:
        return strcasecmp(value, "none") != 0;
    case OTHER_PLUGIN: /* neither none nor the shim itself (env.c) */
        return strcasecmp(value, "none") != 0 &&
               strcmp(shim_file_name(value), "libtccl-nccl.so") != 0;
    case NO_RING: {
        /* NCCL_ALGO is a list of what may be used, ^ before one of what may not, each for all
         * collectives or, behind "name:", for one: "allreduce:tree,ring;broadcast:ring". */
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
    }
    return true;
}

static uint32_t collect(uint32_t wanted, struct shim_text *words)
{
    struct conf *conf = shim_scratch(sizeof(*conf));
    if (!conf)
        return SHIM_USER_FILES & wanted;
    read_own(conf);
    read_conf("/etc/nccl.conf", conf->site, conf);
    /* The bits of variables that are set so that they count, and words for them. */
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
            !passes(&variables[i], value))
            continue;
        bits |= variables[i].bit;
        if (words)
            shim_text_add(words, "%s%s=%.40s", between, variables[i].name, value);
        between = ", ";
    }
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
    for (int i = 0; i < chain->rings.n; i++)
        for (int j = 0; j < tccl_named_edges(&chain->rings.chains[i]); j++)
            if (chain->rings.chains[i].edges[j].kind == kind)
                return true;
    return false;
}

bool shim_settings_move(const struct shim_chain *chain, const struct shim_pci *pci, tccl_bus gpu)
{
    int at = shim_pci_find(pci, gpu), own = at < 0 ? INT_MAX : pci->devices[at].node;
    for (int i = 0; i < chain->rings.n; i++) {
        struct shim_memories memories = shim_ring_memories(&chain->rings.chains[i], gpu);
        if ((memories.in >= 0 && memories.in != own) || (memories.out >= 0 && memories.out != own))
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

int shim_settings_refuse(uint32_t bits, struct tccl_error *why)
{
    char words[160] = "";
    struct shim_text text = {words, sizeof(words), 0, false};
    if (!bits)
        return 0;
    shim_settings_user_words(bits, &text);
    return tccl_fail(why, "the user has set %s", *words ? words : "it otherwise");
}

/* P2P edges are of the kind that their processes have, both ends alike, or NCCL fails. */
static int check_kind(const struct shim_chain *chain, uint32_t user, bool reads,
                      struct tccl_error *why)
{
    bool now = user & SHIM_USER_KIND ? user & SHIM_USER_READ : reads;
    if (!has_edge(chain, now ? TCCL_P2P_WRITE : TCCL_P2P_READ))
        return 0;
    if (user & SHIM_USER_KIND)
        return shim_settings_refuse(SHIM_USER_KIND, why);
    return tccl_fail(why, "all of this step's communicators have P2P that %s, and the chain %s",
                     now ? "reads" : "writes", now ? "writes" : "reads");
}

/* There is what stands against any chain, and what stands against this one. */
int shim_settings_suit(const struct shim_chain *chain, const uint32_t *user, bool reads,
                       struct tccl_error *why)
{
    const struct tccl_named_chain *first = &chain->rings.chains[0];
    uint32_t against = SHIM_USER_FILES | SHIM_USER_SHARP | SHIM_USER_ALGO;
    if (first->n_gpus > 1)
        against |= SHIM_USER_P2P;
    if (has_edge(chain, TCCL_BOUNCE))
        against |= SHIM_USER_SHM;
    if (!first->closed)
        against |= SHIM_USER_NET;
    for (int i = 0; i < first->n_gpus; i++)
        if (shim_settings_refuse(user[i] & against, why) != 0 ||
            check_kind(chain, user[i], reads, why) != 0)
            return -1;
    for (int i = 0; i < chain->rings.n && !first->closed; i++) {
        const struct tccl_named_chain *path = &chain->rings.chains[i];
        int head = shim_ring_find(first, path->gpus[0]);
        int tail = shim_ring_find(first, path->gpus[path->n_gpus - 1]);
        if ((user[head] | user[tail]) & SHIM_USER_GDR)
            return tccl_fail(why, "the user has set NCCL_NET_GDR_LEVEL or NCCL_NET_GDR_READ");
    }
    for (int i = 1; i < first->n_gpus; i++)
        if ((user[i] ^ user[0]) & SHIM_USER_PXB)
            return tccl_fail(why, "NCCL_P2P_LEVEL is not the same in all processes");
    return 0;
}
