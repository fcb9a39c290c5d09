/* spool.h: records not delivered yet, in StateDir/spool: batches of them, a file each.
 *
 * A file is written whole, with one wait for the disk, and named by a hash of its content. Its
 * first line is "tccl-spool 1 CHECKSUM", its second an array of records. The same record may be in
 * several files: delivering it twice changes nothing.
 */
#ifndef TCCL_SPOOL_H
#define TCCL_SPOOL_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"
#include "base/hash.h"

enum {
    TCCL_SPOOL_FILES = 100000,      /* most files */
    TCCL_SPOOL_BYTES = 512 << 20,   /* most bytes of all files */
    TCCL_SPOOL_BAD = 1000,          /* most files put aside; more are removed */
    TCCL_SPOOL_NAME = TCCL_HASH_HEX /* 32 hexadecimal digits and a NUL */
};

enum { TCCL_SPOOL_END = 1, TCCL_SPOOL_PUT_ASIDE = 2 };

struct tccl_spool;

/* Opens the folder (creates it with mode 0700), counts its files and removes temporary files left
 * by interrupted writes. Returns 0, or -1 with err. The caller closes it. */
int tccl_spool_open(const char *folder, struct tccl_spool **spool, struct tccl_error *err);
void tccl_spool_close(struct tccl_spool *spool); /* NULL is fine */

/* Keeps records (an array) together, in one file. Returns 0 when they are on disk; -1 with err: the
 * spool is at its bounds, they are longer than 1 MiB, or can't be written. */
int tccl_spool_put(struct tccl_spool *spool, const json_t *records, struct tccl_error *err);

/* Iterates over the files, in no particular order; those added meanwhile come in this round or the
 * next. Returns 0 with the file's name and a new reference to its records, an array; 1 at the end
 * of the round (the next call begins a new one: TCCL_SPOOL_END); 2 with err (TCCL_SPOOL_PUT_ASIDE)
 * if this file is bad: it was moved into the folder "bad", with the reason in NAME.reason; -1 with
 * err if it just can't be read now: it stays. In both cases the next call continues after it. */
int tccl_spool_next(struct tccl_spool *spool, char name[static TCCL_SPOOL_NAME], json_t **records,
                    struct tccl_error *err);

/* Removes a file, after its records were delivered. Returns 0 (also if it is gone), or -1 with err.
 */
int tccl_spool_remove(struct tccl_spool *spool, const char *name, struct tccl_error *err);

/* Puts a record into the folder "bad", with the reason: it was refused (tccl_records_put said 1),
 * so it isn't sent for ever. Beyond TCCL_SPOOL_BAD nothing is kept. Returns 0, or -1 with err. */
int tccl_spool_put_aside(struct tccl_spool *spool, const json_t *record, const char *reason,
                         struct tccl_error *err);

/* How many files there are. */
size_t tccl_spool_count(const struct tccl_spool *spool);

#endif
