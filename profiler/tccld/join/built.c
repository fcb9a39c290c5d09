/* built.c: CONFIRM and BUILT. A node sends its sum up once all nodes of its range have spoken; or
 * some time after a word that something differs, or after the step has ended here, or long after
 * the first word, whoever is missing then; and again if more comes afterwards. What is known is in
 * the step's record, for a tccld that is started again, until the step ends here: who has not
 * passed its word on by then, and ends, is a silent node. */
#include "tccld/join/running.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/message.h"
#include "client/step-fields.h"
#include "records/record.h"
#include "tccld/jobs/jobs.h"
#include "tccld/join/built-sum.h"
#include "tccld/join/evidence.h"
#include "tccld/main/metrics.h"
#include "tccld/net/link.h"

enum { CLASS = 31 }; /* bytes */

struct below {
    int node;
    bool heard;
    struct built_sum sum;
};

/* What a rank of this node has measured (ACHIEVED); samples 0: nothing, but how much it has sent.
 */
struct figures {
    bool steered;
    int64_t rank, from, samples, bytes, captured, nccl; /* nccl: its version, 0: not known */
    char algorithm[8];                                  /* ring, tree, either; "": not known */
    double best, median, share;                         /* GB/s; share -1: not known */
};

struct verdict {
    struct running *running;
    struct running_step *step;
    int rank;                                    /* of this node */
    char text[BUILT_TEXT + 1], class[CLASS + 1]; /* class: of NOT_USED, a built_class */
    int64_t lowest;         /* rank in NCCL of this node's processes; -1: not known */
    bool begun;             /* a communicator has been given the ring */
    struct figures figures; /* of node 0's first rank */
    struct below *below;
    int n_below;
    /* tccl_now_ms; of the first word and the last one, 0: none; ended_at 0: it goes on */
    int64_t first_at, changed_at, ended_at, retry_at, gone_at;
    struct built_sum sent; /* end 0: nothing has been */
    int told;              /* by node 0: rank of what is on record */
    bool news;             /* it has figures that are not */
    int64_t put_at;        /* by node 0: when something was put there last */
    struct link *up;
    struct event *timer;
};

/* What the NCCL that ran would have built by itself, GB/s; 0: not known. */
static double own_gbps(const struct verdict *verdict)
{
    const struct running_step *step = verdict->step;
    int at = step->n_baselines - 1;
    while (at > 0 && step->nccl < step->baselines[at].first)
        at--;
    return at < 0 ? 0 : step->baselines[at].gbps;
}

/* ---- What is known of a step ---- */

static int end_of(const struct verdict *verdict, int node)
{
    return node_tree_end(node, verdict->step->n_nodes);
}

static void add_up(const struct verdict *verdict, struct built_sum *sum)
{
    built_sum_begin(sum, verdict->step->node);
    built_sum_put(sum, 1, verdict->rank, verdict->text);
    built_sum_put_rank(sum, (int)verdict->lowest);
    sum->later = verdict->step->later;
    if (verdict->step->slowed)
        snprintf(sum->slowed, sizeof(sum->slowed), "%s", verdict->step->slowed);
    for (int i = 0; i < verdict->n_below; i++) {
        const struct below *below = &verdict->below[i];
        if (below->heard) {
            built_sum_append(sum, &below->sum);
            continue;
        }
        built_sum_put(sum, end_of(verdict, below->node) - below->node, TCCL_BUILT_NOTHING, "");
        built_sum_put_rank(sum, -1);
    }
}

static struct below *below_of(const struct verdict *verdict, int node)
{
    for (int i = 0; i < verdict->n_below; i++)
        if (verdict->below[i].node == node)
            return &verdict->below[i];
    return NULL;
}

/* ---- The end ---- */

/* A step that began here has ended: what it achieved. Beside no other, with the ring as planned or
 * with NCCL's own choice in its place, that is evidence. */
