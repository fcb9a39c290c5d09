/* series.h: numbers of which a rank is wanted, not the order. */
#ifndef TCCL_SERIES_H
#define TCCL_SERIES_H

#include <stddef.h>

struct tccl_series {
    double *values;
    size_t count, room;
    double sum;
};

/* All zeros is an empty one; tccl_series_clear frees. Returns 0, or -1 without memory. */
int tccl_series_add(struct tccl_series *series, double value);
void tccl_series_clear(struct tccl_series *series);

/* The smallest value that at least so many parts (0 to 1) of all do not exceed; the series, of one
 * value at least, is put into another order. */
double tccl_series_rank(struct tccl_series *series, double part);
/* Of an even number: the mean of the two in the middle. */
double tccl_series_median(struct tccl_series *series);

#endif
