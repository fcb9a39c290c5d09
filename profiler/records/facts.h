/* facts.h: the members of a record that filters and summaries look at, packed into a few bytes. The
 * store keeps them in an index, so that a million records are scanned in half a second. */
#ifndef TCCL_FACTS_H
#define TCCL_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

/* Texts are borrowed from the bytes that were read, never NULL. state and reason are as
 * shown: "differs" where an applied ring was built differently. */
struct tccl_facts {
    uint32_t uid, n_nodes, gpus, neighbours;
    double gbps, ratio, alone, placed, baseline;
    int64_t solve_us;
    const char *state, *built, *reason, *nodes;
};

/* Unpacks the bytes. Returns 0, or -1 if they are malformed. */
int tccl_facts_read(const void *bytes, size_t size, struct tccl_facts *facts);

/* Is the record shown as "differs", given what is known of what NCCL built? */
bool tccl_shown_differs(const char *state, const char *built);

/* Registers the SQL function that packs columns of the store:
 *   tccl_facts(uid, state, reason, nodes, n_nodes, gpus, gbps, ratio, solve_us, built,
 *              built_reason, alone_gbps, placed_gbps, baseline_gbps, neighbours)
 * Returns SQLite's code. */
int tccl_facts_function(sqlite3 *db);

#endif
