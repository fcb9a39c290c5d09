/* step-fields.h: the facts of a job step in one struct, and the table of all members that a step
 * has in the messages JOIN and PLAN, in records (records/record.h), in the store, in filters and in
 * tcclacct's output. profiler/client/members.md shows the table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "client/conf.h"
#include "client/key.h"
#include "client/outcome.h"

enum {
    TCCL_MAX_NODES = 16384,        /* nodes of one step */
    TCCL_MAX_GRES = 64,            /* GRES indices in a JOIN */
    TCCL_MAX_TIMEOUT_MS = 3600000, /* longest wait a message may ask for */
    TCCL_STEP_TEXT = 255,          /* bytes of a text of Slurm's */
    TCCL_STEP_REASON = 511,
    TCCL_MAX_NODE_LIST = TCCL_MAX_NODES * 41, /* bytes of nodes, as a hostlist: so many names of 40
                                                 characters, whatever they have in common */
};

/* Where a member is used. */
enum tccl_use {
    TCCL_IN_KEY = 1,
    TCCL_IN_JOIN = 2,
    TCCL_IN_PLAN = 4,
    TCCL_IN_RECORD = 8,
    TCCL_IN_CONFIRMATION = 16, /* and of the record only by that */
    TCCL_MUST_JOIN = 32,       /* it must be there; otherwise absent is "" or 0 */
    TCCL_MUST_PLAN = 64,
    TCCL_MUST_RECORD = 128,
    TCCL_MEASURED = 256, /* in a confirmation: of what was achieved (store.h) */
    TCCL_EVERYWHERE = TCCL_IN_JOIN | TCCL_IN_RECORD,
};

/* What Slurm says of a job: TEXT(member, the plugin's variable of it, where used, the list that
 * asks for it in a filter, column of tcclacct, its width) and NUMBER(type, member, where used,
 * column, width). To carry one more fact from Slurm's environment to tcclacct, add its line. */
#define TCCL_STEP_FACTS(TEXT, NUMBER)                                                              \
    TEXT(job_name, "SLURM_JOB_NAME", TCCL_EVERYWHERE, "names", "JobName", 10)                      \
    NUMBER(uid_t, uid, TCCL_EVERYWHERE | TCCL_MUST_JOIN | TCCL_MUST_RECORD, "UID", 6)              \
    NUMBER(gid_t, gid, TCCL_IN_JOIN | TCCL_MUST_JOIN, NULL, 0)                                     \
    TEXT(account, "SLURM_JOB_ACCOUNT", TCCL_EVERYWHERE, "accounts", "Account", 10)                 \
    TEXT(partition, "SLURM_JOB_PARTITION", TCCL_EVERYWHERE, "partitions", "Partition", 10)         \
    TEXT(qos, "SLURM_JOB_QOS", TCCL_EVERYWHERE, "qos", "QOS", 10)

/* How programs are started in a step. Launchers (mpirun) start a daemon on each node by a step;
 * ranks on the job script's node may be children of the script. */
enum tccl_launch {
    TCCL_LAUNCH_TASKS,       /* the step's own tasks */
    TCCL_LAUNCH_SCRIPT,      /* a job script, in a job of several nodes: it may start a launcher */
    TCCL_LAUNCH_SCRIPT_ONLY, /* the same, and the script wants no ring of its own */
    TCCL_LAUNCH_DAEMONS,     /* a launcher's daemons */
    TCCL_LAUNCH_BELOW,       /* the same; node 0, the script's, has none and does not join */
};

/* What a node knows of a step when it starts. All zeros is one without nodes; tccl_step_clear frees
 * what it owns. */
struct tccl_step {
    struct tccl_step_key key;
#define TCCL_TEXT_MEMBER(member, ...) char member[TCCL_STEP_TEXT + 1];
#define TCCL_NUMBER_MEMBER(type, member, ...) type member;
    TCCL_STEP_FACTS(TCCL_TEXT_MEMBER, TCCL_NUMBER_MEMBER)
    uint32_t array_job, array_task; /* of a task of a job array, else 0 */
    char **nodes;                   /* all node names, in NCCL's order; one allocation */
    int n_nodes;
    int node;                /* index of this node */
    int gres[TCCL_MAX_GRES]; /* GRES indices of the step's GPUs on this node */
    int n_gres;
    enum tccl_mode mode; /* OFF: only a record is wanted, no answer */
    int timeout_ms;
    int waited_ms; /* it has waited for its tccld, and looked for its NCCL, before this JOIN */
    enum tccl_launch launch;
    int min_nodes, min_gpus;           /* of the site policy; looked at in mode auto */
    double min_gain;                   /* times NCCL's own choice; 0 or 1: any gain will do */
    int trial;                         /* of so many of 100,000 jobs the steps are trials */
    int max_rings;                     /* at once; 0: what tccld's tccl.conf says */
    bool silent;                       /* off, and without a record: its GPUs are in use here */
    bool hidden;                       /* its tasks here see only their own GPUs */
    bool whole;                        /* it has all cores that its job has here */
    bool by_claims;                    /* the site's policy depends on partition, account or QOS */
    char policy[TCCL_POLICY_NAME + 1]; /* the site's rule for this step; "": none */
    char traffic_class[TCCL_TRAFFIC_CLASS + 1]; /* of its packets, "106/3"; "": the default */
    char foreseen[TCCL_STEP_REASON + 1];        /* not "": NCCL will leave the ring alone; why */
    char reason[TCCL_STEP_REASON + 1];          /* not "": this node can't take part; why */
    enum tccl_reason cause;                     /* its class */
};

