/* record-claims.h: records of steps, on their way to the journal, get what slurmctld says of their
 * job in place of what their environment claims. */
#ifndef TCCL_RECORD_CLAIMS_H
#define TCCL_RECORD_CLAIMS_H

#include <jansson.h>

#include "tccld/main/daemon.h"

/* Keeps the record of a step (taken over) once slurmctld has said whose it is: its partition,
 * account, QOS, array and heterogeneous job. Where it doesn't say so in time, the record lists in
 * "claimed" what nobody has checked. Only for records of a step's node 0 it is asked. */
void record_put_checked(struct daemon *daemon, json_t *record);
/* Keeps a confirmation (taken over), under the same key as its record. */
void confirmation_put_checked(struct daemon *daemon, json_t *confirmation);

#endif
