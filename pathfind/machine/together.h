/* together.h: what steps reach that run at the same time on one node, by what is known of it: a
 * model; measurements of the same transfers together; else bounds made of what was measured in
 * parts. */
#ifndef TCCL_TOGETHER_H
#define TCCL_TOGETHER_H

#include "machine/side.h"

/* By what a bandwidth beside others is known; a later one is less sure. */
enum tccl_basis {
    TCCL_BASIS_NONE, /* nobody runs beside */
    TCCL_BASIS_MODEL,
    TCCL_BASIS_MEASURED,
    TCCL_BASIS_BOUNDS, /* it is at least as much */
    TCCL_BASES
};
/* "", "model", "measured", "bounds" */
const char *tccl_basis_name(enum tccl_basis basis);
/* By its name; -1: none is called that. */
int tccl_basis_parse(const char *name);

/* Sides that were measured together, members of each rated apart. */
struct tccl_joint {
    int n; /* 2 to TCCL_MAX_SIDES */
    struct tccl_side sides[TCCL_MAX_SIDES];
    double gbps[TCCL_MAX_SIDES]; /* of each side's slowest transfer, GB/s */
    double spread;               /* the largest, as of a measurement */
    unsigned marks;              /* of enum tccl_mark */
};

/* All that were measured on one machine. */
struct tccl_together;

enum { TCCL_MAX_JOINTS = 4096 };

struct tccl_together *tccl_together_new(void);           /* NULL without memory */
void tccl_together_free(struct tccl_together *together); /* NULL is fine */
/* Of the same sides measured twice the later one counts. Returns 0; 1: it is left out, as there are
 * TCCL_MAX_JOINTS of others; -1: no memory. */
int tccl_together_add(struct tccl_together *together, const struct tccl_joint *joint);
int tccl_together_count(const struct tccl_together *together);
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
 * Returns 0, or -1 with err. */
int tccl_rates_sides(const struct tccl_rates *rates, const struct tccl_side *const *sides, int n,
                     double *gbps, enum tccl_basis *basis, struct tccl_error *err);

#endif
