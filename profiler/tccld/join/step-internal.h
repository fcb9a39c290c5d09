/* step-internal.h: a step as step.c and late.c know it. */
#ifndef TCCL_STEP_INTERNAL_H
#define TCCL_STEP_INTERNAL_H

#include <sys/queue.h>
#include <time.h>

#include "client/key.h"
#include "client/step-fields.h"
#include "tccld/join/announce.h"
#include "tccld/join/merge.h"
#include "tccld/join/outcome.h"
#include "tccld/join/planlist.h"
#include "tccld/join/step.h"
#include "tccld/main/log.h"
#include "tccld/net/link.h"

enum {
    WAITERS = 4,            /* JOINs of one step on one node */
    LATE_REPORT_MS = 20000, /* for the parent to hear of a failure after its answer is of no use */
    STEP_KEEP_LATE_MS = 900000 /* how long a node that an announcement stood in for may take */
};

/* A node right below this one in the tree. */
struct child {
    int node;
    struct merge *merge; /* NULL: nothing has come */
    struct peer *peer;   /* who waits for the plan */
    struct link *probe;
    bool there; /* its tccld listens */
    struct step *step;
};

struct step {
    TAILQ_ENTRY(step) link;
    struct steps *steps;
    struct tccl_step_key key;
    char text[TCCL_KEY_TEXT];
    int node, n_nodes, timeout_ms;
    int64_t opened_us;
    time_t start;
    int64_t end; /* when those who wait give up; after closing: when the step is forgotten */
    struct tccl_join_message *join; /* NULL: this node's has not come, or all is done */
    bool joined, counted;
    int64_t joined_us;
    struct local *waiters[WAITERS];
    int n_waiters;
    struct shared_kind *kind;
    struct child *children;
    int n_children, n_arrived;
    bool probed, reported, closed, recorded;
    json_t *terms;  /* as announced, as far as it has come: what its JOINs have in common */
    bool strange;   /* a node has not joined with what its job had announced */
    bool called;    /* late nodes were asked to take part with that */
    bool stands_in; /* this node does: the join is made of the announcement */
    bool given;     /* a ring was given out */
    bool lost;      /* the parent's answer did not come */
    bool left;      /* it has ended on this node */
    struct link *up;
    char *parent;   /* its node name, once this node has joined */
    json_t *record; /* at the root, of an applied ring, in case it turns out to be partial */
    struct event *timer;
    struct outcome outcome;
    long gpus;
    int64_t solve_us;
    char *path, *own_ring; /* this node's plan file and ring text; NULL: none */
};

TAILQ_HEAD(step_list, step);

struct steps {
    struct daemon *daemon;
    struct step_list open, closed; /* closed: the oldest first */
    int count;
    struct planlist *plans;
    struct announces *announces;
    struct log_limit refused, trouble;
};

/* What MERGE and CALL begin with. */
struct report {
    struct tccl_step_key key;
    json_int_t node, n_nodes, timeout_ms, wait_ms;
    const char *reason;
};
/* Returns 0, or -1 with err. reason is borrowed. */
int step_read_report(const json_t *json, struct report *report, struct tccl_error *err);

/* The step of a message, opened if it is new; NULL with err if it does not fit what is known. */
struct step *step_get(struct steps *steps, const struct tccl_step_key *key, int node, int n_nodes,
                      int timeout_ms, struct tccl_error *err);
void step_free(struct step *step);
/* Somebody waits from now on for wait_ms. */
void step_expect(struct step *step, int64_t wait_ms);
/* The node takes part, with a JOIN of its own or with what stands in for it (taken over). */
void step_begin(struct step *step, struct tccl_join_message *message);
/* Does what can be done now. */
void step_advance(struct step *step);
/* No ring on any node: the first reason counts. */
__attribute__((format(printf, 2, 3))) void step_fail(struct step *step, const char *fmt, ...);

/* Of a ring that has been given out. Writes this node's plan; or leaves this node without, for that
 * reason; answers the JOINs; tells the root that its record is partial. */
void step_apply(struct step *step);
__attribute__((format(printf, 2, 3))) void step_go_without(struct step *step, const char *fmt, ...);
void step_answer_waiters(struct step *step);
void step_tell_partial(struct step *step, const char *reason);

/* When this node has to have reported (tccl_now_ms). */
int64_t step_level_time(const struct step *step);
void step_set_timer(struct step *step, int64_t at);

#endif
