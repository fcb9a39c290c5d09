/* policy-conf.h: the policies of tccl.conf: [policy], and the rules [policy NAME]. What they mean
 * for a step: client/policy.h. */
#ifndef TCCL_POLICY_CONF_H
#define TCCL_POLICY_CONF_H

#include <stdbool.h>

#include "base/error.h"

enum tccl_mode { TCCL_MODE_OFF, TCCL_MODE_AUTO, TCCL_MODE_ON, TCCL_MODE_REQUIRE };

/* "on" -> TCCL_MODE_ON, in any case of letters; -1 with err that lists what is allowed. */
int tccl_mode_parse(const char *text, struct tccl_error *err);
const char *tccl_mode_name(enum tccl_mode mode);
extern const char *const tccl_mode_names[]; /* in the order of the modes, NULL behind the last */

enum {
    TCCL_POLICY_NAME = 32,        /* bytes of a policy's name */
    TCCL_POLICIES_MAX = 256,      /* in one file */
    TCCL_POLICY_ENVIRONMENT = 16, /* variables of one policy */
    TCCL_TRAFFIC_CLASS = 15,      /* bytes of "106/3", and room */
    TCCL_NOT_SET = -1,
};

/* max 0: not given. "4-" has max INT_MAX. */
struct tccl_range {
    int min, max;
};

/* Of a job's packets on the network; TCCL_NOT_SET: not given. */
struct tccl_traffic_class {
    int tc; /* 0 to 255, of RoCE: NCCL_IB_TC */
    int sl; /* 0 to 15, the service level of InfiniBand: NCCL_IB_SL */
};

/* What holds for a step: own, of [policy], of [tccl], in this order. TCCL_NOT_SET: not said here.
 */
enum { TCCL_SETTINGS = 11 };
#define TCCL_SETTINGS_MEMBERS                                                                      \
    union {                                                                                        \
        struct {                                                                                   \
            int mode, forbid; /* Default=: enum tccl_mode; 0 or 1 */                               \
            int min_gain;     /* thousandths: 1100 for MinGain=1.1x */                             \
            int min_nodes, min_gpus, max_rings, timeout_ms, auto_timeout_ms, require_timeout_ms;   \
            struct tccl_traffic_class traffic_class;                                               \
        };                                                                                         \
        int settings[TCCL_SETTINGS];                                                               \
    }

struct tccl_policy {
    char name[TCCL_POLICY_NAME + 1]; /* "" of [policy] */
    /* What must all hold; NULL or max 0: not given. Lists have commas between their items, which
     * are shell patterns but for node_list and gpu_types. [policy] has partitions only. */
    char *partitions, *accounts, *qos, *users, *job_names;
    char *node_list; /* all nodes of the step are in it */
    char *gpu_types; /* lower case, blanks as '_' */
    struct tccl_range nodes, gpus;
    TCCL_SETTINGS_MEMBERS;
    char **environment; /* "NAME=value" */
    int n_environment;
    bool never; /* it matches nothing: see tccl_conf_read_own */
};

/* A policy that says nothing; "": [policy], with its built-in values. */
struct tccl_policy tccl_policy_new(const char *name);
void tccl_policy_clear(struct tccl_policy *policy);

/* Is this a name for a policy: 1 to TCCL_POLICY_NAME letters, digits, '.', '_' and '-'? */
bool tccl_policy_name_valid(const char *name);

/* Sets one key. A list that is given again goes on (not so in [policy]), so does Environment; of
 * other keys the last value holds. Returns 0; 1 if there is no such key; -1 with err. */
int tccl_policy_set(struct tccl_policy *policy, const char *key, const char *value,
                    struct tccl_error *err);

/* Key i of [policy] (named: of [policy NAME]), NULL behind the last. */
const char *tccl_policy_key(bool named, int i);

/* The name part of "NAME=value" in bytes. */
int tccl_policy_variable(const char *assignment);

#endif
