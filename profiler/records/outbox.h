/* outbox.h: records that are not delivered yet, in a table of StateDir/outbox.db: apart from the
 * store, which another disk error may have taken. For use by one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

enum {
    TCCL_OUTBOX_BYTES = 512 << 20,     /* most bytes of the file */
    TCCL_OUTBOX_ASIDE = 1000,          /* most records that are kept because they were refused, */
    TCCL_OUTBOX_ASIDE_TEXT = 64 << 10, /* and the beginning of each that is */
    TCCL_OUTBOX_RECORD = 700 << 10,    /* bytes of one; it has to go into one message */
};

struct tccl_outbox;

/* Opens the file, or makes it (mode 0600; the folder must exist). One that is damaged is moved to
 * PATH.bad first, in place of the one before, and what can be read of it is kept; *lost: how many
 * of its records can't be delivered, as far as it is known; else 0. Returns 0, with err if that
 * was so, or -1 with err. */
int tccl_outbox_open(const char *path, struct tccl_outbox **outbox, int64_t *lost,
                     struct tccl_error *err);
/* Has the file turned out to be damaged? Then closing moves it likewise, and returns how many
 * records are lost; else, where it can't be moved or there is no room for what is left, and for
 * NULL, 0. */
bool tccl_outbox_damaged(const struct tccl_outbox *outbox);
/* Is it that, or of no use until it is opened again? Not because the disk is full. */
bool tccl_outbox_broken(const struct tccl_outbox *outbox);
int64_t tccl_outbox_close(struct tccl_outbox *outbox);

/* Keeps records (an array); those that are too long are not kept, and are added to *lost. Returns 0
 * when they are on disk; -1 with err, and none is: the outbox is at its bound, or the disk does not
 * take them. */
int tccl_outbox_put(struct tccl_outbox *outbox, const json_t *records, int *lost,
                    struct tccl_error *err);

/* The oldest records behind an id (0: of all), at most so many and so many bytes of text, but one
 * at least if there is one: a new reference to an array, and *ids to another, of what removes them:
 * [[id, checksum], …]. What is no record, or too long, is put aside, which *lost counts. NULL with
 * err. */
json_t *tccl_outbox_take(struct tccl_outbox *outbox, int64_t behind, int most, size_t bytes,
                         json_t **ids, int *lost, struct tccl_error *err);

/* Removes what was delivered, and keeps aside, in the table "aside", what was refused for good:
 * [[an id, or the record, reason], …], or NULL. Beyond TCCL_OUTBOX_ASIDE, and where the disk is
 * full, nothing is kept aside. Returns 0, or -1 with err, and some of it is still there. */
int tccl_outbox_remove(struct tccl_outbox *outbox, const json_t *ids, const json_t *refused,
                       struct tccl_error *err);

/* How many records wait in it. */
int64_t tccl_outbox_count(const struct tccl_outbox *outbox);
