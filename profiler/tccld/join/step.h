/* step.h: steps that start: JOINs of this node, MERGEs of the nodes below it in the tree, the
 * answer of the node above, and what is left of a closed step for nodes that come late. */
#pragma once

#include <sys/queue.h>
#include <time.h>

#include "client/hostlist.h"
#include "client/key.h"
#include "client/step-fields.h"
#include "tccld/join/merge.h"
#include "tccld/join/phase.h"
#include "tccld/join/running.h"
#include "tccld/join/step-outcome.h"
#include "tccld/join/stepd.h"
#include "tccld/main/daemon.h"
#include "tccld/net/connection.h"
#include "tccld/net/link.h"

enum {
    STEP_MOST = 2048,    /* steps kept, open and closed */
    STEP_KEEP_MS = 60000 /* how long a closed step answers late nodes */
};

enum { WAITERS = 4 /* JOINs of one step on one node */ };

/* Is the tccld of a node alive? If no answer comes soon, it is asked whether it is busy, and once
 * more, on a new connection. */
enum { PROBE_FIRST, PROBE_AGAIN, PROBE_BUSY, PROBE_TRIES };
struct probe {
    struct step *step;
    int node;
    int64_t since;    /* of the first question that has no answer; 0: none */
    int64_t deadline; /* of the answer */
    int64_t more_at;  /* when more is asked, if there is none yet */
    struct probe_try {
        struct probe *probe;
        struct link *link; /* NULL: not asked, or over */
    } tries[PROBE_TRIES];
    bool repeated; /* another one than the first was put */
    bool is_busy;  /* it has said so since then */
};

/* A node right below this one in the tree. */
struct child {
    int node;
    struct merge *merge;           /* NULL: its MERGE has not come */
    struct connection *connection; /* its connection, which waits for the PLAN */
    struct probe probe;
    bool listens; /* its tccld has said that it is alive */
    struct step *step;
};

struct step {
    TAILQ_ENTRY(step) link;
    struct steps *steps;
    struct tccl_step_key key;
    char text[TCCL_KEY_TEXT];
    int node, n_nodes, timeout_ms;
    enum step_phase phase;
    int64_t opened_us;
    int64_t waited_us; /* before that, for this node's tccld: it hung */
    time_t start;
    int64_t end; /* when those who wait give up; once closed: when the step is forgotten */

    /* This node. */
    bool by_script;         /* it takes part by its job script (script.h) */
    struct tccl_step *join; /* NULL: none has come, or no longer needed */
    uid_t uid;              /* of that */
    int64_t joined_us;      /* 0: no JOIN has come */
    struct connection *waiters[WAITERS];
    int n_waiters;
    unsigned look; /* at slurmd's list of GPUs, until the class is there */
    struct shared_class *class;
    char *path, *own_ring; /* plan file and ring text; NULL: none */

    /* The tree: below and above. */
    struct child *children;
    int n_children, n_arrived;
    char *parent; /* its node name, once it is known */
    struct link *up;
    struct tccl_hosts below; /* names of this node's range, before its JOIN: of a HERE */

    /* Who is late (probe.c). */
    struct probe above; /* the parent */
    int64_t ask_at;     /* when all who are late are asked again */
    int rounds;         /* how often they were */
    int unasked;        /* how often that failed on this node */
    bool resent;        /* the MERGE, to a parent that could not be reached */

    /* What policies depend on (claims.h). */
    char *claims;                  /* of the nodes so far; NULL: none */
    struct job_question *question; /* to slurmctld, at the root */
    bool asked;                    /* it has been put */

    /* What came of it. */
    struct tccl_outcome outcome;
    bool recorded;  /* here or further up */
    bool required;  /* a node requires a ring, this one or one below */
    json_t *record; /* at the root, of a ring, in case it turns out that a node is without it */
    struct event *timer;
};

TAILQ_HEAD(step_list, step);

struct steps {
    struct daemon *daemon;
    struct step_list open, closed; /* closed: the oldest first */
    int count;
    bool stopping;                 /* nothing is reported any more */
    struct stepd_sockets *sockets; /* of the slurmstepds here */
    struct log_limit refused, trouble;
    unsigned logged[STEP_PHASES]; /* one bit for each refused event that has been logged */
};

/* steps.c: those that are known */

/* The step of a message, opened if it is new; NULL with err if it doesn't fit what is known. */
struct step *steps_get(struct steps *steps, const struct tccl_step_key *key, int node, int n_nodes,
                       int timeout_ms, struct tccl_error *err);
