/* progress.h: how far tccl-profile is, on one line: redrawn with a bar on a terminal; elsewhere a
 * line a second at first, later one in ten seconds. */
#pragma once

#include <stdio.h>

#include "fill/fill.h"

struct tccl_progress_line {
    FILE *out; /* NULL: says nothing */
    const char *machine;
    bool terminal;
    bool drawn;
    int percent;         /* never goes back */
    double begun, shown; /* seconds of a clock that never jumps */
    double prepared;     /* seconds before the chains, whose work is what is judged by */
};

void tccl_progress_begin(struct tccl_progress_line *line, FILE *out, const char *machine);
void tccl_progress_show(struct tccl_progress_line *line, const struct tccl_fill_progress *progress);

/* The summary, in place of the line. rc as tccl_fill returned it: after -1 the line only goes.
 * note: what else is to be said, or "". */
void tccl_progress_end(struct tccl_progress_line *line, const struct tccl_fill_progress *progress,
                       int rc, const char *note);

/* The line itself, of at most width columns on a terminal, without a newline. elapsed: seconds
 * since the begin. */
enum { TCCL_PROGRESS_TEXT = 512 };
void tccl_progress_format(struct tccl_progress_line *line,
                          const struct tccl_fill_progress *progress, double elapsed, int width,
                          char text[static TCCL_PROGRESS_TEXT]);
