/* sides.h: what steps reach that run at the same time on one node, by what is known of it: a
 * model; measurements of the same transfers together; else bounds made of what was measured in
 * parts.
 *
 * A side is what one step runs on a node: the transfers of its rings. Several steps, or several
 * groups of one, are several sides: all run at the same time, and each is as fast as its own
 * slowest transfer. */
#pragma once

#include "machine/model.h"

enum { TCCL_MAX_SIDES = 16, TCCL_MAX_SIDE = 8 * 36 /* 8 rings over 16 GPUs have fewer */ };

/* Zero-initialise. A transfer that several rings make stands there as often as they make it. */
struct tccl_side {
    int rings; /* that carry equal parts of the data; its bandwidth is that of all together */
    int count;
    int ranks;    /* of its all-reduces, on all nodes (rounds.c); 0: not known */
    double alone; /* what it reaches when nobody else runs, GB/s; 0: not said. For bounds. */
    tccl_transfer transfers[TCCL_MAX_SIDE];
    uint8_t ring[TCCL_MAX_SIDE]; /* which of them makes it; a ring's stand one behind the other */
};

/* Adds a ring's transfers; in any order, repeats stay. Returns 0, or -1: more than TCCL_MAX_SIDE.
 */
int tccl_side_add(struct tccl_side *side, const struct tccl_set *ring);
/* All of its transfers, as often as they are made. Returns 0, or -1: more than a set has room for.
 */
int tccl_side_set(const struct tccl_side *side, struct tccl_set *set);
/* What a GPU does by itself in one of the side's rings: places in its transfers; -1: nothing. A GPU
 * sends by writing, and receives by reading. */
struct tccl_block {
    int sends, receives;
};
/* Those that do something. Returns how many. */
int tccl_side_blocks(const struct tccl_side *side, struct tccl_block blocks[static TCCL_MAX_SIDE]);
/* Do they have the same transfers, each as often, in whatever order? */
bool tccl_side_equal(const struct tccl_side *a, const struct tccl_side *b);

/* What is known of the transfers of chains that run at once. */
struct tccl_rated {
    struct tccl_set set;
    double gbps[TCCL_MAX_SET]; /* of each member; 0: not known */
    struct tccl_set slow;      /* the part that is as slow as all of it; none: not known; a single
                                * one is not held back by others, and not marked */
};

/* The bandwidth of each of n sides while all run, GB/s: rings times the rate of its slowest
 * transfer; infinite for a side without transfers. Returns 0, or -1 with err: a transfer that is
 * not possible on the machine, too many of them, or no memory. */
int tccl_model_sides(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                     double *gbps, struct tccl_error *err);

/* Less than this share of what sharing leaves, 1 / (sum of 1 / alone), is no noise: transfers
 * collapse. */
#define TCCL_COLLAPSED 0.75

/* By what a bandwidth beside others is known; a later one is less sure. */
enum tccl_basis {
    TCCL_BASIS_NONE, /* nobody runs beside */
    TCCL_BASIS_MODEL,
    TCCL_BASIS_MEASURED,
    TCCL_BASIS_FORETOLD, /* by what was measured of others (search/foretell.h) */
    TCCL_BASIS_BOUNDS,   /* it is at least as much */
    TCCL_BASES
};
/* "", "model", "measured", "foretold", "bounds" */
const char *tccl_basis_name(enum tccl_basis basis);
/* By its name; -1: none is called that. */
int tccl_basis_parse(const char *name);

/* Sides that were measured together, members of each rated apart; or what was foretold of them. */
struct tccl_joint {
    int n; /* 2 to TCCL_MAX_SIDES */
    struct tccl_side sides[TCCL_MAX_SIDES];
    double gbps[TCCL_MAX_SIDES]; /* of each side's slowest transfer, GB/s */
    double spread;               /* the largest, as of a measurement */
    double foretold;             /* 0: measured; else by how much gbps may be off, as a ratio */
    unsigned marks;              /* of enum tccl_mark */
};

/* All that were measured, or foretold, on one machine. */
struct tccl_together;

enum { TCCL_MAX_JOINTS = 4096 };
#define TCCL_FORETOLD_WITHIN 0.1 /* what may be off by more is not known */

struct tccl_together *tccl_together_new(void);           /* NULL without memory */
void tccl_together_free(struct tccl_together *together); /* NULL is fine */
/* Of the same sides measured twice the later one counts; what is foretold counts where nothing was
 * measured, and no longer once it may be off by more than TCCL_FORETOLD_WITHIN. Returns 0; 1: it is
 * left out, as there are TCCL_MAX_JOINTS of others; -1: no memory. */
int tccl_together_add(struct tccl_together *together, const struct tccl_joint *joint);
int tccl_together_count(const struct tccl_together *together);
/* How many of them were measured, or are foretold. */
int tccl_together_by(const struct tccl_together *together, enum tccl_basis basis);
/* How many of these are single transfers that collapse beside each other, measured or foretold, and
 * the first of them, as a set; NULL: there are none. */
int tccl_together_collapsed(const struct tccl_together *together, struct tccl_set *first);
/* Were these sides measured together, in whatever order? */
bool tccl_together_has(const struct tccl_together *together, const struct tccl_side *const *sides,
                       int n);

/* Who is asked. */
struct tccl_rates {
    const struct tccl_model *model;       /* NULL: there is none */
    const struct tccl_together *together; /* NULL: nothing was measured together */
};

/* The bandwidth of each of n sides while all run, GB/s, as tccl_model_sides; with bounds what each
 * has at least. *basis says by what. Bounds need side->alone of all sides (where one is not known
 * they are 0); they hold where steps only share capacities, and what others run caps no transfer
 * by itself:
 * - what was measured with these transfers and more is a lower bound: its slowest transfer;
 * - else all have at least 1 / (sum of rings / alone) a ring, where sides that were measured
 *   together count as one, with their slowest transfer.
 * Where some of these transfers alone, one a side, were measured together and have less than that,
 * they do more than share: they collapse. Sides that have one of them are then known to have no
 * more, and that counts as measured (of transfers that collapse with others which nobody measured
 * together nothing is known).
 * Returns 0, or -1 with err. */
int tccl_rates_sides(const struct tccl_rates *rates, const struct tccl_side *const *sides, int n,
                     double *gbps, enum tccl_basis *basis, struct tccl_error *err);

/* ---- rounds.c: what all-reduces reach, of which one or several run at once on a node, by a model.
 *
 * A round of n ranks is as ring/reach.h has it: what is sent only, all 2n - 3 times, what is
 * received only.
 *
 * Of several sides nobody keeps step with another one. While a side does one of these three things,
 * each other one does each of them for the part of the time that it takes. What a chunk takes is
 * averaged over that: it is short, so that it meets one of them. (Were it long, rates would be to
 * be averaged: that is up to 5 % more.) These parts are as long as they come out, which is looked
 * for from equal steps on, until no round changes by a ten-thousandth, or 30 times; then they stay
 * as they are. All ways in which several sides meet would be too many: nine are taken,
 * in which each two of four sides do all that two can (an orthogonal array); of more, the fifth one
 * keeps step with the first, and so on. */

/* What an all-reduce of each of n sides reaches while all run, GB/s of all of its rings: as
 * tccl_model_sides, where nothing is lost. A side without ranks is always under way. Returns 0, or
 * -1 with err. */
int tccl_model_rounds(const struct tccl_model *model, const struct tccl_side *const *sides, int n,
                      double *gbps, struct tccl_error *err);
