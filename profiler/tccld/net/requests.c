/* All that tccld is asked: from where, by whom, and who answers. */
#include "tccld/join/running.h"
#include "tccld/join/step.h"
#include "tccld/journal/journal.h"
#include "tccld/net/connection.h"

const struct request tccld_requests[] = {
    {"alive", FROM_UNIX, false, step_alive, NULL},
    {"join", FROM_UNIX, true, step_join, NULL},
    {"leave", FROM_UNIX, true, step_leave, NULL},
    {"tccl-chain", FROM_UNIX, false, NULL, subset_ask},
    {"tccl-confirm", FROM_UNIX, false, NULL, built_confirm},
    {"tccl-achieved", FROM_UNIX, false, NULL, built_achieved},
    {"tccl-agree", FROM_UNIX, false, NULL, agree_hear},
    {"here", FROM_TCP, true, step_here, NULL},
    {"merge", FROM_TCP, true, step_merge, NULL},
    {"agree", FROM_TCP, true, agree_receive, NULL},
    {"built", FROM_TCP, true, built_receive, NULL},
    {"lost", FROM_TCP, true, journal_hear_lost, NULL},
    {"record", FROM_TCP, true, journal_receive, NULL},
    {"node", FROM_UNIX | FROM_TCP, false, presence_ask, NULL},
    {"query", FROM_UNIX | FROM_TCP, false, journal_query, NULL},
    {"summary", FROM_UNIX | FROM_TCP, false, journal_summary, NULL},
    {0},
};