static void count_figures(const struct verdict *verdict)
{
    const struct figures *figures = &verdict->figures;
    const struct running_step *step = verdict->step;
    struct daemon *daemon = verdict->running->daemon;
    bool planned = figures->steered && verdict->told == TCCL_BUILT_YES;
    double own = own_gbps(verdict);
    struct built_sum sum;
    if (!verdict->ended_at || figures->samples == 0)
        return;
    metrics_measured(daemon->metrics,
                     figures->steered ? METRICS_RING
                     : step->measure  ? METRICS_TRIAL
                                      : METRICS_OWN,
                     tccl_achieved_share(figures->best, figures->steered ? "rings" : "own",
                                         tccl_built_word(verdict->told), step->gbps, own, own));
    add_up(verdict, &sum);
    if (step->subject && !sum.later && (planned || step->measure))
        evidence_take(daemon, step, planned ? EVIDENCE_RING : EVIDENCE_OWN, figures->from,
                      figures->best);
}

void built_drop(struct running_step *step)
{
    struct verdict *verdict = tccl_steal(step->verdict);
    if (!verdict)
        return;
    count_figures(verdict);
    if (verdict->up)
        link_cancel(verdict->up);
    daemon_drop(verdict->timer);
    free(verdict->below);
    free(verdict);
}

/* ---- In the record ---- */

#define AT(member)                                                                                 \
    .at = offsetof(struct verdict, member), .size = sizeof(((struct verdict *)0)->member)

static const struct tccl_field fields[] = {
    {.name = "told", TCCL_FIELD_INT, .max = TCCL_BUILT_DIFFERS, AT(told)},
    {.name = "rank", TCCL_FIELD_INT, .max = TCCL_BUILT_DIFFERS, AT(rank)},
    {.name = "lowest", TCCL_FIELD_INT, .min = -1, .max = INT32_MAX, AT(lowest)},
    {.name = "begun", TCCL_FIELD_BOOL, AT(begun)},
    {.name = "text", TCCL_FIELD_TEXT, .max = BUILT_TEXT, AT(text)},
    {.name = "class", TCCL_FIELD_TEXT, .max = CLASS, AT(class)},
};
enum { FIELDS = sizeof(fields) / sizeof(*fields) };

static json_t *state_to_json(const struct verdict *verdict)
{
    cleanup_json json_t *state = json_pack("{s:[]}", "below");
    for (int i = 0; i < FIELDS; i++)
        if (tccl_field_put(state, &fields[i], true, verdict) != 0)
            return NULL;
    for (int i = 0; i < verdict->n_below; i++) {
        json_t *sum = verdict->below[i].heard ? built_sum_to_json(&verdict->below[i].sum) : NULL;
        if (sum && (json_object_set_new(sum, "node", json_integer(verdict->below[i].node)) != 0 ||
                    json_array_append_new(json_object_get(state, "below"), sum) != 0))
            return NULL;
    }
    return tccl_steal(state);
}

static void save(const struct verdict *verdict)
{
    struct running_step *step = verdict->step;
    json_t *state = verdict->ended_at ? NULL : state_to_json(verdict);
    if (!state)
        return;
    json_decref(step->said);
    step->said = state;
    running_save(verdict->running, step);
}

/* As a tccld before this one has left it. */
static void load(struct verdict *verdict)
{
    const json_t *state = verdict->step->said;
    const json_t *json;
    size_t i;
    if (verdict->step->nccl == 0) /* a tccld before 2026-11-28 left it here */
        verdict->step->nccl = (int)json_integer_value(json_object_get(state, "nccl"));
    for (int k = 0; state && k < FIELDS; k++)
        if (tccl_field_get(state, &fields[k], false, verdict, NULL) != 0)
            return;
    json_array_foreach(json_object_get(state, "below"), i, json)
    {
        int node = (int)json_integer_value(json_object_get(json, "node"));
        struct below *below = below_of(verdict, node);
        if (below)
            below->heard =
                built_sum_from_json(json, node, end_of(verdict, node), &below->sum, NULL) == 0;
    }
}

/* ---- Upwards ---- */

static void advance(struct verdict *verdict);

