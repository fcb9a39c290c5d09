/* verdicts.c: BUILT. A node sends its sum up once all nodes of its range have spoken; or some time
 * after a word that something differs, or after the step has ended here, or long after the first
 * word, whoever is missing then; and again if more comes afterwards. What
 * is known is also kept beside the plan, for a tccld that is started again; a plan that is removed
 * takes it along: who has not passed its word on by then is a silent node. */
#include "tccld/join/verdicts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/key.h"
#include "client/message.h"
#include "tccld/jobs/record-claims.h"
#include "tccld/join/built-sum.h"
#include "tccld/join/planfile.h"
#include "tccld/join/running.h"
#include "tccld/join/tree.h"
#include "tccld/main/log.h"
#include "tccld/main/run-dir.h"
#include "tccld/net/link.h"

struct below {
    int node;
    bool heard;
    struct built_sum sum;
};

struct verdict {
    TAILQ_ENTRY(verdict) link;
    struct verdicts *all;
    struct alive step;
    int rank; /* of this node */
    char text[BUILT_TEXT + 1];
    int lowest; /* rank in NCCL of this node's processes; -1: not known */
    bool begun; /* a communicator has been given the ring */
    int nccl;   /* the version that ran here, 0: not known */
    struct below *below;
    int n_below;
    /* tccl_now_ms; of the first word and the last one, 0: none; ended_at 0: it goes on */
    int64_t first_at, changed_at, ended_at, retry_at, gone_at;
    struct built_sum sent; /* end 0: nothing has been */
    int told;              /* by node 0: rank of what is on record */
    struct link *up;
    struct event *timer;
};

struct verdicts {
    struct daemon *daemon;
    TAILQ_HEAD(, verdict) list; /* the oldest first */
    int count;
    struct log_limit refused, lost;
};

struct verdicts *verdicts_new(struct daemon *daemon)
{
    struct verdicts *verdicts = calloc(1, sizeof(*verdicts));
    if (!verdicts)
        return NULL;
    verdicts->daemon = daemon;
    TAILQ_INIT(&verdicts->list);
    return verdicts;
}

static void drop(struct verdict *verdict)
{
    TAILQ_REMOVE(&verdict->all->list, verdict, link);
    verdict->all->count--;
    if (verdict->up)
        link_cancel(verdict->up);
    if (verdict->timer)
        event_free(verdict->timer);
    free(verdict->below);
    free(verdict);
}

void verdicts_free(struct verdicts *verdicts)
{
    while (verdicts && !TAILQ_EMPTY(&verdicts->list))
        drop(TAILQ_FIRST(&verdicts->list));
    free(verdicts);
}

/* ---- What is known of a step ---- */

static int end_of(const struct verdict *verdict, int node)
{
    return tree_end(node, verdict->step.n_nodes);
}

static int find_below(struct verdict *verdict)
{
    int node = verdict->step.index;
    verdict->below =
        calloc((size_t)tree_children(node, verdict->step.n_nodes) + 1, sizeof(*verdict->below));
    for (int c = node;
         verdict->below && (c = tree_next_child(node, c, verdict->step.n_nodes)) >= 0;)
        verdict->below[verdict->n_below++].node = c;
    return verdict->below ? 0 : -1;
}

static void put_silence(struct built_sum *sum, int nodes)
{
    built_sum_put(sum, nodes, TCCL_BUILT_NOTHING, "");
    built_sum_put_rank(sum, -1);
}

static void add_up(const struct verdict *verdict, struct built_sum *sum)
{
    built_sum_begin(sum, verdict->step.index);
    built_sum_put(sum, 1, verdict->rank, verdict->text);
    built_sum_put_rank(sum, verdict->lowest);
    for (int i = 0; i < verdict->n_below; i++) {
        const struct below *below = &verdict->below[i];
        if (below->heard)
            built_sum_append(sum, &below->sum);
        else
            put_silence(sum, end_of(verdict, below->node) - below->node);
    }
}

static struct below *below_of(const struct verdict *verdict, int node)
{
    for (int i = 0; i < verdict->n_below; i++)
        if (verdict->below[i].node == node)
            return &verdict->below[i];
    return NULL;
}