/* NULL if there is none. */
struct step *steps_find(const struct steps *steps, const struct tccl_step_key *key);
/* Does a node that comes to it hear that it has failed? One that ended here a while ago may be of
 * an earlier run under the same key. */
bool step_tells_failure(const struct step *step);
void step_free(struct step *step);
/* The name of a node of the step, and the names from there on as far as they are known together: of
 * all nodes once this one has joined, before that of its range. NULL: not known. */
const char *step_name(const struct step *step, int node);
char *const *step_names(const struct step *step, int node);

struct steps *steps_new(struct daemon *daemon); /* NULL without memory */
/* Ends all open steps, without a ring where somebody waits. */
void steps_stop(struct steps *steps);
/* NULL is fine. */
void steps_free(struct steps *steps);

/* step.c: the life of one */

/* The phase after an event. False: the table has none; nothing has changed, and that is logged
 * once. */
bool step_enter(struct step *step, enum step_event event);
/* This node takes part (message is taken over). */
void step_begin(struct step *step, struct tccl_step *message);
/* Does what can be done in this phase. */
void step_advance(struct step *step);
/* The parent need not be told any more, or has been: the record is kept, unless it is elsewhere. */
void step_settle(struct step *step);
/* The outcome is there: everybody who waits is answered. step_advance goes on from there. */
void step_close(struct step *step, enum step_event event);
/* No ring on any node. Only the first reason counts. node: on which it is so, NULL: on none. At: of
 * a node, whose name the text begins with. */
__attribute__((format(printf, 4, 5))) void step_fail(struct step *step, enum tccl_reason cause,
                                                     const char *node, const char *fmt, ...);