static int put_figures(const struct figures *figures, json_t *record)
{
    const int64_t bytes = figures->bytes, captured = figures->captured;
    cleanup_json json_t *sent =
        json_pack("{s:o*, s:o*}", "sent_bytes", bytes > 0 ? json_integer(bytes) : NULL, "captured",
                  captured > 0 ? json_integer(captured) : NULL);
    if (json_object_update(record, sent) != 0 || figures->samples == 0)
        return sent ? 0 : -1;
    cleanup_json json_t *told =
        json_pack("{s:s, s:f, s:f, s:I, s:I, s:o*, s:s*}", "achieved_with",
                  figures->steered ? "rings" : "own", "achieved_gbps", figures->best,
                  "achieved_median", figures->median, "achieved_from", (json_int_t)figures->from,
                  "samples", (json_int_t)figures->samples, "sent_share",
                  figures->share >= 0 ? json_real(figures->share) : NULL, "achieved_algorithm",
                  *figures->algorithm ? figures->algorithm : NULL);
    return json_object_update(record, told);
}

/* node: the index of the one that gives the reason, -1: none; later: on how many nodes steps began
 * beside it. */
static json_t *record_of(const struct verdict *verdict, int rank, const char *reason, int node,
                         int later)
{
    const struct running_step *step = verdict->step;
    const int nccl = step->nccl; /* that ran on this node, and what it would have built by itself */
    const double own = nccl > 0 ? own_gbps(verdict) : 0;
    /* Where no node has used it, the text is this one's. */
    bool ours = rank == TCCL_BUILT_NOT_USED && verdict->rank == rank && *verdict->class;
    char version[32], name[TCCL_HOST_NAME + 1] = "";
    if (node >= 0)
        tccl_hosts_name(step->nodes, node, name);
    snprintf(version, sizeof(version), "%d.%d.%d", nccl / 10000, nccl / 100 % 100, nccl % 100);
    cleanup_json json_t *record = tccl_key_to_json(&step->key);
    cleanup_json json_t *rest = json_pack(
        "{s:I, s:s, s:i, s:s*, s:o*, s:s*}", "start", (json_int_t)step->start, "built",
        tccl_built_word(rank), "later", later, "nccl", nccl > 0 ? version : NULL, "nccl_gbps",
        own > 0 ? json_real(own) : NULL, "built_class", ours ? verdict->class : NULL);
    if (json_object_update(record, rest) != 0 ||
        tccl_put_text(record, "built_reason", reason, TCCL_OUTCOME_REASON) != 0 ||
        tccl_put_text(record, "built_node", *name ? name : NULL, TCCL_HOST_NAME) != 0 ||
        tccl_put_text(record, "slowed", step->slowed, TCCL_OUTCOME_REASON) != 0 ||
        put_figures(&verdict->figures, record) != 0)
        return NULL;
    return tccl_steal(record);
}

/* By node 0. Of a step without a ring there are but figures. */
static void put_on_record(struct verdict *verdict, const struct built_sum *sum)
{
    char reason[TCCL_OUTCOME_REASON + 1] = "";
    int node = -1;
    int rank = verdict->step->ring ? built_sum_judge(sum, verdict->step->nodes, reason, &node)
                                   : TCCL_BUILT_NOT_USED;
    verdict->news |= sum->later > verdict->sent.later && verdict->figures.samples > 0;
    verdict->sent = *sum;
    if (*sum->slowed && !verdict->step->slowed) {
        verdict->step->slowed = strdup(sum->slowed);
        verdict->news = true;
    }
    if (rank <= verdict->told && !verdict->news)
        return;
    verdict->news = false;
    verdict->put_at = tccl_now_ms();
    json_t *record = record_of(verdict, rank, reason, node, sum->later);
    if (!record)
        return;
    confirmation_put_checked(verdict->running->daemon, record, &verdict->step->key);
    if (rank <= verdict->told)
        return;
    verdict->told = rank;
    save(verdict);
}

