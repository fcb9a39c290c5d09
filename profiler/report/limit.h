/* limit.h: what limits chains that run at once, by what a profile knows: what each copy reaches,
 * and which of them hold each other back. */
#ifndef TCCL_LIMIT_H
#define TCCL_LIMIT_H

#include "draw/svg.h"
#include "profile/measured.h"

struct tccl_limit {
    struct tccl_rated rated;
    bool together; /* its rates are those of all copies running, by a model; else each was measured
                      alone, and of all together only the slowest is known */
    struct tccl_set part; /* the smallest known to be as slow as all; none: none is held back */
};

/* chains: n of them; gbps: of the slowest copy while all run, GB/s. What was not measured stays
 * unknown. */
void tccl_limit_find(const struct tccl_measured *measured, const struct tccl_chain *chains, int n,
                     double gbps, struct tccl_limit *limit);

enum { TCCL_LIMIT_TEXT = 160 };
/* What holds NCCL's own chains back: "NCCL reads and writes memory 1 from three GPUs at once", or
 * how much slower some are together. "": none is known to hold another one back. */
void tccl_limit_say(const struct tccl_limit *limit, const struct tccl_measured *measured,
                    const struct tccl_chain *chains, int n, double gbps,
                    const struct tccl_machine *machine, char text[static TCCL_LIMIT_TEXT]);

#endif