/* Takes copies of count names (at most TCCL_MAX_NODES), in place of those that the step has.
 * Returns 0, or -1 if out of memory. */
int tccl_step_set_nodes(struct tccl_step *step, const char *const *names, size_t count);
void tccl_step_clear(struct tccl_step *step);
void tccl_step_free(struct tccl_step *step); /* NULL is fine */

/* The table */

enum tccl_field_type {
    TCCL_FIELD_TEXT,
    TCCL_FIELD_WORD,      /* one of words, by its index; where it need not be there, an unknown one
                              is the last; in records any text */
    TCCL_FIELD_NODES,     /* of struct tccl_step; in JSON one text, a hostlist */
    TCCL_FIELD_NUMBERS,   /* of GPUs, int; a list of max, as the next two (TCCL_IS_LIST) */
    TCCL_FIELD_BUSES,     /* tccl_bus */
    TCCL_FIELD_BASELINES, /* struct tccl_outcome_baseline: [first version, GB/s, better] */
    TCCL_FIELD_KEY,
    TCCL_FIELD_JSON, /* a reference, or NULL: need not be there */
    TCCL_FIELD_LONG, /* a text, allocated, or NULL */
    TCCL_FIELD_BOOL,
    TCCL_FIELD_INT,   /* a whole number in 4 or 8 bytes, as the next three */
    TCCL_FIELD_COUNT, /* 0: not known */
    TCCL_FIELD_TIME,  /* unix time, seconds */
    TCCL_FIELD_MICROSECONDS,
    TCCL_FIELD_REAL, /* 0: not known */
};

/* Whose member it is: of struct tccl_step, of struct tccl_outcome, or of records alone. */
enum tccl_owner { TCCL_OF_STEP, TCCL_OF_OUTCOME, TCCL_OF_RECORD };

#define TCCL_IS_LIST(type, member)                                                                 \
    _Static_assert(offsetof(type, n_##member) ==                                                   \
                       offsetof(type, member) + sizeof(((type *)0)->member),                       \
                   "a list, and behind it how many there are")

struct tccl_field {
    const char *name; /* of the member in JSON, and of the store's column */
    enum tccl_field_type type;
    unsigned use;
    long long min, max; /* of texts: bytes; of lists: entries */
    enum tccl_owner owner;
    size_t at, size;      /* of the member in its owner */
    const char *column;   /* of tcclacct; NULL: none */
    int width;            /* negative: to the left */
    const char *filter;   /* the list of texts that asks for it; NULL: none */
    const char *variable; /* of Slurm's, in the environment of slurmstepd */
    const char *const *words;
};

/* Is it a text in records? All else are numbers. */
bool tccl_field_is_text(const struct tccl_field *field);

enum { TCCL_MOST_FIELDS = 96 };
extern const struct tccl_field tccl_step_fields[];
extern const int tccl_n_step_fields;

/* ---- step-json: steps and outcomes in JSON, by the table of their members.
 * Format: profiler/client/README.md. */

/* Adds the members that are used there (one of TCCL_IN_*) and are of that owner, which is a struct
 * tccl_step or tccl_outcome; those that need not be there are left out where they are "" or 0.
 * Returns 0, or -1 if out of memory. */
int tccl_fields_put(json_t *json, enum tccl_use use, enum tccl_owner owner, const void *object);
/* Reads them; what is absent becomes "" or 0. Returns 0, or -1 with err, which names the member:
 * the object is then to be cleared all the same. */
int tccl_fields_get(const json_t *json, enum tccl_use use, enum tccl_owner owner, void *object,
                    struct tccl_error *err);

/* The same of one member, of this or another table. must: it is there also where it is "" or 0. */
int tccl_field_put(json_t *json, const struct tccl_field *field, bool must, const void *object);
int tccl_field_get(const json_t *json, const struct tccl_field *field, bool must, void *object,
                   struct tccl_error *err);

/* JOIN: a new reference, or NULL with err. */
json_t *tccl_join_to_json(const struct tccl_step *step, struct tccl_error *err);
/* Allocated; NULL with err. */
struct tccl_step *tccl_join_from_json(const json_t *json, struct tccl_error *err);

/* A record of a step (records/record.h): a new reference, or NULL if out of memory. */
json_t *tccl_record_to_json(const struct tccl_step *step, const struct tccl_outcome *outcome);
