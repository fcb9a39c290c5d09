/* facts.c: reads a row's facts, and finds what is shown of a record. */
#include "records/store.h"

#include <string.h>

#include "base/lines.h"
#include "base/state.h"
#include "records/record.h"

/* Is it not used for this? Records of versions before have no class, but this in their text. */
static bool for_class(int rank, const char *class, const char *wanted, const char *text,
                      const char *before)
{
    return rank == TCCL_BUILT_NOT_USED &&
           (*class ? strcmp(class, wanted) == 0 : strstr(text, before) != NULL);
}

struct tccl_facts_shown tccl_facts_shown(const char *state, const char *reason, const char *class,
                                         const char *built, const char *built_reason,
                                         const char *built_class, int64_t step)
{
    int decided = tccl_state_named(state), rank = tccl_built_rank(built);
    enum tccl_reason cause = *reason && !*class ? TCCL_REASON_OTHER : tccl_reason_named(class);
    struct tccl_facts_shown shown = {state, reason, rank < 0 ? built : tccl_built_name(rank),
                                     *reason ? cause : TCCL_REASON_NONE};
    /* It was said before that this NCCL is not known, and then the program had another one. */
    if (decided == TCCL_STATE_FAILED && rank > TCCL_BUILT_NOT_USED &&
        shown.cause == TCCL_REASON_UNKNOWN_NCCL) {
        decided = TCCL_STATE_PLANNED;
        shown =
            (struct tccl_facts_shown){tccl_state_name(decided), "", shown.built, TCCL_REASON_NONE};
    }
    bool silent = for_class(rank, built_class, TCCL_NO_CALL, built_reason,
                            "no communicator over the step's GPUs was made with this plan");
    shown.built = decided != TCCL_STATE_PLANNED ? "" : silent ? TCCL_NO_CALL : shown.built;
    if (decided != TCCL_STATE_PLANNED)
        return shown;
    if (for_class(rank, built_class, tccl_reason_words[TCCL_REASON_UNKNOWN_NCCL], built_reason,
                  ": not known ("))
        return (struct tccl_facts_shown){tccl_state_name(TCCL_STATE_FAILED), built_reason, "",
                                         TCCL_REASON_UNKNOWN_NCCL};
    if ((rank == TCCL_BUILT_DIFFERS || rank == TCCL_BUILT_PARTLY) && !*shown.reason) {
        shown.reason = built_reason;
        shown.cause = *built_reason ? TCCL_REASON_BUILT_DIFFERENTLY : TCCL_REASON_NONE;
    }
    bool script = step == TCCL_STEP_BATCH || step == TCCL_STEP_INTERACTIVE;
    if (script && silent)
        return (struct tccl_facts_shown){tccl_state_name(TCCL_STATE_LEFT),
                                         "the job script used no GPUs together", "",
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
        facts->shown =
            tccl_facts_shown(facts->state, facts->reason, facts->reason_class, facts->built,
                             facts->built_reason, facts->built_class, facts->step);
    return n;
}
