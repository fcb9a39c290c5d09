/* bench.h: times, spreads, and results as a table or as JSON. */
#pragma once

#include "check.h"

static json_t *bench_rows; /* with --json: rows are kept here; NULL: they are printed */

/* Reads the only option, --json. */
static inline void bench_begin(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--json") == 0) {
        bench_rows = json_array();
    } else if (argc > 1) {
        fprintf(stderr, "Usage: %s [--json]\n", argv[0]);
        exit(2);
    }
}

static inline int bench_end(void)
{
    if (bench_rows) {
        json_dumpf(bench_rows, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(bench_rows);
    }
    return 0;
}

/* Seconds of processor time of this process: what others do on the machine counts little. */
static inline double bench_cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Seconds on the clock. */
static inline double bench_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which a part of the values lies (0.5: the median). Sorts them. */
static inline double bench_quantile(double *values, int count, double part)
{
    qsort(values, (size_t)count, sizeof(*values), bench_compare);
    return values[(int)(part * (count - 1) + 0.5)];
}

/* Headline of a table; nothing with --json. */
static inline void bench_title(const char *title)
{
    if (!bench_rows)
        printf("\n%s\n", title);
}

/* One row: minimum, median and maximum over repeats, and what is aimed at ("" if nothing is). */
static inline double bench_spread(const char *what, double *values, int count, const char *unit,
                                  const char *aim)
{
    double low = bench_quantile(values, count, 0), middle = bench_quantile(values, count, 0.5),
           high = bench_quantile(values, count, 1);
    if (bench_rows)
        json_array_append_new(bench_rows, json_pack("{s:s s:f s:f s:f s:i s:s s:s}", "what", what,
                                                    "min", low, "median", middle, "max", high,
                                                    "repeats", count, "unit", unit, "aim", aim));
    else if (count > 1)
        printf("  %-54s %10.3f %10.3f %10.3f %-5s %s\n", what, low, middle, high, unit, aim);
    else
        printf("  %-54s %10s %10.3f %10s %-5s %s\n", what, "", middle, "", unit, aim);
    return middle;
}

static inline void bench_heads(void)
{
    if (!bench_rows)
        printf("  %-54s %10s %10s %10s %-5s %s\n", "", "min", "median", "max", "", "aim");
}
