#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

/* As Slurm numbers the steps that are none of srun's (slurm.h). */
#define STEP_EXTERN UINT32_C(0xfffffffc)
#define STEP_BATCH UINT32_C(0xfffffffb)
#define STEP_INTERACTIVE UINT32_C(0xfffffffa)

enum { MOST_NODES = 16384, NUMA_NODES = 1024 };
static const double most_gbps = 1e6;

static int wrong(struct shim_why *why, const char *what)
{
    return shim_fail(why, "the plan's %s is wrong or missing", what);
}

static int get_u32(struct shim_json object, const char *name, uint32_t max, uint32_t *number,
                   struct shim_why *why)
{
    int64_t read;
    if (shim_json_integer(shim_json_member(object, name), 0, max, &read) != 0)
        return wrong(why, name);
    *number = (uint32_t)read;
    return 0;
}

static int get_bool(struct shim_json object, const char *name, bool *truth, struct shim_why *why)
{
    return shim_json_bool(shim_json_member(object, name), truth) == 0 ? 0 : wrong(why, name);
}

static int get_gbps(struct shim_json object, const char *name, double *gbps, struct shim_why *why)
{
    struct shim_json value = shim_json_member(object, name);
    return shim_json_number(value, 0, most_gbps, gbps) == 0 ? 0 : wrong(why, name);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A word: a letter first, then letters, digits and what else is in more. */
static int get_word(struct shim_json object, const char *name, const char *more,
                    char word[static SHIM_NAME], struct shim_why *why)
{
    long length = shim_json_text(shim_json_member(object, name), word, SHIM_NAME);
    if (length < 1 || !is_letter(*word))
        return wrong(why, name);
    for (const char *at = word; *at; at++)
        if (!is_letter(*at) && !(*at >= '0' && *at <= '9') && !strchr(more, *at))
            return wrong(why, name);
    return 0;
}

static int get_bus(struct shim_json value, shim_bus *bus)
{
    char text[SHIM_BUS_TEXT];
    return shim_json_text(value, text, sizeof(text)) > 0 ? shim_bus_parse(text, bus) : -1;
}

int shim_chain_edges(const struct shim_chain *chain)
{
    return chain->closed ? chain->n : chain->n - 1;
}

/* A list of 1 to SHIM_GPUS bus ids, none of them twice. Returns how many, or -1. */
static int get_gpus(struct shim_json object, shim_bus gpus[static SHIM_GPUS], struct shim_why *why)
{
    struct shim_json list = shim_json_member(object, "gpus"), item = {0};
    int n = 0;
    while ((item = shim_json_next(list, item)).text) {
        if (n == SHIM_GPUS || get_bus(item, &gpus[n]) != 0 || shim_bus_find(gpus, n, gpus[n]) >= 0)
            return wrong(why, "gpus");
        n++;
    }
    return n ? n : wrong(why, "gpus");
}

/* A NUMA node of the kernel's; -1 where there is none, and for machines without. */
static int get_node(struct shim_json object, bool none, int16_t *node)
{
    int64_t read;
    if (shim_json_integer(shim_json_member(object, "node"), -1, none ? -1 : NUMA_NODES - 1,
                          &read) != 0)
        return -1;
    *node = (int16_t)read;
    return 0;
}

static int get_kind(struct shim_json object, uint8_t *kind)
{
    static const char *const kinds[] = {
        [SHIM_P2P_WRITE] = "p2p-write", [SHIM_P2P_READ] = "p2p-read", [SHIM_BOUNCE] = "bounce"};
    char text[16];
    if (shim_json_text(shim_json_member(object, "kind"), text, sizeof(text)) < 0)
        return -1;
    for (uint8_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strcmp(text, kinds[i]) == 0) {
            *kind = i;
            return 0;
        }
    }
    return -1;
}

static int get_edges(struct shim_json links, struct shim_chain *chain, struct shim_why *why)
{
    struct shim_json list = shim_json_member(links, "edges"), item = {0};
    int n = 0, wanted = shim_chain_edges(chain);
    if (!shim_json_is_list(list))
        return wrong(why, "edges");
    while ((item = shim_json_next(list, item)).text) {
        if (n == wanted || get_kind(item, &chain->edges[n].kind) != 0 ||
            get_node(item, chain->edges[n].kind != SHIM_BOUNCE, &chain->edges[n].node) != 0)
            return wrong(why, "edges");
        n++;
    }
    return n == wanted ? 0 : wrong(why, "edges");
}

