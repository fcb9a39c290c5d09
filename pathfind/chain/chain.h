/* chain.h: a path over GPUs of one node: open with an entry and an exit port, or a closed ring. */
#pragma once

#include "chain/chain-text.h"
#include "machine/machine.h"

/* Where a chain meets the network: (NIC, GPU) for GPUDirect, (NIC, memory) for a host bounce. */
struct tccl_port {
    uint8_t nic;
    struct tccl_device via; /* the head or tail GPU itself, or a memory */
};

bool tccl_port_equal(struct tccl_port a, struct tccl_port b);

/* How one GPU hands on to the next: the giver writes to the next; the next reads from the giver;
 * the giver writes to a memory and the next reads from it; or the giver sends by a NIC, and another
 * one receives for the next, as NCCL does by itself between two parts of a node. */
struct tccl_edge {
    uint8_t kind;              /* enum tccl_edge_kind */
    uint8_t memory;            /* of a bounce, else 0 */
    struct tccl_port from, to; /* by NICs: where the giver sends, and the next receives; else 0 */
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

/* Its GPUs, as a mask. */
uint32_t tccl_chain_gpus(const struct tccl_chain *chain);

/* The transfers of an edge, of the entry (NIC to head), of the exit (tail to NIC): 1 or 2 of them
 * in out; of an edge by NICs up to TCCL_EDGE_TRANSFERS. Each returns how many. */
enum { TCCL_EDGE_TRANSFERS = 4 };
int tccl_edge_transfers(struct tccl_edge edge, int from, int to, tccl_transfer *out);
int tccl_entry_transfers(struct tccl_port entry, int head, tccl_transfer out[static 2]);
int tccl_exit_transfers(struct tccl_port exit, int tail, tccl_transfer out[static 2]);

/* All transfers of the chain, which run together: edges, and ports when open. walk: in the order of
 * the way from entry to exit, not sorted as a set is. */
void tccl_chain_set(const struct tccl_chain *chain, struct tccl_set *set);
void tccl_chain_walk(const struct tccl_chain *chain, struct tccl_set *walk);

/* Is the chain possible on the machine: devices exist, GPUs not repeated, p2p and GPUDirect where
 * it uses them, a GPU port naming the head or tail? Returns 0, or -1 with err. */
int tccl_chain_check(const struct tccl_chain *chain, const struct tccl_machine *machine,
                     struct tccl_error *err);

/* Do GPUs reach each other directly in it? Not where each process sees only its own GPU. */
bool tccl_chain_has_p2p(const struct tccl_chain *chain);

/* Do P2P edges read in it? */
bool tccl_chain_reads(const struct tccl_chain *chain);

/* Does NCCL take NICs between two of its GPUs? */
bool tccl_chain_by_nics(const struct tccl_chain *chain);

/* Do they say the same? Closed chains that begin at different GPUs do not. */
bool tccl_chain_equal(const struct tccl_chain *a, const struct tccl_chain *b);

/* The chain with names (chain-text.h): numbers or bus ids. */
void tccl_chain_name(const struct tccl_chain *chain, const struct tccl_machine *machine,
                     bool numbers, struct tccl_named_chain *named);
/* The chain that names mean on the machine. Returns 0, or -1 with err: the machine has no such
 * device. What is possible there, tccl_chain_check says. */
int tccl_chain_resolve(const struct tccl_named_chain *named, const struct tccl_machine *machine,
                       struct tccl_chain *chain, struct tccl_error *err);
/* The same without a machine: GPUs must be numbers, and the NICs are the caller's. */
void tccl_chain_name_nics(const struct tccl_chain *chain, const char *entry, const char *exit,
                          struct tccl_named_chain *named);
int tccl_chain_resolve_nics(const struct tccl_named_chain *named, int entry, int exit,
                            struct tccl_chain *chain, struct tccl_error *err);

/* The chain's text, GPUs by their numbers. */
void tccl_chain_format(const struct tccl_chain *chain, const struct tccl_machine *machine,
                       char text[static TCCL_CHAIN_TEXT]);
/* Reads one chain and checks it against the machine (tccl_chain_check). Returns 0, or -1 with err.
 */
int tccl_chain_parse(const char *text, const struct tccl_machine *machine, struct tccl_chain *chain,
                     struct tccl_error *err);

/* Can the runtime impose chains on a stock NCCL (expressible.c)? What nobody can build is neither
 * searched, kept, sent nor given to a job. Chains over the same GPUs that run at once; a single one
 * is a set of one. machine: with what GPUs can do; NULL: not known, then what some machine can.
 * What NCCL decides once for a process or a pair of GPUs must suit all of them:
 *  - no edge is by NICs: where NCCL takes these is its own choice;
 *  - P2P edges all write, as by default, or all read: one choice for all communicators of a
 * process, on a node (search/reads.c says where reading is one);
 *  - a closed chain does not have exactly one bounce (its GPUs would all be joined by P2P edges);
 *  - GPUs that some chain joins by P2P, or that have GPUDirect to one NIC, are an island, and no
 *    edge of any chain leads through memory within one: two GPUs have one transport;
 *  - all buffers of a process are in one memory: where it receives in any chain, and on its way
 *    from and to the network;
 *  - a process has GPUDirect in all chains in which it meets a NIC, or in none;
 *  - a NIC to which some GPU of an island has GPUDirect exchanges data through memory with no other
 *    GPU of the island: it is near all of them. But GPUs before compute capability 8.0 send through
 *    memory in any case, where they are not alone;
 *  - a chain of one GPU enters and leaves by one NIC (NCCL takes the entry's for both).
 * Returns 0, or -1 with the reason in err. */
int tccl_expressible(const struct tccl_machine *machine, const struct tccl_chain *chains, int n,
                     struct tccl_error *err);

/* JSON of a chain (chain-json.c):
 * {"gpus":[3,1],"busids":[…],"edges":[{"kind":"bounce","memory":1,"from":3,"to":1}],
 * "entry":{"nic":"mlx5_0","via":"memory","memory":0},"exit":…,"chain":"…","load":"…"}; entry and
 * exit are null when closed. A new reference; NULL only without memory. */
json_t *tccl_chain_to_json(const struct tccl_chain *chain, const struct tccl_machine *machine);
