/* backend.h: where bandwidths come from: one interface, one back end per file (backend-NAME.c). */
#pragma once

#include <jansson.h>

#include "client/users.h"
#include "machine/machine.h"
#include "machine/meter.h"
#include "machine/sides.h"
#include "search/symmetry.h"

/* One that is open. What it says of itself it owns, and it stays the same. */
struct tccl_backend {
    const struct tccl_backend_ops *ops; /* backend-ops.h */
    void *state;
    const char
        *name; /* "model", "noisy", "host", "cuda": what every profile, set and table carries */
    const struct tccl_machine *machine;   /* that it measures */
    const json_t *model;                  /* to be kept with the profile; NULL: hardware */
    const struct tccl_symmetry *symmetry; /* which sets may share a measurement; NULL where hardware
                                             is measured: see tccl_symmetry_of_machine */
    /* How it measures, in a few words that are kept with the profile ("kernel copies, TCP"); sets
     * measured otherwise don't mix with them. "" for a model. */
    const char *conditions;
    unsigned marks; /* enum tccl_mark: NCCL won't have it so, no chains may be made of it */
    double noise;   /* values closer than this ratio can't be told apart; 0 for a model */
};

/* What a back end may need to know to open; each uses what concerns it. */
struct tccl_backend_options {
    const char *model;  /* model file, of the back ends "model" and "noisy" */
    double noise;       /* noisy: standard deviation of a measurement, as a ratio */
    unsigned long seed; /* noisy: other errors for another one */
    const char *peer; /* "HOST[:PORT]" of a tccl-profile peer, for transfers of NICs; NULL: none */
    struct tccl_trust trust; /* who may run the peer */
    int devices;   /* host: cores that stand for GPUs; cuda: GPUs that the one GPU stands for */
    bool engine;   /* cuda: copy engines instead of kernels */
    bool force;    /* also where others use the GPUs, and under MIG and MPS: sets are marked */
    double window; /* seconds of each run; 0: the back end's own */
    int repeats;   /* runs of each set; 0: the back end's own */
};

/* Opens a back end by name. An unknown name is refused with the list of those built in. Returns 0
 * with *backend, which the caller closes, or -1 with err. */
int tccl_backend_open(const char *name, const struct tccl_backend_options *options,
                      struct tccl_backend **backend, struct tccl_error *err);
void tccl_backend_close(struct tccl_backend *backend); /* NULL is fine */

/* Could it measure a set such as this one: devices exist, may meet, and it knows how? Returns 0, or
 * -1 with err. */
int tccl_backend_can(const struct tccl_backend *backend, const struct tccl_set *set,
                     struct tccl_error *err);

/* What else runs from now on while a set is measured, and is not rated: the transfers of a side
 * (copied); NULL: nothing any more. */
void tccl_backend_set_others(struct tccl_backend *backend, const struct tccl_side *others);

/* Runs all transfers of the set at the same time, as often as the back end needs for a stable
 * median, and gives the median bandwidth of the slowest member, GB/s, and the spread. Returns 0; 1
 * with err if this set can't be measured (a member that the machine doesn't allow, a worker that
 * died) and others can; -1 with err if the back end can't go on. */
int tccl_backend_measure(struct tccl_backend *backend, const struct tccl_set *set,
                         struct tccl_measurement *out, struct tccl_error *err);
