/* transfer.h: one copy with a kind, a source and a destination, and sets of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bounds of every machine; a machine description beyond them is refused when it is read. */
enum { TCCL_MAX_GPUS = 16, TCCL_MAX_MEMORIES = 16, TCCL_MAX_NICS = 16 };

enum tccl_device_kind { TCCL_GPU, TCCL_MEMORY, TCCL_NIC };

struct tccl_device {
    uint8_t kind; /* enum tccl_device_kind */
    uint8_t index;
};

static inline bool tccl_device_equal(struct tccl_device a, struct tccl_device b)
{
    return a.kind == b.kind && a.index == b.index;
}

/* A transfer as a small number: who starts it, with whom, and whether it reads. Numbers are dense
 * enough to index tables of TCCL_TRANSFERS entries. A memory never starts a transfer, and a NIC
 * never meets a NIC. 12 bits: initiator is a NIC (1), target's kind (2), reads (1), initiator's
 * index (4), target's index (4). */
typedef uint16_t tccl_transfer;
enum { TCCL_TRANSFERS = 4096, TCCL_NO_TRANSFER = 3 << 9 };

/* The initiator reads from the target, or writes to it. Kinds that do not exist give a number that
 * tccl_transfer_valid refuses. */
static inline tccl_transfer tccl_transfer_make(struct tccl_device initiator, bool reads,
                                               struct tccl_device target)
{
    if (initiator.kind == TCCL_MEMORY || initiator.kind > TCCL_NIC || target.kind > TCCL_NIC ||
        initiator.index > 15 || target.index > 15)
        return TCCL_NO_TRANSFER;
    return (tccl_transfer)((initiator.kind == TCCL_NIC) << 11 | target.kind << 9 | reads << 8 |
                           initiator.index << 4 | target.index);
}

static inline struct tccl_device tccl_transfer_initiator(tccl_transfer transfer)
{
    return (struct tccl_device){.kind = transfer >> 11 & 1 ? TCCL_NIC : TCCL_GPU,
                                .index = transfer >> 4 & 15};
}

static inline struct tccl_device tccl_transfer_target(tccl_transfer transfer)
{
    return (struct tccl_device){.kind = transfer >> 9 & 3, .index = transfer & 15};
}

static inline bool tccl_transfer_reads(tccl_transfer transfer)
{
    return transfer >> 8 & 1;
}

static inline bool tccl_transfer_valid(tccl_transfer transfer)
{
    struct tccl_device initiator = tccl_transfer_initiator(transfer);
    struct tccl_device target = tccl_transfer_target(transfer);
    return transfer < TCCL_TRANSFERS && target.kind <= TCCL_MEMORY &&
           !tccl_device_equal(initiator, target);
}

/* Where the data come from and go to, whoever starts the transfer. */
static inline struct tccl_device tccl_transfer_source(tccl_transfer transfer)
{
    return tccl_transfer_reads(transfer) ? tccl_transfer_target(transfer)
                                         : tccl_transfer_initiator(transfer);
}

static inline struct tccl_device tccl_transfer_sink(tccl_transfer transfer)
{
    return tccl_transfer_reads(transfer) ? tccl_transfer_initiator(transfer)
                                         : tccl_transfer_target(transfer);
}

/* Of lists in which one may stand several times: into ascending order; and are all of a part in
 * another one, as often? Both ascend. */
void tccl_transfers_sort(tccl_transfer *transfers, int count);
bool tccl_transfers_contain(const tccl_transfer *all, int count, const tccl_transfer *part,
                            int wanted);

/* A set of transfers that run at the same time, sorted by number. One that stands there several
 * times runs as often at once, as in ring sets; in all other sets each stands once. */
enum { TCCL_MAX_SET = 144 /* eight rings of 8 GPUs */ };
struct tccl_set {
    uint16_t count;
    tccl_transfer transfers[TCCL_MAX_SET];
};

/* Adds a transfer, keeping the order. Returns 0; 1 if it was there; -1 if the set is full. */
int tccl_set_add(struct tccl_set *set, tccl_transfer transfer);
/* The same, also if it is there: it runs once more. Returns 0, or -1. */
int tccl_set_add_again(struct tccl_set *set, tccl_transfer transfer);
/* The same set, sorted, each member once. */
struct tccl_set tccl_set_sorted(const tccl_transfer *transfers, int count);
/* Does one stand there several times? */
bool tccl_set_repeats(const struct tccl_set *set);
bool tccl_set_has(const struct tccl_set *set, tccl_transfer transfer);
bool tccl_set_contains(const struct tccl_set *set, const struct tccl_set *subset);
/* The GPUs that start or meet its transfers, as a mask. */
uint32_t tccl_set_gpus(const struct tccl_set *set);
bool tccl_set_equal(const struct tccl_set *a, const struct tccl_set *b);

/* Where each GPU, memory and NIC goes, by enum tccl_device_kind. */
struct tccl_exchange {
    uint8_t image[3][TCCL_MAX_GPUS];
};
struct tccl_exchange tccl_exchange_none(void); /* all devices stay where they are */
/* First one move, then the other. */
struct tccl_exchange tccl_exchange_then(const struct tccl_exchange *first,
                                        const struct tccl_exchange *then);
/* The images of these GPUs, both as masks; and do they stand in the order of the GPUs? */
uint32_t tccl_exchange_gpus(const struct tccl_exchange *move, uint32_t gpus);
bool tccl_exchange_in_order(const struct tccl_exchange *move, uint32_t gpus);
struct tccl_device tccl_exchange_device(const struct tccl_exchange *exchange,
                                        struct tccl_device device);
tccl_transfer tccl_exchange_transfer(const struct tccl_exchange *exchange, tccl_transfer transfer);
void tccl_exchange_set(const struct tccl_exchange *exchange, const struct tccl_set *set,
                       struct tccl_set *image);

/* Notation, the one who starts first, g GPU, m memory, n NIC: "g0>g1" GPU 0 writes to GPU 1,
 * "g1<g0" GPU 1 reads from GPU 0, "g0>m2", "g1<m2", "n0>g0" NIC 0 writes to GPU 0, "n0<m1" NIC 0
 * reads from memory 1. Members of a set are separated by spaces or commas; repeats are refused.
 * Parse returns 0, or -1 with err naming the member. */
int tccl_set_parse(const char *text, struct tccl_set *set, struct tccl_error *err);
/* The same, with repeats, as format writes them. */
int tccl_set_parse_repeats(const char *text, struct tccl_set *set, struct tccl_error *err);

enum { TCCL_SET_TEXT = TCCL_MAX_SET * 10 };
/* Writes the notation, members separated by one space, in the set's order. */
void tccl_set_format(const struct tccl_set *set, char text[static TCCL_SET_TEXT]);
void tccl_transfer_format(tccl_transfer transfer, char text[static 12]);
