/* driver-pace.c: where copies of kernels go, so that they take as long as the machine of a model
 * needs (pace.h): each address that a block reads or writes lies in a GPU's memory or in that of a
 * NUMA node. */
#include "driver.h"
#include "kernels.h"

#include <stdatomic.h>
#include <stdio.h>

__attribute__((visibility("default"))) bool rig_place(const void *address, struct rig_place *place)
{
    struct rig_allocation found;
    if (!rig_allocation(address, &found))
        return false;
    place->kind = found.host ? 'm' : 'g';
    place->number = found.place;
    return found.place >= 0;
}

static void copy(int gpu, struct pace_stream *stream, const struct rig_copy *copies, int n,
                 size_t bytes, bool (*gone)(void *data), void *data)
{
    struct pace_part parts[PACE_PARTS];
    int used = 0;
    for (int i = 0; i < n && used < PACE_PARTS; i++) {
        struct rig_place place;
        char name[PACE_NAME];
        static atomic_int told;
        if (!rig_place(copies[i].address, &place)) {
            if (atomic_fetch_add(&told, 1) == 0)
                fprintf(stderr, "tccl rig: it is not known where a buffer is: not paced\n");
            continue;
        }
        if (place.kind == 'g' && place.number == gpu)
            continue;
        snprintf(name, sizeof(name), "g%d%c%c%d", gpu, copies[i].reads ? '<' : '>', place.kind,
                 place.number);
        used += pace_find_part(pace_node(), name, &parts[used]);
    }
    pace_copy(stream, parts, used, bytes, gone, data);
}

rig_copies *rig_paced(void)
{
    return pace_open() ? copy : NULL;
}
