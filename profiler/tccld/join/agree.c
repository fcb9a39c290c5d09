/* agree.c: AGREE. A node passes its word on once all nodes of its range have said "yes", or at the
 * first "no". Whoever has asked is answered when node 0 has decided, or his time is over; that
 * stays, so who comes later gets the same answer. */
#include "tccld/join/running.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/key.h"
#include "client/message.h"
#include "tccld/net/link.h"

enum {
    SECOND_MS = 1000,
    AGAIN_MS = 50, /* between tries at a parent that is started again */
    COMM_DIGITS = 16,
    WHY = 340 /* bytes of a reason */
};

enum word { OPEN, ALL, NOT, LATE };
static const char *const words[] = {"", "all", "not", "late"};

/* This node, or one right below it. */
struct place {
    int node;
    bool will;
    struct connection *asker; /* NULL: it has not asked, or has been answered */
};

/* Of one communicator of a step. */
struct agreement {
    TAILQ_ENTRY(agreement) link;
    struct running *running;
    struct running_step *step;
    uint64_t comm;
    int64_t begun;     /* its first word on any node of this range, tccl_now_ms */
    enum word word;    /* what holds; OPEN: not known yet */
    char why[WHY + 1]; /* it is not ALL */
    struct link *up;
    struct event *timer;
    int n_places;
    struct place places[]; /* the first one is this node */
};

/* ---- Answers ---- */

static void answer_all(struct agreement *agreement)
{
    char text[WHY + 128];
    struct tccl_line_writer lines;
    const char *word = words[agreement->word], *why = agreement->why;
    for (int i = 0; i < agreement->n_places; i++) {
        struct connection *asker = tccl_steal(agreement->places[i].asker);
        if (!asker)
            continue;
        cleanup_json json_t *answer = i > 0 ? tccl_message_new("agreed") : NULL;
        if (i == 0) {
            tccl_lines_begin(&lines, text, sizeof(text), "tccl-agreed", 1);
            tccl_line_put(&lines, "rings", "%s", word);
            tccl_line_put(&lines, "why", "%s", why);
            connection_answer_lines(asker, &lines);
        } else if (tccl_put_text(answer, "rings", word, WHY) == 0 &&
                   tccl_put_text(answer, "why", why, WHY) == 0) {
            connection_answer(asker, answer);
        }
        connection_drop(asker);
    }
}

/* ---- What is known of a communicator ---- */

static void drop(struct agreement *agreement)
{
    TAILQ_REMOVE(&agreement->running->agreements, agreement, link);
    agreement->running->n_agreements--;
    if (agreement->up)
        link_cancel(agreement->up);
    daemon_drop(agreement->timer);
    for (int i = 0; i < agreement->n_places; i++)
        if (agreement->places[i].asker)
            connection_drop(agreement->places[i].asker);
    free(agreement);
}

void agree_drop(struct running *running, const struct running_step *step)
{
    struct agreement *agreement = TAILQ_FIRST(&running->agreements), *next;
    for (; agreement; agreement = next) {
        next = TAILQ_NEXT(agreement, link);
        if (agreement->step == step)
            drop(agreement);
    }
}

static void forget(struct agreement *agreement)
{
    if (agreement->word == OPEN) {
        agreement->word = NOT;
        snprintf(agreement->why, sizeof(agreement->why), "too many communicators are made");
    }
    answer_all(agreement);
    drop(agreement);
}

/* Is one more of that user's admitted? Makes room for it. */
static bool admit(struct running *running, uid_t user)
{
    struct agreement *agreement, *oldest = NULL;
    int kept = 0, begun = 0;
    int64_t now = tccl_now_ms();
    TAILQ_FOREACH(agreement, &running->agreements, link)
    {
        if (agreement->step->uid != user)
            continue;
        oldest = oldest ? oldest : agreement;
        kept++;
        begun += now - agreement->begun < SECOND_MS;
    }
    if (begun >= AGREE_SECOND)
        return false;
    if (kept >= AGREE_USER)
        forget(oldest);
    else if (running->n_agreements >= AGREE_MOST)
        forget(TAILQ_FIRST(&running->agreements));
    return true;
}

static void on_timer(evutil_socket_t fd, short what, void *argument);

/* When it is decided, whoever is missing. */
static int64_t due(const struct agreement *agreement)
{
    return agreement->begun + (agreement->step->node == 0 ? AGREE_ROOT_MS : AGREE_BELOW_MS);
}

