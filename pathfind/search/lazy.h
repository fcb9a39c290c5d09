/* lazy.h: the paper's best-first search over growing transfer sets, with each set measured only
 * when no known bound keeps it from being the best. It never measures a set that the plain search
 * (each set measured when it is inserted) would not, and keeps count of what the plain search needs
 * at least. */
#ifndef TCCL_LAZY_H
#define TCCL_LAZY_H

#include "search/probe.h"
#include "search/route.h"

/* The sets that the plain search is known to extend, for one goal. */
struct tccl_ledger;
struct tccl_ledger *tccl_ledger_new(void); /* NULL only without memory */
void tccl_ledger_free(struct tccl_ledger *ledger);
/* Sets that the plain search measures at least if the best chain reaches no more than bound, GB/s.
 */
long tccl_ledger_plain(const struct tccl_ledger *ledger, double bound);

enum tccl_lazy_step {
    TCCL_LAZY_ERROR = -1,
    TCCL_LAZY_NONE,     /* there is no chain at all */
    TCCL_LAZY_BEST,     /* chain and gbps are the best there is; bound = gbps */
    TCCL_LAZY_CHAIN,    /* the whole chain was measured: gbps, below the bound */
    TCCL_LAZY_MEASURED, /* one more set is known */
    TCCL_LAZY_BUDGET,   /* the probe's budget is used up */
    TCCL_LAZY_GAVE_UP,  /* the route search did */
};

/* Takes the most promising chain of the route (whose threshold it sets itself) and measures the
 * shortest beginning of it that is not known. *bound: proven upper bound of all chains. */
enum tccl_lazy_step tccl_lazy_step(struct tccl_probe *probe, struct tccl_route *route,
                                   struct tccl_ledger *ledger, struct tccl_chain *chain,
                                   double *gbps, double *bound, struct tccl_error *err);

#endif
