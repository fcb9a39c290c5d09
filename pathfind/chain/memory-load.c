/* memory-load.c: how much chains that run at once ask of one memory. */
#include "chain/memory-load.h"

#include <stdio.h>
#include <string.h>

enum { MAKERS = TCCL_CHAIN_RINGS * (TCCL_CHAIN_GPUS + 2) };

/* Who makes copies; each once. */
struct makers {
    int n_gpus, n_nics;
    tccl_bus gpus[MAKERS];
    const char *nics[MAKERS];
    uint32_t numbers; /* NICs between GPUs, which have no names in texts */
};

static void add_gpu(struct makers *makers, tccl_bus gpu)
{
    for (int i = 0; i < makers->n_gpus; i++)
        if (makers->gpus[i] == gpu)
            return;
    makers->gpus[makers->n_gpus++] = gpu;
}

static void add_nic(struct makers *makers, const char *nic)
{
    for (int i = 0; i < makers->n_nics; i++)
        if (strcmp(makers->nics[i], nic) == 0)
            return;
    makers->nics[makers->n_nics++] = nic;
}

struct tccl_memory_load tccl_memory_load(const struct tccl_named_chain *chains, int n, int memory)
{
    struct tccl_memory_load load = {.memory = memory};
    struct makers makers = {.n_gpus = 0};
    for (int k = 0; k < n && k < TCCL_CHAIN_RINGS; k++)
        for (int i = 0; i < tccl_named_arrows(&chains[k]); i++) {
            struct tccl_text_arrow arrow = tccl_named_arrow(&chains[k], i);
            bool nics = arrow.kind == 'n';
            for (int end = 0; end < 2; end++) {
                if ((nics && end ? arrow.to_memory : arrow.memory) != memory)
                    continue;
                load.copies += 1 + nics;
                load.writes += nics || end;
                /* One end of arrow i: the giver's (0) or the taker's (1). */
                int gpu = (chains[k].closed ? i : i - 1) + end;
                if (gpu < 0)
                    add_nic(&makers, chains[k].entry.nic);
                else if (!chains[k].closed && gpu == chains[k].n_gpus)
                    add_nic(&makers, chains[k].exit.nic);
                else
                    add_gpu(&makers, chains[k].gpus[gpu % chains[k].n_gpus]);
                if (nics)
                    makers.numbers |= UINT32_C(1) << ((end ? arrow.to_nic : arrow.from_nic) & 31);
            }
        }
    load.gpus = makers.n_gpus;
    load.nics = makers.n_nics + __builtin_popcount(makers.numbers);
    return load;
}

struct tccl_memory_load tccl_memory_busiest(const struct tccl_named_chain *chains, int n)
{
    struct tccl_memory_load most = {.memory = -1};
    for (int k = 0; k < n && k < TCCL_CHAIN_RINGS; k++)
        for (int i = 0; i < tccl_named_arrows(&chains[k]); i++) {
            struct tccl_text_arrow arrow = tccl_named_arrow(&chains[k], i);
            const int memories[] = {arrow.memory, arrow.kind == 'n' ? arrow.to_memory : -1};
            for (int end = 0; end < 2; end++) {
                if (memories[end] < 0)
                    continue;
                struct tccl_memory_load load = tccl_memory_load(chains, n, memories[end]);
                if (load.copies > most.copies ||
                    (load.copies == most.copies && load.memory < most.memory))
                    most = load;
            }
        }
    return most;
}

void tccl_memory_load_say(const struct tccl_memory_load *load, const char *who,
                          char text[static TCCL_LOAD_TEXT])
{
    static const char *const words[] = {"no",   "one", "two",   "three", "four",
                                        "five", "six", "seven", "eight"};
    int devices = load->gpus + load->nics;
    char count[16];
    snprintf(count, sizeof(count), "%d", devices);
    snprintf(text, TCCL_LOAD_TEXT, "%s sends %s device%s through memory %d", who,
             devices < (int)(sizeof(words) / sizeof(words[0])) ? words[devices] : count,
             devices == 1 ? "" : "s", load->memory);
}
