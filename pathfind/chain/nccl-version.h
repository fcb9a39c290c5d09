/* nccl-version.h: NCCL's releases, and what each of them does otherwise than others: the one table
 * of such facts. A version without a row is not known: it is given nothing. Versions are as
 * ncclGetVersion counts (22907); 0: which one is unknown. libc only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Generations: NCCL's graph search changed a few times; versions between two changes are one
 * generation, which is called by the first of them. What a stock NCCL builds on a machine, the
 * baseline, is known for each generation. */
enum tccl_nccl {
    TCCL_NCCL_2_21,
    TCCL_NCCL_2_22,
    TCCL_NCCL_2_23,
    TCCL_NCCL_2_25,
    TCCL_NCCL_2_26,
    TCCL_NCCL_2_27,
    TCCL_NCCL_2_28,
    TCCL_NCCL_2_29,
    TCCL_NCCL_2_30,
    TCCL_NCCL_2_31,
    TCCL_GENERATIONS,
    TCCL_NEWEST = TCCL_GENERATIONS - 1
};

enum tccl_fact {
    /* By default P2P is taken at any distance, but through CPUs other than AMD's; later up to PXB,
     * and at any distance only between two GPUs at AMD's. */
    TCCL_FACT_FAR_P2P = 1 << 0,
    /* CPUs of a topology file and others are taken for those of two hosts. */
    TCCL_FACT_ALL_CPUS = 1 << 1,
    /* Ranks agree on the CPU's maker before they tune. */
    TCCL_FACT_SAME_MAKER = 1 << 2,
    /* Each rank tells the others of its own GPU, which they need not see. */
    TCCL_FACT_OWN_GPU = 1 << 3,
    /* Writes nothing to the standard output when it logs into a file. */
    TCCL_FACT_QUIET_LOG = 1 << 4,
    /* Has bounce buffers from CUDA's host memory, by cuMem, if told to, … */
    TCCL_FACT_CAN_HOST_CUMEM = 1 << 5,
    /* Makes bounce buffers in a thread of a later call, which has no memory policy. */
    TCCL_FACT_LATE_BUFFERS = 1 << 6,
    /* Reads links between PCI switches, and takes P2P along one of them only. */
    TCCL_FACT_PAIR_WAYS = 1 << 7,
    /* Makes a virtual NIC of each real one, also of one that it does not join with others. */
    TCCL_FACT_VIRTUAL_NICS = 1 << 8,
    /* From ConnectX-8 on a NIC may be there twice. */
    TCCL_FACT_DATA_DIRECT = 1 << 9,
    /* Has NICs in the order of PCI addresses, not of libibverbs' list. */
    TCCL_FACT_NICS_BY_BUS = 1 << 10,
    /* A graph file may name ranks in place of GPUs. */
    TCCL_FACT_GRAPH_RANKS = 1 << 11,
    /* Reads any graph file into a table of 0.9 GB, which it clears. */
    TCCL_FACT_BIG_GRAPH = 1 << 12,
    /* … and by itself. */
    TCCL_FACT_HOST_CUMEM = 1 << 13,
    /* Takes its settings from a plugin, if there is one. */
    TCCL_FACT_ENV_PLUGIN = 1 << 14,
    TCCL_FACTS = 15 /* how many */
};

struct tccl_release {
    int first, last;       /* versions */
    const char *name;      /* "2.29" */
    enum tccl_nccl search; /* its generation */
    uint32_t facts;        /* enum tccl_fact */
};

/* The release that a version belongs to; NULL: not known. */
const struct tccl_release *tccl_release_of(int64_t version);
/* false, too, if the version is not known. */
bool tccl_release_does(int64_t version, enum tccl_fact fact);

/* The generation of a version, an index: what is older or newer than any known one belongs to the
 * first or the newest. */
int tccl_generation_of(int64_t version);
/* The first release of a generation. */
const struct tccl_release *tccl_generation(int generation);

enum { TCCL_NCCL_TEXT = 96 };

bool tccl_nccl_known(int64_t version);
/* "NCCL 2.29.7". */
void tccl_nccl_format(int64_t version, char text[static TCCL_NCCL_TEXT]);
/* Of one that is not known: "NCCL 2.33.1: not known (2.21 to 2.32 are)". */
void tccl_nccl_not_known(int64_t version, char text[static TCCL_NCCL_TEXT]);
