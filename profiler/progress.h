/* progress.h: how far tccl-profile is, on one line: redrawn on a terminal, else one line a second
 * at most. */
#ifndef TCCL_PROGRESS_H
#define TCCL_PROGRESS_H

#include <stdio.h>

#include "fill.h"

struct tccl_progress_line {
    FILE *out; /* NULL: says nothing */
    const char *machine;
    bool terminal;
    bool drawn;
    double begun, shown; /* seconds of a clock that never jumps */
};

void tccl_progress_begin(struct tccl_progress_line *line, FILE *out, const char *machine);
void tccl_progress_show(struct tccl_progress_line *line, const struct tccl_fill_progress *progress);
/* The summary, in place of the line. */
void tccl_progress_end(struct tccl_progress_line *line, const struct tccl_fill_progress *progress,
                       bool interrupted);

#endif