/* ---- Beside the plan ---- */

static json_t *state_to_json(const struct verdict *verdict)
{
    cleanup_json json_t *state = json_pack(
        "{s:i, s:i, s:i, s:b, s:i, s:[]}", "told", verdict->told, "rank", verdict->rank, "lowest",
        verdict->lowest, "begun", (int)verdict->begun, "nccl", verdict->nccl, "below");
    if (tccl_put_text(state, "text", verdict->text, BUILT_TEXT) != 0)
        return NULL;
    for (int i = 0; i < verdict->n_below; i++) {
        json_t *sum = verdict->below[i].heard ? built_sum_to_json(&verdict->below[i].sum) : NULL;
        if (sum && (json_object_set_new(sum, "node", json_integer(verdict->below[i].node)) != 0 ||
                    json_array_append_new(json_object_get(state, "below"), sum) != 0))
            return NULL;
    }
    return tccl_steal(state);
}

/* What is known of a step, to or from the file beside its plan. */
struct noting {
    char run_dir[PATH_MAX];
    struct tccl_step_key key;
    char *text;
};

static void write_note(void *task)
{
    const struct noting *noting = task;
    planfile_note(noting->run_dir, &noting->key, noting->text);
}

static void read_note(void *task)
{
    struct noting *noting = task;
    noting->text = planfile_noted(noting->run_dir, &noting->key);
}

static void forget_note(void *task, int ran)
{
    struct noting *noting = task;
    (void)ran;
    free(noting->text);
}

/* text is taken over; NULL: it is read. Allocated; NULL: there is none. */
static char *note(const struct verdict *verdict, char *text)
{
    const struct daemon *daemon = verdict->all->daemon;
    struct noting noting = {.key = verdict->step.key, .text = text};
    strcpy(noting.run_dir, daemon->conf->run_dir);
    return run_dir_do(daemon->run_dir, text ? write_note : read_note, forget_note, &noting,
                      sizeof(noting), NULL) == 0
               ? noting.text
               : NULL;
}

static void save(const struct verdict *verdict)
{
    cleanup_json json_t *state = verdict->ended_at ? NULL : state_to_json(verdict);
    char *text = state ? json_dumps(state, JSON_COMPACT) : NULL;
    if (text)
        free(note(verdict, text));
}

static void load_below(struct verdict *verdict, const json_t *json)
{
    json_int_t node;
    if (tccl_get_int(json, "node", 1, TCCL_MAX_NODES, &node, NULL) != 0)
        return;
    struct below *below = below_of(verdict, (int)node);
    if (below)
        below->heard = built_sum_from_json(json, below->node, end_of(verdict, below->node),
                                           &below->sum, NULL) == 0;
}

/* As a tccld before this one has left it. */
static void load(struct verdict *verdict)
{
    cleanup_free char *text = note(verdict, NULL);
    cleanup_json json_t *state = text ? json_loads(text, 0, NULL) : NULL;
    json_int_t told, rank, lowest;
    const char *said;
    const json_t *below;
    size_t i;
    if (!state || tccl_get_int(state, "told", 0, TCCL_BUILT_DIFFERS, &told, NULL) != 0 ||
        tccl_get_int(state, "rank", 0, TCCL_BUILT_DIFFERS, &rank, NULL) != 0 ||
        tccl_get_int(state, "lowest", -1, INT32_MAX, &lowest, NULL) != 0 ||
        tccl_get_text(state, "text", BUILT_TEXT, &said, NULL) != 0)
        return;
    verdict->lowest = (int)lowest;
    verdict->told = (int)told;
    verdict->rank = (int)rank;
    verdict->begun = json_is_true(json_object_get(state, "begun"));
    verdict->nccl = (int)json_integer_value(json_object_get(state, "nccl"));
    snprintf(verdict->text, sizeof(verdict->text), "%s", said);
    json_array_foreach(json_object_get(state, "below"), i, below) load_below(verdict, below);
}

/* ---- Upwards ---- */

static void advance(struct verdict *verdict);

