/* probe.h: nodes that are late: are they alive? Who is, is waited for until the step's timeout; who
 * does not answer ends the wait of all. */
#ifndef TCCL_PROBE_H
#define TCCL_PROBE_H

#include "tccld/join/step-internal.h"

/* Something is missing of this step: asks those from whom it should come, now and then, and looks
 * whether anybody here still waits for it. */
void probe_late(struct step *step);
/* Nobody needs to know any more. */
void probe_cancel(struct probe *probe);
/* They have not come in time: no ring, and who it was. */
void probe_give_up(struct step *step);

#endif