#define step_fail_at(step, cause, node, fmt, ...)                                                  \
    step_fail(step, cause, node, "%s: " fmt, node, ##__VA_ARGS__)

static inline bool step_is_open(const struct step *step)
{
    return phase_is_open(step->phase);
}

/* Has a JOIN come from this node? */
static inline bool step_has_joined(const struct step *step)
{
    return step->joined_us != 0;
}

/* Has a ring been given out? This node may be without it. */
static inline bool step_has_ring(const struct step *step)
{
    return step->outcome.state == TCCL_STATE_PLANNED || step->outcome.partial;
}

request_handler step_alive, step_here, step_join, step_leave, step_merge;

/* join.c: a node takes part in a step, with its JOIN. */

/* Looks for the node class of this node's GPUs for the join of an open step, or closes the step. */
void join_take(struct step *step);
/* The first JOIN of this node, which is taken over. */
void step_take_part(struct step *step, struct tccl_step *message);

/* A look at slurmd's list of GPUs has ended: steps that wait for it go on. */
void join_heard(struct daemon *daemon, unsigned look);

/* leave.c: the end of a step on this node, and of its plan file. */

/* The step has ended on this node; of a job script, the steps that it has taken part in end as
 * well. silent: nobody has said so; what was built may have been said to no one, and stays unknown.
 */
void leave_end(struct steps *steps, const struct tccl_step_key *key, bool silent);
/* The same of an earlier run of a step that begins anew under the same key: that goes on. */
void leave_before(struct daemon *daemon, struct running_step *run);

/* children.c: the nodes right below this one in the tree: their MERGEs, and who of them is there.
 */

/* Makes the places of a new step's children. Returns 0, or -1 without memory. */
int children_init(struct step *step);
/* What has come of a child goes; a connection is closed without an answer. */
void child_clear(struct child *child);

/* Are the children that have come before this node's JOIN those that it names? Returns 0, or -1
 * with err. */
int children_check(const struct step *step, struct tccl_error *err);
/* A child that has hung up, and so can't be given its PLAN; NULL: none has. */
const struct child *children_lost(const struct step *step);
extern const char child_hung_up[];

/* This node, which has a class, and all below it, in order. The caller frees. NULL with err. */
struct merge *children_merge(const struct step *step, struct tccl_error *err);

/* What MERGE and HERE begin with. */
struct report {
    struct tccl_step_key key;
    json_int_t node, n_nodes, timeout_ms, wait_ms;
    const char *reason, *reason_node; /* NULL: none */
    enum tccl_reason cause;
    bool required;
};
/* first: the lowest index that its node may have. Returns 0, or -1 with err. Texts are borrowed. */
int report_read(const json_t *json, int first, struct report *report, struct tccl_error *err);
/* Such a message of that type, of a node. A new reference; NULL without memory. */
json_t *report_new(const struct step *step, const char *type, int node);

/* step-report.c: what a node tells its parent: MERGE, with what is known of its range, or with a
 * reason why there is no ring, or why one that was given out is not on all nodes. */

/* Reports the range, and waits for the PLAN. Without memory the step fails. */
void report_range(struct step *step, const struct merge *merge);

/* The parent is dead: no PLAN will come from it. */
void report_lost(struct step *step, const struct tccl_error *err);

/* Of a step that has failed here: its parent answers who keeps the record. */
void report_failure(struct step *step, enum tccl_reason cause, const char *node,
                    const char *reason);

/* A ring was given out, but a node of this range could not take it: handed up to the root, which
 * puts it on record. */
void report_partial(struct step *step, enum tccl_reason cause, const char *node,
                    const char *reason);

/* probe.c: nodes that are late: are they alive? Who is, is waited for until the step's timeout; who
 * does not answer ends the wait of all. */

/* Something is missing of this step: asks those from whom it should come, now and then, and looks
 * whether anybody here still waits for it. */
void probe_late(struct step *step);
/* Nobody needs to know any more. */
void probe_cancel(struct probe *probe);
/* They have not come in time: no ring, and who it was. */
void probe_give_up(struct step *step);

/* claims.c: the partition, account and QOS that a step claims, where the site's policy depends on
 * them: its first node gives no ring before slurmctld has said that they are the job's. */

/* This node's JOIN; the root has slurmctld asked at once. Returns 0, or -1 with err: another node
 * of the step was told otherwise. */
int claims_take(struct step *step, struct tccl_error *err);
/* The same by a child's MERGE, of its range. */
int claims_hear(struct step *step, const json_t *merge, struct tccl_error *err);
/* Adds those of this range to a MERGE. Returns 0, or -1. */
int claims_put(const struct step *step, json_t *merge);

/* At the root: are they the job's? Returns 0: yes, or it doesn't matter; 1: slurmctld has been
 * asked, and step_advance will be called; -1 with err: no, or it is not known. */
int claims_check(struct step *step, struct tccl_error *err);
/* Does the step wait for slurmctld alone? Then err says so. */
bool claims_are_awaited(const struct step *step, struct tccl_error *err);
void claims_clear(struct step *step);

/* answer.c: the outcome of a step on its way out: to the tasks of this node, as a plan file and the
 * answer of their JOINs, and to the children. */

/* Is anybody on this node connected who waits? */
bool answer_is_awaited(const struct step *step);

/* A ring has been given out: writes this node's plan, or leaves this node without. */
void answer_apply(struct step *step);

/* Answers the first JOIN, and counts that; answers others that wait. */
void answer_join(struct step *step);
void answer_waiters(struct step *step);

/* Sends each child the PLAN for its range. */
void answer_children(struct step *step);
/* A child that asks (again) after the step has closed: there is no ring for it any more. */
void answer_late(struct step *step, struct connection *connection);
/* A MERGE that can't be believed. */
void answer_refused(struct connection *connection, const struct tccl_step_key *key,
                    const struct tccl_error *err);

/* deadline.c: the times of a step; there are no others. T is its timeout, from the first message
 * about it; A is AliveTimeout=, T if that is less (profiler/tccld/join/late.md):
 *
 *   1/4 s, at most A / 4   nodes from which nothing has come are asked whether they are alive
 *                          (probe.c)
 *   A                      who has not answered that is dead: no ring. Who is busy has 4 A
 *   T - 1 s                who is alive and has not come is given up; 1/8 s earlier for each level
 *   T - 1/4 s              a PLAN that has not come from the parent is given up (step-report.c)
 *   after closing          the step is forgotten
 */

/* A new step has a timer, which isn't set. Returns 0, or -1 without memory. */
int deadline_init(struct step *step);
/* Somebody waits from now on for wait_ms. */
void deadline_expect(struct step *step, int64_t wait_ms);
/* Others are awaited from now on, and it is known who. */
void deadline_await(struct step *step);
/* Sets the timer to what its phase says. */
void deadline_arm(struct step *step);
/* The step has been closed: when it is forgotten. */
void deadline_keep(struct step *step);

/* When this node has to have reported (tccl_now_ms). */
int64_t deadline_report(const struct step *step);
/* When the PLAN of the parent is of no use any more. */
int64_t deadline_plan(const struct step *step);
/* How long a node that is asked now whether it is alive has to answer, ms; may be negative. */
int64_t deadline_patience(const struct step *step);
