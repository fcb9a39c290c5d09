/* noisy-meter.h: a meter that asks the model, but is noisy, disturbed, or fails. */
#pragma once

#include "machines.h"
#include "owned.h"
#include "search/setmap.h"

/* Asks the model, and spoils the answers. */
struct noisy_meter {
    const struct tccl_model *model;
    unsigned long state;
    double noise;           /* answers are off by up to this */
    int outliers;           /* per thousand: 30 % too low, */
    bool tells;             /* and said to be noisy then */
    struct tccl_set broken; /* sets with one of these transfers fail */
    int failures;           /* per thousand: others that fail, once */
    struct tccl_setmap asked;
    bool once;                 /* no set is asked twice */
    struct tccl_setmap *notes; /* of a search that knows much; NULL: none */
    long calls, failed;
    long stop_after; /* progress calls until it stops; -1: never */
    bool stopped;
    bool leaves_ring; /* at once */
    long told, pruned;
    bool assumed; /* symmetries that a few measurements show: the bounds hold as far as they do */
};

static inline void noisy_clear(struct noisy_meter *noisy)
{
    tccl_setmap_clear(&noisy->asked);
}

static inline bool is_broken(struct noisy_meter *noisy, const struct tccl_set *set)
{
    for (int i = 0; i < noisy->broken.count; i++)
        if (tccl_set_has(set, noisy->broken.transfers[i]))
            return true;
    return noisy->failures && random_below(&noisy->state, 1000) < noisy->failures;
}

static inline int answer(struct noisy_meter *noisy, const struct tccl_set *set,
                         struct tccl_measurement *out, struct tccl_error *err)
{
    *out = (struct tccl_measurement){0};
    noisy->calls++;
    CHECK(!noisy->stopped);
    if ((out->failed = is_broken(noisy, set))) {
        noisy->failed++;
        return 0;
    }
    CHECK(tccl_setmap_add(&noisy->asked, set) >= noisy->once);
    if (tccl_model_measure(noisy->model, set, &out->gbps, NULL, NULL, err) < 0)
        return -1;
    out->gbps *= 1 + noisy->noise * (random_below(&noisy->state, 2001) - 1000) / 1000;
    if (noisy->outliers && random_below(&noisy->state, 1000) < noisy->outliers) {
        out->gbps *= 0.7;
        out->noisy = noisy->tells;
        out->spread = noisy->tells ? 0.5 : 0;
    }
    return 0;
}

static inline int ask(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                      struct tccl_error *err)
{
    struct noisy_meter *noisy = context;
    if (answer(noisy, set, out, err) < 0)
        return -1;
    if (noisy->notes)
        CHECK(tccl_setmap_note(noisy->notes, set, out));
    return 0;
}

/* As it is measured through that, whose counts begin anew. */
static inline struct tccl_symmetry *measure_symmetry(struct noisy_meter *noisy)
{
    struct tccl_meter meter = {.measure = ask, .context = noisy};
    struct tccl_symmetry *symmetry =
        tccl_symmetry_of_machine(tccl_model_machine(noisy->model), &meter, noisy->noise, ERR);
    CHECK_STR(check_err.text, "");
    noisy->calls = noisy->failed = 0;
    return symmetry;
}
