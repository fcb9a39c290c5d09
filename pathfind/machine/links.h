/* links.h: what a transfer passes on its way, as far as the PCI tree says. */
#pragma once

#include "machine/machine.h"

/* Links of GPUs, of NICs, and of switches to what is above: 2 × index for the way into it, and one
 * more for the way out. Then the ways from one NUMA node to another, by from × TCCL_MAX_MEMORIES +
 * to; then memories. */
enum {
    TCCL_LINK_GPUS = 0,
    TCCL_LINK_NICS = TCCL_LINK_GPUS + 2 * TCCL_MAX_GPUS,
    TCCL_LINK_SWITCHES = TCCL_LINK_NICS + 2 * TCCL_MAX_NICS,
    TCCL_LINK_NUMA = TCCL_LINK_SWITCHES + 2 * TCCL_MAX_SWITCHES,
    TCCL_LINK_MEMORIES = TCCL_LINK_NUMA + TCCL_MAX_MEMORIES * TCCL_MAX_MEMORIES,
    TCCL_LINKS = TCCL_LINK_MEMORIES + TCCL_MAX_MEMORIES,
    TCCL_MOST_LINKS = 14 /* of one transfer; more are left out */
};

struct tccl_links {
    uint8_t n;
    uint16_t links[TCCL_MOST_LINKS];
};

/* The links that a transfer passes. */
void tccl_links_of(const struct tccl_machine *machine, tccl_transfer transfer,
                   struct tccl_links *links);
/* How many of some transfers pass each link; one that stands there several times counts as often.
 * known: the links of every transfer, by its number (TCCL_TRANSFERS of them; those that are not
 * among these are not read); NULL: they are looked up. */
void tccl_links_users(const struct tccl_machine *machine, const struct tccl_links *known,
                      const tccl_transfer *transfers, int count, int users[static TCCL_LINKS]);
