/* memory-load.h: how much chains that run at once ask of one memory. Of libc only. */
#pragma once

#include "chain/chain-text.h"

/* The copies to and from one memory. */
struct tccl_memory_load {
    int memory; /* -1: no copy has to do with one */
    int copies;
    int writes;     /* of them to the memory */
    int gpus, nics; /* devices that make them */
};

/* Of the memory with most copies, the lowest of several. */
struct tccl_memory_load tccl_memory_busiest(const struct tccl_named_chain *chains, int n);
/* Of that memory. */
struct tccl_memory_load tccl_memory_load(const struct tccl_named_chain *chains, int n, int memory);

enum { TCCL_LOAD_TEXT = 128 };
/* "NCCL sends four devices through memory 1". who: the subject. */
void tccl_memory_load_say(const struct tccl_memory_load *load, const char *who,
                          char text[static TCCL_LOAD_TEXT]);
