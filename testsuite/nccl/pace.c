/* pace.c: see pace.h. */
#include "pace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    NODES = 8,
    RESOURCES = 4096, /* of a node */
    TRANSFERS = 1024,
    USES = 64,   /* of a transfer */
    RULES = 128, /* of a node */
    WHENS = 16,  /* of a rule */
    WAITED_FOR = 1 << 30,
    LOOK_NS = 2000000,  /* a copy that waits looks so often whether rates have changed */
    LATE_NS = 20000000, /* a thread that comes later than that had something else to do */
    SWEEP_NS = 500000000
};

struct use {
    int resource;
    double weight;
};

struct transfer {
    char name[PACE_NAME];
    int n_uses, n_whens;
    struct use uses[USES];
    struct {
        int rule, when;
    } whens[USES];
};

struct node {
    int n_resources, n_transfers, n_rules;
    struct {
        double gbps;
        int rule; /* only while it applies; -1: always */
    } resources[RESOURCES];
    int whens_of[RULES];
    struct transfer transfers[TRANSFERS];
};

/* All of it zero is a good one. */
struct flows {
    int owner; /* the process that changes it, and whether others wait for it */
    int64_t at;
    int64_t swept;
    int n; /* places in use, at most */
    struct flow {
        int pid; /* 0: free */
        int n;
        struct pace_part parts[PACE_PARTS];
        double left, rate; /* bytes; bytes a nanosecond */
    } flows[PACE_FLOWS];
};

static struct node *nodes[NODES];
static double slower = 1;
static struct flows *shared;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- What the machines are ---- */

/* "transfer g0>m1 uses 3:1 7:1.1 when 0:1": its resources with their weights, and of which rules it
 * is which "when". */
static bool read_transfer(struct node *node, char *text)
{
    struct transfer *transfer = &node->transfers[node->n_transfers];
    bool when = false;
    char *rest, *word = strtok_r(text, " \n", &rest);
    if (node->n_transfers == TRANSFERS || !word)
        return false;
    snprintf(transfer->name, sizeof(transfer->name), "%s", word);
    while ((word = strtok_r(NULL, " \n", &rest))) {
        int number;
        double weight;
        if (strcmp(word, "uses") == 0 || strcmp(word, "when") == 0) {
            when = word[0] == 'w';
            continue;
        }
        if (sscanf(word, "%d:%lf", &number, &weight) != 2 || number < 0 ||
            (when ? transfer->n_whens : transfer->n_uses) == USES ||
            number >= (when ? node->n_rules : node->n_resources))
            return false;
        if (when && (weight < 0 || weight >= WHENS))
            return false;
        if (when)
            transfer->whens[transfer->n_whens].rule = number,
            transfer->whens[transfer->n_whens++].when = (int)weight;
        else
            transfer->uses[transfer->n_uses++] = (struct use){number, weight};
    }
    node->n_transfers++;
    return true;
}

static bool read_line(struct node *node, char *line)
{
    double gbps;
    int n, rule = -1;
    if (strncmp(line, "transfer ", 9) == 0)
        return read_transfer(node, line + 9);
    if (sscanf(line, "slower %lf", &slower) == 1)
        return slower > 0;
    if (sscanf(line, "rule %d", &n) == 1 && node->n_rules < RULES && n > 0 && n <= WHENS) {
        node->whens_of[node->n_rules++] = n;
        return true;
    }
    if (sscanf(line, "resource %lf rule %d", &gbps, &rule) < 1 || node->n_resources == RESOURCES ||
        gbps <= 0 || rule >= node->n_rules)
        return false;
    node->resources[node->n_resources].gbps = gbps;
    node->resources[node->n_resources++].rule = rule;
    return true;
}

