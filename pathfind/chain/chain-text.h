/* chain-text.h: chains and rings on one line that a person can read.
 *
 *   closed      0 -w> 1 -m0> 2 -m1> 0
 *   open        mlx5_0 -m0> 3 -w> 1 -r> 2 -g> mlx5_1
 *   ring        n1[mlx5_0 -g> 0 -w> 1 -g> mlx5_0] n2[mlx5_0 -m1> 1 -m0> 0 -m0> mlx5_0]
 *
 * The arrow shows where the data go: -w> the giver writes to the next GPU, -r> the next GPU reads
 * from the giver, -mK> through memory K, -g> between NIC and GPU directly. Spaces are optional on
 * input. */
#ifndef TCCL_NOTATION_H
#define TCCL_NOTATION_H

#include "chain/chain.h"

enum { TCCL_CHAIN_TEXT = 2 * TCCL_NAME + TCCL_MAX_GPUS * 10 };

void tccl_chain_format(const struct tccl_chain *chain, const struct tccl_machine *machine,
                       char text[static TCCL_CHAIN_TEXT]);
/* Reads one chain and checks it against the machine (tccl_chain_check). Returns 0, or -1 with err
 * that says at which column. */
int tccl_chain_parse(const char *text, const struct tccl_machine *machine, struct tccl_chain *chain,
                     struct tccl_error *err);

/* Cuts "name[chain] name[chain]" in pieces; a text without brackets is one unnamed piece. Calls
 * each with the name ("" if none) and the chain's text; stops at the first non-zero answer and
 * returns it. Returns the number of pieces, or -1 with err. */
int tccl_ring_split(const char *text,
                    int (*each)(void *context, int index, const char *name, const char *chain,
                                struct tccl_error *err),
                    void *context, struct tccl_error *err);

/* JSON of a chain:
 * {"gpus":[3,1],"busids":[…],"edges":[{"kind":"bounce","memory":1,"from":3,"to":1}],
 * "entry":{"nic":"mlx5_0","via":"memory","memory":0},"exit":…,"chain":"…","set":"…"}; entry and
 * exit are null when closed. A new reference; NULL only without memory. */
json_t *tccl_chain_to_json(const struct tccl_chain *chain, const struct tccl_machine *machine);

#endif
