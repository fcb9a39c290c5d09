/* backend-model.c: the back end "model": a machine model says what a transfer set would reach. And
 * "noisy": the same measured as hardware is. Each run is off by an error of its own, a measurement
 * is the median of a few, and nobody knows of the model behind it. */
#include <math.h>
#include <stdlib.h>

#include "base/fileio.h"
#include "base/hash.h"
#include "measure/backends/backend-ops.h"
#include "measure/pool/workers.h"
#include "search/setmap.h"

enum { MODEL_BYTES = 4 << 20, RUNS = 5 };

/* The error of one run for each of the median of RUNS. */
static const double run_error = 1.867;

struct state {
    json_t *json;
    struct tccl_model *model;
    struct tccl_symmetry *symmetry;
    struct tccl_side others;
    double noise; /* of a measurement: its standard deviation, as a ratio */
    unsigned long seed;
    struct tccl_setmap measured; /* how often each set was */
    char conditions[64];
};

static void model_close(void *context)
{
    struct state *state = context;
    tccl_setmap_clear(&state->measured);
    tccl_symmetry_free(state->symmetry);
    tccl_model_free(state->model);
    json_decref(state->json);
    free(state);
}

static int model_open(const struct tccl_backend_options *options, struct tccl_backend *backend,
                      struct tccl_error *err)
{
    if (!options->model)
        return tccl_fail(err, "the back end \"model\" needs a model file: --model FILE");
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return tccl_fail(err, "out of memory");
    state->noise = options->noise;
    state->seed = options->seed;
    snprintf(state->conditions, sizeof(state->conditions), "a model, noise %.3g %%, seed %lu",
             100 * options->noise, options->seed);
    state->json = tccl_read_json(options->model, MODEL_BYTES, err);
    int rc = state->json ? 0 : -1;
    if (rc == 0 && tccl_model_from_json(state->json, &state->model, err) != 0)
        rc = tccl_fail_in(err, "%s", options->model);
    if (rc == 0 && !(state->symmetry = tccl_symmetry_of_model(state->model)))
        rc = tccl_fail(err, "out of memory");
    if (rc != 0) {
        model_close(state);
        return -1;
    }
    backend->state = state;
    backend->machine = tccl_model_machine(state->model);
    if (backend->ops == &tccl_backend_of_noisy) {
        backend->conditions = state->conditions;
    } else {
        backend->model = state->json;
        backend->symmetry = state->symmetry;
    }
    return 0;
}

static void model_others(void *context, const struct tccl_side *others)
{
    struct state *state = context;
    state->others = *others;
}

static int model_measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                         struct tccl_error *err)
{
    const struct state *state = context;
    *out = (struct tccl_measurement){0};
    struct tccl_side own = {0};
    const struct tccl_side *const sides[] = {&own, &state->others};
    double rates[2];
    if (state->others.count > 0) {
        tccl_side_add(&own, set); /* there is room for one */
        int rc = tccl_model_sides(state->model, sides, 2, rates, err);
        out->gbps = rc == 0 ? rates[0] : 0;
        return rc != 0;
    }
    return tccl_model_measure(state->model, set, &out->gbps, NULL, NULL, err) != 0;
}

/* From 0 to 1, exclusively. */
static double part_of(uint64_t hash)
{
    return ((double)(hash >> 12) + 0.5) / (double)(UINT64_C(1) << 52);
}

/* Normal, with a standard deviation of 1, by what is measured, which time it is, and which run. */
static double draw(const struct state *state, const struct tccl_set *set, int time, int run)
{
    uint64_t sets[] = {
        tccl_hash64(set->transfers, (size_t)set->count * sizeof(*set->transfers)),
        tccl_hash64(state->others.transfers,
                    (size_t)state->others.count * sizeof(*state->others.transfers)),
    };
    uint64_t key[] = {state->seed, sets[0], sets[1], 0, (uint64_t)time, (uint64_t)run, 0};
    uint64_t first = tccl_hash64(key, sizeof(key));
    key[6] = 1;
    return sqrt(-2 * log(part_of(first))) * cos(2 * M_PI * part_of(tccl_hash64(key, sizeof(key))));
}

static int noisy_measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                         struct tccl_error *err)
{
    struct state *state = context;
    double runs[RUNS];
    int rc = model_measure(context, set, out, err);
    if (rc != 0)
        return rc;
    const struct tccl_setmap_entry *entry = tccl_setmap_note(&state->measured, set, out);
    if (!entry)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < RUNS; i++)
        runs[i] = out->gbps *
                  fmax(0.01, 1 + run_error * state->noise * draw(state, set, entry->measured, i));
    out->gbps = tccl_median(runs, RUNS);
    out->spread = tccl_spread(runs, RUNS);
    return 0;
}

const struct tccl_backend_ops tccl_backend_of_model = {
    .name = "model",
    .noise = 0,
    .open = model_open,
    .others = model_others,
    .measure = model_measure,
    .close = model_close,
};

/* Noise as the back end "cuda" has to expect it, whatever there is. */
const struct tccl_backend_ops tccl_backend_of_noisy = {
    .name = "noisy",
    .noise = 0.03,
    .open = model_open,
    .others = model_others,
    .measure = noisy_measure,
    .close = model_close,
};
