/* series.c: medians and percentiles by selection, without sorting the whole series. */
#include "records/summary.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"

int tccl_series_add(struct tccl_series *series, double value)
{
    if (TCCL_GROW(series->values, series->count, series->room) != 0)
        return -1;
    series->values[series->count++] = value;
    series->sum += value;
    return 0;
}

void tccl_series_clear(struct tccl_series *series)
{
    free(series->values);
    *series = (struct tccl_series){0};
}

/* Hoare's selection: moves the value of that rank to its index, smaller ones before it. */
static double nth(double *values, size_t count, size_t index)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            double moved = values[i];
            values[i++] = values[j];
            values[j--] = moved;
        }
        if (index <= j)
            high = j;
        else
            low = j + 1;
    }
    return values[index];
}

double tccl_series_rank(struct tccl_series *series, double part)
{
    double rank = ceil(part * (double)series->count);
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return nth(series->values, series->count, index < series->count ? index : series->count - 1);
}

double tccl_series_median(struct tccl_series *series)
{
    double upper = nth(series->values, series->count, series->count / 2);
    if (series->count % 2)
        return upper;
    return (nth(series->values, series->count, series->count / 2 - 1) + upper) / 2;
}
