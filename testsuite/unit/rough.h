/* rough.h: a back end that measures as real hardware does: with noise, now and then failing, under
 * marks; what it says underneath comes from a model. */
#pragma once

#include "machines.h"
#include "measure/backends/backend-ops.h"

static struct rough {
    const char *machine;
    double noise;        /* values differ by no more than this from the model's */
    double process;      /* what each opened one finds of a set is off by so much (deviation) */
    uint64_t opened;     /* the number of this one */
    double scale;        /* of all bandwidths */
    double pause;        /* seconds that a measurement takes */
    unsigned marks;      /* of the back end */
    unsigned set_marks;  /* of each measurement, in place of these */
    const char *bad;     /* sets with this transfer fail; "": all */
    int bad_tries;       /* so often each time, then they work; 0: always */
    bool no_nics;        /* it can't measure what NICs start */
    const char *slow;    /* sets with this transfer have half the bandwidth, */
    const char *company; /* but if they have this one, too */
    long dies_at;        /* the back end can't go on after so many measurements; 0: never */
    const char *conditions;
    int tell;    /* file descriptor that gets a byte when a measurement begins; 0: none */
    long calls;  /* of measure */
    int failing; /* tries of the set at work that failed */
    struct tccl_side others; /* what runs beside each set */
    const struct tccl_model *model;
} rough;

static int rough_open(const struct tccl_backend_options *options, struct tccl_backend *backend,
                      struct tccl_error *err)
{
    rough.model = load_machine(rough.machine ? rough.machine : "amd-4gpu");
    backend->machine = tccl_model_machine(rough.model);
    backend->conditions = rough.conditions ? rough.conditions : "rough copies";
    backend->marks = rough.marks;
    return 0;
}

static int rough_can(const void *state, tccl_transfer transfer, struct tccl_error *err)
{
    if (rough.no_nics && tccl_transfer_initiator(transfer).kind == TCCL_NIC)
        return tccl_fail(err, "NICs are measured only with --peer HOST");
    return tccl_machine_allows(tccl_model_machine(rough.model), transfer, err);
}

static bool rough_has(const struct tccl_set *set, const char *transfer)
{
    struct tccl_set one = {0};
    return transfer && tccl_set_parse(transfer, &one, NULL) == 0 && tccl_set_contains(set, &one);
}

static void rough_others(void *state, const struct tccl_side *others)
{
    rough.others = *others;
}

/* Of its own slowest transfer, while the others run. */
static int rough_rate(const struct tccl_set *set, double *gbps, struct tccl_error *err)
{
    tccl_transfer members[TCCL_MAX_RUNNING] = {0};
    double rates[TCCL_MAX_RUNNING];
    if (rough.others.count == 0)
        return tccl_model_measure(rough.model, set, gbps, NULL, NULL, err);
    memcpy(members, set->transfers, set->count * sizeof(*members));
    memcpy(members + set->count, rough.others.transfers,
           (size_t)rough.others.count * sizeof(*members));
    if (tccl_model_rates(rough.model, members, set->count + rough.others.count, rates, NULL, err) !=
        0)
        return -1;
    *gbps = rates[0];
    for (int i = 1; i < set->count; i++)
        *gbps = rates[i] < *gbps ? rates[i] : *gbps;
    return 0;
}

/* As memory lies and processes are placed: the same as long as the back end is open. */
static double rough_process(const struct tccl_set *set)
{
    uint64_t hash = rough.opened;
    double sum = 0;
    for (int i = 0; i < set->count; i++)
        hash = (hash ^ (uint64_t)set->transfers[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < 12; i++) {
        hash = hash * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (double)(hash >> 11) * 0x1p-53;
    }
    return 1 + rough.process * (sum - 6);
}

static int rough_measure(void *state, const struct tccl_set *set, struct tccl_measurement *out,
                         struct tccl_error *err)
{
    rough.calls++;
    if (rough.tell && write(rough.tell, ".", 1) != 1)
        _exit(1);
    if (rough.pause > 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(rough.pause * 1e9)}, NULL);
    if (rough.dies_at && rough.calls > rough.dies_at)
        return tccl_fail(err, "the machine is on fire");
    bool bad = rough.bad && (!*rough.bad || rough_has(set, rough.bad));
    if (bad && (rough.bad_tries == 0 || rough.failing++ < rough.bad_tries)) {
        tccl_fail(err, "its worker died");
        return 1;
    }
    rough.failing = 0;
    if (rough_rate(set, &out->gbps, err) < 0)
        return 1;
    out->gbps *= (rough.scale > 0 ? rough.scale : 1) * rough_process(set) *
                 (rough_has(set, rough.slow) && !rough_has(set, rough.company) ? 0.5 : 1) *
                 (1 + rough.noise * (2.0 * rand() / RAND_MAX - 1));
    out->spread = rough.noise / 2;
    out->skew = 3.5;
    out->overlap = 0.99;
    out->marks = rough.marks | rough.set_marks;
    return 0;
}

static void rough_close(void *state)
{
    rough.model = NULL;
}

/* Opens it as rough says, and its counts begin anew. noise: what it says of itself. */
static struct tccl_backend *rough_begin(void)
{
    static struct tccl_backend_ops ops;
    struct tccl_backend *backend;
    ops = (struct tccl_backend_ops){.name = "rough",
                                    .noise = rough.noise * 2,
                                    .open = rough_open,
                                    .can = rough_can,
                                    .others = rough_others,
                                    .measure = rough_measure,
                                    .close = rough_close};
    rough.opened = ((uint64_t)(unsigned)rand() << 32) + (unsigned)rand();
    rough.calls = 0;
    rough.failing = 0;
    CHECK_INT(tccl_backend_open_as(&ops, &(struct tccl_backend_options){0}, &backend, ERR), 0);
    return backend;
}
