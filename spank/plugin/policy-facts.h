/* policy-facts.h: the facts about a step that conditions of policies refer to. */
#ifndef TCCL_POLICY_FACTS_H
#define TCCL_POLICY_FACTS_H

#include "client/policy.h"
#include "machine/machine.h"
#include "plugin/step-info.h"

struct step_facts {
    struct policy_facts facts;
    char user[TCCL_STEP_TEXT + 1];
    struct tccl_machine *machine; /* NULL: not needed, or not readable */
    const char *models[STEP_MAX_GPUS];
};

/* Looks up the name of the step's uid (the number if it has none) and the models of its GPUs in
 * Machine=, each only if a policy of conf needs it, because a look-up of users may hang. facts
 * borrows from step and conf, and must not be moved. Returns 0, or -1 with err if the models are
 * unknown; the other facts are valid. step_facts_clear frees. */
int step_facts_read(const struct tccl_conf *conf, const struct tccl_step *step,
                    struct step_facts *facts, struct tccl_error *err);
void step_facts_clear(struct step_facts *facts);

#endif
