/* chart.h: columns or a line over them, as a part of a page (html.h): axes with their units, a
 * legend, and the same numbers as a table. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum { TCCL_CHART_SERIES = 4 };

struct tccl_chart_column {
    char name[48];                    /* in the table */
    char label[24];                   /* below the axis, where there is room for it */
    double values[TCCL_CHART_SERIES]; /* one for each series; below 0: not known */
};

struct tccl_chart {
    const char *name;            /* what it shows */
    const char *x_axis, *y_axis; /* what stands along them, with its unit */
    const char *series[TCCL_CHART_SERIES];
    int n_series;
    const int *colours; /* of each series: 0 blue, 1 orange, 2 grey, 3 green; NULL: in this order */
    bool line;        /* dots that a line joins, of the first series, in place of stacked columns */
    const char *base; /* what a dashed line at 1 stands for; NULL: there is none */
    int digits;       /* of the values, behind the point */
    const struct tccl_chart_column *columns;
    int n_columns;
};

/* Writes the chart; without columns, nothing. Errors are left to ferror. */
void tccl_chart_write(const struct tccl_chart *chart, FILE *out);
