/* tuning.h: which algorithm and protocol NCCL picks for an all-reduce of a size. It reckons a time
 * for each from the nominal rates of its ring and tree, and takes the shortest
 * (src/graph/tuning.cc: ncclTopoTuneModel, ncclTopoGetAlgoTime). A planned ring has the channels
 * and rates of NCCL's own, so that holds for it, too. All other collectives over PCIe have the ring
 * alone.
 *
 * Without NVLink, in-network reduction and settings of the user. From 2.23 on a tree is taken for
 * faster to start, and a ring has two steps fewer between nodes. */
#ifndef TCCL_NCCL_TUNING_H
#define TCCL_NCCL_TUNING_H

#include "chain/nccl-version.h"
#include "machine/machine.h"
#include "ring/latency.h"
#include "ring/nominal.h"

enum tccl_algorithm { TCCL_TREE, TCCL_RING, TCCL_ALGORITHMS };

struct tccl_pick {
    enum tccl_algorithm algorithm;
    enum tccl_protocol protocol;
};

struct tccl_tuning {
    enum tccl_nccl nccl;
    int nodes, ranks, sm;
    bool amd, other; /* is there such a CPU */
    struct tccl_nominal ring, tree;
    double latency[TCCL_ALGORITHMS][TCCL_PROTOCOLS];   /* us */
    double bandwidth[TCCL_ALGORITHMS][TCCL_PROTOCOLS]; /* GB/s of an all-reduce; 0: not used */
};

/* One node after the other, with what NCCL's search says of ring and tree there, its number of
 * ranks, and the lowest compute capability; then the table. */
void tccl_tuning_begin(struct tccl_tuning *tuning, enum tccl_nccl nccl);
void tccl_tuning_add_node(struct tccl_tuning *tuning, const struct tccl_nominal *ring,
                          const struct tccl_nominal *tree, int ranks, int sm, enum tccl_cpu cpu);
void tccl_tuning_end(struct tccl_tuning *tuning);

/* For an all-reduce of so many bytes. With at least two ranks. */
struct tccl_pick tccl_tuning_pick(const struct tccl_tuning *tuning, uint64_t bytes);

#endif