/* NULL: it is not there, or makes no sense. */
static struct node *read_node(const char *folder, int number)
{
    char path[512], line[8192];
    snprintf(path, sizeof(path), "%s/node%d", folder, number);
    FILE *file = fopen(path, "re");
    struct node *node = file ? calloc(1, sizeof(*node)) : NULL;
    bool good = node != NULL;
    while (good && fgets(line, sizeof(line), file))
        good = read_line(node, line);
    if (file && !good)
        fprintf(stderr, "tccl: rig: %s: not as describe-pace writes it\n", path);
    if (file)
        fclose(file);
    if (good)
        return node;
    free(node);
    return NULL;
}

static bool open_all(void)
{
    const char *folder = getenv("TCCL_RIG_PACE");
    char path[512];
    if (!folder || !*folder)
        return false;
    for (int i = 0; i < NODES; i++)
        nodes[i] = read_node(folder, i);
    snprintf(path, sizeof(path), "%s/flows", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *map = fd >= 0 && ftruncate(fd, sizeof(*shared)) == 0
                    ? mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                    : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED || !nodes[0]) {
        fprintf(stderr, "tccl: rig: TCCL_RIG_PACE=%s: can't be used: %s\n", folder,
                strerror(errno));
        return false;
    }
    shared = map;
    return true;
}

