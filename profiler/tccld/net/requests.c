/* All that tccld is asked: from where, by whom, and who answers. */
#include "tccld/join/confirm.h"
#include "tccld/join/step.h"
#include "tccld/join/subset.h"
#include "tccld/journal/journal.h"
#include "tccld/net/connection.h"

const struct request tccld_requests[] = {
    {"announce", FROM_UNIX, true, step_announce},
    {"join", FROM_UNIX, true, step_join},
    {"leave", FROM_UNIX, true, step_leave},
    {"chain", FROM_UNIX, false, subset_ask},
    {"confirm", FROM_UNIX, false, confirm_hear},
    {"call", FROM_TCP, true, step_call},
    {"merge", FROM_TCP, true, step_merge},
    {"record", FROM_TCP, true, journal_receive},
    {"query", FROM_UNIX | FROM_TCP, false, journal_query},
    {"summary", FROM_UNIX | FROM_TCP, false, journal_summary},
    {0},
};