static int get_end(struct shim_json links, const char *name, struct shim_end *end,
                   struct shim_why *why)
{
    struct shim_json object = shim_json_member(links, name);
    if (get_word(object, "nic", "_.", end->nic, why) != 0 ||
        get_bool(object, "gpudirect", &end->gpudirect, why) != 0)
        return -1;
    if (get_bus(shim_json_member(object, "busid"), &end->bus) != 0 ||
        get_node(object, end->gpudirect, &end->node) != 0)
        return wrong(why, name);
    return 0;
}

static int get_links(struct shim_json object, struct shim_chain *chain, struct shim_why *why)
{
    struct shim_json links = shim_json_member(object, "links");
    int n = get_gpus(links, chain->gpus, why);
    if (n < 0 || get_bool(links, "closed", &chain->closed, why) != 0)
        return -1;
    chain->n = (uint8_t)n;
    if (chain->closed && n < 2)
        return wrong(why, "ring over one GPU");
    if (get_edges(links, chain, why) != 0)
        return -1;
    if (chain->closed)
        return 0;
    if (get_end(links, "entry", &chain->entry, why) != 0 ||
        get_end(links, "exit", &chain->exit, why) != 0)
        return -1;
    return 0;
}

/* links, gbps, baseline_gbps and source, which plans and answers have alike. */
static int get_chain(struct shim_json object, struct shim_chain *chain, struct shim_why *why)
{
    if (get_links(object, chain, why) != 0 || get_gbps(object, "gbps", &chain->gbps, why) != 0 ||
        get_gbps(object, "baseline_gbps", &chain->baseline_gbps, why) != 0 ||
        get_word(object, "source", " _-.+,", chain->source, why) != 0)
        return -1;
    return chain->gbps > 0 ? 0 : wrong(why, "gbps");
}

static bool same_gpus(const struct shim_chain *chain, const shim_bus *gpus, int n)
{
    if (chain->n != n)
        return false;
    for (int i = 0; i < n; i++)
        if (shim_bus_find(chain->gpus, n, gpus[i]) < 0)
            return false;
    return true;
}

static int get_key(struct shim_json object, struct shim_plan *plan, struct shim_why *why)
{
    struct shim_json key = shim_json_member(object, "key");
    int64_t run;
    if (!shim_json_is_object(key) || key.size >= sizeof(plan->key))
        return wrong(why, "key");
    memcpy(plan->key, key.text, key.size);
    if (get_u32(key, "job", UINT32_MAX, &plan->job, why) != 0 ||
        get_u32(key, "het_job", UINT32_MAX, &plan->het_job, why) != 0 ||
        get_u32(key, "step", UINT32_MAX, &plan->step, why) != 0 ||
        get_u32(key, "restart", UINT32_MAX, &plan->restart, why) != 0)
        return -1;
    if (shim_json_integer(shim_json_member(key, "run"), 0, INT64_MAX, &run) != 0)
        return wrong(why, "run");
    plan->batch = plan->step == STEP_BATCH;
    return 0;
}

static int get_state(struct shim_json object, struct shim_why *why)
{
    char state[16];
    int64_t version;
    if (shim_json_integer(shim_json_member(object, "version"), 1, 1, &version) != 0)
        return shim_fail(why, "the plan is of another version");
    if (shim_json_text(shim_json_member(object, "state"), state, sizeof(state)) < 0)
        return wrong(why, "state");
    return strcmp(state, "applied") == 0 ? 0 : shim_fail(why, "the plan is not to be applied");
}

static int get_step_gpus(struct shim_json object, struct shim_plan *plan, struct shim_why *why)
{
    int n = get_gpus(object, plan->gpus, why);
    if (n < 0 || get_u32(object, "step_gpus", MOST_NODES * SHIM_GPUS, &plan->step_gpus, why) != 0)
        return -1;
    plan->n_gpus = (uint8_t)n;
    for (int i = 1; i < n; i++)
        if (plan->gpus[i - 1] >= plan->gpus[i])
            return wrong(why, "order of gpus");
    if (plan->step_gpus && plan->step_gpus < (uint32_t)n)
        return wrong(why, "step_gpus");
    return 0;
}

