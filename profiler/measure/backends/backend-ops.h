/* backend-ops.h: what a back end implements; seen by backend.c and backend-NAME.c only. */
#pragma once

#include "measure/backends/backend.h"

/* Contracts as in backend.h. state is what open made; close gets it also when it is the last. */
struct tccl_backend_ops {
    const char *name;
    double noise;
    /* Fills in state, machine, and what else there is to say. Returns 0, or -1 with err. */
    int (*open)(const struct tccl_backend_options *options, struct tccl_backend *backend,
                struct tccl_error *err);
    /* Can it measure the transfer at all? 0, or -1 with err. NULL: all that the machine allows. */
    int (*can)(const void *state, tccl_transfer transfer, struct tccl_error *err);
    /* What others run from now on (a side without transfers: nothing). */
    void (*others)(void *state, const struct tccl_side *others);
    int (*measure)(void *state, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err);
    void (*close)(void *state);
};

/* Opens a back end that need not be built in (tests have theirs). As tccl_backend_open. */
int tccl_backend_open_as(const struct tccl_backend_ops *ops,
                         const struct tccl_backend_options *options, struct tccl_backend **backend,
                         struct tccl_error *err);

extern const struct tccl_backend_ops tccl_backend_of_model;
extern const struct tccl_backend_ops tccl_backend_of_noisy;
extern const struct tccl_backend_ops tccl_backend_of_host;
extern const struct tccl_backend_ops tccl_backend_of_cuda; /* in builds with CUDA */
