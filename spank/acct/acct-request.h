/* acct-request.h: which records are asked for, and the query for them. */
#pragma once

#include <stdbool.h>
#include <time.h>

#include <jansson.h>

#include "base/error.h"

struct acct_request {
    const char *config, *node; /* --config, --node; NULL: not given */
    const char *file;          /* --file: a store to be read in place of asking tccld; or NULL */
    const char *start, *end;   /* -S, -E */
    time_t now;
    bool all_users;
    json_t *lost;   /* what the answer says of lost records; NULL: nothing */
    json_t *filter; /* sent to the node that keeps the records (records.h) */
};

/* Begin with a zeroed request, and clear it in the end. Returns 0, or -1 with err. */
int acct_request_begin(struct acct_request *request, struct tccl_error *err);
void acct_request_clear(struct acct_request *request);

/* Completes the filter: -S and -E, by default since start (not with jobs); and the caller's own
 * records unless users, all or jobs are given, everyone's for root. Returns 0, or -1 with err. */
int acct_request_finish(struct acct_request *request, time_t start, struct tccl_error *err);

/* Queries the records, in the order of their start and with user names. If only this node's records
 * are available, says so on stderr and sets *complete to 0. A new reference, or NULL with err. */
json_t *acct_request_records(struct acct_request *request, int *complete, struct tccl_error *err);
/* The same for the summary (client.h). */
json_t *acct_request_summary(struct acct_request *request, int *complete, struct tccl_error *err);

/* A line that records are lost: of the time that was asked for, or, where that has no beginning
 * (-j), since the first of these. Returns whether there is one. */
enum { ACCT_LOST_TEXT = 256 };
bool acct_request_lost(const struct acct_request *request, const json_t *records,
                       char text[static ACCT_LOST_TEXT]);
