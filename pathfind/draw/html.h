/* html.h: the frame of a page for browsers that needs nothing but itself: nothing loaded, readable
 * without a script, on paper, on a phone and in the dark. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "chain/chain-text.h"

/* Errors of all these are left to ferror. Texts are escaped (tccl_svg_escape) unless it says
 * otherwise. */

/* Opens the page: head, style, a link that skips the header, and the header with the heading (h1)
 * and one line below it (NULL: none). What is written next is the page's main part. program: that
 * made it. */
void tccl_html_begin(const char *program, const char *heading, const char *line, FILE *out);
/* Closes what tccl_html_begin has opened. */
void tccl_html_end(const char *program, FILE *out);

/* A name and its value, within <dl class="facts">; of the value, the first 4,095 bytes. */
__attribute__((format(printf, 3, 4))) void tccl_html_fact(FILE *out, const char *name,
                                                          const char *fmt, ...);
/* A bar of that part (0 to 1) of its full length. It says nothing to a screen reader: the number
 * must stand beside it. */
void tccl_html_bar(double part, FILE *out);

/* What may be wider than the page, and then scrolls by itself, by keyboard too. name: what it is.
 */
void tccl_html_wide_begin(const char *name, FILE *out);
void tccl_html_wide_end(FILE *out);

/* A text of a record, made safe and cut to that many columns. */
void tccl_html_text(const char *text, int columns, FILE *out);
/* A heading and a chart (below); nothing without columns. */
struct tccl_chart;
void tccl_html_chart(const char *heading, const struct tccl_chart *chart, FILE *out);

/* A chain as a part of a page that is as narrow as it must be: devices one after the other, with
 * what leads from each to the next, in lines that wrap. For phones, where a drawing would be cut,
 * and for whoever hears the page. gbps: of each arrow of the chain (tccl_named_arrows), 0: not
 * known; slow: is it one of those that hold each other back. */
void tccl_html_way(const struct tccl_named_chain *chain, const double *gbps, const bool *slow,
                   FILE *out);

/* A picture in there is at least so many times its own size, so that its texts can be read. */
#define TCCL_HTML_LEGIBLE 0.85

/* The style of such pages: html.css. */
extern const char tccl_html_style[];

/* The script of such pages, by which tables (class rows, a row of th scope="col" first) can be
 * sorted, html.js; and its hash: nothing else runs. */
extern const char tccl_html_script[], tccl_html_script_hash[];

/* ---- chart.c: columns or a line over them, as a part of a page: axes with their units, a legend,
 * and the same numbers as a table. */

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
