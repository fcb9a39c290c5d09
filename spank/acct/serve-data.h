/* serve-data.h: what tcclacct's page asks for, as JSON. */
#ifndef TCCL_SERVE_DATA_H
#define TCCL_SERVE_DATA_H

#include <stdio.h>

#include "acct/serve-request.h"
#include "client/conf.h"

/* The answer to a path below /api/: a serve_work (serve-helper.h), context being a struct
 * tccl_conf. It may wait, for tccld and squeue, each with a deadline. What it can't have is
 * {"error":TEXT} with a status that is not 200.
 *   steps?range=R    the latest steps of the range, newest first, and which of them run
 *   summary?range=R  tccl_client_summary's
 *   step?id=J.S[&start=T]  the record of that step that started at T, or else its latest, with its
 *                    ring as pictures, and what others there are
 *   kinds, kind?id=I serve-kinds.h
 * R: day, week, month, all. What users, jobs and daemons have written is passed on as it is. */
int serve_data(void *context, const struct serve_request *request, FILE *out);

/* When the range begins, seconds since 1970; -1: no such range. */
long long serve_range_start(const char *range, long long now);

#endif