static void on_answer(void *context, json_t *answer, const struct tccl_error *err)
{
    struct verdict *verdict = context;
    const json_t *text = json_object_get(answer, "text");
    verdict->up = NULL;
    if (!answer) {
        log_limited(&verdict->running->lost,
                    "can't tell the step's first node what NCCL built, so Built of its record "
                    "lacks this node: %s",
                    err->text);
        verdict->sent.end = 0;
        verdict->retry_at = tccl_now_ms() + BUILT_RETRY_MS;
    } else if (text) {
        log_limited(&verdict->running->lost,
                    "%s refuses to hear what NCCL built of a step's ring: %s",
                    verdict->step->parent, json_string_value(text));
    }
    advance(verdict);
}

static void send_up(struct verdict *verdict, const struct built_sum *sum)
{
    struct daemon *daemon = verdict->running->daemon;
    cleanup_json json_t *message = node_tree_message(verdict->step, "built");
    cleanup_json json_t *content = built_sum_to_json(sum);
    if (message && content && json_object_update(message, content) == 0)
        verdict->up = link_ask(daemon, verdict->step->parent, message,
                               tccl_now_ms() + BUILT_ANSWER_MS, on_answer, verdict);
    if (verdict->up)
        verdict->sent = *sum;
    else
        verdict->retry_at = tccl_now_ms() + BUILT_RETRY_MS;
}

/* ---- When ---- */

static bool same_sum(const struct built_sum *a, const struct built_sum *b)
{
    return a->end == b->end && memcmp(a->nodes, b->nodes, sizeof(a->nodes)) == 0 &&
           a->later == b->later && strcmp(a->slowed, b->slowed) == 0;
}

/* For the nodes below, whose step ends about now. */
static int64_t wait_below(const struct verdict *verdict)
{
    int64_t wait = 0;
    for (int range = end_of(verdict, verdict->step->node) - verdict->step->node; range > 1;
         range = (range + TREE_FAN - 1) / TREE_FAN)
        wait += BUILT_LEVEL_MS;
    return wait;
}

/* When a sum is to be passed on; INT64_MAX: not as it is. */
static int64_t due(const struct verdict *verdict, const struct built_sum *sum)
{
    int64_t at = INT64_MAX;
    if (same_sum(sum, &verdict->sent))
        return at;
    if (verdict->sent.end)
        at = verdict->changed_at + BUILT_UPDATE_MS;
    else if (built_sum_is_whole(sum) || !verdict->step->ring)
        at = verdict->changed_at;
    else if (verdict->ended_at)
        at = verdict->ended_at + wait_below(verdict);
    else if (verdict->first_at)
        at = verdict->first_at +
             (sum->nodes[TCCL_BUILT_DIFFERS] ? wait_below(verdict) : BUILT_PATIENCE_MS);
    return at < verdict->retry_at ? verdict->retry_at : at;
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    advance(argument);
}

static void arm(struct verdict *verdict, int64_t at)
{
    if (!verdict->timer && at < INT64_MAX)
        verdict->timer = evtimer_new(verdict->running->daemon->base, on_timer, verdict);
    if (!verdict->timer)
        return;
    evtimer_del(verdict->timer);
    if (at < INT64_MAX)
        daemon_set(verdict->timer, at - tccl_now_ms());
}

/* Something is due, or has changed. Frees a step of which nothing more is expected. */
static void advance(struct verdict *verdict)
{
    struct built_sum sum;
    int64_t now = tccl_now_ms();
    add_up(verdict, &sum);
    if (!verdict->up && due(verdict, &sum) <= now) {
        if (verdict->step->node == 0)
            put_on_record(verdict, &sum);
        else
            send_up(verdict, &sum);
    }
    bool done = verdict->ended_at && built_sum_is_whole(&sum) && same_sum(&sum, &verdict->sent);
    int64_t at = verdict->up ? INT64_MAX : due(verdict, &sum);
    if (!verdict->up && (done || verdict->gone_at <= now))
        built_drop(verdict->step);
    else
        arm(verdict, at < verdict->gone_at ? at : verdict->gone_at);
}

/* ---- Words ---- */

/* Do its nodes tell node 0? Those of a step with a ring, or of a trial. */
static bool goes_up(const struct running_step *step)
{
    return step->ring || step->measure;
}

