/* facts.c: reads a row's facts, and finds what is shown of a record. */
#include "records/store.h"

#include <string.h>

#include "base/lines.h"
#include "base/state.h"
#include "records/record.h"

/* Is it not used for this? Records of versions before have no class, but this in their text. */
static bool for_class(const struct tccl_facts *facts, int rank, const char *wanted,
                      const char *before)
{
    return rank == TCCL_BUILT_NOT_USED &&
           (*facts->built_class ? strcmp(facts->built_class, wanted) == 0
                                : strstr(facts->built_reason, before) != NULL);
}

struct tccl_facts_shown tccl_facts_shown(const struct tccl_facts *facts)
{
    int decided = tccl_state_named(facts->state), rank = tccl_built_rank(facts->built);
    struct tccl_facts_shown shown = {facts->state, facts->reason, facts->reason_node,
                                     rank < 0 ? facts->built : tccl_built_name(rank),
                                     TCCL_REASON_NONE};
    if (*facts->reason)
        shown.cause =
            *facts->reason_class ? tccl_reason_named(facts->reason_class) : TCCL_REASON_OTHER;
    /* It was said before that this NCCL is not known, and then the program had another one. */
    if (decided == TCCL_STATE_FAILED && rank > TCCL_BUILT_NOT_USED &&
        shown.cause == TCCL_REASON_UNKNOWN_NCCL) {
        decided = TCCL_STATE_PLANNED;
        shown = (struct tccl_facts_shown){tccl_state_name(decided), "", "", shown.built,
                                          TCCL_REASON_NONE};
    }
    bool silent = for_class(facts, rank, TCCL_NO_CALL,
                            "no communicator over the step's GPUs was made with this plan");
    shown.built = decided != TCCL_STATE_PLANNED ? "" : silent ? TCCL_NO_CALL : shown.built;
    if (decided != TCCL_STATE_PLANNED)
        return shown;
    if (for_class(facts, rank, tccl_reason_words[TCCL_REASON_UNKNOWN_NCCL], ": not known ("))
        return (struct tccl_facts_shown){tccl_state_name(TCCL_STATE_FAILED), facts->built_reason,
                                         facts->built_node, "", TCCL_REASON_UNKNOWN_NCCL};
    if ((rank == TCCL_BUILT_DIFFERS || rank == TCCL_BUILT_PARTLY) && !*shown.reason) {
        shown.reason = facts->built_reason;
        shown.node = facts->built_node;
        shown.cause = *facts->built_reason ? TCCL_REASON_BUILT_DIFFERENTLY : TCCL_REASON_NONE;
    }
    bool script = facts->step == TCCL_STEP_BATCH || facts->step == TCCL_STEP_INTERACTIVE;
    if (script && silent)
        return (struct tccl_facts_shown){tccl_state_name(TCCL_STATE_LEFT),
                                         "the job script used no GPUs together", "", "",
                                         TCCL_REASON_JOB_SCRIPT};
    return shown;
}

static const char *text_of(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    return text ? text : "";
}

int tccl_facts_read(sqlite3_value **values, unsigned looks, struct tccl_facts *facts)
{
    int n = 1;
    facts->start = sqlite3_value_int64(values[0]);
#define READ_WHOLE(member)                                                                         \
    if (looks & TCCL_LOOK(member))                                                                 \
        facts->member = sqlite3_value_int64(values[n++]);
#define READ_REAL(member)                                                                          \
    if (looks & TCCL_LOOK(member))                                                                 \
        facts->member = sqlite3_value_double(values[n++]);
#define READ_TEXT(member)                                                                          \
    if (looks & TCCL_LOOK(member))                                                                 \
        facts->member = text_of(values[n++]);
    TCCL_FACTS(READ_WHOLE, READ_REAL, READ_TEXT)
    TCCL_FIGURES(READ_WHOLE, READ_REAL, READ_TEXT, READ_TEXT)
    if ((looks & TCCL_LOOK_SHOWN) == TCCL_LOOK_SHOWN)
        facts->shown = tccl_facts_shown(facts);
    return n;
}
