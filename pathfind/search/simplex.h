/* simplex.h: linear programs: the largest value of one sum under bounds of others. Small ones, kept
 * as a dense table. */
#pragma once

#include "base/error.h"

/* The largest x[goal] with, for each row, the sum of row[i] * x[i] at most limit, and all x >= 0.
 * rows: n_rows times n_columns numbers; limits: one for each row, none below 0. *values: one number
 * for each column. Returns 0; 1 if it was given up after too many steps; -1 with err: out of
 * memory, or x[goal] has no bound. */
int tccl_simplex(const double *rows, const double *limits, int n_rows, int n_columns, int goal,
                 double *values, struct tccl_error *err);