/* Of a step that goes up, or of node 0 of another one. NULL without memory. */
static struct verdict *of_step(struct running *running, struct running_step *step)
{
    struct verdict *verdict = step->verdict ? step->verdict : calloc(1, sizeof(*verdict));
    if (!verdict || verdict == step->verdict)
        return verdict;
    verdict->below =
        calloc((size_t)node_tree_children(step->node, step->n_nodes) + 1, sizeof(*verdict->below));
    if (!verdict->below) {
        free(verdict);
        return NULL;
    }
    for (int c = step->node; (c = node_tree_next_child(step->node, c, step->n_nodes)) >= 0;)
        verdict->below[verdict->n_below++].node = c;
    verdict->running = running;
    verdict->step = step;
    verdict->gone_at = INT64_MAX;
    verdict->lowest = -1;
    step->verdict = verdict;
    load(verdict);
    return verdict;
}

static void changed(struct verdict *verdict)
{
    verdict->changed_at = tccl_now_ms();
    if (!verdict->first_at)
        verdict->first_at = verdict->changed_at;
}

static void take_word(struct verdict *verdict, int rank, const char *class, const char *text)
{
    bool prefix = *text && (verdict->step->n_nodes > 1 || rank >= TCCL_BUILT_PARTLY);
    snprintf(verdict->text, sizeof(verdict->text), "%.*s%s%s",
             prefix ? BUILT_TEXT - 2 - (int)strnlen(text, CONFIRM_TEXT) : 0,
             verdict->running->daemon->conf->node, prefix ? ": " : "", text);
    snprintf(verdict->class, sizeof(verdict->class), "%s", class);
    verdict->rank = rank;
    changed(verdict);
}

/* How many of the planned rings there are by this word; `partly` comes with "1 of 3 rings". */
static int rings_built(int rank, const char *text)
{
    int n;
    if (rank == TCCL_BUILT_NOT_USED || rank == TCCL_BUILT_DIFFERS)
        return 0;
    if (rank != TCCL_BUILT_PARTLY || sscanf(text, "%2d of ", &n) != 1 || n < 1)
        return TCCL_CHAIN_RINGS;
    return n < TCCL_CHAIN_RINGS ? n : TCCL_CHAIN_RINGS;
}

/* What a process says. */
struct word {
    int rank; /* tccl_built_rank; NOTHING: begun */
    char text[CONFIRM_TEXT + 1];
    bool whole, known;    /* known: its NCCL */
    int64_t lowest, nccl; /* lowest: rank on this node, -1: not known; nccl: 0: not known */
};

static int read_word(const struct tccl_lines *lines, struct word *said, struct tccl_error *err)
{
    int64_t ranks, gpus;
    char word[17];
    *said = (struct word){.lowest = -1};
    if (tccl_line_text(lines, "text", said->text, sizeof(said->text)) < 0)
        return tccl_fail(err, "text: a text of at most %d bytes is expected", CONFIRM_TEXT);
    if (tccl_line_integer(lines, "ranks", -1, INT32_MAX, &ranks) != 0 ||
        tccl_line_integer(lines, "gpus", -1, INT32_MAX, &gpus) != 0)
        return tccl_fail(err, "ranks, gpus: numbers from -1 to %d are expected", INT32_MAX);
    if (tccl_line_integer(lines, "lowest", -1, INT32_MAX, &said->lowest) != 0)
        said->lowest = -1;
    if (tccl_line_integer(lines, "nccl", 0, 999999, &said->nccl) != 0)
        said->nccl = 0;
    if (tccl_line_bool(lines, "whole", &said->whole) != 0)
        return tccl_fail(err, "whole: yes or no is expected");
    if (tccl_line_text(lines, "verdict", word, sizeof(word)) < 0)
        return tccl_fail(err, "verdict: a word is expected");
    if (tccl_line_bool(lines, "known", &said->known) != 0)
        said->known = true;
    said->rank = strcmp(word, "begun") == 0 ? TCCL_BUILT_NOTHING : tccl_built_rank(word);
    if (said->rank < 0 || !*word)
        return tccl_fail(err, "verdict: \"%.16s\" is unknown", word);
    return 0;
}

