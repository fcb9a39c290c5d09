/* policy.h: which policy of tccl.conf holds for a step, and which mode the step has: built-in <
 * [policy] < [policy NAME] < TCCL= < --tccl; a policy that forbids stands above all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/conf.h"

enum { POLICY_NOT_GIVEN = -1, POLICY_WHY = 512 };

/* What policies ask about a step. NULL, "" or 0: not known, and a condition on it does not hold. */
struct policy_facts {
    const char *partition, *account, *qos, *user, *job_name;
    const char *const *nodes; /* names of the step's nodes */
    int n_nodes;
    int gpus;                      /* of the whole step: this node's times n_nodes */
    const char *const *gpu_models; /* of the step's GPUs on this node */
    int n_gpu_models;
};

/* What holds for a step. Texts are borrowed from the configuration. */
struct policy_rule {
    const char *name;      /* "": no [policy NAME] matches */
    TCCL_SETTINGS_MEMBERS; /* all are said, but for the traffic class */
    const char *environment[2 * TCCL_POLICY_ENVIRONMENT]; /* "NAME=value" */
    int n_environment;
};

struct policy_choice {
    enum tccl_mode mode;
    bool asked;     /* by the user (option or environment), not by the site */
    bool forbidden; /* the user asked for more than off, and mode is what was asked for: the step is
                       to be told that there is no ring */
};

/* The rule: the first [policy NAME] that matches, completed by [policy], completed by [tccl]; or
 * [policy], whose Default holds in its Partitions only. */
struct policy_rule policy_find(const struct tccl_conf *conf, const struct policy_facts *facts);

/* What holds under one policy of conf: &conf->policy or one of conf->policies. */
struct policy_rule policy_rule_of(const struct tccl_conf *conf, const struct tccl_policy *policy);

/* The [policy NAME] that conf->policy completes; NULL: none of that name. */
const struct tccl_policy *policy_named(const struct tccl_conf *conf, const char *name);

/* Does the policy match? Returns true, or false with why: the first condition that does not hold.
 */
bool policy_matches(const struct tccl_policy *policy, const struct policy_facts *facts,
                    char why[static POLICY_WHY]);

/* Does any policy ask for the GPUs of a node, so that nodes of a step may have different ones; for
 * their models; for the user's name? Only then need facts have the last two. */
enum policy_question { POLICY_OF_GPUS, POLICY_OF_MODELS, POLICY_OF_USER };
bool policy_asks(const struct tccl_conf *conf, enum policy_question question);

/* option, environment: an enum tccl_mode, or POLICY_NOT_GIVEN. rule: NULL where tccl.conf can't be
 * read: then the site wants nothing, and forbids nothing. */
struct policy_choice policy_choose(const struct policy_rule *rule, int option, int environment);

/* Is a step of this size to have a ring? False in mode off, where it is forbidden, and in auto
 * below MinNodes, or below MinGpus where that is known without asking other nodes (n_nodes is 1).
 */
bool policy_wants(const struct policy_rule *rule, const struct policy_choice *choice, int n_nodes,
                  int n_gpus);

/* A step that wants a ring: would it have none if its partition, account or QOS, which its user can
 * forge, were others? Only policies are looked at whose other conditions hold. n_gpus: of this
 * node. */
bool policy_by_claims(const struct tccl_conf *conf, const struct policy_facts *facts, int option,
                      int environment, int n_gpus);

/* Other nodes of the step may have other GPUs, and so another policy. Is there a policy that could
 * hold on one of them, and wants a ring, in the mode `least` or a stronger one? Then rule and
 * choice are theirs (of the first such policy). n_gpus: of this node. */
bool policy_others_want(const struct tccl_conf *conf, const struct policy_facts *facts, int option,
                        int environment, enum tccl_mode least, struct policy_rule *rule,
                        struct policy_choice *choice);
