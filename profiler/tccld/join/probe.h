/* probe.h: nodes that are late: is their tccld there at all? */
#ifndef TCCL_PROBE_H
#define TCCL_PROBE_H

#include "tccld/join/step-internal.h"

/* Some of this range have not come: a tccld that doesn't listen need not be waited for. */
void probe_late(struct step *step);
/* They have not come in time: no ring, and who it was. */
void probe_give_up(struct step *step);

#endif
