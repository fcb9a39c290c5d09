/* oddity.c: sets that collapse. */
#include "search/oddity.h"

/* Less than this share of what sharing leaves is no noise. */
static const double COLLAPSED = 0.75;

double tccl_oddity_shared(const struct tccl_setmap *map, const struct tccl_set *set)
{
    double time = 0;
    for (int i = 0; i < set->count; i++) {
        const struct tccl_set one = {1, {set->transfers[i]}};
        const struct tccl_setmap_entry *entry = tccl_setmap_find(map, &one);
        if (!entry || !(entry->best.gbps > 0))
            return 0;
        time += 1 / entry->best.gbps;
    }
    return time > 0 ? 1 / time : 0;
}

bool tccl_oddity_collapses(const struct tccl_setmap *map, const struct tccl_set *set, double gbps)
{
    return set->count > 1 && gbps > 0 && gbps < COLLAPSED * tccl_oddity_shared(map, set);
}

bool tccl_oddity_is_pair(const struct tccl_set *set)
{
    uint32_t gpus[2];
    if (set->count != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const struct tccl_set one = {1, {set->transfers[i]}};
        gpus[i] = tccl_set_gpus(&one);
        if (tccl_transfer_initiator(set->transfers[i]).kind != TCCL_GPU)
            return false;
    }
    return !(gpus[0] & gpus[1]);
}
