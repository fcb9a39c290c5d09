/* comment-run.h: from the records that AccountingHost keeps to AdminComment: what to read again,
 * which job is next, and when. */
#ifndef TCCL_COMMENT_RUN_H
#define TCCL_COMMENT_RUN_H

#include <stdbool.h>

#include "client/conf.h"
#include "comment/comment-state.h"

enum {
    COMMENT_POLL_MS = 10000,   /* between two looks at the last quarter of an hour */
    COMMENT_POLL_S = 900,      /* that quarter */
    COMMENT_AGAIN_MS = 900000, /* between two looks at the last days: for records that came late */
    COMMENT_AGAIN_S = 3 * 24 * 3600, /* those days */
    COMMENT_BATCH_MS = 10000,     /* a job's records are waited for so long before it is written */
    COMMENT_UPDATE_MS = 1000,     /* from one update to the next, at least */
    COMMENT_LATER_MS = 30000,     /* a job that is changing is looked at again after this */
    COMMENT_TRIES = 120,          /* so often */
    COMMENT_PAUSE_MS = 1000,      /* after the first failure; doubled */
    COMMENT_PAUSE_MOST_MS = 60000 /* up to this */
};

struct comment_run {
    struct tccl_conf *conf;
    struct comment_state state;
    bool once, dry; /* dry: print what would be written */
    int64_t since;  /* unix time from which all is read at first; -1: where the last run stopped */
    int64_t scan_ms, again_ms, update_ms; /* not before: the next look, the long one, the update */
    int64_t scan_pause_ms, update_pause_ms; /* last pauses after failures; 0: none failed */
    bool changed;                           /* the state is to be saved */
    bool said_full;
    bool failed, stuck; /* in a run of --once: something failed; it can't go on */
};

/* Writes a line, "tccl: …", to standard error. Control characters become '?'. */
void comment_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Does what is due now and returns how long there is nothing to do, ms; -1: a run of --once has
 * nothing left that it could do. */
int64_t comment_run_step(struct comment_run *run);

#endif
