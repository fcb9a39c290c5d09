/* series.h: a series of numbers, and its percentiles. */
#pragma once

#include <stddef.h>

struct tccl_series {
    double *values;
    size_t count, room;
    double sum;
};

/* All zeros is an empty one; tccl_series_clear frees. Returns 0, or -1 if out of memory. */
int tccl_series_add(struct tccl_series *series, double value);
void tccl_series_clear(struct tccl_series *series);

/* The smallest value that at least that fraction (0 to 1) of all do not exceed. Reorders the
 * series, which must not be empty. */
double tccl_series_rank(struct tccl_series *series, double part);
/* The median; for an even count the mean of the middle two. */
double tccl_series_median(struct tccl_series *series);