/* The version that ran on this node, and what it would have built by itself. */
static int put_nccl(const struct verdict *verdict, json_t *record)
{
    const struct alive *step = &verdict->step;
    char version[32];
    int at = step->n_baselines - 1;
    if (verdict->nccl <= 0)
        return 0;
    while (at > 0 && verdict->nccl < step->baselines[at].first)
        at--;
    snprintf(version, sizeof(version), "%d.%d.%d", verdict->nccl / 10000, verdict->nccl / 100 % 100,
             verdict->nccl % 100);
    if (json_object_set_new(record, "nccl", json_string(version)) != 0)
        return -1;
    return at < 0 ? 0
                  : json_object_set_new(record, "nccl_gbps", json_real(step->baselines[at].gbps));
}

static json_t *record_of(const struct verdict *verdict, int rank, const char *reason)
{
    cleanup_json json_t *record = tccl_key_to_json(&verdict->step.key);
    if (json_object_set_new(record, "start", json_integer(verdict->step.start)) != 0 ||
        json_object_set_new(record, "built", json_string(tccl_built_name(rank))) != 0 ||
        tccl_put_text(record, "built_reason", reason, TCCL_OUTCOME_REASON) != 0 ||
        put_nccl(verdict, record) != 0)
        return NULL;
    return tccl_steal(record);
}

/* By node 0. */
static void put_on_record(struct verdict *verdict, const struct built_sum *sum)
{
    char reason[TCCL_OUTCOME_REASON + 1];
    int rank = built_sum_judge(sum, verdict->step.nodes, reason);
    verdict->sent = *sum;
    if (rank <= verdict->told)
        return;
    json_t *record = record_of(verdict, rank, reason);
    if (!record)
        return;
    confirmation_put_checked(verdict->all->daemon, record);
    verdict->told = rank;
    save(verdict);
}

static void on_answer(void *context, json_t *answer, const struct tccl_error *err)
{
    struct verdict *verdict = context;
    const json_t *text = json_object_get(answer, "text");
    verdict->up = NULL;
    if (!answer) {
        log_limited(&verdict->all->lost, "what was built of a step's ring can't be passed on: %s",
                    err->text);
        verdict->sent.end = 0;
        verdict->retry_at = tccl_now_ms() + VERDICTS_RETRY_MS;
    } else if (text) {
        log_limited(&verdict->all->refused, "%s has refused what was built of a step's ring: %s",
                    verdict->step.parent, json_string_value(text));
    }
    advance(verdict);
}

static void send_up(struct verdict *verdict, const struct built_sum *sum)
{
    struct daemon *daemon = verdict->all->daemon;
    cleanup_json json_t *message = tccl_message_new("built");
    cleanup_json json_t *content = built_sum_to_json(sum);
    cleanup_json json_t *rest =
        json_pack("{s:o, s:i, s:i, s:I}", "key", tccl_key_to_json(&verdict->step.key), "node",
                  verdict->step.index, "n_nodes", verdict->step.n_nodes, "start",
                  (json_int_t)verdict->step.start);
    if (content && rest && json_object_update(message, content) == 0 &&
        json_object_update(message, rest) == 0)
        verdict->up = link_ask(daemon, verdict->step.parent, message,
                               tccl_now_ms() + VERDICTS_ANSWER_MS, on_answer, verdict);
    if (verdict->up)
        verdict->sent = *sum;
    else
        verdict->retry_at = tccl_now_ms() + VERDICTS_RETRY_MS;
}

/* ---- When ---- */

static bool same_sum(const struct built_sum *a, const struct built_sum *b)
{
    return a->end == b->end && memcmp(a->nodes, b->nodes, sizeof(a->nodes)) == 0;
}

/* For the nodes below, whose step ends about now. */
static int64_t wait_below(const struct verdict *verdict)
{
    int64_t wait = 0;
    for (int range = end_of(verdict, verdict->step.index) - verdict->step.index; range > 1;
         range = (range + TREE_FAN - 1) / TREE_FAN)
        wait += VERDICTS_LEVEL_MS;
    return wait;
}

