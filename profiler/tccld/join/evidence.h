/* evidence.h: what steps have achieved with their rings and without them, for the steps of which
 * this node was the first: a ring that is slower than NCCL's own choice is no longer given, and a
 * profile that promises too much is found out. A table in memory, without a clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "client/outcome.h"
#include "client/step-fields.h"
#include "tccld/main/daemon.h"

struct running_step;

enum {
    EVIDENCE_ROWS = 1024,  /* beyond, the oldest one goes, */
    EVIDENCE_OF_USER = 32, /* of a user who has so many his oldest one */
    EVIDENCE_WHAT = 63,    /* bytes of a subject's name */
    EVIDENCE_LEAST = 5,    /* steps of each kind that a verdict needs, */
    EVIDENCE_ENOUGH = 16,  /* that it needs to stand against that of others, */
    EVIDENCE_AGAIN = 16, /* with the ring again, after which a ring that was left is judged anew; */
    EVIDENCE_MOST = 64,  /* that a mean goes back: of more the oldest ones fade */
    EVIDENCE_RETURN = 10000, /* of 100,000 jobs so many have a ring all the same that was left */
    EVIDENCE_LARGE = 64,     /* MiB: collectives of so many and more reach what is promised */
};
#define EVIDENCE_SLOWER 0.97 /* of NCCL's own choice: it is no longer given */
#define EVIDENCE_UNTRUE 0.8  /* of what is promised: the profile is no longer true */

/* What a step had: the ring as planned, or NCCL's own choice in its place. */
enum evidence_arm { EVIDENCE_RING, EVIDENCE_OWN, EVIDENCE_ARMS };

/* Steps of one kind: of the logarithm of what was achieved over what the ring promises. */
struct evidence_mean {
    double n, mean, squares; /* n: at most EVIDENCE_MOST; squares: sum of (x - mean)² */
};

/* Can a mean be what steps add up to? */
bool evidence_is_mean(const struct evidence_mean *mean);

/* One user's steps of one subject, with one NCCL and size of collectives. */
struct evidence_row {
    char what[EVIDENCE_WHAT + 1]; /* the GPU sets of its nodes, for people */
    int32_t n_nodes;
    uint32_t uid;
    int32_t nccl;    /* without the last part of the version: 229 */
    int32_t from;    /* collectives of so many MiB and more: 4, 16 or 64 */
    bool off;        /* the ring is slower: it was left */
    bool latest;     /* of this user's of the subject */
    double left;     /* off: what the ring reached, to NCCL's own choice, when it was left */
    double promised; /* by the profile, GB/s */
    struct evidence_mean arms[EVIDENCE_ARMS]; /* off: with the ring: since then */
    struct evidence_mean large;               /* with the ring, of large collectives */
    int64_t first, order; /* of its first step and its last: later ones have more */
};

/* All zeros is an empty one. */
struct evidence_table {
    int n;
    int64_t order;
    uint64_t subjects[EVIDENCE_ROWS]; /* of each row: what is promised to which GPUs (outcome.h) */
    struct evidence_row rows[EVIDENCE_ROWS];
};

/* Adds what a step has achieved, GB/s, by collectives of so many bytes and more. Returns whether it
 * counts: not what can't be (no number, nothing, 64 times less or 8 times more than promised), or
 * has no subject or version. No step moves a mean by more than four deviations. */
bool evidence_add(struct evidence_table *table, const struct running_step *step,
                  enum evidence_arm arm, int64_t bytes, double achieved);

/* What is known of a subject; users: who must agree. */
struct evidence_view {
    int slower, good; /* users whose own steps say so */
    bool off;         /* so it is no longer given to all */
    bool untrue;      /* what it reaches is far below what is promised, as so many users' say; and
                       * nothing else has been promised to these GPUs since */
    double steps[EVIDENCE_ARMS];    /* of all of them that count */
    double ratio;                   /* of these users in the middle: to NCCL's own; 0: not known */
    double reached;                 /* the same to what is promised, 0: not known */
    const struct evidence_row *row; /* the latest one; NULL: there is none */
};
struct evidence_view evidence_look(const struct evidence_table *table, uint64_t subject, int users);

/* Is the ring to be left to NCCL for this user? By his own steps with the NCCL that he has used
 * last, where they say something; else as all others. */
bool evidence_leaves(const struct evidence_table *table, uint64_t subject, uid_t uid, int users);

/* Which jobs run with NCCL's own choice in place of the rings that they would get, so that it is
 * known what rings bring (Trial= in tccl.conf): is this job one of so many of TRIAL_WHOLE? By a
 * hash of what the draw is for, the cluster and the job's number (of a heterogeneous job the
 * leader's): alike for all steps of a job, requeued or not, on all nodes, whatever node decides;
 * and known to whoever knows the number, who may as well ask for a ring. */
enum { TRIAL_WHOLE = 100000 };
bool evidence_draws(const struct tccl_step_key *key, const char *what, int share);

/* evidence-file.c: the table of a running tccld: kept in StateDir/evidence.json, used where a step
 * starts, and shown. */

/* The file's contents: a new reference, NULL without memory; and a table, all zeros before, from
 * them. Returns 0, or -1 with err, and the table may have a part of it. */
json_t *evidence_to_json(const struct evidence_table *table);
int evidence_from_json(const json_t *json, struct evidence_table *table, struct tccl_error *err);

/* Begins to read the file, in a thread: until it is there nothing is known, and steps do not count.
 * One that can't be read is begun anew. NULL with err. */
struct evidence *evidence_new(struct daemon *daemon, struct tccl_error *err);
/* Writes what is new, if the disk takes it soon. NULL is fine. */
void evidence_free(struct evidence *evidence);

/* A step has ended; Evidence=off: it does not count. It is on disk within EVIDENCE_SAVE_MS. */
enum { EVIDENCE_SAVE_MS = 10000 };
void evidence_take(struct daemon *daemon, const struct running_step *step, enum evidence_arm arm,
                   int64_t bytes, double achieved);

/* At the root: a ring that was measured to be slower is left to NCCL's own choice, but for some
 * jobs, by which it is seen whether it still is. */
void evidence_apply(struct daemon *daemon, struct tccl_outcome *outcome,
                    const struct tccl_step *join);

/* For NODE: what is known of each subject, the latest EVIDENCE_SHOWN of them: a new reference, NULL
 * without memory. Who the users are is not said. */
enum { EVIDENCE_SHOWN = 64 };
json_t *evidence_report(const struct daemon *daemon);
