/* running.h: the steps of this node: one record each, from JOIN to LEAVE, kept once on disk
 * (RunDir/<step>/step) for a tccld that is started again. What knows of a step here looks at its
 * record: who runs beside whom (alongside.h), what the shim asks (CHAIN, AGREE), what was built,
 * job scripts, and the plugin's presence. Steps that have ended stay known as long as there is
 * room. */
#pragma once

#include <sys/queue.h>

#include "chain/chain-text.h"
#include "client/hostlist.h"
#include "client/outcome.h"
#include "client/step-fields.h"
#include "machine/machine.h"
#include "ring/groups.h"
#include "tccld/join/stepd.h"
#include "tccld/main/daemon.h"
#include "tccld/net/connection.h"

/* Whom joint choices were made for in this second (joint.c). */
enum {
    JOINT_KEPT = 64,   /* joint choices; beyond, the oldest ones of the user who has most go */
    JOINT_USER = 16,   /* that are made for one user within a second, */
    JOINT_SECOND = 64, /* and for all; who asks for more is planned alone */
};
struct joint_turns {
    int64_t second; /* tccl_now_ms */
    int n;
    uid_t users[JOINT_SECOND];
};

enum {
    RUNNING_MOST = 4096, /* steps; beyond, the oldest one that has ended is forgotten, unless its
                          * verdict is awaited, or the oldest one of the user who has most */
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
    int64_t order;     /* later ones have more, as tccl_wall_us */
    bool ended;
    /* By PLAN. */
    bool plan; /* there is one, of a ring or for groups of its GPUs alone */
    bool ring;
    bool measure;    /* NCCL's own choice is to run, for groups too */
    int64_t subject; /* of its figures at node 0 (client/outcome.h); 0: they are no evidence */
    double promised; /* GB/s */
    char what[TCCL_OUTCOME_CLASS + 1]; /* of the subject, for people */
    bool partial;                      /* node 0 has heard that a node is without its plan */
    int64_t start;
    tccl_bus gpus[TCCL_MAX_GPUS];
    int n_gpus;
    double gbps; /* of the ring over all nodes, GB/s; 0: none */
    struct tccl_outcome_baseline baselines[TCCL_OUTCOME_BASELINES];
    int n_baselines;
    char *rings;  /* its chain, or those of a set; NULL: NCCL's own */
    double alone; /* of all of them, GB/s */
    /* By CONFIRM. */
    int built;    /* so many of its rings, the first ones; 0: NCCL's own in their place */
    int nccl;     /* its version, 0: not known */
    json_t *said; /* what is known of all nodes (built.c); NULL: nothing */
    bool later;   /* another step began beside it here (alongside.h) */
    char *slowed; /* and slows it down; NULL: none that is known does */
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
    int64_t began_ms, forgotten_ms;     /* when the last one that was forgotten had joined */
    int64_t swept, save_at;             /* tccl_now_ms; save_at: while save is pending */
    int64_t latest;                     /* order of the latest one */
    unsigned joins;                     /* of this tccld */
    struct event *save, *place, *look;  /* place, look: alongside.c */
    int64_t looked;                     /* order of the last step that was looked at there */
    TAILQ_HEAD(, joint) joints;         /* of all steps, the oldest first, */
    TAILQ_HEAD(, agreement) agreements; /* as these (agree.c) */
    int n_joints, n_agreements;
    struct joint_turns turns;
    struct log_limit trouble, lost;     /* lost: what was built (built.c) */
    struct log_limit collapsed, slowed; /* steps beside each other; those that ran before */
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
/* Which chains its groups may have: P2P is what it is in its own. */
enum tccl_view running_view(const struct running_step *step);
/* Which chains a step that begins may have. P2P may read only where no processes of its job but its
 * own are on this node, or can come: both ends of P2P have to agree. */
enum tccl_view running_view_of(const struct running *running, const struct tccl_step *join);
/* The job script of that step's job; NULL: it is not known. */
struct running_step *running_script(const struct running *running, const struct tccl_step_key *key);
/* Is it the record of a job script that may start a launcher? */
bool running_is_script(const struct running_step *step);
/* What is written down in that folder; NULL: nothing that can be read, or there is no room. */
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
/* Writes it down, now (returns 0; -1: RunDir does not answer) or soon. */
int running_save(struct running *running, struct running_step *step);
void running_save_soon(struct running *running, struct running_step *step);
/* What has changed is written within so long, however often that is said. */
void running_save_in(struct running *running, int ms);

/* script.c: job scripts that may start an MPI launcher, and the steps that they take part in. */

/* Is it the step of a job script, or of an interactive shell (salloc)? */
bool script_is(const struct tccl_step_key *key);
/* A step that runs by the part that the script's node takes in it; NULL: there is none. */
struct running_step *script_next_below(const struct running *running,
                                       const struct running_step *script);

/* This node's JOIN in a step of a launcher that has no daemon here: like that of a node below,
 * which came with its MERGE, but with the GPUs of the job script. With the reason in it if there is
 * none. NULL with err: the node below is not to be believed. Caller frees. */
struct tccl_step *script_join(struct daemon *daemon, const struct tccl_step_key *key,
                              const json_t *below, struct tccl_error *err);

/* sweep.c: what steps that ended without LEAVE have left in RunDir goes. */

enum {
    SWEEP_MS = 3600000,
    SWEEP_KEEP_S = 7 * 86400, /* what is of an unknown step, */
    SWEEP_MANY = 4096,        /* or, beyond so many of them, */
    SWEEP_MANY_KEEP_S = 86400
};

struct sweep;

/* Sweeps when the event loop begins, and then every period_ms. NULL without memory. */
struct sweep *sweep_new(struct daemon *daemon, int period_ms);
/* Sweeps soon. */
void sweep_hurry(struct sweep *sweep);
void sweep_free(struct sweep *sweep); /* NULL is fine */

/* Before anything is written there: files that a tccld was killed while it wrote. */
void sweep_unfinished(const char *run_dir);

/* Sweeps now. now: unix time. Returns of how many steps something was removed. */
int sweep_run_dir(struct daemon *daemon, time_t now);

/* presence.c: is the plugin on this node? What slurmd's plugstack.conf says, and which steps have
 * sent a JOIN; for NODE, by which tccl-check and srun ask, since Slurm drops --tccl in silence
 * where nobody knows it. */

struct presence;

/* NULL with err. */
struct presence *presence_new(struct daemon *daemon, struct tccl_error *err);
/* NULL is fine. */
void presence_free(struct presence *presence);

/* Why this node has no plugin, by slurmd's plugstack.conf; NULL: it has one, or that is not known
 * yet: ask again in a second. Valid until the event loop goes on. */
const char *presence_missing(struct daemon *daemon);

/* NODE (profiler/client/README.md). */
void presence_ask(struct daemon *daemon, struct connection *connection, json_t *message);
/* A look at slurmd's list of GPUs has ended (own.h). */
void presence_heard(struct daemon *daemon, unsigned look);

/* built.c: what all nodes of a step say that NCCL built, one message per level of the tree: each
 * node adds its own word to those of the nodes below it, and node 0 puts the whole on record. */

enum {
    BUILT_LEVEL_MS = 3000,     /* after the step's end here, or "differs": for each level below, */
    BUILT_PATIENCE_MS = 60000, /* for the others, after the first word of all, */
    BUILT_UPDATE_MS = 1000,    /* for another word to follow soon on one that was sent, */
    BUILT_RETRY_MS = 5000,     /* until the parent is tried again, */
    BUILT_ANSWER_MS = 20000,   /* for it to answer, */
    BUILT_NEWS_MS = 30000,     /* between what was achieved and the next of it, */
    BUILT_KEEP_MS = 600000     /* for nodes on which the step ends later */
};

/* Handler of CONFIRM: what the shim of a process on this node says. Of several words the highest
 * counts. */
lines_handler built_confirm;
/* Handler of ACHIEVED: what a rank has measured. What node 0's first rank says is on record with
 * what was built. */
lines_handler built_achieved;
enum { ACHIEVED_MOST = 10000 /* GB/s */, ACHIEVED_FROM = 4 << 20 /* bytes */ };
enum { CONFIRM_TEXT = 255 };

/* A step has begun beside it, and slows it down, as the text says (NULL: not that it is known): on
 * record by node 0, which is told by the others of a step with a ring, or of a trial. The first
 * word counts. What it achieves from then on is no evidence. */
void built_later(struct running *running, struct running_step *step, const char *slowed);

/* The step has ended on this node. silent: nobody has said so, so a node that had not said what was
 * built stays silent. */
void built_end(struct running *running, struct running_step *step, bool silent);
/* Nothing of it is needed any more. */
void built_drop(struct running_step *step);

/* Handler of BUILT, of a node right below this one. */
request_handler built_receive;

/* agree.c: does every node of a step build all of its rings in a communicator? NCCL takes the least
 * number of channels and the least speed of all nodes, each by itself, so several rings at once are
 * told to it on all nodes or on none. One message per level of the tree, as BUILT; node 0 answers
 * for all. */

enum {
    AGREE_MOST = 1024,   /* communicators that are remembered; beyond, the oldest one goes, */
    AGREE_USER = 64,     /* of these of one user, whose oldest one goes */
    AGREE_SECOND = 16,   /* of one user, that begin within a second; more are answered "not" */
    AGREE_ROOT_MS = 600, /* that node 0 waits, after the first word of all nodes, for the others; */
    AGREE_BELOW_MS = 800, /* others, for node 0. The shim waits for a second */
    AGREE_TELL_MS = 5000, /* for the parent to hear of it, whoever still waits */
    AGREE_KEEP_MS = 60000 /* an answer is there for who comes later */
};

/* The step is about to be forgotten. */
void agree_drop(struct running *running, const struct running_step *step);

/* Handlers of AGREE: of the shim on this node, of a node right below this one. */
lines_handler agree_hear;
request_handler agree_receive;

/* subset.c: CHAIN, the best chain of some of a step's GPUs, for communicators that hold only those.
 */
lines_handler subset_ask;

/* joint.c: the groups of one step on this node (data, tensor, expert parallel), whose chains are
 * chosen jointly at the first question of one of them, and stay so while it runs: each group gets
 * its own part when it asks. */

/* May one more be made for that user? Then it counts. A choice takes 0.1 to 4 ms of the event loop.
 */
bool joint_admit(struct joint_turns *turns, uid_t user, int64_t now_ms);

/* The part of a group of that step, whose class without neighbours this is. NULL: it is no group of
 * a layout (tccl_groups_split), or there is no table to choose by: it is planned as if no other
 * group ran. Borrowed until the next call. */
const struct tccl_group_choice *joint_choice(struct running *running,
                                             const struct running_step *step,
                                             const struct tccl_node_class *class, bool closed);
/* The step has ended, or is about to be forgotten. */
void joint_drop(struct running *running, const struct running_step *step);

/* node-tree.c: the tree over the nodes of a step, by index: node 0 is the root; the parent of a
 * node is its index with the lowest non-zero digit, in base TREE_FAN, set to 0. So each node heads
 * a contiguous range, and the depth is log N in that base. AGREE and BUILT go up the tree. */

enum { TREE_FAN = 16 };

/* How many children a node has. */
int node_tree_children(int node, int n_nodes);
/* The parent's index; -1 for the root. */
int node_tree_parent(int node);
/* 0 for the root. */
int node_tree_depth(int node);
/* The node behind the last one of the range that node heads: [node, end). */
int node_tree_end(int node, int n_nodes);
/* The child of node after child (give node itself for the first), ascending; -1 after the last. The
 * ranges of the children follow on each other. */
int node_tree_next_child(int node, int child, int n_nodes);

/* A message to the node above, of this node's range. A new reference; NULL without memory. */
json_t *node_tree_message(const struct running_step *step, const char *type);
/* The step, with a plan here, that such a message of a node right below this one is of, and which
 * node that is. past: also one that has ended, of which a verdict is awaited. NULL with err. */
struct running_step *node_tree_told(const struct running *running, const json_t *json, bool past,
                                    int *node, struct tccl_error *err);
