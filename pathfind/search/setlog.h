/* setlog.h: sets.jsonl, the append-only log of measured transfer sets, one line each:
 *   {"set":"g0>g1 g1>g0","gbps":10.4,"spread":0.01,"source":"host","time":1700000000}
 * 0123456789abcdef The 16 hexadecimal digits are the XXH3 of the JSON text before them. Members
 * that some lines have more: skew, overlap, noisy, failed, marks, beside
 * (pathfind/profile/README.md). Logs of sides that were measured together (together.jsonl) are
 * written and read in the same way. */
#pragma once

#include "machine/meter.h"
#include "machine/sides.h"

struct tccl_setlog;

/* Name of one enum tccl_mark in the log: "mig", "mps", "busy", "stand-in"; "" if it is none. */
enum { TCCL_MARKS = 4 };
const char *tccl_mark_name(unsigned mark);

/* Calls each for every good line, in order. A torn last line is dropped: *dropped = 1 (may be
 * NULL). Any other bad line ends with -1 and err naming file and line. No file is an empty log.
 * Returns the number of lines, or -1. */
long tccl_setlog_read(const char *path,
                      int (*each)(void *context, const struct tccl_set *set,
                                  const struct tccl_measurement *measurement),
                      void *context, int *dropped, struct tccl_error *err);

/* Opens for appending (made if missing; a torn last line is cut off). Only one process at a time
 * may append: a second one fails. Returns NULL with err. */
struct tccl_setlog *tccl_setlog_open(const char *path, const char *source, struct tccl_error *err);
/* Appends one line; it is on its way to the disk when this returns, and on the disk after sync or
 * close. Returns 0, or -1 with err; after a failed append (full disk) the log holds no half line.
 */
int tccl_setlog_append(struct tccl_setlog *log, const struct tccl_set *set,
                       const struct tccl_measurement *measurement, struct tccl_error *err);
/* The same of sides measured together, in a log that has nothing else. */
long tccl_setlog_read_joints(const char *path,
                             int (*each)(void *context, const struct tccl_joint *joint),
                             void *context, int *dropped, struct tccl_error *err);
/* All of them that were measured without marks, as many as there is room for, of a file of 8 MiB at
 * most; the caller frees it. Returns NULL with err. */
struct tccl_together *tccl_setlog_read_together(const char *path, struct tccl_error *err);
int tccl_setlog_append_joint(struct tccl_setlog *log, const struct tccl_joint *joint,
                             struct tccl_error *err);
int tccl_setlog_sync(struct tccl_setlog *log, struct tccl_error *err);
void tccl_setlog_close(struct tccl_setlog *log);
