/* key.h: the key of a job step. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "base/lines.h"

enum { TCCL_KEY_TEXT = 96, TCCL_KEY_CLUSTER = 63 };
#define TCCL_MAX_RUN 253402300799999 /* of a key: the end of the year 9999, milliseconds */

/* Job step, unique over requeues and het components. */
struct tccl_step_key {
    char cluster[TCCL_KEY_CLUSTER + 1];
    uint32_t job;     /* SLURM job id (of the component) */
    uint32_t het_job; /* leader's job id, 0 if not heterogeneous */
    uint32_t het_offset;
    uint32_t step;    /* Slurm's number; SLURM_BATCH_SCRIPT and others as they are */
    uint32_t restart; /* SLURM_RESTART_COUNT */
    uint64_t run;     /* of a batch step, which is not told its restart count: when it started (unix
                         time, milliseconds); else 0 */
};

json_t *tccl_key_to_json(const struct tccl_step_key *key);
int tccl_key_from_json(const json_t *json, struct tccl_step_key *key, struct tccl_error *err);
/* The same as lines. */
void tccl_key_put_lines(const struct tccl_step_key *key, struct tccl_line_writer *writer);
int tccl_key_from_lines(const struct tccl_lines *lines, struct tccl_step_key *key,
                        struct tccl_error *err);
bool tccl_key_equal(const struct tccl_step_key *a, const struct tccl_step_key *b);
/* "cluster:1234.0", "cluster:1234+1.batch", "cluster:1234.0 restart 2": for people. */
void tccl_key_format(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT]);
/* A file name that is different for different keys and safe whatever the key holds. */
void tccl_key_folder(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT]);
