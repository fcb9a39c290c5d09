/* facts.h: the members of a record that filters and summaries look at: columns of the store, all in
 * its index records_facts, so that a million records are read in half a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <sqlite3.h>

#include "base/reason.h"

/* In the order of the index, which begins with start and ends with TCCL_FIGURES, at which is looked
 * where a record has them. LISTED: the index has it among those of which filters have lists. To
 * look at one more column, add its name: a store that is opened then makes the index anew. */
/* clang-format off */
#define TCCL_FACTS(WHOLE, REAL, TEXT)                                                              \
    WHOLE(id) TEXT(state) TEXT(built) TEXT(reason_class)                                           \
    WHOLE(n_nodes) WHOLE(gpus) WHOLE(neighbours)                                                   \
    REAL(gbps) REAL(ratio) REAL(alone_gbps) REAL(placed_gbps) REAL(baseline_gbps) WHOLE(solve_us)  \
    WHOLE(uid) WHOLE(step) TEXT(reason) TEXT(built_reason) TEXT(nodes) TEXT(node_class)
#define TCCL_FIGURES(WHOLE, REAL, TEXT, LISTED)                                                    \
    WHOLE(job) WHOLE(later) LISTED(account) TEXT(achieved_with) WHOLE(achieved_from)                            \
    REAL(achieved_gbps) REAL(nccl_gbps) WHOLE(sent_bytes) REAL(sent_share)
/* clang-format on */

/* What is shown of a record: the words of base/state.h that people read. Of a planned ring that was
 * built differently, or in part, the reason is that; one that NCCL's version leaves alone has
 * failed, and a step that failed for that and then had another NCCL is planned; a job script (or an
 * interactive step) that used no GPUs together is left, and not one whose ring was not built. Texts
 * are borrowed. */
struct tccl_shown {
    const char *state, *reason, *built;
    enum tccl_reason cause;
};
struct tccl_shown tccl_shown(const char *state, const char *reason, const char *class,
                             const char *built, const char *built_reason, int64_t step);

/* As they are stored; texts are borrowed from the row, never NULL in what was read. */
struct tccl_facts {
    int64_t start;
#define TCCL_FACT_WHOLE(member) int64_t member;
#define TCCL_FACT_REAL(member) double member;
#define TCCL_FACT_TEXT(member) const char *member;
    TCCL_FACTS(TCCL_FACT_WHOLE, TCCL_FACT_REAL, TCCL_FACT_TEXT)
    TCCL_FIGURES(TCCL_FACT_WHOLE, TCCL_FACT_REAL, TCCL_FACT_TEXT, TCCL_FACT_TEXT)
    struct tccl_shown shown; /* where TCCL_LOOK_SHOWN was read */
};

/* Which of them are read; start always is. */
enum {
#define TCCL_FACT_PLACE(member) TCCL_FACT_##member,
    TCCL_FACTS(TCCL_FACT_PLACE, TCCL_FACT_PLACE, TCCL_FACT_PLACE)
        TCCL_FIGURES(TCCL_FACT_PLACE, TCCL_FACT_PLACE, TCCL_FACT_PLACE, TCCL_FACT_PLACE)
};
#define TCCL_LOOK(member) (1u << TCCL_FACT_##member)
enum {
#define TCCL_FACT_LOOK(member) +TCCL_LOOK(member)
    TCCL_LOOK_FIGURES = TCCL_FIGURES(TCCL_FACT_LOOK, TCCL_FACT_LOOK, TCCL_FACT_LOOK, TCCL_FACT_LOOK)
};
#define TCCL_LOOK_SHOWN                                                                            \
    (TCCL_LOOK(state) | TCCL_LOOK(reason) | TCCL_LOOK(reason_class) | TCCL_LOOK(built) |           \
     TCCL_LOOK(built_reason) | TCCL_LOOK(step))

/* The same text? Most differ in their first characters, so that no function is called. */
static inline bool tccl_is(const char *text, const char *word)
{
    return *text == *word && strcmp(text, word) == 0;
}

/* Reads start and those from the first of a row's values, in the order of the index. Returns
 * how many. */
int tccl_facts_read(sqlite3_value **values, unsigned looks, struct tccl_facts *facts);