/* When a sum is to be passed on; INT64_MAX: not as it is. */
static int64_t due(const struct verdict *verdict, const struct built_sum *sum)
{
    int64_t at = INT64_MAX;
    if (same_sum(sum, &verdict->sent))
        return at;
    if (verdict->sent.end)
        at = verdict->changed_at + VERDICTS_UPDATE_MS;
    else if (built_sum_is_whole(sum))
        at = verdict->changed_at;
    else if (verdict->ended_at)
        at = verdict->ended_at + wait_below(verdict);
    else if (verdict->first_at)
        at = verdict->first_at +
             (sum->nodes[TCCL_BUILT_DIFFERS] ? wait_below(verdict) : VERDICTS_PATIENCE_MS);
    return at < verdict->retry_at ? verdict->retry_at : at;
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
    (void)fd;
    (void)what;
    advance(argument);
}

static void arm(struct verdict *verdict, int64_t at)
{
    if (!verdict->timer && at < INT64_MAX)
        verdict->timer = evtimer_new(verdict->all->daemon->base, on_timer, verdict);
    if (!verdict->timer)
        return;
    evtimer_del(verdict->timer);
    struct timeval wait = daemon_in(at - tccl_now_ms());
    if (at < INT64_MAX)
        evtimer_add(verdict->timer, &wait);
}

/* Something is due, or has changed. Frees a step of which nothing more is expected. */
static void advance(struct verdict *verdict)
{
    struct built_sum sum;
    int64_t now = tccl_now_ms();
    add_up(verdict, &sum);
    if (!verdict->up && due(verdict, &sum) <= now) {
        if (verdict->step.index == 0)
            put_on_record(verdict, &sum);
        else
            send_up(verdict, &sum);
    }
    bool done = verdict->ended_at && built_sum_is_whole(&sum) && same_sum(&sum, &verdict->sent);
    int64_t at = verdict->up ? INT64_MAX : due(verdict, &sum);
    if (!verdict->up && (done || verdict->gone_at <= now))
        drop(verdict);
    else
        arm(verdict, at < verdict->gone_at ? at : verdict->gone_at);
}

/* ---- Words ---- */

static struct verdict *find(const struct verdicts *verdicts, const struct tccl_step_key *key)
{
    struct verdict *verdict;
    TAILQ_FOREACH(verdict, &verdicts->list, link)
    if (tccl_key_equal(&verdict->step.key, key))
        return verdict;
    return NULL;
}

static struct verdict *begin(struct verdicts *verdicts, const struct alive *step)
{
    struct verdict *verdict = calloc(1, sizeof(*verdict));
    if (!verdict)
        return NULL;
    verdict->all = verdicts;
    verdict->step = *step;
    verdict->gone_at = INT64_MAX;
    verdict->lowest = -1;
    if (find_below(verdict) != 0) {
        free(verdict);
        return NULL;
    }
    if (verdicts->count == VERDICTS_MOST)
        drop(TAILQ_FIRST(&verdicts->list));
    TAILQ_INSERT_TAIL(&verdicts->list, verdict, link);
    verdicts->count++;
    load(verdict);
    return verdict;
}

/* What is kept of another run of the step, which has ended, goes. */
static struct verdict *of_step(struct verdicts *verdicts, const struct alive *step)
{
    struct verdict *verdict = find(verdicts, &step->key);
    if (verdict && verdict->ended_at) {
        drop(verdict);
        verdict = NULL;
    }
    return verdict ? verdict : begin(verdicts, step);
}

static void changed(struct verdict *verdict)
{
    verdict->changed_at = tccl_now_ms();
    if (!verdict->first_at)
        verdict->first_at = verdict->changed_at;
}

static void take_word(struct verdict *verdict, int rank, const char *text)
{
    bool prefix = *text && (verdict->step.n_nodes > 1 || rank >= TCCL_BUILT_FEWER);
    snprintf(verdict->text, sizeof(verdict->text), "%s%s%s",
             prefix ? verdict->all->daemon->conf->node : "", prefix ? ": " : "", text);
    verdict->rank = rank;
    changed(verdict);
}

/* How many of the planned rings there are by this word; `fewer` comes with "1 of 3 rings". */
static int rings_built(int rank, const char *text)
{
    int n;
    if (rank == TCCL_BUILT_NOT_USED || rank == TCCL_BUILT_DIFFERS)
        return 0;
    if (rank != TCCL_BUILT_FEWER || sscanf(text, "%2d of ", &n) != 1 || n < 1)
        return TCCL_CHAIN_RINGS;
    return n < TCCL_CHAIN_RINGS ? n : TCCL_CHAIN_RINGS;
}