bool pace_open(void)
{
    static int state; /* 0: nobody has been here; 1: somebody is at it; 2: closed; 3: open */
    int fresh = 0;
    if (__atomic_compare_exchange_n(&state, &fresh, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        __atomic_store_n(&state, open_all() ? 3 : 2, __ATOMIC_SEQ_CST);
    while ((fresh = __atomic_load_n(&state, __ATOMIC_SEQ_CST)) == 1)
        sched_yield();
    return fresh == 3;
}

double pace_slower(void)
{
    return pace_open() ? slower : 1;
}

int pace_find(int node, const char *name)
{
    for (int i = 0; node >= 0 && node < NODES && nodes[node] && i < nodes[node]->n_transfers; i++)
        if (strcmp(nodes[node]->transfers[i].name, name) == 0)
            return i;
    return -1;
}

int pace_node(void)
{
    const char *node = getenv("TCCL_RIG_NODE");
    return node ? atoi(node) : 0;
}

bool pace_find_part(int node, const char *name, struct pace_part *part)
{
    static int told;
    *part = (struct pace_part){node, pace_find(node, name)};
    if (part->transfer < 0 && __atomic_fetch_add(&told, 1, __ATOMIC_RELAXED) == 0)
        fprintf(stderr, "tccl rig: the machine has no %s: not paced\n", name);
    return part->transfer >= 0;
}

/* ---- Rates ---- */

/* What is left of each resource of each node, and the weights of those whose rates are not fixed.
 */
struct filling {
    int n; /* resources in use */
    struct {
        int node, resource;
    } used[NODES * RESOURCES];
    double left[NODES][RESOURCES], weights[NODES][RESOURCES];
    bool there[NODES][RESOURCES], applies[NODES][RULES];
};

static bool counts(const struct filling *filling, const struct pace_part *part,
                   const struct use *use)
{
    int rule = nodes[part->node]->resources[use->resource].rule;
    return rule < 0 || filling->applies[part->node][rule];
}

/* Rules whose patterns are all met. */
static void find_rules(struct filling *filling, const struct flow *const *flows, int n)
{
    unsigned met[NODES][RULES] = {{0}};
    for (int i = 0; i < n; i++)
        for (int part = 0; part < flows[i]->n; part++) {
            int node = flows[i]->parts[part].node;
            const struct transfer *transfer =
                &nodes[node]->transfers[flows[i]->parts[part].transfer];
            for (int k = 0; k < transfer->n_whens; k++)
                met[node][transfer->whens[k].rule] |= 1u << transfer->whens[k].when;
        }
    for (int node = 0; node < NODES; node++)
        for (int rule = 0; nodes[node] && rule < nodes[node]->n_rules; rule++)
            filling->applies[node][rule] =
                met[node][rule] == (1u << nodes[node]->whens_of[rule]) - 1;
}

/* Adds sign × weight of a flow's uses. */
static void weigh(struct filling *filling, const struct flow *flow, double sign, double rate)
{
    for (int part = 0; part < flow->n; part++) {
        const struct pace_part *at = &flow->parts[part];
        const struct transfer *transfer = &nodes[at->node]->transfers[at->transfer];
        for (int k = 0; k < transfer->n_uses; k++) {
            const struct use *use = &transfer->uses[k];
            if (!counts(filling, at, use))
                continue;
            if (!filling->there[at->node][use->resource]) {
                filling->there[at->node][use->resource] = true;
                filling->left[at->node][use->resource] =
                    nodes[at->node]->resources[use->resource].gbps;
                filling->used[filling->n].node = at->node;
                filling->used[filling->n++].resource = use->resource;
            }
            filling->weights[at->node][use->resource] += sign * use->weight;
            filling->left[at->node][use->resource] -= use->weight * rate;
        }
    }
}

static bool is_full(const struct filling *filling, const struct flow *flow, double level)
{
    for (int part = 0; part < flow->n; part++) {
        const struct pace_part *at = &flow->parts[part];
        const struct transfer *transfer = &nodes[at->node]->transfers[at->transfer];
        for (int k = 0; k < transfer->n_uses; k++) {
            int resource = transfer->uses[k].resource;
            if (counts(filling, at, &transfer->uses[k]) &&
                filling->left[at->node][resource] <=
                    filling->weights[at->node][resource] * level * (1 + 1e-9))
                return true;
        }
    }
    return false;
}

/* Progressive filling (D. Bertsekas, R. Gallager: Data Networks, 6.5.2): all rates rise together,
 * and those of what is full stay. rates: GB/s. By one thread at a time. */
static void fill(const struct flow *const *flows, int n, double *rates)
{
    static struct filling kept; /* clean between calls: it is large */
    struct filling *filling = &kept;
    find_rules(filling, flows, n);
    for (int i = 0; i < n; i++) {
        weigh(filling, flows[i], 1, 0);
        rates[i] = -1;
    }
    for (int fixed = 0; fixed < n;) {
        double level = 1e9;
        for (int i = 0; i < filling->n; i++) {
            int node = filling->used[i].node, resource = filling->used[i].resource;
            double weights = filling->weights[node][resource];
            if (weights > 1e-9 && filling->left[node][resource] / weights < level)
                level = filling->left[node][resource] / weights;
        }
        bool full[PACE_FLOWS];
        for (int i = 0; i < n; i++)
            full[i] = rates[i] < 0 && (level >= 1e9 || is_full(filling, flows[i], level));
        for (int i = 0; i < n; i++)
            if (full[i]) {
                rates[i] = level;
                weigh(filling, flows[i], -1, level);
                fixed++;
            }
    }
    for (int i = 0; i < filling->n; i++) {
        int node = filling->used[i].node, resource = filling->used[i].resource;
        filling->there[node][resource] = false;
        filling->weights[node][resource] = 0;
    }
    filling->n = 0;
}

void pace_rates(const struct pace_part *parts, int n, double *rates)
{
    static struct flow flows[PACE_FLOWS];
    const struct flow *all[PACE_FLOWS];
    for (int i = 0; i < n; i++) {
        flows[i] = (struct flow){.n = 1, .parts = {parts[i]}};
        all[i] = &flows[i];
    }
    fill(all, n, rates);
}

/* ---- Copies ---- */

static bool change_owner(int from, int to)
{
    return __atomic_compare_exchange_n(&shared->owner, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* A process that was killed while it held it leaves it to the next one. Threads that wait sleep:
 * there may be a hundred of them for each processor. */
static void take(void)
{
    int self = getpid();
    if (change_owner(0, self))
        return;
    while (!change_owner(0, self | WAITED_FOR)) {
        int owner = __atomic_load_n(&shared->owner, __ATOMIC_SEQ_CST);
        struct timespec most = {.tv_nsec = 10000000};
        if (owner == 0 || (!(owner & WAITED_FOR) && !change_owner(owner, owner | WAITED_FOR)))
            continue;
        if (syscall(SYS_futex, &shared->owner, FUTEX_WAIT, owner | WAITED_FOR, &most, NULL, 0) !=
                0 &&
            errno == ETIMEDOUT && kill(owner & ~WAITED_FOR, 0) != 0 && errno == ESRCH)
            change_owner(owner | WAITED_FOR, 0);
    }
}

static void give(void)
{
    if (__atomic_exchange_n(&shared->owner, 0, __ATOMIC_SEQ_CST) & WAITED_FOR)
        syscall(SYS_futex, &shared->owner, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* All flows up to now. A copy that is done, and whose thread has not noticed, goes on: its next one
 * is so much shorter. */
static void advance(int64_t now)
{
    int64_t passed = now - shared->at;
    for (int i = 0; passed > 0 && i < shared->n; i++)
        if (shared->flows[i].pid)
            shared->flows[i].left -= shared->flows[i].rate * (double)passed;
    shared->at = now;
    if (now - shared->swept < SWEEP_NS)
        return;
    shared->swept = now;
    for (int i = 0; i < shared->n; i++)
        if (shared->flows[i].pid && kill(shared->flows[i].pid, 0) != 0 && errno == ESRCH)
            shared->flows[i].pid = 0;
}

static void rate_all(void)
{
    const struct flow *flows[PACE_FLOWS] = {NULL};
    double rates[PACE_FLOWS];
    int n = 0;
    for (int i = 0; i < shared->n; i++)
        if (shared->flows[i].pid)
            flows[n++] = &shared->flows[i];
    fill(flows, n, rates);
    for (int i = 0; i < n; i++)
        ((struct flow *)flows[i])->rate = rates[i] / slower;
}

/* NULL: too many. */
static struct flow *begin(const struct pace_part *parts, int n, double bytes)
{
    int place = 0;
    while (place < shared->n && shared->flows[place].pid)
        place++;
    if (place == PACE_FLOWS)
        return NULL;
    shared->n = place == shared->n ? place + 1 : shared->n;
    struct flow *flow = &shared->flows[place];
    *flow = (struct flow){.pid = getpid(), .n = n, .left = bytes};
    memcpy(flow->parts, parts, (size_t)n * sizeof(*parts));
    return flow;
}

static void sleep_ns(int64_t ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    nanosleep(&time, NULL);
}

/* How long a copy takes from now on, without the lock: while others change it this may be wrong. */
static double due_ns(const struct flow *flow)
{
    double left, rate;
    int64_t at;
    __atomic_load(&flow->left, &left, __ATOMIC_RELAXED);
    __atomic_load(&flow->rate, &rate, __ATOMIC_RELAXED);
    at = __atomic_load_n(&shared->at, __ATOMIC_RELAXED);
    return left / rate - (double)(now_ns() - at);
}

void pace_copy(struct pace_stream *stream, const struct pace_part *parts, int n, size_t bytes,
               bool (*gone)(void *data), void *data)
{
    int64_t now = now_ns();
    double left = (double)bytes - (now - stream->at < LATE_NS ? stream->ahead : 0);
    *stream = (struct pace_stream){left < 0 ? -left : 0, now};
    if (bytes == 0 || n == 0 || left <= 0)
        return;
    take();
    advance(now_ns());
    struct flow *flow = begin(parts, n, left);
    if (!flow) {
        give();
        fprintf(stderr, "tccl: rig: more than %d copies at once: one is not paced\n", PACE_FLOWS);
        return;
    }
    rate_all();
    while (flow->left > 0 && (!gone || !gone(data))) {
        double due = flow->left / flow->rate;
        give();
        do
            sleep_ns(due < LOOK_NS ? (int64_t)due + 1 : LOOK_NS);
        while ((due = due_ns(flow)) > 0 && (!gone || !gone(data)));
        take();
        advance(now_ns());
    }
    *stream = (struct pace_stream){flow->left < 0 ? -flow->left : 0, shared->at};
    flow->pid = 0;
    rate_all();
    give();
}
