/* serve-panels.h: the chains of a step's ring, each over the picture of its nodes. */
#ifndef TCCL_SERVE_PANELS_H
#define TCCL_SERVE_PANELS_H

#include <jansson.h>

#include "acct/serve-kinds.h"

enum { SERVE_PANELS = 12 /* different chains with a picture, at most */ };

/* A record does not tell of what kind its nodes were. A chain is drawn over the kind of this node
 * where it ran here, else over one whose profile has this very chain; "how" says which of these.
 * Returns a new reference to a list of {"nodes","count","chain"} and, where there is a kind for it,
 * "kind","how","svg"; empty where the ring's text is cut or not there; NULL without memory. */
json_t *serve_panels(const struct tccl_conf *conf, const struct serve_kinds *kinds,
                     const json_t *record);

#endif
