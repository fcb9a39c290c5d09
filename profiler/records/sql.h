/* sql.h: SQL about the columns that the table of a step's members (client/step-fields.h) has in
 * records. Private to this folder. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct tccl_field;

/* Is the member a column of builds: one that is known by confirmations alone? */
bool tccl_sql_of_builds(const struct tccl_field *field);

/* Expands these variables in a text, by the table:
 *   $names       the columns of a record, "job, step, …", but what confirmations say
 *   $all         the same with that
 *   $values      "?1, ?2, …", one for each of $names
 *   $renewed     "job = excluded.job, …", for each of $all
 *   $columns     the definitions of $all, "job INTEGER NOT NULL DEFAULT 0, …"
 *   $key         the columns of the key; those of $names begin with them
 *   $is_key      "job = ?1 AND …", all of the key, bound to the first parameters
 *   $step_start  the text by which builds belong to a row of records (record.h)
 *   $built       the columns of builds that records have, too: what confirmations say
 *   $built_columns, $built_values, $built_renewed   as above, for these
 *   $filters     the columns that filters ask for by lists of texts, each behind ", "
 * Allocated; NULL with err without memory. */
char *tccl_sql(const char *text, struct tccl_error *err);

/* Do these figures replace those of before? What was measured is before what was not, then the
 * ring's own, then what has sent most; of as much the last word counts, which node 0 has chosen. */
#define TCCL_SQL_MORE                                                                              \
    "(excluded.samples > 0, excluded.achieved_with = 'rings', excluded.sent_bytes,"                \
    " excluded.captured) >= (builds.samples > 0, builds.achieved_with = 'rings',"                  \
    " builds.sent_bytes, builds.captured)"

/* The definition of one column: "job INTEGER NOT NULL DEFAULT 0". */
void tccl_sql_column(char *text, size_t size, const struct tccl_field *field);
