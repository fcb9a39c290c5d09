/* step-internal.h: one step on this node, as the files in join/ that handle its messages know it.
 */
#ifndef TCCL_STEP_INTERNAL_H
#define TCCL_STEP_INTERNAL_H

#include <sys/queue.h>
#include <time.h>

#include "client/hostlist.h"
#include "client/key.h"
#include "client/step-fields.h"
#include "tccld/join/merge.h"
#include "tccld/join/outcome.h"
#include "tccld/join/phase.h"
#include "tccld/join/step.h"
#include "tccld/join/stepd-socket.h"
#include "tccld/main/log.h"
#include "tccld/net/link.h"

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
    time_t start;
    int64_t end; /* when those who wait give up; once closed: when the step is forgotten */

    /* This node. */
    bool by_script;         /* it takes part by its job script (script.h) */
    struct tccl_step *join; /* NULL: none has come, or no longer needed */
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
    json_t *record; /* at the root, of an applied ring, in case it turns out to be partial */
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

typedef void link_done(void *context, json_t *answer, const struct tccl_error *err);

/* steps.c: those that are known */

/* The step of a message, opened if it is new; NULL with err if it doesn't fit what is known. */
struct step *steps_get(struct steps *steps, const struct tccl_step_key *key, int node, int n_nodes,
                       int timeout_ms, struct tccl_error *err);
/* NULL if there is none. */
struct step *steps_find(const struct steps *steps, const struct tccl_step_key *key);
/* A step that has ended is freed: what begins under its key is another run, of a requeued job whose
 * steps are not told SLURM_RESTART_COUNT (srun --export=NONE). */
void steps_forget_ended(struct steps *steps, const struct tccl_step_key *key);
void step_free(struct step *step);
/* The name of a node of the step, and the names from there on as far as they are known together: of
 * all nodes once this one has joined, before that of its range. NULL: not known. */
const char *step_name(const struct step *step, int node);
char *const *step_names(const struct step *step, int node);

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
/* No ring on any node. Only the first reason counts. */
__attribute__((format(printf, 3, 4))) void step_fail(struct step *step, enum tccl_reason cause,
                                                     const char *fmt, ...);

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
    return step->outcome.state == TCCL_STATE_APPLIED || step->outcome.partial;
}

#endif