void verdicts_hear(struct daemon *daemon, const struct alive *alive, int rank, const char *text,
                   int lowest, int nccl)
{
    struct verdict *verdict = alive->ring ? of_step(daemon->verdicts, alive) : NULL;
    if (!alive->ring)
        running_built(daemon->running, &alive->key, 0, nccl);
    if (verdict && nccl > 0)
        verdict->nccl = nccl;
    if (!verdict || (rank <= verdict->rank && (rank > 0 || verdict->begun)))
        return;
    verdict->begun = true;
    if (rank > verdict->rank) {
        take_word(verdict, rank, text);
        verdict->lowest = lowest;
        running_built(daemon->running, &alive->key, rings_built(rank, text), verdict->nccl);
    }
    save(verdict);
    advance(verdict);
}

static struct verdict *of_key(struct daemon *daemon, const struct tccl_step_key *key)
{
    const struct alive *alive = alives_find(daemon, key);
    return alive && alive->ring ? of_step(daemon->verdicts, alive) : NULL;
}

/* Nothing more is said here; nodes below may say more. */
static void end(struct verdict *verdict)
{
    verdict->ended_at = tccl_now_ms();
    verdict->gone_at = verdict->ended_at + VERDICTS_KEEP_MS;
    advance(verdict);
}

void verdicts_end(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct verdict *verdict = of_key(daemon, key);
    if (!verdict)
        return;
    if (verdict->rank == TCCL_BUILT_NOTHING && verdict->begun)
        take_word(verdict, TCCL_BUILT_UNKNOWN,
                  "its processes ended before it was known what NCCL has built");
    else if (verdict->rank == TCCL_BUILT_NOTHING)
        take_word(verdict, TCCL_BUILT_NOT_USED, TCCL_BUILT_SILENT);
    end(verdict);
}

void verdicts_gone(struct daemon *daemon, const struct tccl_step_key *key)
{
    struct verdict *verdict = of_key(daemon, key);
    if (verdict)
        end(verdict);
}

/* The step of a node below. NULL with err. */
static struct verdict *of_message(struct daemon *daemon, const json_t *json, struct tccl_error *err)
{
    struct tccl_step_key key;
    json_int_t start;
    if (tccl_key_from_json(json_object_get(json, "key"), &key, err) != 0 ||
        tccl_get_int(json, "start", 0, INT64_MAX, &start, err) != 0)
        return NULL;
    struct verdict *verdict = find(daemon->verdicts, &key);
    if (verdict && verdict->step.start == start)
        return verdict;
    const struct alive *alive = alives_find(daemon, &key);
    verdict =
        alive && alive->ring && alive->start == start ? of_step(daemon->verdicts, alive) : NULL;
    if (!verdict)
        tccl_fail(err, "no such step has a plan here, or it ended some time ago");
    return verdict;
}

static int read_sum(struct verdict *verdict, const json_t *json, struct tccl_error *err)
{
    json_int_t node, n_nodes;
    struct built_sum sum;
    if (tccl_get_int(json, "n_nodes", 1, TCCL_MAX_NODES, &n_nodes, err) != 0 ||
        tccl_get_int(json, "node", 1, TCCL_MAX_NODES, &node, err) != 0)
        return -1;
    struct below *below = n_nodes == verdict->step.n_nodes ? below_of(verdict, (int)node) : NULL;
    if (!below)
        return tccl_fail(err, "node %d is not below node %d of %d", (int)node, verdict->step.index,
                         verdict->step.n_nodes);
    if (built_sum_from_json(json, below->node, end_of(verdict, below->node), &sum, err) != 0)
        return -1;
    below->sum = sum;
    below->heard = true;
    return 0;
}

void verdicts_receive(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct tccl_error err = {0};
    struct verdict *verdict = of_message(daemon, json, &err);
    if (!verdict || read_sum(verdict, json, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    cleanup_json json_t *answer = tccl_message_new("ok");
    connection_answer(connection, answer);
    changed(verdict);
    save(verdict);
    advance(verdict);
}
