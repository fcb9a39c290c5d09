/* record-claims.h: records of steps, on their way to the journal, get what slurmctld says of their
 * job in place of what their environment claims. */
#pragma once

#include <jansson.h>

#include "client/key.h"
#include "tccld/main/daemon.h"

/* Keeps the record (taken over) of a step of that user once slurmctld has said whose it is: its
 * partition, account, QOS, array and heterogeneous job. Where it doesn't say so in time, the record
 * lists in "claimed" what nobody has checked. It is asked only for records of node 0 (first). */
void record_put_checked(struct daemon *daemon, json_t *record, const struct tccl_step_key *key,
                        uid_t uid, bool first);
/* Keeps a confirmation (taken over), under the same key as its record. */
void confirmation_put_checked(struct daemon *daemon, json_t *confirmation,
                              const struct tccl_step_key *key);
