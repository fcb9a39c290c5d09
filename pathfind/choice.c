/* choice.c: NCCL's own choice: the rings that a stock NCCL builds on a node when nobody helps it.
 */
#include "choice.h"

int tccl_nccl_choice(const struct tccl_machine *machine, uint32_t gpus, bool closed,
                     struct tccl_choice *choice, struct tccl_error *err)
{
    choice->n_chains = 1;
    return tccl_chain_default(machine, gpus, closed, &choice->chains[0], err);
}
