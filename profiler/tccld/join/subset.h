/* subset.h: the best chain of some of a step's GPUs, for the communicators that hold only those. */
#ifndef TCCL_SUBSET_H
#define TCCL_SUBSET_H

#include "machine/machine.h"
#include "tccld/join/merge.h"
#include "tccld/net/connection.h"

/* Handler of CHAIN. */
request_handler subset_ask;

/* The answer for a kind of that GPU set: a new reference; NULL only without memory. */
json_t *subset_answer(const struct tccl_kind *kind, const struct tccl_machine *machine,
                      bool closed);

#endif
