/* policy-conf.h: the policies of tccl.conf: [policy], and the rules [policy NAME]. What they mean
 * for a step: client/policy.h. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "client/conf-value.h"

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

/* Keys as in conf.h. What holds for a step: own, of [policy], of [tccl], in this order. */
/* clang-format off */
#define TCCL_POLICY_SETTINGS(KEY) \
    KEY(int, mode, , "Default", "off", tccl_set_mode, 0, 0, "off, auto, on or require") /* enum tccl_mode */ \
    KEY(int, min_nodes, , "MinNodes", "1", tccl_set_count, 1, NODES_MAX, NULL) \
    KEY(int, min_gpus, , "MinGpus", "2", tccl_set_count, 1, GPUS_MAX, NULL) \
    KEY(int, min_gain, , "MinGain", "1x", set_gain, 1000, 100000, GAIN) /* thousandths: 1100 for 1.1x */ \
    KEY(int, trial, , "Trial", "0%", set_trial, 0, 50000, SHARE) /* thousandths of a percent */ \
    KEY(int, max_rings, , "MaxRings", NULL, tccl_set_count, 1, 8, NULL) \
    KEY(int, forbid, , "Forbid", "no", tccl_set_yes, 0, 0, "yes or no") \
    KEY(int, timeout_ms, , "Timeout", NULL, tccl_set_duration, 10, 300000, NULL) \
    KEY(int, auto_timeout_ms, , "AutoTimeout", NULL, tccl_set_duration, 10, 300000, NULL) \
    KEY(int, require_timeout_ms, , "RequireTimeout", NULL, tccl_set_duration, 10, 300000, NULL) \
    KEY(struct tccl_traffic_class, traffic_class, , "TrafficClass", NULL, set_traffic_class, 0, 255, CLASS)
/* What must all hold; NULL or max 0: not given. Lists have commas between their items, which are
 * shell patterns but for node_list (all nodes of the step are in it) and gpu_types (lower case,
 * blanks as '_'). [policy] has partitions only. */
#define TCCL_POLICY_CONDITIONS(KEY) \
    KEY(char *, partitions, , "Partitions", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, accounts, , "Accounts", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, qos, , "Qos", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, users, , "Users", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, job_names, , "JobNames", NULL, set_patterns, 1, 0, PATTERNS) \
    KEY(char *, node_list, , "NodeList", NULL, set_node_list, 0, 0, "node names, such as n[1-4],m2") \
    KEY(struct tccl_range, nodes, , "Nodes", NULL, set_range, 1, NODES_MAX, NULL) \
    KEY(struct tccl_range, gpus, , "Gpus", NULL, set_range, 1, GPUS_MAX, NULL) \
    KEY(char *, gpu_types, , "GpuTypes", NULL, set_gpu_types, 1, 0, PATTERNS)
/* clang-format on */

/* TCCL_NOT_SET: not said here. */
#define TCCL_SETTING_SIZE(type, ...) +sizeof(type) / sizeof(int)
enum { TCCL_SETTINGS = 0 TCCL_POLICY_SETTINGS(TCCL_SETTING_SIZE) };
#define TCCL_SETTINGS_MEMBERS                                                                      \
    union {                                                                                        \
        struct {                                                                                   \
            TCCL_POLICY_SETTINGS(TCCL_KEY_MEMBER)                                                  \
        };                                                                                         \
        int settings[TCCL_SETTINGS];                                                               \
    }

struct tccl_policy {
    char name[TCCL_POLICY_NAME + 1]; /* "" of [policy] */
    TCCL_POLICY_CONDITIONS(TCCL_KEY_MEMBER)
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
