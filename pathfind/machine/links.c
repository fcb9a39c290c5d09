/* links.c: what a transfer passes on its way. */
#include "machine/links.h"

#include <string.h>

static void pass(struct tccl_links *links, int link)
{
    if (links->n < TCCL_MOST_LINKS)
        links->links[links->n++] = (uint16_t)link;
}

/* From a device up to where the other one is below the same switch. */
static void pass_up(const struct tccl_machine *machine, struct tccl_device from,
                    struct tccl_device other, bool out, struct tccl_links *links)
{
    if (from.kind == TCCL_GPU)
        pass(links, TCCL_LINK_GPUS + 2 * from.index + out);
    else if (from.kind == TCCL_NIC)
        pass(links, TCCL_LINK_NICS + 2 * from.index + out);
    for (int i = tccl_machine_parent(machine, from); i >= 0; i = machine->switches[i].parent) {
        for (int k = tccl_machine_parent(machine, other); k >= 0; k = machine->switches[k].parent)
            if (k == i)
                return;
        pass(links, TCCL_LINK_SWITCHES + 2 * i + out);
    }
}

void tccl_links_of(const struct tccl_machine *machine, tccl_transfer transfer,
                   struct tccl_links *links)
{
    struct tccl_device from = tccl_transfer_source(transfer), to = tccl_transfer_sink(transfer);
    int a = tccl_machine_numa(machine, from), b = tccl_machine_numa(machine, to);
    links->n = 0;
    pass_up(machine, from, to, true, links);
    pass_up(machine, to, from, false, links);
    if (a != b)
        pass(links, TCCL_LINK_NUMA + a * TCCL_MAX_MEMORIES + b);
    if (tccl_transfer_target(transfer).kind == TCCL_MEMORY)
        pass(links, TCCL_LINK_MEMORIES + tccl_transfer_target(transfer).index);
}

void tccl_links_users(const struct tccl_machine *machine, const struct tccl_links *known,
                      const tccl_transfer *transfers, int count, int users[static TCCL_LINKS])
{
    memset(users, 0, TCCL_LINKS * sizeof(*users));
    for (int i = 0; i < count; i++) {
        struct tccl_links found;
        const struct tccl_links *own = known ? &known[transfers[i]] : &found;
        if (!known)
            tccl_links_of(machine, transfers[i], &found);
        for (int k = 0; k < own->n; k++)
            users[own->links[k]]++;
    }
}
