/* comment-text.h: what a job's AdminComment says of its ring. */
#ifndef TCCL_COMMENT_TEXT_H
#define TCCL_COMMENT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

enum {
    COMMENT_SIZE = 256,    /* bytes of our part, with its NUL */
    COMMENT_WHOLE = 32768, /* the longest AdminComment that we add to */
    COMMENT_CLUSTER = 256
};

/* A job as records name it. */
struct comment_job {
    char cluster[COMMENT_CLUSTER]; /* "" if the record has none */
    uint32_t job;
    int64_t started; /* of its latest step, unix time */
};

/* Whose record it is. Returns false where there is no job in it. */
bool comment_job_of(const json_t *record, struct comment_job *job);

/* Is there something to say of this step? Not if TCCL was off, or with one GPU only. */
bool comment_tells(const json_t *record);

/* One line for the job, from an array of records (those of other jobs, and of earlier runs of a job
 * that was requeued, are passed over): "tccl: ring 4 nodes 16 GPUs 9.8 GB/s 1.93x" or "tccl: no
 * ring: …" of the step that tells most, with the number of steps if there are several. Printable
 * UTF-8 of at most three bytes a character, without ';', '|', or a ',' that no blank follows.
 * Returns false if there is nothing to say.
 */
bool comment_of_job(const json_t *records, const struct comment_job *job,
                    char text[static COMMENT_SIZE]);

/* The AdminComment that is to stand where existing stands (NULL or "": nothing): our earlier part
 * is replaced, other people's text kept and ours added behind "; ". Returns 1 with *merged
 * (allocated), 0 if existing is so already, -1 if it has no room or there is no memory. */
int comment_merge(const char *existing, const char *own, char **merged);

#endif