/* Its first word is so old. Whatever node it was on, node 0 decides before others give up. */
static void begun_before(struct agreement *agreement, int64_t age_ms)
{
    int64_t now = tccl_now_ms();
    if (agreement->word != OPEN || now - age_ms >= agreement->begun)
        return;
    agreement->begun = now - age_ms;
    daemon_set(agreement->timer, due(agreement) - now);
}

static struct agreement *begin(struct running *running, struct running_step *step, uint64_t comm)
{
    size_t places = (size_t)node_tree_children(step->node, step->n_nodes) + 1;
    struct agreement *agreement = calloc(1, sizeof(*agreement) + places * sizeof(struct place));
    if (!agreement)
        return NULL;
    agreement->timer = evtimer_new(running->daemon->base, on_timer, agreement);
    if (!agreement->timer) {
        free(agreement);
        return NULL;
    }
    agreement->running = running;
    agreement->step = step;
    agreement->comm = comm;
    agreement->begun = INT64_MAX;
    for (int c = step->node; c >= 0; c = node_tree_next_child(step->node, c, step->n_nodes))
        agreement->places[agreement->n_places++].node = c;
    TAILQ_INSERT_TAIL(&running->agreements, agreement, link);
    running->n_agreements++;
    begun_before(agreement, 0);
    return agreement;
}

/* NULL with err: there are too many. */
static struct agreement *of_comm(struct running *running, struct running_step *step, uint64_t comm,
                                 struct tccl_error *err)
{
    struct agreement *agreement;
    TAILQ_FOREACH(agreement, &running->agreements, link)
    if (agreement->comm == comm && agreement->step == step)
        return agreement;
    agreement = admit(running, step->uid) ? begin(running, step, comm) : NULL;
    if (!agreement)
        tccl_fail(err, "more than %d communicators within a second", AGREE_SECOND);
    return agreement;
}

/* ---- Decisions ---- */

static void settle(struct agreement *agreement, enum word word, const char *why)
{
    agreement->word = word;
    snprintf(agreement->why, sizeof(agreement->why), "%.*s", WHY, why);
    answer_all(agreement);
    daemon_set(agreement->timer, AGREE_KEEP_MS);
}

static enum word word_of(const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "rings"));
    for (int word = ALL; text && word <= LATE; word++)
        if (strcmp(text, words[word]) == 0)
            return (enum word)word;
    return NOT; /* an older tccld does not know the question */
}

static void on_answer(void *context, json_t *answer, const struct tccl_error *err)
{
    struct agreement *agreement = context;
    const char *why = NULL;
    char text[WHY + 1];
    agreement->up = NULL;
    if (agreement->word != OPEN)
        return;
    if (err && err->reason == TCCL_REASON_NO_DAEMON && tccl_now_ms() + AGAIN_MS < due(agreement)) {
        daemon_set(agreement->timer, AGAIN_MS);
        return;
    }
    if (answer && tccl_get_optional_text(answer, "why", WHY, &why, NULL) != 0)
        why = NULL;
    snprintf(text, sizeof(text), "%.255s does not say that all nodes build the rings",
             agreement->step->parent);
    settle(agreement, answer ? word_of(answer) : LATE, err ? err->text : why ? why : text);
}

/* This range's word, or why it is "no". */
static void send_up(struct agreement *agreement)
{
    char comm[COMM_DIGITS + 1];
    const struct running_step *step = agreement->step;
    bool will = agreement->word == OPEN;
    cleanup_json json_t *message = node_tree_message(step, "agree");
    if (agreement->up)
        link_cancel(tccl_steal(agreement->up));
    snprintf(comm, sizeof(comm), "%016llx", (unsigned long long)agreement->comm);
    if (message && json_object_set_new(message, "comm", json_string(comm)) == 0 &&
        json_object_set_new(message, "will", json_boolean(will)) == 0 &&
        json_object_set_new(message, "age_ms", json_integer(tccl_now_ms() - agreement->begun)) ==
            0 &&
        tccl_put_text(message, "why", will ? NULL : agreement->why, WHY) == 0)
        agreement->up = link_ask(agreement->running->daemon, step->parent, message,
                                 tccl_now_ms() + AGREE_TELL_MS, on_answer, agreement);
}

/* They are not built, which is known here first. */
static void give_up(struct agreement *agreement, enum word word, const char *why)
{
    settle(agreement, word, why);
    if (agreement->step->node > 0)
        send_up(agreement);
}

