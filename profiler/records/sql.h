/* sql.h: SQL about the columns that the table of a step's members (client/step-fields.h) has in
 * records. Private to this folder. */
#ifndef TCCL_SQL_H
#define TCCL_SQL_H

#include <stdio.h>

#include "base/error.h"

struct tccl_field;

/* Expands these variables in a text, by the table:
 *   $names       the columns of a record, "job, step, …"
 *   $all         the same with those from confirmations
 *   $values      "?1, ?2, …", one for each of $names
 *   $renewed     "job = excluded.job, …"
 *   $columns     their definitions, "job INTEGER NOT NULL DEFAULT 0, …"
 *   $key         the columns of the key; those of $names begin with them
 *   $is_key      "job = ?1 AND …", all of the key, bound to the first parameters
 *   $step_start  the text by which builds belong to a row of records (record.h)
 *   $facts       the facts of a row of records (facts.h), with what of builds belongs to it
 *   $filters     the columns that filters ask for by lists of texts, each behind ", "
 * Allocated; NULL with err without memory. */
char *tccl_sql(const char *text, struct tccl_error *err);

/* Writes the definition of one column: "job INTEGER NOT NULL DEFAULT 0". */
void tccl_sql_column(FILE *out, const struct tccl_field *field);

#endif
