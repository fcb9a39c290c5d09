/* place.h: which GPUs of a node a step should get: sets of them, by what a step on them gets at its
 * launch (ring/neighbours.h) beside what runs there already, and by what is left for the other
 * GPUs. */
#pragma once

#include "machine/sides.h"
#include "ring/table.h"
#include "search/symmetry.h"

/* A set of GPUs. Bandwidths are in GB/s; NAN: there is no ring, or it is not known. */
struct tccl_place {
    uint32_t gpus;
    double gbps;    /* that a step on them gets beside what runs: by rings of ours, or NCCL's own */
    double alone;   /* and with nobody else */
    double least;   /* the least share while all run: what runs, the step, and the rest */
    double rest;    /* that a step on all other free GPUs gets, beside both */
    double nccl;    /* of NCCL's own rings for the set, beside what runs */
    bool collapses; /* NCCL's own and what runs would collapse beside each other
                     * (tccl_beside_collapses): who has no rings of ours meets it */
    enum tccl_basis basis; /* by what that is known beside others: the least sure of all */
    int tier;              /* once sorted: 0 for the best ones; sets that are equal have the same */
};

/* What is known of the node. Nothing is owned. */
struct tccl_place_source {
    const struct tccl_machine *machine;
    /* The chain table of a GPU set: *table is borrowed until the next call; NULL: there is none.
     * Returns 0, or -1 with err. NULL: there are no tables at all. */
    int (*table)(void *context, uint32_t gpus, const struct tccl_table **table,
                 struct tccl_error *err);
    /* Makes tables where there are none, as tccl-profile run does, and says what steps do to each
     * other; NULL: not known. symmetry: of the model, or NULL. */
    const struct tccl_model *model;
    const struct tccl_symmetry *symmetry;
    /* Says it where there is no model; NULL, too: each set is rated as it is alone. */
    const struct tccl_together *together;
    /* Told how many sets of how many are done; may be NULL. */
    void (*progress)(void *context, int done, int total);
    void *context;
};

/* Best first: those that don't collapse, by gbps, among equal ones by least, then by rest, then by
 * nccl. Values equal but for the noise (of the best one of them) are equal, of gbps but for four
 * times as much: several rings that gain 8 % may halve what others have. Unknown ones come last.
 * Sets that remain equal stand in the order of their numbers. */
void tccl_places_sort(struct tccl_place *places, int n, double noise);

/* All sets of k of the GPUs that are not busy, best first. What runs is taken as one step on all
 * busy GPUs, with what it would have got alone; the rest as one more, which comes last. What each
 * gets is what tccld chooses of its table (up to TCCL_CHAIN_RINGS rings at once, and the newest
 * NCCL), which beside others need not be the best that there is. One GPU has no ring: such sets are
 * ranked by the others. A set without a table, and without a model to make it, is not known. The
 * caller frees *places. Returns 0, or -1 with err. */
int tccl_place_rank(const struct tccl_place_source *source, uint32_t busy, int k, double noise,
                    struct tccl_place **places, int *n, struct tccl_error *err);
