/* facts.h: the members of a record that filters and summaries look at, packed into a few bytes. The
 * store keeps them in an index, so that a million records are scanned in half a second. */
#ifndef TCCL_FACTS_H
#define TCCL_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/reason.h"

/* Texts are borrowed from the bytes that were read, never NULL. state and reason are as
 * shown. */
struct tccl_facts {
    uint32_t uid, n_nodes, gpus, neighbours;
    double gbps, ratio, alone, placed, baseline;
    int64_t solve_us;
    const char *state, *built, *reason, *nodes;
    enum tccl_reason cause; /* of reason */
};

/* Unpacks the bytes. Returns 0, or -1 if they are malformed. */
int tccl_facts_read(const void *bytes, size_t size, struct tccl_facts *facts);

/* What is shown of a record, given what is known of what NCCL built: of an applied ring that was
 * built differently, that; of one that NCCL's version leaves alone, a fallback, and of a step that
 * fell back for that and then had another NCCL, what this built; of a job script (or an interactive
 * step) that used no GPUs together, "nothing-to-do", and not that its ring was not used. Texts are
 * borrowed. */
struct tccl_shown {
    const char *state, *reason, *built;
    enum tccl_reason cause; /* a reason without a class, of an older version, has
                             * TCCL_REASON_UNKNOWN_NCCL by its text, or
                             * TCCL_REASON_UNCLASSED */
};
struct tccl_shown tccl_shown(const char *state, const char *reason, const char *class,
                             const char *built, const char *built_reason, int64_t step);

/* Registers the SQL function that packs columns of the store:
 *   tccl_facts(uid, state, reason, nodes, n_nodes, gpus, gbps, ratio, solve_us, built,
 *              built_reason, alone_gbps, placed_gbps, baseline_gbps, neighbours, step,
 * reason_class) Returns SQLite's code. */
int tccl_facts_function(sqlite3 *db);

#endif