static int get_place(struct shim_json object, struct shim_plan *plan, struct shim_why *why)
{
    if (shim_json_text(shim_json_member(object, "socket"), plan->socket, sizeof(plan->socket)) <
            1 ||
        *plan->socket != '/')
        return wrong(why, "socket");
    if (get_u32(object, "uid", UINT32_MAX, &plan->uid, why) != 0 ||
        get_u32(object, "index", MOST_NODES - 1, &plan->index, why) != 0 ||
        get_u32(object, "n_nodes", MOST_NODES, &plan->n_nodes, why) != 0 ||
        get_bool(object, "one_fabric", &plan->one_fabric, why) != 0)
        return -1;
    return plan->index < plan->n_nodes ? 0 : wrong(why, "index");
}

int shim_plan_parse(const char *text, size_t size, struct shim_plan *plan, struct shim_why *why)
{
    struct shim_json object;
    memset(plan, 0, sizeof(*plan));
    if (shim_json_parse(text, size, &object, why) != 0 || get_state(object, why) != 0 ||
        get_key(object, plan, why) != 0 || get_place(object, plan, why) != 0 ||
        get_step_gpus(object, plan, why) != 0 || get_chain(object, &plan->chain, why) != 0)
        return -1;
    if (!same_gpus(&plan->chain, plan->gpus, plan->n_gpus))
        return shim_fail(why, "the plan's chain is not over the step's GPUs");
    if (plan->chain.closed != (plan->n_nodes == 1))
        return shim_fail(why, "the plan's chain is %s on %u nodes",
                         plan->chain.closed ? "closed" : "open", plan->n_nodes);
    return 0;
}

/* ".../<job>.<step>.<restart>-<16 hex digits>/plan.json" */
static int read_folder(const char *path, struct shim_plan *plan, struct shim_why *why)
{
    char wanted[64];
    struct shim_text text = {wanted, sizeof(wanted), 0, false};
    shim_text_add(&text, "/%u.%u.%u-", plan->job, plan->step, plan->restart);
    const char *file = strrchr(path, '/');
    size_t digits = sizeof(plan->folder) - 1;
    if (!file || (size_t)(file - path) < text.length + digits ||
        memcmp(file - digits - text.length, wanted, text.length) != 0)
        return shim_fail(why, "the plan lies in the folder of another step");
    memcpy(plan->folder, file - digits, digits);
    if (strspn(plan->folder, "0123456789abcdef") != digits)
        return shim_fail(why, "the plan lies in a folder that tccld did not make");
    return 0;
}

int shim_plan_read(const char *path, struct shim_plan *plan, struct shim_why *why)
{
    static char text[SHIM_PLAN_SIZE + 1]; /* read once in a process, by one thread */
    memset(plan, 0, sizeof(*plan));
    long size = shim_read_file(path, text, sizeof(text));
    if (size < 0)
        return shim_fail(why, "the plan file can't be read: %s", path);
    if (shim_plan_parse(text, (size_t)size, plan, why) != 0)
        return -1;
    return read_folder(path, plan, why);
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
    return (step == STEP_BATCH && strcmp(text, "batch") == 0) ||
           (step == STEP_INTERACTIVE && strcmp(text, "interactive") == 0) ||
           (step == STEP_EXTERN && strcmp(text, "extern") == 0);
}

/* In a heterogeneous job Slurm tells tasks the number of the whole job. */
static bool is_job(const char *text, const struct shim_plan *plan)
{
    uint64_t number;
    return shim_number(text, 10, UINT32_MAX, &number) == 0 &&
           (number == plan->job || (plan->het_job && number == plan->het_job));
}

