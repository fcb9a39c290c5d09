/* filter.h: the filter of a query (records.h lists its members). Private to this folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <sqlite3.h>

#include "base/error.h"
#include "records/facts.h"
#include "records/records.h"

/* An entry of jobs; -1: any. Either job or array_job is set. */
struct tccl_wanted_job {
    json_int_t job, step, het_offset, array_job, first, last, raw;
};

/* Lists are borrowed from the filter; NULL: any. */
struct tccl_filter {
    int64_t uid; /* whose records may be seen; -1: everyone's */
    json_int_t start, end, limit, min_nodes, max_nodes;
    bool newest; /* first */
    json_t *users, *states, *nodes, *classes;
    struct tccl_wanted_job *jobs; /* none twice; NULL: any */
    int n_jobs;
    json_t *texts[TCCL_MOST_FIELDS]; /* by the members of the table (client/step-fields.h) */
    bool has_texts;                  /* any of them */
    const json_t *after;             /* [start, id] of the last row of the page before */
    const char **sorted; /* the nodes sorted, none twice, if there are many; else NULL */
    size_t n_sorted;
    unsigned looks; /* at which facts of a row (facts.h) */
};

/* Checks a filter (NULL: all records). Returns 0, or -1 with err. The caller clears it. */
int tccl_filter_read(const json_t *json, int64_t uid, struct tccl_filter *filter,
                     struct tccl_error *err);
void tccl_filter_clear(struct tccl_filter *filter);

/* A statement over the candidate rows in the filter's order, for tccl_filter_row: at most so many.
 * looks, with most 0: over all, for tccl_filter_each. NULL with err; the caller finalizes it. */
struct tccl_records;
sqlite3_stmt *tccl_filter_prepare(struct tccl_records *records, const struct tccl_filter *filter,
                                  unsigned looks, int most, struct tccl_error *err);

/* Reads the statement's current row, valid until its next step: what the filter looks at. Does it
 * match? */
bool tccl_filter_row(const struct tccl_filter *filter, sqlite3_stmt *statement,
                     struct tccl_facts *facts);

/* Calls visit for each matching row in the filter's order, with the facts of looks; of a row
 * without achieved_gbps its figures are 0. It returns 0, or -1 with err, which ends this. As SQLite
 * calls it from within, a row costs two thirds of one that is stepped to. Returns 0, or -1 with
 * err. */
typedef int tccl_filter_visit(void *argument, const struct tccl_facts *facts,
                              struct tccl_error *err);
int tccl_filter_each(struct tccl_records *records, const struct tccl_filter *filter, unsigned looks,
                     tccl_filter_visit *visit, void *argument, struct tccl_error *err);

/* Registers the SQL functions by which that goes. Returns SQLite's code. */
int tccl_filter_functions(struct tccl_records *records);
