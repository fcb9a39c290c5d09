/* facts.h: what a search through many records looks at, of each record in a few bytes. The store
 * keeps them in an index, so that a million records are gone through in half a second. */
#ifndef TCCL_FACTS_H
#define TCCL_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

/* Texts are borrowed from the bytes that were read, never NULL. state and reason are those that are
 * shown: "differs" where an applied ring was built differently. */
struct tccl_facts {
    uint32_t uid, n_nodes, gpus;
    double gbps, ratio;
    int64_t solve_us;
    const char *state, *built, *reason, *nodes;
};

/* Reads the bytes. Returns 0, or -1 if they are none. */
int tccl_facts_read(const void *bytes, size_t size, struct tccl_facts *facts);

/* Is this record shown as "differs", with what is known of how it was built? */
bool tccl_shown_differs(const char *state, const char *built);

/* Makes the SQL function known that writes the bytes, from columns of the store:
 *   tccl_facts(uid, state, reason, nodes, n_nodes, gpus, gbps, ratio, solve_us, built,
 *              built_reason)
 * Returns SQLite's code. */
int tccl_facts_function(sqlite3 *db);

#endif
