/* pairs.c: pairs of transfers, of each kind one, and a second one of those that collapse; all where
 * these two differ. */
#include "fill/fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fill/run-meter.h"
#include "search/oddity.h"

enum { MOST = TCCL_MAX_GPUS * (TCCL_MAX_GPUS - 1 + 2 * TCCL_MAX_MEMORIES) };

/* Of a kind: its first pair does not collapse; does; two do; they differ. */
enum { SHARES, COLLAPSES, SETTLED, DIFFERS };

struct work {
    const struct tccl_pairs *pairs;
    const struct tccl_machine *machine;
    tccl_transfer singles[MOST];
    int n, measured;
    bool last;                /* those that were left out so far */
    struct tccl_setmap kinds; /* a pair of each; best.gbps: what is known (enum) */
};

static void list_singles(struct work *work)
{
    const struct tccl_machine *machine = work->machine;
    for (int gpu = 0; gpu < machine->n_gpus; gpu++)
        for (int kind = TCCL_GPU; kind <= TCCL_MEMORY; kind++)
            for (int reads = 0; reads <= (kind == TCCL_MEMORY); reads++)
                for (int i = 0; i < (kind == TCCL_GPU ? machine->n_gpus : machine->n_memories);
                     i++) {
                    tccl_transfer one =
                        tccl_transfer_make((struct tccl_device){TCCL_GPU, (uint8_t)gpu}, reads,
                                           (struct tccl_device){(uint8_t)kind, (uint8_t)i});
                    const struct tccl_set set = {1, {one}};
                    if (tccl_transfer_valid(one) && tccl_machine_allows(machine, one, NULL) == 0 &&
                        tccl_backend_can(work->pairs->meter->backend, &set, NULL) == 0)
                        work->singles[work->n++] = one;
                }
}

/* Those that are alike have the same, whichever of the two comes first. */
static struct tccl_set kind_of(const struct work *work, tccl_transfer a, tccl_transfer b)
{
    struct tccl_set kinds[2];
    for (int i = 0; i < 2; i++) {
        const tccl_transfer walk[] = {i ? b : a, i ? a : b};
        tccl_transfer image[2] = {walk[0], walk[1]};
        if (work->pairs->symmetry)
            tccl_symmetry_relabel(work->pairs->symmetry, walk, 2, image);
        kinds[i] = tccl_set_sorted(image, 2);
    }
    return kinds[memcmp(kinds[0].transfers, kinds[1].transfers, 2 * sizeof(tccl_transfer)) > 0];
}

/* Measured once more before it is believed. Returns 0, or -1 with err. */
static int measure(struct work *work, const struct tccl_set *set, bool *collapses,
                   struct tccl_error *err)
{
    struct tccl_run_meter *meter = work->pairs->meter;
    struct tccl_measurement out;
    if (tccl_run_meter_measure(meter, set, &out, err) != 0)
        return -1;
    *collapses = tccl_oddity_collapses(&meter->sets, set, out.gbps);
    if (!*collapses)
        return 0;
    if (tccl_run_meter_again(meter, set, TCCL_MEASURED_MOST, &out, err) != 0)
        return -1;
    *collapses =
        tccl_oddity_collapses(&meter->sets, set, tccl_setmap_find(&meter->sets, set)->best.gbps);
    return 0;
}

static int measure_pair(struct work *work, const struct tccl_set *set, struct tccl_error *err)
{
    const struct tccl_set kind = kind_of(work, set->transfers[0], set->transfers[1]);
    int added = tccl_setmap_add(&work->kinds, &kind);
    struct tccl_setmap_entry *entry = added < 0 ? NULL : tccl_setmap_find(&work->kinds, &kind);
    bool collapses = false;
    if (!entry)
        return tccl_fail(err, "out of memory");
    const int known = (int)entry->best.gbps;
    const double who[3] = {(UINT32_C(1) << tccl_transfer_initiator(set->transfers[0]).index |
                            UINT32_C(1) << tccl_transfer_initiator(set->transfers[1]).index),
                           set->transfers[0], set->transfers[1]};
    if (added)
        memcpy(entry->values, who, sizeof(who));
    /* The second one is of other GPUs, where there are such. */
    const bool other = entry->values[1] != who[1] || entry->values[2] != who[2];
    if (!added && known == COLLAPSES && entry->values[0] == who[0] && !(work->last && other))
        return 0;
    if (!added && (known == SHARES || known == SETTLED))
        return 0;
    if (measure(work, set, &collapses, err) != 0)
        return -1;
    work->measured += !collapses;
    const double gbps = tccl_setmap_find(&work->pairs->meter->sets, set)->best.gbps;
    const bool alike = collapses && fabs(gbps / entry->gbps - 1) <= TCCL_FORETOLD_WITHIN;
    if (added)
        entry->best.gbps = collapses ? COLLAPSES : SHARES;
    else if (known == COLLAPSES)
        entry->best.gbps = alike ? SETTLED : DIFFERS;
    entry->gbps = gbps;
    return 0;
}

static int parent_of(const struct work *work, tccl_transfer transfer)
{
    return work->machine->gpus[tccl_transfer_initiator(transfer).index].parent;
}

/* below: both GPUs are below one switch, else they are not. */
static int measure_pairs(struct work *work, bool below, struct tccl_error *err)
{
    for (int i = 0; i < work->n; i++)
        for (int k = i + 1; k < work->n && work->measured < TCCL_MAX_PAIRS; k++) {
            const struct tccl_set set =
                tccl_set_sorted((tccl_transfer[]){work->singles[i], work->singles[k]}, 2);
            int parent = parent_of(work, work->singles[i]);
            if (!tccl_oddity_is_pair(&set) ||
                (parent >= 0 && parent == parent_of(work, work->singles[k])) != below)
                continue;
            if (work->pairs->stop(work->pairs->context))
                return 1;
            if (measure_pair(work, &set, err) != 0)
                return -1;
        }
    return 0;
}

static int run(struct work *work, struct tccl_error *err)
{
    struct tccl_measurement out;
    list_singles(work);
    for (int i = 0; i < work->n; i++) {
        const struct tccl_set one = {1, {work->singles[i]}};
        if (work->pairs->stop(work->pairs->context))
            return 1;
        if (tccl_run_meter_measure(work->pairs->meter, &one, &out, err) != 0)
            return -1;
    }
    int rc = 0;
    for (int i = 0; i < 4 && rc == 0; i++) {
        work->last = i >= 2;
        rc = measure_pairs(work, i % 2 == 0, err);
    }
    return rc;
}

int tccl_pairs_measure(const struct tccl_pairs *pairs, struct tccl_error *err)
{
    cleanup_free struct work *work = calloc(1, sizeof(*work));
    if (!work)
        return tccl_fail(err, "out of memory");
    work->pairs = pairs;
    work->machine = tccl_profile_machine(pairs->meter->profile);
    int rc = run(work, err);
    tccl_setmap_clear(&work->kinds);
    return rc < 0 ? -1 : 0;
}
