/* facts.c: reads a row's facts, and finds what is shown of a record. */
#include "records/facts.h"

#include <string.h>

#include "chain/nccl-version.h"
#include "records/record.h"

/* A record of an older version has no class: of those one text told what has consequences. Of the
 * others nobody knows whether a node is to blame. */
static enum tccl_reason class_of(const char *class, const char *reason)
{
    if (!*reason)
        return TCCL_REASON_NONE;
    enum tccl_reason cause = tccl_reason_named(class);
    return cause != TCCL_REASON_NONE             ? cause
           : strstr(reason, TCCL_NCCL_NOT_KNOWN) ? TCCL_REASON_UNKNOWN_NCCL
                                                 : TCCL_REASON_UNCLASSED;
}

struct tccl_shown tccl_shown(const char *state, const char *reason, const char *class,
                             const char *built, const char *built_reason, int64_t step)
{
    enum tccl_reason of_built = TCCL_REASON_BUILT_DIFFERENTLY;
    if (!*built_reason)
        of_built = TCCL_REASON_NONE;
    struct tccl_shown shown = {state, reason, built, class_of(class, reason)};
    /* It was said before that this NCCL is not known, and then the program had another one. */
    if (*built && !tccl_is(built, "not used") && tccl_is(state, "fallback") &&
        shown.cause == TCCL_REASON_UNKNOWN_NCCL)
        shown = (struct tccl_shown){"applied", "", built, TCCL_REASON_NONE};
    if (!tccl_is(shown.state, "applied"))
        return shown;
    if (tccl_is(built, "not used") && strstr(built_reason, TCCL_NCCL_NOT_KNOWN))
        return (struct tccl_shown){"fallback", built_reason, built, TCCL_REASON_UNKNOWN_NCCL};
    if (tccl_is(built, "differs"))
        return (struct tccl_shown){built, built_reason, built, of_built};
    if (tccl_is(built, "fewer"))
        return (struct tccl_shown){"partial", built_reason, built, of_built};
    /* Slurm's numbers (slurm.h: SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP). */
    bool script = step == 0xfffffffb || step == 0xfffffffa;
    if (script && tccl_is(built_reason, TCCL_BUILT_SILENT))
        return (struct tccl_shown){"nothing-to-do", "the job script used no GPUs together", "",
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
    TCCL_FIGURES(READ_WHOLE, READ_REAL, READ_TEXT)
    if ((looks & TCCL_LOOK_SHOWN) == TCCL_LOOK_SHOWN)
        facts->shown = tccl_shown(facts->state, facts->reason, facts->reason_class, facts->built,
                                  facts->built_reason, facts->step);
    return n;
}
