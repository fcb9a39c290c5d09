/* limit.h: what limits chains that run at once on a node: what each copy reaches, and which of them
 * hold each other back, by a model or what was measured. */
#pragma once

#include "chain/ring-set.h"
#include "search/setmap.h"

struct tccl_limit {
    struct tccl_side side; /* their transfers: one that several chains make is there as often */
    bool together; /* rates are those of all copies running, by a model; else of each alone */
    double rates[TCCL_MAX_SIDE];     /* GB/s; 0: not known */
    const char *held[TCCL_MAX_SIDE]; /* of a model: what holds it; NULL: nothing */
    struct tccl_side part;   /* the smallest known to be as slow as all: the whole where none is */
    struct tccl_rated rated; /* the same for drawings: each transfer once */
};

/* n chains; slowest: what the slowest copy has while all run, GB/s. model: NULL: by the measured
 * sets (1 % counts as equal: they scatter). exact: of one chain and a model the smallest of all
 * parts, or after 20,000 tries one from which no member can be removed; else such a one at once.
 * Returns 0, or -1 with err. */
int tccl_limit_find(const struct tccl_model *model, const struct tccl_setmap *sets,
                    const struct tccl_chain *chains, int n, double slowest, bool exact,
                    struct tccl_limit *limit, struct tccl_error *err);

/* Removes members one by one, down to least, as long as the rest is as slow as that. Returns how
 * many are left, or -1 with err. */
int tccl_limit_shrink(const struct tccl_model *model, tccl_transfer *members, int count, int least,
                      double slowest, struct tccl_error *err);

/* The transfers of a side, each once; at most TCCL_MAX_SET. */
void tccl_limit_set(const struct tccl_side *side, struct tccl_set *set);
