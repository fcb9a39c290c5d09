/* chain-text.h: chains and rings on one line that a person can read. Of libc only: the runtime shim
 * has this too.
 *
 *   closed      0 -w> 1 -m0> 2 -m1> 0
 *   open        mlx5_0 -m0> 3 -w> 1 -r> 2 -g> mlx5_1
 *   bus ids     mlx5_0 -m0> 0000:61:00.0 -w> 0000:41:00.0 -g> mlx5_1
 *   ring        n1[mlx5_0 -g> 0 -w> 1 -g> mlx5_0] n2[mlx5_0 -m1> 1 -m0> 0 -m0> mlx5_0]
 *   ring set    mlx5_0 -g> 0 -w> 1 -g> mlx5_0 | mlx5_1 -g> 1 -w> 0 -g> mlx5_1
 *   of nodes    n1[mlx5_0 -g> 0 -w> 1 -g> mlx5_0 | mlx5_1 -g> 1 -w> 0 -g> mlx5_1] n2[…]
 *   equal ones  n1[mlx5_0 -g> 0 -w> 1 -g> mlx5_0] n2[= n1]
 *
 *   by NICs     0 -w> 1 -n0n1> 2 -m0n1n0> 0
 *
 * The arrow shows where the data go: -w> the giver writes to the next GPU, -r> the next GPU reads
 * from the giver, -mK> through memory K, -g> between NIC and GPU directly, -nInJ> sent by the
 * node's NIC I and received by its NIC J, directly, or through memory (-mKnInJ>, -nInJmK>). A GPU
 * is named by its number on its machine, as users see it, or by its bus id, where there is no
 * machine at hand; a chain has one or the other. Blanks are optional on input. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bus.h"
#include "base/error.h"

enum {
    TCCL_CHAIN_GPUS = 16,
    TCCL_CHAIN_NIC = 64,   /* a NIC's name, with its NUL */
    TCCL_CHAIN_NODE = 256, /* a node's name, with its NUL */
    TCCL_CHAIN_TEXT = 2 * TCCL_CHAIN_NIC + (TCCL_CHAIN_GPUS + 1) * 40,
    TCCL_CHAIN_RINGS = 8, /* of a ring set */
    TCCL_RINGS_TEXT = TCCL_CHAIN_RINGS * (TCCL_CHAIN_TEXT + 3)
};

/* The last one is only NCCL's own. */
enum tccl_edge_kind { TCCL_P2P_WRITE, TCCL_P2P_READ, TCCL_BOUNCE, TCCL_BY_NICS };

struct tccl_named_edge {
    uint8_t kind;      /* enum tccl_edge_kind */
    int16_t memory;    /* of a bounce, or before the first NIC; else -1 */
    int16_t to_memory; /* by NICs: behind the second one, or -1; else 0, as the following */
    int16_t from_nic, to_nic;
};

/* Where an open chain meets the network. */
struct tccl_named_port {
    char nic[TCCL_CHAIN_NIC]; /* "mlx5_0" */
    bool gpudirect;
    int16_t memory; /* between NIC and GPU; -1 with GPUDirect */
};

/* A chain as a text has it. Open: edges[i] leads from gpus[i] to gpus[i + 1]. Closed:
 * edges[n_gpus - 1] leads back to gpus[0], and the ports are all zero. */
struct tccl_named_chain {
    bool closed;
    bool numbers; /* gpus: numbers on the machine, else bus ids */
    uint8_t n_gpus;
    tccl_bus gpus[TCCL_CHAIN_GPUS];
    struct tccl_named_edge edges[TCCL_CHAIN_GPUS];
    struct tccl_named_port entry, exit;
};

/* Number of edges: n_gpus - 1 when open, n_gpus when closed. */
int tccl_named_edges(const struct tccl_named_chain *chain);

/* What an arrow of the text says: w, r, g, m with a memory (else -1), or n with NICs, and all that
 * an edge by NICs has. */
struct tccl_text_arrow {
    char kind;
    int16_t memory, to_memory, from_nic, to_nic;
};
/* Arrow i of the text, from 0, and how many there are: n_gpus + 1 when open, n_gpus when closed. */
struct tccl_text_arrow tccl_named_arrow(const struct tccl_named_chain *chain, int i);
int tccl_named_arrows(const struct tccl_named_chain *chain);

/* What stands between - and >: "w", "m0", "m0n0n1". */
enum { TCCL_ARROW_TEXT = 32 };
void tccl_text_arrow_format(struct tccl_text_arrow arrow, char text[static TCCL_ARROW_TEXT]);

/* Writes the text. Without a GPU: "". */
void tccl_named_format(const struct tccl_named_chain *chain, char text[static TCCL_CHAIN_TEXT]);

/* Reads one chain of 1 to 16 GPUs (2 when closed), none of them twice. Returns 0, or -1 with err
 * that says at which column. */
int tccl_named_parse(const char *text, struct tccl_named_chain *chain, struct tccl_error *err);

/* The chains of a ring set on one node: several rings that run at once over the same GPUs. */
struct tccl_named_rings {
    int n;
    struct tccl_named_chain chains[TCCL_CHAIN_RINGS];
};

/* Writes "chain | chain"; of one chain as tccl_named_format. */
void tccl_named_rings_format(const struct tccl_named_rings *rings,
                             char text[static TCCL_RINGS_TEXT]);

/* Reads 1 to 8 chains: all of them open or all closed, over the same GPUs, all by numbers or all by
 * bus ids. Returns 0, or -1 with err. */
int tccl_named_rings_parse(const char *text, struct tccl_named_rings *rings,
                           struct tccl_error *err);

/* A place in the text of a ring. Set text at the beginning, all else to zero. */
struct tccl_ring_reader {
    const char *text;           /* what is left */
    char name[TCCL_CHAIN_NODE]; /* of the node; "" in a text without brackets */
    int node, chain;            /* from 0; chain: of this node */
    bool begun, named, more;    /* the reader's own */
    const char *begin, *behind; /* too */
};

/* Reads the next chain of "name[chain | chain] name[chain]"; a text without brackets is one node
 * without a name. "name[= other]" has the chains that are written at a node before it. Returns 1
 * with the chain, and the reader's name, node and chain; 0 at the end; -1 with err. */
int tccl_ring_next(struct tccl_ring_reader *reader, struct tccl_named_chain *chain,
                   struct tccl_error *err);
