/* running.h: the steps of this node: one record each, from JOIN to LEAVE, kept once on disk
 * (RunDir/<step>/step) for a tccld that is started again. What knows of a step here looks at its
 * record: who runs beside whom (alongside.h), what the shim asks (CHAIN, AGREE), what was built
 * (built.h), job scripts (script.h), and the plugin's presence. Steps that have ended stay known as
 * long as there is room. */
#ifndef TCCL_RUNNING_H
#define TCCL_RUNNING_H

#include <sys/queue.h>

#include "chain/chain-text.h"
#include "client/hostlist.h"
#include "client/outcome.h"
#include "client/step-fields.h"
#include "machine/machine.h"
#include "tccld/join/stepd.h"
#include "tccld/main/daemon.h"
#include "tccld/main/log.h"
#include "tccld/net/connection.h"

enum {
    RUNNING_MOST = 4096,      /* steps; beyond, the oldest one that has ended is forgotten, or the
                               * oldest one of the job that has most */
    RUNNING_QUESTIONS = 1024, /* of one step, answered within a second */
    RUNNING_NODES = 1024      /* bytes of node names that are known */
};

struct running_step {
    TAILQ_ENTRY(running_step) link;
    char folder[TCCL_KEY_TEXT]; /* in RunDir */
    /* By JOIN. */
    struct tccl_step_key key;
    uid_t uid;
    enum tccl_launch launch;
    bool by_script; /* it has no plugin here: it ends with the job script that takes part in it */
    int node, n_nodes; /* node: this one's index */
    char *nodes;       /* all names, in bracket form; "" if that is longer than RUNNING_NODES */
    char *parent;      /* in the tree; "" of node 0 */
    bool hidden;       /* its tasks here see only their own GPUs */
    int gres[TCCL_MAX_GRES], n_gres; /* Slurm's numbers of its GPUs; none: it has none, or another
                                      * step counts in its place */
    char stepd[STEPD_TEXT];
    int64_t joined_ms; /* tccl_now_ms; 0: by a tccld before this one */
    bool ended;
    /* By PLAN. */
    bool plan; /* there is one, of a ring or for groups of its GPUs alone */
    bool ring;
    bool partial; /* node 0 has heard that a node is without its plan */
    int64_t start;
    int n_gpus;
    tccl_bus gpus[TCCL_MAX_GPUS];
    int n_baselines;
    struct tccl_outcome_baseline baselines[TCCL_OUTCOME_BASELINES];
    char *rings;  /* its chain, or those of a set; NULL: NCCL's own */
    double alone; /* of all of them, GB/s */
    /* By CONFIRM. */
    int built;    /* so many of its rings, the first ones; 0: NCCL's own in their place */
    int nccl;     /* its version, 0: not known */
    json_t *said; /* what is known of all nodes (built.c); NULL: nothing */
    struct verdict *verdict;
    /* Questions of its processes. */
    int64_t second; /* the last one in which it was asked about */
    int questions;  /* in that */
    bool changed;   /* since it was written down */
};

TAILQ_HEAD(running_list, running_step);

struct running {
    struct daemon *daemon;
    struct running_list live, past; /* the latest first */
    int count;
    int64_t began_ms, forgotten_ms; /* when the last one that was forgotten had joined */
    int64_t swept;                  /* tccl_now_ms */
    unsigned joins;                 /* of this tccld */
    struct event *save, *place;     /* place: alongside.c */
    void (*forget)(struct running *, struct running_step *); /* what else knows of a step; NULL */
    struct log_limit trouble, lost;                          /* lost: what was built (built.c) */
};

/* Knows what the tccld before this one has written down in RunDir. NULL without memory. */
struct running *running_new(struct daemon *daemon);
void running_free(struct running *running); /* NULL is fine */

/* A step has begun here. stepd: its slurmstepd (stepd.h). The step, NULL without memory. */
struct running_step *running_begin(struct running *running, const struct tccl_step *join,
                                   const char *stepd);
/* The step of that key that runs; NULL: none does. */
struct running_step *running_find(const struct running *running, const struct tccl_step_key *key);
/* The same with a plan here. */
struct running_step *running_planned(const struct running *running,
                                     const struct tccl_step_key *key);
/* The same by its folder in RunDir; past: has there been one that has ended? */
struct running_step *running_folder(const struct running *running, const char *folder, bool *past);
/* The job script of that step's job; NULL: it is not known. */
struct running_step *running_script(const struct running *running, const struct tccl_step_key *key);
/* Is it the record of a job script that may start a launcher? */
bool running_is_script(const struct running_step *step);
/* What is written down in that folder; NULL: nothing that can be read. */
struct running_step *running_load(struct running *running, const char *folder);
/* The step that a question's key names, with a plan, if the other side may ask about it and has not
 * asked too often. NULL with err. */
struct running_step *running_asked(struct daemon *daemon, const struct connection *connection,
                                   const struct tccl_lines *question, struct tccl_error *err);

/* What its NCCL, of that version (0: not known), has built: so many of its rings, the first ones
 * (0: NCCL's own in their place; TCCL_CHAIN_RINGS: all that it was given). */
void running_built(struct running *running, struct running_step *step, int rings, int nccl);
/* It has ended, and is written down no more. */
void running_end(struct running *running, struct running_step *step);
/* Those that count for others, and whose slurmstepd is gone, count no more: no LEAVE comes. At most
 * ten times a second. */
void running_sweep(struct running *running);

/* As it is written down: allocated; NULL without memory. */
char *running_text(const struct running_step *step);
/* Writes it down, now or soon. */
void running_save(struct running *running, struct running_step *step);
void running_save_soon(struct running *running, struct running_step *step);

#endif