/* In a user namespace, as containers have one, the number that a uid has outside of it. */
static uid_t outside(uid_t uid)
{
    char text[1024], *line = text;
    if (shim_read_file("/proc/self/uid_map", text, sizeof text) < 0)
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

int shim_plan_fits(const struct shim_plan *plan, struct shim_why *why)
{
    const char *job = shim_env("SLURM_JOB_ID"), *step = shim_env("SLURM_STEP_ID");
    const char *restart = shim_env("SLURM_RESTART_COUNT");
    uint64_t number;
    uid_t real, effective, saved;
    if (getresuid(&real, &effective, &saved) != 0 ||
        (plan->uid != (uint32_t)effective && plan->uid != (uint32_t)outside(effective)))
        return shim_fail(why, "the plan is another user's");
    /* What it reads from the user's shared memory could do harm with other rights. */
    if (real != effective || saved != effective)
        return shim_fail(why, "the process can take another user's rights");
    if (job && !is_job(job, plan))
        return shim_fail(why, "the plan is job %u's, this is %.20s", plan->job, job);
    if (step && !is_step(step, plan->step))
        return shim_fail(why, "the plan is step %d's, this is %.20s", (int)plan->step, step);
    /* A job script's own step is not told its restart count when the plan is made. */
    if (restart && !plan->batch &&
        (shim_number(restart, 10, UINT32_MAX, &number) != 0 || number != plan->restart))
        return shim_fail(why, "the plan is of the job's run %u, this is %.20s", plan->restart,
                         restart);
    return 0;
}

/* Why tccld has no chain: its own words. */
static int none(struct shim_json object, const char *state, struct shim_why *why)
{
    char reason[sizeof(why->text)];
    if (shim_json_text(shim_json_member(object, "reason"), reason, sizeof(reason)) < 1)
        strcpy(reason, "tccld has no chain for these GPUs");
    for (char *at = reason; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = ' ';
    shim_fail(why, "%s", reason);
    return strcmp(state, "nothing-to-do") == 0 ? 1 : -1;
}

static int check_answer(struct shim_json object, struct shim_why *why)
{
    char word[16];
    int64_t version;
    if (shim_json_integer(shim_json_member(object, "v"), 1, 1, &version) != 0)
        return shim_fail(why, "tccld's answer is of another version");
    if (shim_json_text(shim_json_member(object, "type"), word, sizeof(word)) < 0 ||
        strcmp(word, "chain") != 0)
        return shim_fail(why, "tccld refused to tell a chain");
    if (shim_json_text(shim_json_member(object, "state"), word, sizeof(word)) < 0)
        return shim_fail(why, "tccld's answer has no state");
    return strcmp(word, "applied") == 0 ? 0 : none(object, word, why);
}

int shim_chain_parse(const char *text, size_t size, const shim_bus *gpus, int n, bool closed,
                     struct shim_chain *chain, struct shim_why *why)
{
    struct shim_json object;
    memset(chain, 0, sizeof(*chain));
    if (shim_json_parse(text, size, &object, why) != 0)
        return -1;
    int state = check_answer(object, why);
    if (state != 0)
        return state;
    if (get_chain(object, chain, why) != 0)
        return -1;
    if (chain->closed != closed || !same_gpus(chain, gpus, n))
        return shim_fail(why, "tccld's chain is not the one that was asked for");
    return 0;
}

/* What all bus ids have in common is left out. */
static void format_gpu(const struct shim_chain *chain, int i, struct shim_text *text)
{
    shim_bus all = 0;
    char bus[SHIM_BUS_TEXT];
    for (int other = 0; other < chain->n; other++)
        all |= chain->gpus[other] ^ chain->gpus[0];
    bool domain = all >> 16 != 0 || (chain->n == 1 && chain->gpus[0] >> 16 != 0);
    shim_bus_format(chain->gpus[i], bus);
    char *start = domain ? bus : strchr(bus, ':') + 1;
    if ((all & 0xff) == 0)
        *strrchr(start, ':') = '\0';
    shim_text_add(text, "%s", start);
}

static void format_edge(struct shim_edge edge, struct shim_text *text)
{
    if (edge.kind == SHIM_BOUNCE && edge.node >= 0)
        shim_text_add(text, " -m%d> ", edge.node);
    else
        shim_text_add(text, " -%c> ", "wrm"[edge.kind]);
}

static void format_end(const struct shim_end *end, struct shim_text *text)
{
    if (end->gpudirect)
        shim_text_add(text, " -g> ");
    else
        format_edge((struct shim_edge){SHIM_BOUNCE, end->node}, text);
}

void shim_chain_format(const struct shim_chain *chain, struct shim_text *text)
{
    if (!chain->closed) {
        shim_text_add(text, "%s", chain->entry.nic);
        format_end(&chain->entry, text);
    }
    for (int i = 0; i < chain->n; i++) {
        format_gpu(chain, i, text);
        if (i + 1 < chain->n || chain->closed)
            format_edge(chain->edges[i], text);
    }
    if (chain->closed) {
        format_gpu(chain, 0, text);
    } else {
        format_end(&chain->exit, text);
        shim_text_add(text, "%s", chain->exit.nic);
    }
}