static const struct place *missing(const struct agreement *agreement)
{
    for (int i = 0; i < agreement->n_places; i++)
        if (!agreement->places[i].will)
            return &agreement->places[i];
    return NULL;
}

static void advance(struct agreement *agreement)
{
    if (agreement->word != OPEN)
        answer_all(agreement);
    else if (missing(agreement) || agreement->up)
        return;
    else if (agreement->step->node > 0)
        send_up(agreement);
    else if (tccl_now_ms() < due(agreement))
        settle(agreement, ALL, "");
    else /* the word that was waited for is an old one */
        settle(agreement, LATE, "not all nodes have said in time that they build the rings");
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *argument)
{
    struct agreement *agreement = argument;
    const struct place *late = missing(agreement);
    char name[TCCL_HOST_NAME + 1], why[WHY + 1];
    if (agreement->word != OPEN) {
        drop(agreement);
        return;
    }
    if (tccl_now_ms() < due(agreement)) { /* to ask the parent again */
        daemon_set(agreement->timer, due(agreement) - tccl_now_ms());
        advance(agreement);
        return;
    }
    tccl_hosts_name(agreement->step->nodes,
                    late ? late->node : node_tree_parent(agreement->step->node), name);
    snprintf(why, sizeof(why),
             "%s has not said in time that it builds the rings: run tccl-check there", name);
    give_up(agreement, LATE, why);
}

/* ---- Words ---- */

/* why: where it is "no". */
static void take_word(struct agreement *agreement, struct place *place,
                      struct connection *connection, bool will, const char *why)
{
    if (place->asker)
        connection_drop(place->asker);
    place->asker = connection_hold(connection);
    place->will |= will;
    if (agreement->step->partial && agreement->word == OPEN)
        give_up(agreement, NOT, "a node has no plan");
    else if (!will && agreement->word == OPEN)
        give_up(agreement, NOT, why);
    else
        advance(agreement);
}

static int read_comm(const char *text, uint64_t *comm, struct tccl_error *err)
{
    if (strspn(text, "0123456789abcdef") != COMM_DIGITS || text[COMM_DIGITS])
        return tccl_fail(err, "comm: %d hexadecimal digits are expected", COMM_DIGITS);
    *comm = strtoull(text, NULL, 16);
    return 0;
}

static int read_word(const struct tccl_lines *lines, uint64_t *comm, bool *will,
                     struct tccl_error *err)
{
    char text[COMM_DIGITS + 1];
    tccl_line_text(lines, "comm", text, sizeof(text));
    if (read_comm(text, comm, err) != 0)
        return -1;
    return tccl_line_bool(lines, "will", will) == 0 ? 0
                                                    : tccl_fail(err, "will: yes or no is expected");
}

void agree_hear(struct daemon *daemon, struct connection *connection,
                const struct tccl_lines *question)
{
    struct tccl_error err = {0};
    char why[WHY + 1];
    uint64_t comm = 0;
    bool will;
    struct running_step *step = running_asked(daemon, connection, question, &err);
    struct agreement *agreement = step && read_word(question, &comm, &will, &err) == 0
                                      ? of_comm(daemon->running, step, comm, &err)
                                      : NULL;
    if (!agreement) {
        connection_refuse(connection, err.text);
        return;
    }
    snprintf(why, sizeof(why), "%s uses NCCL's own choice", daemon->conf->node);
    take_word(agreement, &agreement->places[0], connection, will, why);
}

void agree_receive(struct daemon *daemon, struct connection *connection, json_t *json)
{
    struct tccl_error err = {0};
    const char *why = NULL, *text;
    uint64_t comm = 0;
    json_int_t age_ms = 0;
    int node, at = 1;
    struct running_step *step = node_tree_told(daemon->running, json, false, &node, &err);
    struct agreement *agreement =
        step && tccl_get_optional_text(json, "why", WHY, &why, &err) == 0 &&
                tccl_get_text(json, "comm", COMM_DIGITS, &text, &err) == 0 &&
                tccl_get_int(json, "age_ms", 0, INT32_MAX, &age_ms, &err) == 0 &&
                read_comm(text, &comm, &err) == 0
            ? of_comm(daemon->running, step, comm, &err)
            : NULL;
    if (!agreement) {
        connection_refuse(connection, err.text);
        return;
    }
    while (agreement->places[at].node != node) /* it is one of them: node_tree_told */
        at++;
    begun_before(agreement, age_ms);
    take_word(agreement, &agreement->places[at], connection,
              json_is_true(json_object_get(json, "will")),
              why ? why : "a node uses NCCL's own choice");
}