static void hear(struct running *running, struct running_step *step, const struct word *said)
{
    struct verdict *verdict = step->ring ? of_step(running, step) : NULL;
    if (!step->ring) /* the first one that is known: figures come with theirs */
        running_built(running, step, 0, step->nccl > 0 ? step->nccl : (int)said->nccl);
    else if (said->nccl > 0)
        step->nccl = (int)said->nccl;
    if (!verdict || (said->rank <= verdict->rank && (said->rank > 0 || verdict->begun)))
        return;
    verdict->begun = true;
    if (said->rank > verdict->rank) {
        take_word(verdict, said->rank,
                  said->known ? "" : tccl_reason_words[TCCL_REASON_UNKNOWN_NCCL], said->text);
        verdict->lowest = said->lowest;
        running_built(running, step, rings_built(said->rank, said->text), step->nccl);
    }
    save(verdict);
    advance(verdict);
}

void built_confirm(struct daemon *daemon, struct connection *connection,
                   const struct tccl_lines *question)
{
    struct tccl_error err = {0};
    struct word said;
    struct running_step *step = running_asked(daemon, connection, question, &err);
    if (!step || read_word(question, &said, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    if (said.whole)
        hear(daemon->running, step, &said);
    connection_answer_ok(connection);
}

/* Are these to be kept in place of those that are? What was measured is before what was not, the
 * ring's own before those of NCCL's own choice, then those of the first rank; of one rank those of
 * the communicator that has sent most, or measured most of as much. */
static bool counts_more(const struct figures *figures, const struct figures *kept)
{
    if ((kept->samples == 0) != (figures->samples == 0))
        return kept->samples == 0;
    if (figures->steered != kept->steered)
        return figures->steered;
    if (figures->rank != kept->rank && (kept->bytes > 0 || kept->captured > 0))
        return figures->rank < kept->rank;
    if (figures->bytes != kept->bytes)
        return figures->bytes > kept->bytes;
    return figures->captured == kept->captured ? figures->samples > kept->samples
                                               : figures->captured > kept->captured;
}

/* Figures go on record once it is known what was built, at most so often, and at the end. */
static void put_news(struct verdict *verdict)
{
    struct built_sum sum;
    if (!verdict->news || (verdict->step->ring && verdict->told == TCCL_BUILT_NOTHING) ||
        (!verdict->ended_at && tccl_now_ms() - verdict->put_at < BUILT_NEWS_MS))
        return;
    add_up(verdict, &sum);
    put_on_record(verdict, &sum);
}

static int read_figures(const struct tccl_lines *lines, struct figures *figures,
                        struct tccl_error *err)
{
    if (tccl_line_integer(lines, "rank", -1, INT32_MAX, &figures->rank) != 0 ||
        tccl_line_integer(lines, "samples", 0, INT32_MAX, &figures->samples) != 0)
        return tccl_fail(err, "rank, samples: whole numbers are expected");
    bool none = figures->samples == 0; /* measured */
    double most = none ? 0 : ACHIEVED_MOST, few = none ? 0 : 1e-9;
    if (tccl_line_integer(lines, "from", none ? 0 : ACHIEVED_FROM, none ? 0 : INT64_MAX,
                          &figures->from) != 0 ||
        tccl_line_integer(lines, "bytes", figures->from, INT64_MAX, &figures->bytes) != 0)
        return tccl_fail(err, "from, bytes: whole numbers are expected");
    if (tccl_line_number(lines, "best", few, most, &figures->best) != 0 ||
        tccl_line_number(lines, "median", few, figures->best, &figures->median) != 0)
        return tccl_fail(
            err, "best, median: GB/s up to %d are expected, and the best not below the median",
            ACHIEVED_MOST);
    if (tccl_line_number(lines, "share", 0, 1, &figures->share) != 0)
        figures->share = -1;
    if (tccl_line_integer(lines, "nccl", 0, 999999, &figures->nccl) != 0)
        figures->nccl = 0;
    if (tccl_line_integer(lines, "captured", 0, UINT32_MAX, &figures->captured) != 0)
        figures->captured = 0;
    if (tccl_line_text(lines, "algorithm", figures->algorithm, sizeof(figures->algorithm)) < 0)
        *figures->algorithm = '\0';
    else if (strcmp(figures->algorithm, "ring") != 0 && strcmp(figures->algorithm, "tree") != 0 &&
             strcmp(figures->algorithm, "either") != 0)
        return tccl_fail(err, "algorithm: ring, tree or either is expected");
    if (tccl_line_bool(lines, "steered", &figures->steered) != 0)
        return tccl_fail(err, "steered: yes or no is expected");
    if (figures->rank < 0) /* not known: behind all that are */
        figures->rank = INT32_MAX;
    return 0;
}

void built_achieved(struct daemon *daemon, struct connection *connection,
                    const struct tccl_lines *question)
{
    struct tccl_error err = {0};
    struct figures figures;
    struct running_step *step = running_asked(daemon, connection, question, &err);
    if (!step || read_figures(question, &figures, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    struct verdict *verdict = step->node == 0 ? of_step(daemon->running, step) : NULL;
    figures.steered &= step->ring;
    bool more = verdict && counts_more(&figures, &verdict->figures);
    if (!step->ring && figures.nccl > 0 && (more || step->nccl == 0))
        running_built(daemon->running, step, 0, (int)figures.nccl);
    else if (step->nccl == 0)
        step->nccl = (int)figures.nccl;
    if (more) {
        verdict->figures = figures;
        verdict->news = true;
        put_news(verdict);
    }
    connection_answer_ok(connection);
}

void built_later(struct running *running, struct running_step *step, const char *slowed)
{
    if (step->later && (!slowed || step->slowed))
        return;
    step->later = true;
    if (slowed && !step->slowed)
        step->slowed = strdup(slowed);
    running_save_soon(running, step);
    if (!goes_up(step) && step->node != 0)
        return;
    struct verdict *verdict = of_step(running, step);
    if (!verdict)
        return;
    if (step->measure || verdict->first_at || verdict->sent.end)
        changed(verdict); /* else it goes with the first word on what was built, or with figures */
    verdict->news |= step->node == 0 && (step->slowed || verdict->figures.samples > 0);
    put_news(verdict);
    if (goes_up(step))
        advance(verdict);
}

void built_end(struct running *running, struct running_step *step, bool silent)
{
    struct verdict *verdict = step->ring ? of_step(running, step) : step->verdict;
    if (!verdict)
        return;
    if (!step->ring) {
        verdict->ended_at = tccl_now_ms();
        put_news(verdict);
        built_drop(step);
        return;
    }
    if (!silent && verdict->rank == TCCL_BUILT_NOTHING && verdict->begun)
        take_word(verdict, TCCL_BUILT_UNKNOWN, "",
                  "its processes ended before it was known what NCCL has built");
    else if (!silent && verdict->rank == TCCL_BUILT_NOTHING)
        take_word(verdict, TCCL_BUILT_NOT_USED, TCCL_NO_CALL,
                  "no communicator over the step's GPUs was made with this plan");
    verdict->ended_at = tccl_now_ms();
    verdict->gone_at = verdict->ended_at + BUILT_KEEP_MS;
    put_news(verdict);
    advance(verdict);
}

void built_receive(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct tccl_error err = {0};
    struct built_sum sum;
    int node;
    struct running_step *step = node_tree_told(daemon->running, json, true, &node, &err);
    struct verdict *verdict = step && goes_up(step) ? of_step(daemon->running, step) : NULL;
    if (step && !verdict)
        tccl_fail(&err, "it has no ring here");
    if (!verdict || built_sum_from_json(json, node, end_of(verdict, node), &sum, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    struct below *below = below_of(verdict, node);
    below->sum = sum;
    below->heard = true;
    connection_answer_ok(connection);
    changed(verdict);
    save(verdict);
    advance(verdict);
}
