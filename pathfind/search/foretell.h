/* foretell.h: what sides reach beside each other that nobody measured together, by what was.
 *
 * All that transfers may share, and that a machine's description has, is taken for a limit: links
 * both ways, ways between NUMA nodes, memories, root complexes, each for all transfers, for reads,
 * writes, P2P or memory alone. Limits that symmetries turn into one another are the same. A limit
 * has room for what was seen to pass it; so sides that share some limits have that at least. And
 * each measured set is as slow as one of its limits makes it, none of those that carried more
 * elsewhere; so sides that have as many transfers on all of these have no more than that. Where the
 * two are near each other, the bandwidth is foretold. This is no proof: a machine may have a limit
 * that is none of these. So what was measured together is held against what would have been
 * foretold. By what sides share they are of a kind; of a kind that was never tried, or once was
 * otherwise, nothing is foretold; nor of any kind where one of four was. */
#pragma once

#include "machine/sides.h"
#include "search/bounds.h"

struct tccl_foretell;

/* Borrowed are machine and symmetry (NULL: no two limits are the same), for the call. deviation: of
 * measurements of one set, as a ratio. NULL only without memory. */
struct tccl_foretell *tccl_foretell_new(const struct tccl_machine *machine,
                                        const struct tccl_symmetry *symmetry, double deviation);
void tccl_foretell_free(struct tccl_foretell *foretell); /* NULL is fine */

/* Of all that a store has; as new. bounds: sets that are exceptions there say nothing of others
 * that run alone; NULL: none is. */
struct tccl_foretell *tccl_foretell_of(const struct tccl_machine *machine,
                                       const struct tccl_symmetry *symmetry, double deviation,
                                       const struct tccl_setmap *sets,
                                       const struct tccl_bounds *bounds);

/* A set reached that, GB/s of its slowest transfer, as the median of so many measurements. Returns
 * 0, or -1 without memory. */
int tccl_foretell_set(struct tccl_foretell *foretell, const struct tccl_set *set, double gbps,
                      int times);

/* Sides were measured together (each with its alone): that is held against what would have been
 * foretold, and learnt from. Returns 0, or -1 without memory. */
int tccl_foretell_joint(struct tccl_foretell *foretell, const struct tccl_joint *joint);

enum tccl_foretelling {
    TCCL_FORETOLD,  /* the slowest transfer of each side is known within TCCL_FORETOLD_WITHIN */
    TCCL_UNTRIED,   /* it would be, but none of this kind was tried so far */
    TCCL_UNKNOWN,   /* too little is known */
    TCCL_SURPRISING /* one of this kind was not what was foretold */
};

/* Foretells joint->gbps of sides that have their alone; error: by how much one may be off, as a
 * ratio. */
enum tccl_foretelling tccl_foretell_rates(struct tccl_foretell *foretell, struct tccl_joint *joint,
                                          double *error);

/* What a set that runs alone has by what was measured, GB/s of its slowest transfer: at least, if
 * every limit is one of these, and at most, which is no more than that. It may have transfers
 * twice. Returns 0, or -1 without memory. */
int tccl_foretell_alone(struct tccl_foretell *foretell, const struct tccl_set *set, double *least,
                        double *most);

/* What each of these transfers has at least while all run, by the limits that it passes, GB/s.
 * Returns 0, or -1 without memory. */
int tccl_foretell_each(const struct tccl_foretell *foretell, const tccl_transfer *transfers,
                       int count, double *gbps);
