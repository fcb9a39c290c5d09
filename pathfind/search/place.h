/* place.h: which GPUs of a node a step should get: sets of them, by what their rings reach beside
 * what runs there already, and by what is left for the other GPUs. By a model. */
#ifndef TCCL_PLACE_H
#define TCCL_PLACE_H

#include "search/beside.h"

/* A set of GPUs. Bandwidths are in GB/s; NAN: there is no ring, or it is not known. */
struct tccl_place {
    uint32_t gpus;
    double gbps;  /* of its best ring, beside what runs */
    double least; /* the least share while all run: what runs, the step, and the rest */
    double rest;  /* of the best ring of the other free GPUs, beside both */
    double nccl;  /* of NCCL's own rings for the set, beside what runs */
    int tier;     /* once sorted: 0 for the best ones; sets that are equal have the same */
};

/* How many sets of k of these GPUs there are. */
long tccl_places_count(uint32_t free, int k);

/* The sets of k of the free GPUs, unranked, all values NAN: the caller frees. NULL only without
 * memory. *n: how many. */
struct tccl_place *tccl_places_new(uint32_t free, int k, int *n);

/* Takes what the table of the place's GPUs says of them alone. */
void tccl_place_take(struct tccl_place *place, const struct tccl_table *table);

/* Best first: by gbps, among equal ones by least, then by rest, then by nccl. Values equal but for
 * the noise (of the best one of them) are equal, and unknown ones come last. Sets that remain equal
 * stand in the order of their numbers. */
void tccl_places_sort(struct tccl_place *places, int n, double noise);

/* All sets of k of the GPUs that are not busy, best first. What runs is taken as one step on all
 * busy GPUs, with its best ring alone. One GPU has no ring: such sets are ranked by the others.
 * options: of rings of more than five GPUs; smaller ones are exact. symmetry: of the model; NULL:
 * none. options->progress: pairs_done of pairs_total sets are; what it returns has no effect. The
 * caller frees *places. Returns 0, or -1 with err. */
int tccl_place_rank(const struct tccl_model *model, const struct tccl_symmetry *symmetry,
                    uint32_t busy, int k, const struct tccl_search_options *options,
                    struct tccl_place **places, int *n, struct tccl_error *err);

#endif
