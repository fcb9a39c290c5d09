/* comment-slurm.h: writes AdminComment into Slurm's records, through Slurm's own library. */
#ifndef TCCL_COMMENT_SLURM_H
#define TCCL_COMMENT_SLURM_H

#include <stdbool.h>

#include "comment/comment-text.h"

enum comment_result {
    COMMENT_WRITTEN, /* one update was made; there may be another to be made for this job */
    COMMENT_SAME,    /* all is as it should be */
    COMMENT_LATER,   /* the job is changing: ask again in a while */
    COMMENT_NOWHERE, /* Slurm has no record of this run of the job, or none that we add to */
    COMMENT_REFUSED, /* Slurm does not take it */
    COMMENT_AWAY     /* slurmctld or slurmdbd does not answer */
};

struct comment_answer {
    enum comment_result result;
    bool done;      /* WRITTEN: nothing is left to be done for this job */
    char text[512]; /* WRITTEN, SAME: by whom it is kept; else why */
};

/* Brings own (comment_of_job) into the job's AdminComment: into slurmctld's while the job runs, and
 * into slurmdbd's. At most one update is made. Another run or job of that number, one that began
 * after job->started, is left alone. dry: nothing is written, WRITTEN says that it would be. A
 * child process does it, because Slurm's library may wait for long or end its process; after
 * timeout_ms it is ended (AWAY). */
void comment_write(const struct comment_job *job, const char *own, bool dry, int timeout_ms,
                   struct comment_answer *answer);

#endif
