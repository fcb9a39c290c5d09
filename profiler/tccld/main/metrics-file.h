/* metrics-file.h: MetricsFile=, written whole every METRICS_SECONDS and at the start, removed at
 * the end. */
#ifndef TCCL_METRICS_FILE_H
#define TCCL_METRICS_FILE_H

#include "tccld/main/daemon.h"

enum { METRICS_SECONDS = 5 };

struct metrics_file;

/* For daemon->metrics. The file is that of the configuration of the moment; with none nothing is
 * written. What goes wrong is logged. Returns NULL with err without memory; the caller frees. */
struct metrics_file *metrics_file_new(struct daemon *daemon, struct tccl_error *err);
void metrics_file_free(struct metrics_file *file); /* NULL is fine */

#endif
