/* phase.h: the phases in a step's life on one node, and the events that lead from one to the next.
 * The table itself is in phase.c; profiler/tccld/join/README.md draws it. */
#pragma once

#include <stdbool.h>

enum step_phase {
    STEP_GATHERING, /* the JOIN of this node, or the MERGE of a child, is missing */
    STEP_PROBING,   /* the same, and the tccld of the missing children have been probed */
    STEP_REPORTED,  /* its MERGE is with the parent, which answers with the PLAN; never the root */
    STEP_FAILED,    /* closed without a ring, and the parent doesn't know the reason yet: as this
                     * node's JOIN has not come, which says who the parent is */
    STEP_REPORTING, /* closed, and a message about it is on its way to the parent */
    STEP_SETTLED,   /* closed, and the parent knows all of it: there to answer who comes late */
    STEP_LEAVING,   /* as STEP_REPORTING, and the step has ended on this node */
    STEP_ENDED,     /* as STEP_SETTLED, and the step has ended: the next JOIN is of another run */
    STEP_GONE,      /* about to be freed */
    STEP_PHASES,
    STEP_REFUSED = -1
};

enum step_event {
    STEP_JOIN,   /* the JOIN of this node */
    STEP_MERGE,  /* a message of a child */
    STEP_LATE,   /* some have not come by the time at which they are probed */
    STEP_SEND,   /* a message has been sent to the parent */
    STEP_PLAN,   /* the outcome for all nodes: solved, from the parent, or known without either */
    STEP_FAIL,   /* no ring, for a reason that is known here first */
    STEP_LOST,   /* no PLAN came from the parent */
    STEP_SETTLE, /* the parent has answered, or need not be told */
    STEP_LEAVE,  /* the step has ended on this node */
    STEP_EXPIRE, /* nobody is expected any more */
    STEP_EVENTS
};

/* The phase after an event; STEP_REFUSED where the event can't happen or is not heard. */
enum step_phase phase_after(enum step_phase phase, enum step_event event);

/* Is an outcome still to come? Else everybody who waited has been answered. */
bool phase_is_open(enum step_phase phase);

/* For logs: "gathering", "JOIN". */
const char *phase_name(enum step_phase phase);
const char *phase_event_name(enum step_event event);
