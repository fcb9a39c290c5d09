/* chain.h: a path over GPUs of one node: open with an entry and an exit port, or a closed ring. */
#ifndef TCCL_CHAIN_H
#define TCCL_CHAIN_H

#include "machine/machine.h"

enum tccl_edge_kind { TCCL_P2P_WRITE, TCCL_P2P_READ, TCCL_BOUNCE };

/* How one GPU hands on to the next: the giver writes to the next; the next reads from the giver; or
 * the giver writes to a memory and the next reads from it. */
struct tccl_edge {
    uint8_t kind;   /* enum tccl_edge_kind */
    uint8_t memory; /* of a bounce, else 0 */
};

/* Where a chain meets the network: (NIC, GPU) for GPUDirect, (NIC, memory) for a host bounce. */
struct tccl_port {
    uint8_t nic;
    struct tccl_device via; /* the head or tail GPU itself, or a memory */
};

/* Open: edges[i] leads from gpus[i] to gpus[i + 1]. Closed: edges[n_gpus - 1] leads back to
 * gpus[0], and the ports mean nothing. n_gpus = 0: no chain. */
struct tccl_chain {
    uint8_t n_gpus;
    bool closed;
    uint8_t gpus[TCCL_MAX_GPUS];
    struct tccl_edge edges[TCCL_MAX_GPUS];
    struct tccl_port entry, exit;
};

/* Number of edges: n_gpus - 1 when open, n_gpus when closed (0 with fewer than two GPUs). */
int tccl_chain_edges(const struct tccl_chain *chain);

/* The transfers of an edge, of the entry (NIC to head), of the exit (tail to NIC): 1 or 2 of them
 * in out. Each returns how many. */
int tccl_edge_transfers(struct tccl_edge edge, int from, int to, tccl_transfer out[static 2]);
int tccl_entry_transfers(struct tccl_port entry, int head, tccl_transfer out[static 2]);
int tccl_exit_transfers(struct tccl_port exit, int tail, tccl_transfer out[static 2]);

/* All transfers of the chain, which run together: edges, and ports when open. */
void tccl_chain_set(const struct tccl_chain *chain, struct tccl_set *set);

/* Is the chain possible on the machine: devices exist, GPUs not repeated, p2p and GPUDirect where
 * it uses them, a GPU port naming the head or tail? Returns 0, or -1 with err. */
int tccl_chain_check(const struct tccl_chain *chain, const struct tccl_machine *machine,
                     struct tccl_error *err);

/* Can the runtime impose it on a stock NCCL? P2P edges must all write or all read (one process-wide
 * choice); a closed chain must not have exactly one bounce; an open chain of one GPU must enter and
 * leave by one NIC (NCCL takes the entry's for both); and a last GPU that receives in a memory must
 * send from it (a process has one place for its buffers). Returns 0, or -1 with the reason in err.
 */
int tccl_chain_expressible(const struct tccl_chain *chain, struct tccl_error *err);

#endif
