/* spool.h: records not delivered yet, one file each in StateDir/spool.
 *
 * A file is written whole and named by a hash of the record's key (of a confirmation: also of what
 * was built), so a later record of the same step replaces the earlier one. Its first line is
 * "tccl-spool 1 CHECKSUM", its second the record.
 */
#ifndef TCCL_SPOOL_H
#define TCCL_SPOOL_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"
#include "base/hash.h"

enum {
    TCCL_SPOOL_RECORDS = 100000,    /* most files */
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

/* Keeps a record. Returns 0 when it is on disk; -1 with err: the spool is at its bounds, the record
 * has no valid key (tccl_record_key), or it can't be written. An older file is then untouched. */
int tccl_spool_put(struct tccl_spool *spool, const json_t *record, struct tccl_error *err);

/* Iterates over the spool, in no particular order; records added meanwhile come in this round or
 * the next. Returns 0 with the file's name and a new reference to the record; 1 at the end of the
 * round (the next call begins a new one: TCCL_SPOOL_END); 2 with err (TCCL_SPOOL_PUT_ASIDE) if this
 * file is bad: it was moved into the folder "bad", with the reason in NAME.reason; -1 with err if
 * it just can't be read now: it stays. In both cases the next call continues after it. */
int tccl_spool_next(struct tccl_spool *spool, char name[static TCCL_SPOOL_NAME], json_t **record,
                    struct tccl_error *err);

/* Removes a file, after its record was delivered. Returns 0 (also if it is gone), or -1 with err.
 */
int tccl_spool_remove(struct tccl_spool *spool, const char *name, struct tccl_error *err);

/* Removes this record, after it was delivered. Another one of the same step, which has come since
 * then and took its place, stays. Returns 0 (also if there was nothing), or -1 with err. */
int tccl_spool_forget(struct tccl_spool *spool, const json_t *record, struct tccl_error *err);

/* Moves a file into the folder "bad", with the reason: for a record that the store refused
 * (tccl_records_put said 1), so that it isn't sent for ever. Returns 0, or -1 with err. */
int tccl_spool_reject(struct tccl_spool *spool, const char *name, const char *reason,
                      struct tccl_error *err);

size_t tccl_spool_count(const struct tccl_spool *spool);

#endif
