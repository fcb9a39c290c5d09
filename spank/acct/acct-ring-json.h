/* acct-ring-json.h: the ring of a record as JSON, for other programs. */
#ifndef TCCL_ACCT_RING_JSON_H
#define TCCL_ACCT_RING_JSON_H

#include <jansson.h>

#include "base/error.h"

/* {"step": the record, "ring": {"closed", "cut", "rings": how many run at once, "nodes": [{"name",
 * "set": index}], "sets": [[a chain of each ring: {"entry": NIC or null, "gpus": [numbers],
 * "links": [{"kind": "write" "read" "memory" "gpudirect", "memory": number or null}], "exit"}]]}}:
 * links are the arrows of chain-text.h. A new reference, or NULL with err saying why there is no
 * ring. */
json_t *acct_ring_json(json_t *record, struct tccl_error *err);

#endif
