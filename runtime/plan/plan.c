/* plan.c: plan files, and tccld's answers to CHAIN: every fact in them is checked. */
#include "plan/plan.h"

#include "base/state.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMA_NODES = 1024 };
static const double most_gbps = 1e6;

static int wrong(struct tccl_error *why, const char *what)
{
    return tccl_fail(why, "the plan's %s is wrong or missing", what);
}

/* Its whole numbers of 32 bits, those of the key first. */
static const struct {
    char name[12];
    uint32_t most;
    size_t at;
} numbers[] = {
#define KEY_ROW(name) {#name, UINT32_MAX, offsetof(struct shim_plan, name)},
#define ROW(name, most, ...) {#name, most, offsetof(struct shim_plan, name)},
    TCCL_KEY_NUMBERS(KEY_ROW) TCCL_PLAN_NUMBERS(ROW)};
#define ONE(...) +1
enum { KEY_NUMBERS = 0 TCCL_KEY_NUMBERS(ONE), NUMBERS = sizeof(numbers) / sizeof(*numbers) };

static uint32_t *number_of(const struct shim_plan *plan, int i)
{
    return (uint32_t *)((char *)plan + numbers[i].at);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What measured: a letter first, then letters, digits and what names of back ends have. */
static int get_source(const struct tccl_lines *lines, char source[static SHIM_NAME],
                      struct tccl_error *why)
{
    if (tccl_line_text(lines, "source", source, SHIM_NAME) < 1 || !is_letter(*source))
        return wrong(why, "source");
    for (const char *at = source; *at; at++)
        if (!is_letter(*at) && !(*at >= '0' && *at <= '9') && !strchr(" _-.+,", *at))
            return wrong(why, "source");
    return 0;
}

/* The next word of a text, and where the text goes on. Returns its length, or -1: it is too long.
 */
static long next_word(const char **text, char *word, size_t size)
{
    *text += strspn(*text, " ");
    size_t length = strcspn(*text, " ");
    if (length >= size)
        return -1;
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length;
    return (long)length;
}

/* A list of 1 to SHIM_GPUS bus ids, none of them twice. Returns how many, or -1. */
static int get_gpus(const struct tccl_lines *lines, tccl_bus gpus[static SHIM_GPUS],
                    struct tccl_error *why)
{
    char text[SHIM_GPUS * TCCL_BUS_TEXT], word[TCCL_BUS_TEXT];
    const char *at = text;
    long length;
    int n = 0;
    if (tccl_line_text(lines, "gpus", text, sizeof(text)) < 0)
        return wrong(why, "gpus");
    while ((length = next_word(&at, word, sizeof(word))) != 0) {
        if (length < 0 || n == SHIM_GPUS || tccl_bus_parse(word, &gpus[n]) != 0 ||
            shim_bus_find(gpus, n, gpus[n]) >= 0)
            return wrong(why, "gpus");
        n++;
    }
    return n ? n : wrong(why, "gpus");
}

/* The kernel's numbers of the memories' NUMA nodes. Returns how many, or -1. */
static int get_nodes(const struct tccl_lines *lines, int16_t nodes[static SHIM_GPUS],
                     struct tccl_error *why)
{
    char text[SHIM_GPUS * 8], word[8];
    const char *at = text;
    long length;
    uint64_t number;
    int n = 0;
    if (tccl_line_text(lines, "nodes", text, sizeof(text)) < 0)
        return wrong(why, "nodes");
    while ((length = next_word(&at, word, sizeof(word))) != 0) {
        if (length < 0 || n == SHIM_GPUS || shim_number(word, 10, NUMA_NODES - 1, &number) != 0)
            return wrong(why, "nodes");
        nodes[n++] = (int16_t)number;
    }
    return n;
}

/* A memory's number becomes that of its NUMA node. */
static int to_node(int16_t *memory, const int16_t *nodes, int n)
{
    if (*memory < 0)
        return 0;
    if (*memory >= n)
        return -1;
    *memory = nodes[*memory];
    return 0;
}

static int to_nodes(struct tccl_named_chain *path, const int16_t *nodes, int n)
{
    for (int i = 0; i < tccl_named_edges(path); i++)
        if (to_node(&path->edges[i].memory, nodes, n) != 0)
            return -1;
    return path->closed
               ? 0
               : to_node(&path->entry.memory, nodes, n) | to_node(&path->exit.memory, nodes, n);
}

/* The bus id of a NIC: the line "nic NAME BUSID". */
static int get_nic(const struct tccl_lines *lines, const char *name, tccl_bus *bus,
                   struct tccl_error *why)
{
    char text[SHIM_NAME + TCCL_BUS_TEXT], word[SHIM_NAME];
    const char *at = NULL;
    while (tccl_line_next(lines, "nic", &at, text, sizeof(text)) >= 0) {
        const char *rest = text;
        if (next_word(&rest, word, sizeof(word)) > 0 && strcmp(word, name) == 0 && *rest == ' ' &&
            tccl_bus_parse(rest + 1, bus) == 0)
            return 0;
    }
    return wrong(why, "nic");
}

static int get_rings(const struct tccl_lines *lines, struct shim_chain *chain,
                     struct tccl_error *why)
{
    char text[TCCL_RINGS_TEXT];
    int16_t nodes[SHIM_GPUS];
    int n = get_nodes(lines, nodes, why);
    if (n < 0)
        return -1;
    if (tccl_line_text(lines, "chain", text, sizeof(text)) < 0 ||
        tccl_named_rings_parse(text, &chain->rings, NULL) != 0)
        return wrong(why, "chain");
    for (int i = 0; i < chain->rings.n; i++) {
        struct tccl_named_chain *path = &chain->rings.chains[i];
        if (path->numbers || to_nodes(path, nodes, n) != 0)
            return wrong(why, "chain");
        if (!path->closed && (get_nic(lines, path->entry.nic, &chain->entry[i], why) != 0 ||
                              get_nic(lines, path->exit.nic, &chain->exit[i], why) != 0))
            return -1;
    }
    return 0;
}

static int to_u8(const char *word, uint64_t max, uint8_t *number)
{
    uint64_t read;
    if (shim_number(word, 10, max, &read) != 0)
        return -1;
    *number = (uint8_t)read;
    return 0;
}

static bool is_type(const char *word)
{
    static const char known[] = " LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS ";
    const char *at = strlen(word) == 3 ? strstr(known, word) : NULL;
    return at && at[-1] == ' ' && at[3] == ' ';
}

enum { NOMINAL_WORDS = 6, BASELINE_WORDS = 3 + 2 * NOMINAL_WORDS, BASELINE_WORD = 16 };

/* PATTERN CHANNELS SPEEDINTRA SPEEDINTER TYPEINTRA TYPEINTER */
static int get_nominal(char words[][BASELINE_WORD], struct shim_nominal *nominal)
{
    if (to_u8(words[0], 8, &nominal->pattern) != 0 ||
        to_u8(words[1], 64, &nominal->channels) != 0 ||
        tccl_word_number(words[2], 0, most_gbps, &nominal->speed_intra) != 0 ||
        tccl_word_number(words[3], 0, most_gbps, &nominal->speed_inter) != 0 ||
        !is_type(words[4]) || !is_type(words[5]))
        return -1;
    memcpy(nominal->type_intra, words[4], sizeof(nominal->type_intra));
    memcpy(nominal->type_inter, words[5], sizeof(nominal->type_inter));
    return 0;
}

/* FIRST-VERSION ring|own GBPS RING TREE */
static int get_baseline(const char *text, struct shim_baseline *baseline)
{
    char words[BASELINE_WORDS][BASELINE_WORD];
    uint64_t first;
    for (int i = 0; i < BASELINE_WORDS; i++)
        if (next_word(&text, words[i], sizeof(words[i])) < 1)
            return -1;
    baseline->better = strcmp(words[1], "own") == 0;
    if (*text || shim_number(words[0], 10, 1000000, &first) != 0 ||
        (!baseline->better && strcmp(words[1], "ring") != 0) ||
        tccl_word_number(words[2], 0, most_gbps, &baseline->gbps) != 0)
        return -1;
    baseline->first = (int)first;
    return get_nominal(words + 3, &baseline->ring) |
           get_nominal(words + 3 + NOMINAL_WORDS, &baseline->tree);
}

static int get_baselines(const struct tccl_lines *lines, struct shim_chain *chain,
                         struct tccl_error *why)
{
    char text[BASELINE_WORDS * BASELINE_WORD];
    const char *at = NULL;
    int n = 0;
    while (tccl_line_next(lines, "baseline", &at, text, sizeof(text)) >= 0) {
        struct shim_baseline *baseline = &chain->baselines[n];
        if (n == SHIM_BASELINES || get_baseline(text, baseline) != 0 ||
            (n > 0 && baseline->first <= baseline[-1].first))
            return wrong(why, "baseline");
        n++;
    }
    chain->n_baselines = n;
    return 0;
}

int shim_ring_find(const struct tccl_named_chain *ring, tccl_bus gpu)
{
    return shim_bus_find(ring->gpus, ring->n_gpus, gpu);
}

struct shim_memories shim_ring_memories(const struct tccl_named_chain *path, tccl_bus gpu)
{
    struct shim_memories memories = {-1, -1};
    int at = shim_ring_find(path, gpu);
    if (at < 0)
        return memories;
    const struct tccl_named_edge *edge = &path->edges[at > 0 ? at - 1 : path->n_gpus - 1];
    if (at == 0 && !path->closed)
        memories.in = path->entry.gpudirect ? -1 : path->entry.memory;
    else if (edge->kind == TCCL_BOUNCE)
        memories.in = edge->memory;
    if (at == path->n_gpus - 1 && !path->closed && !path->exit.gpudirect)
        memories.out = path->exit.memory;
    return memories;
}

const struct shim_baseline *shim_chain_baseline(const struct shim_chain *chain, int version)
{
    static const struct shim_baseline unknown = {
        .ring = {.type_intra = "DIS", .type_inter = "DIS"},
        .tree = {.type_intra = "DIS", .type_inter = "DIS"},
    };
    int at = chain->n_baselines - 1;
    while (at > 0 && version < chain->baselines[at].first)
        at--;
    return at < 0 ? &unknown : &chain->baselines[at];
}

/* ALONG GBPS NIC BUSID…: the GPUs of the chain in another order. */
static int to_tree(const char *text, const struct tccl_named_chain *path, struct shim_tree *tree)
{
    char along[16], gbps[16], word[TCCL_BUS_TEXT];
    uint32_t seen = 0;
    if (path->closed || path->n_gpus < 2 || next_word(&text, along, sizeof(along)) < 1 ||
        tccl_word_number(along, 0, most_gbps, &tree->along) != 0 ||
        next_word(&text, gbps, sizeof(gbps)) < 1 ||
        tccl_word_number(gbps, 0, most_gbps, &tree->gbps) != 0 || !(tree->gbps > 0) ||
        next_word(&text, tree->nic, sizeof(tree->nic)) < 1)
        return -1;
    for (int i = 0; i < path->n_gpus; i++) {
        tccl_bus bus;
        if (next_word(&text, word, sizeof(word)) < 1 || tccl_bus_parse(word, &bus) != 0)
            return -1;
        int at = shim_bus_find(path->gpus, path->n_gpus, bus);
        if (at < 0 || (seen >> at & 1))
            return -1;
        seen |= UINT32_C(1) << at;
        tree->order[i] = (uint8_t)at;
    }
    return *text ? -1 : 0;
}

static int get_tree(const struct tccl_lines *lines, struct shim_chain *chain,
                    struct tccl_error *why)
{
    char text[32 + TCCL_CHAIN_NIC + SHIM_GPUS * (TCCL_BUS_TEXT + 1)];
    const char *at = NULL;
    tccl_bus nic;
    memset(&chain->tree, 0, sizeof(chain->tree));
    if (tccl_line_next(lines, "tree", &at, text, sizeof(text)) < 0)
        return 0;
    if (to_tree(text, &chain->rings.chains[0], &chain->tree) != 0 ||
        tccl_line_next(lines, "tree", &at, text, sizeof(text)) >= 0)
        return wrong(why, "tree");
    return get_nic(lines, chain->tree.nic, &nic, NULL) == 0 ? 0 : wrong(why, "tree");
}

/* The kinds of edges that are among them: 1 << kind. */
static unsigned kinds_of(const struct tccl_named_rings *rings)
{
    unsigned kinds = 0;
    for (int i = 0; i < rings->n; i++)
        for (int k = 0; k < tccl_named_edges(&rings->chains[i]); k++)
            kinds |= 1U << rings->chains[i].edges[k].kind;
    return kinds;
}

/* What plans and answers have alike. */
static int get_chain(const struct tccl_lines *lines, struct shim_chain *chain,
                     struct tccl_error *why)
{
    if (get_rings(lines, chain, why) != 0)
        return -1;
    if (tccl_line_number(lines, "gbps", 0, most_gbps, &chain->gbps) != 0)
        return wrong(why, "gbps");
    if (get_baselines(lines, chain, why) != 0 || get_tree(lines, chain, why) != 0 ||
        get_source(lines, chain->source, why) != 0)
        return -1;
    if (kinds_of(&chain->rings) & 1U << TCCL_BY_NICS) /* no NCCL can be made to */
        return wrong(why, "chain");
    return chain->gbps > 0 ? 0 : wrong(why, "gbps");
}

static bool same_gpus(const struct tccl_named_chain *path, const tccl_bus *gpus, int n)
{
    if (path->n_gpus != n)
        return false;
    for (int i = 0; i < n; i++)
        if (shim_bus_find(path->gpus, n, gpus[i]) < 0)
            return false;
    return true;
}

static int get_step(const struct tccl_lines *lines, struct shim_plan *plan, struct tccl_error *why)
{
    int64_t read;
    if (tccl_line_text(lines, "cluster", plan->cluster, sizeof(plan->cluster)) < 0)
        return wrong(why, "cluster");
    for (int i = 0; i < NUMBERS; i++) {
        if (tccl_line_integer(lines, numbers[i].name, 0, numbers[i].most, &read) != 0)
            return wrong(why, numbers[i].name);
        *number_of(plan, i) = (uint32_t)read;
    }
    if (tccl_line_integer(lines, "run", 0, INT64_MAX, &plan->run) != 0)
        return wrong(why, "run");
    if (tccl_line_text(lines, "socket", plan->socket, sizeof(plan->socket)) < 1 ||
        *plan->socket != '/')
        return wrong(why, "socket");
    if (plan->index >= plan->n_nodes)
        return wrong(why, "index");
    int n = get_gpus(lines, plan->gpus, why);
    if (n < 0)
        return -1;
    plan->batch = plan->step == TCCL_STEP_BATCH;
    plan->n_gpus = (uint8_t)n;
    for (int i = 1; i < n; i++)
        if (plan->gpus[i - 1] >= plan->gpus[i])
            return wrong(why, "order of gpus");
    return plan->step_gpus && plan->step_gpus < (uint32_t)n ? wrong(why, "step_gpus") : 0;
}

void shim_plan_put_key(const struct shim_plan *plan, struct tccl_line_writer *writer)
{
    tccl_line_put(writer, "cluster", "%s", plan->cluster);
    for (int i = 0; i < KEY_NUMBERS; i++)
        tccl_line_put(writer, numbers[i].name, "%u", *number_of(plan, i));
    tccl_line_put(writer, "run", "%lld", (long long)plan->run);
}

static int open_lines(const char *text, size_t size, const char *what, struct tccl_lines *lines,
                      struct tccl_error *why)
{
    if (tccl_lines_open(text, size, lines, why) == 0)
        return 0;
    return tccl_fail_in(why, "%s can't be read", what);
}

int shim_plan_parse(const char *text, size_t size, struct shim_plan *plan, struct tccl_error *why)
{
    struct tccl_lines lines;
    memset(plan, 0, sizeof(*plan));
    if (open_lines(text, size, "the plan", &lines, why) != 0)
        return -1;
    if (!tccl_lines_are(&lines, "tccl-plan", 1))
        return tccl_fail(why, "the plan is of another version");
    bool ring, groups, measure;
    if (get_step(&lines, plan, why) != 0)
        return -1;
    plan->unmeasured = tccl_line_bool(&lines, "measure", &measure) == 0 && !measure;
    if (tccl_line_bool(&lines, "ring", &ring) == 0 && !ring) {
        plan->untouched = tccl_line_bool(&lines, "groups", &groups) == 0 && !groups;
        return 0; /* the step as a whole is left to NCCL */
    }
    if (get_chain(&lines, &plan->chain, why) != 0)
        return -1;
    if (tccl_line_bool(&lines, "agreed", &plan->agreed) != 0)
        plan->agreed = false;
    if (!same_gpus(&plan->chain.rings.chains[0], plan->gpus, plan->n_gpus))
        return tccl_fail(why, "the plan's chain is not over the step's GPUs");
    if (plan->chain.rings.chains[0].closed != (plan->n_nodes == 1))
        return tccl_fail(why, "the plan's chain is %s on %u nodes",
                         plan->chain.rings.chains[0].closed ? "closed" : "open", plan->n_nodes);
    /* P2P all writes or all reads. */
    unsigned kinds = kinds_of(&plan->chain.rings);
    plan->reads = kinds & 1U << TCCL_P2P_READ;
    return plan->reads && (kinds & 1U << TCCL_P2P_WRITE) ? wrong(why, "chain") : 0;
}

/* ".../<job>.<step>.<restart>-<16 hex digits>/plan" */
static int read_folder(const char *path, struct shim_plan *plan, struct tccl_error *why)
{
    char wanted[64];
    struct shim_text text = {wanted, sizeof(wanted), 0, false};
    shim_text_add(&text, "/%u.%u.%u-", plan->job, plan->step, plan->restart);
    const char *file = strrchr(path, '/');
    size_t digits = sizeof(plan->folder) - 1;
    if (!file || (size_t)(file - path) < text.length + digits ||
        memcmp(file - digits - text.length, wanted, text.length) != 0)
        return tccl_fail(why, "the plan is in the folder of another step");
    memcpy(plan->folder, file - digits, digits);
    if (strspn(plan->folder, "0123456789abcdef") != digits)
        return tccl_fail(why, "the plan is in a folder that tccld did not make");
    return 0;
}

/* Does it lie in the folder of a job script's own step? Then *folder, *file and *job say where. */
static bool is_script(const char *path, const char **folder, const char **file, uint32_t *job)
{
    char *at;
    unsigned long number, step;
    *file = strrchr(path, '/');
    if (!*file || *file == path)
        return false;
    for (*folder = *file; *folder > path && (*folder)[-1] != '/';)
        (*folder)--;
    number = strtoul(*folder, &at, 10);
    if (at == *folder || *at != '.' || number > UINT32_MAX)
        return false;
    step = strtoul(at + 1, &at, 10);
    *job = (uint32_t)number;
    return at < *file && *at == '.' && (step == TCCL_STEP_BATCH || step == TCCL_STEP_INTERACTIVE);
}

int shim_plan_read(const char *path, struct shim_plan *plan, struct tccl_error *why)
{
    static char text[SHIM_PLAN_SIZE + 1]; /* read once in a process, by one thread */
    memset(plan, 0, sizeof(*plan));
    long size = shim_read_file(path, text, sizeof(text));
    if (size < 0 && errno == EFBIG)
        size = SHIM_PLAN_SIZE; /* tccld's record, which follows, may be longer */
    const char *folder, *file;
    uint32_t job;
    /* The variable is there for mpirun, whose step may have a plan. Without one the file has
     * tccld's record alone, which is not for users. */
    if (size < 0 && (errno == ENOENT || errno == EACCES) && is_script(path, &folder, &file, &job))
        return tccl_fail(why, "nothing was planned for this job script (TCCL_REASON says why), and "
                              "no step of mpirun runs on this node");
    if (size < 0)
        return tccl_fail(why, "the plan file can't be read: %s", path);
    size_t length = tccl_lines_length(text, (size_t)size);
    if (length > 0 && length < (size_t)size && text[length] != '{')
        return tccl_fail(why, "the plan file does not end with tccld's record");
    if (shim_plan_parse(text, length ? length : (size_t)size, plan, why) != 0)
        return -1;
    return read_folder(path, plan, why);
}

bool shim_plan_of_launcher(const char *path, char *found, size_t size)
{
    const char *file, *folder;
    char name[64];
    uint32_t job;
    struct shim_text text = {found, size, 0, false};
    if (!is_script(path, &folder, &file, &job))
        return false;
    shim_text_add(&text, "%.*s%u.launcher", (int)(folder - path), path, job);
    long length = text.full ? -1 : (long)readlink(found, name, sizeof(name));
    if (length <= 0 || length == sizeof(name) || memchr(name, '/', (size_t)length))
        return false;
    text.length = 0;
    shim_text_add(&text, "%.*s%.*s%s", (int)(folder - path), path, (int)length, name, file);
    return !text.full;
}

/* Slurm sets the number of a step, as a signed one, of srun's steps only; what else may be there is
 * left from a surrounding step. */
static bool is_step(const char *text, uint32_t step)
{
    uint64_t number;
    if (shim_number(text, 10, UINT32_MAX, &number) == 0)
        return number == step;
    if (*text == '-' && shim_number(text + 1, 10, INT32_MAX, &number) == 0)
        return (uint32_t)(-(int64_t)number) == step;
    return (step == TCCL_STEP_BATCH && strcmp(text, "batch") == 0) ||
           (step == TCCL_STEP_INTERACTIVE && strcmp(text, "interactive") == 0) ||
           (step == TCCL_STEP_EXTERN && strcmp(text, "extern") == 0);
}

/* In a user namespace, as containers have one, the number that a uid has outside of it. */
static uid_t outside(uid_t uid)
{
    char text[1024], *line = text;
    if (shim_read_file("/proc/self/uid_map", text, sizeof(text)) < 0)
        return uid;
    while (line && *line) {
        unsigned long inner = strtoul(line, &line, 10), outer = strtoul(line, &line, 10);
        unsigned long count = strtoul(line, &line, 10);
        if (uid >= inner && uid - inner < count)
            return (uid_t)(outer + (uid - inner));
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return uid;
}

bool shim_plan_whole(const struct shim_plan *plan, int ranks)
{
    uint32_t gpus = plan->step_gpus || plan->n_nodes > 1 ? plan->step_gpus : plan->n_gpus;
    return ranks > 0 && (uint32_t)ranks == gpus;
}

int shim_plan_fits(const struct shim_plan *plan, struct tccl_error *why)
{
    const char *job = shim_env("SLURM_JOB_ID"), *step = shim_env("SLURM_STEP_ID");
    const char *restart = shim_env("SLURM_RESTART_COUNT");
    uint64_t number;
    uid_t real, effective, saved;
    if (getresuid(&real, &effective, &saved) != 0 ||
        (plan->uid != (uint32_t)effective && plan->uid != (uint32_t)outside(effective)))
        return tccl_fail(why, "the plan is another user's");
    /* What it reads from the user's shared memory could do harm with other rights. */
    if (real != effective || saved != effective)
        return tccl_fail(why, "the process can take another user's rights");
    /* In a heterogeneous job Slurm tells tasks the number of the whole job. */
    if (job && (shim_number(job, 10, UINT32_MAX, &number) != 0 ||
                (number != plan->job && (!plan->het_job || number != plan->het_job))))
        return tccl_fail(why, "the plan is job %u's, this is %.20s", plan->job, job);
    if (step && !is_step(step, plan->step) &&
        !(plan->of_launcher && is_step(step, TCCL_STEP_INTERACTIVE)))
        return tccl_fail(why, "the plan is step %d's, this is %.20s", (int)plan->step, step);
    /* A job script's own step is not told its restart count when the plan is made. */
    if (restart && !plan->batch &&
        (shim_number(restart, 10, UINT32_MAX, &number) != 0 || number != plan->restart))
        return tccl_fail(why, "the plan is of the job's run %u, this is %.20s", plan->restart,
                         restart);
    return 0;
}

int shim_chain_parse(const char *text, size_t size, const tccl_bus *gpus, int n, bool closed,
                     struct shim_chain *chain, struct tccl_error *why)
{
    struct tccl_lines lines;
    char state[16];
    memset(chain, 0, sizeof(*chain));
    if (open_lines(text, size, "tccld's answer", &lines, why) != 0)
        return -1;
    if (strcmp(lines.name, "tccl-chain") != 0)
        return tccl_fail(why, "cannot get a chain: tccld refused the request");
    if (lines.version != 1)
        return tccl_fail(why, "tccld's answer is of another version");
    if (tccl_line_text(&lines, "state", state, sizeof(state)) < 0)
        return tccl_fail(why, "tccld's answer has no state");
    if (tccl_state_named(state) != TCCL_STATE_PLANNED) {
        /* Why tccld has no chain: its own words. */
        char reason[512];
        if (tccl_line_text(&lines, "reason", reason, sizeof(reason)) < 1)
            strcpy(reason, "tccld has no chain for these GPUs");
        tccl_fail(why, "%s", reason);
        return tccl_state_named(state) == TCCL_STATE_LEFT ? 1 : -1;
    }
    if (get_chain(&lines, chain, why) != 0)
        return -1;
    if (chain->rings.chains[0].closed != closed || !same_gpus(&chain->rings.chains[0], gpus, n))
        return tccl_fail(why, "tccld's chain is not the one that was asked for");
    return 0;
}
