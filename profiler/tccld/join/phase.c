/* The table of a step's phases. Rows: the phase that it is in; columns: what happens; entries: the
 * phase after that. The phase itself: it is heard, and the phase stays. "-": it can't happen, or is
 * not heard; then nothing changes. What is done on an event is in the file that handles it:
 *
 *   JOIN    join.c               SEND     step-report.c
 *   MERGE   children.c           PLAN     step-report.c, step.c, join.c
 *   LATE    deadline.c, probe.c  FAIL     step.c
 *   LEAVE   leave.c              LOST     step-report.c
 *   EXPIRE  deadline.c           SETTLE   step.c
 */
#include "tccld/join/phase.h"

/* clang-format off */
enum {
    GATHER = STEP_GATHERING, PROBE = STEP_PROBING, REPTED = STEP_REPORTED,
    FAILED = STEP_FAILED, REPING = STEP_REPORTING, SETTLD = STEP_SETTLED,
    LEAVNG = STEP_LEAVING, ENDED = STEP_ENDED, GONE = STEP_GONE, o = STEP_REFUSED
};

static const signed char table[STEP_PHASES][STEP_EVENTS] = {
/*                    JOIN    MERGE   LATE    SEND    PLAN    FAIL    LOST    SETTLE  LEAVE   EXPIRE */
[STEP_GATHERING] = {  GATHER, GATHER, PROBE,  REPTED, SETTLD, FAILED, o,      o,      GATHER, o    },
[STEP_PROBING]   = {  PROBE,  PROBE,  o,      REPTED, SETTLD, FAILED, o,      o,      PROBE,  o    },
[STEP_REPORTED]  = {  REPTED, REPTED, o,      o,      SETTLD, FAILED, FAILED, o,      REPTED, o    },
[STEP_FAILED]    = {  FAILED, FAILED, o,      REPING, o,      o,      o,      SETTLD, ENDED,  GONE },
[STEP_REPORTING] = {  REPING, REPING, o,      o,      o,      o,      o,      SETTLD, LEAVNG, GONE },
[STEP_SETTLED]   = {  SETTLD, SETTLD, o,      REPING, o,      o,      o,      o,      ENDED,  GONE },
[STEP_LEAVING]   = {  LEAVNG, LEAVNG, o,      o,      o,      o,      o,      ENDED,  LEAVNG, GONE },
[STEP_ENDED]     = {  o,      ENDED,  o,      LEAVNG, o,      o,      o,      o,      ENDED,  GONE },
[STEP_GONE]      = {  o,      o,      o,      o,      o,      o,      o,      o,      o,      o    },
};
/* clang-format on */

enum step_phase phase_after(enum step_phase phase, enum step_event event)
{
    if ((unsigned)phase >= STEP_PHASES || (unsigned)event >= STEP_EVENTS)
        return STEP_REFUSED;
    return (enum step_phase)table[phase][event];
}

bool phase_is_open(enum step_phase phase)
{
    return phase == STEP_GATHERING || phase == STEP_PROBING || phase == STEP_REPORTED;
}

const char *phase_name(enum step_phase phase)
{
    static const char *const names[STEP_PHASES] = {
        "gathering", "probing", "reported", "failed", "reporting",
        "settled",   "leaving", "ended",    "gone",
    };
    return (unsigned)phase < STEP_PHASES ? names[phase] : "?";
}

const char *phase_event_name(enum step_event event)
{
    static const char *const names[STEP_EVENTS] = {
        "JOIN", "MERGE", "late node", "message sent", "PLAN",
        "fail", "lost",  "settle",    "LEAVE",        "expiry",
    };
    return (unsigned)event < STEP_EVENTS ? names[event] : "?";
}
