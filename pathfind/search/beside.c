/* beside.c: the best chains of a step beside others: the same search with another meter, one to
 * which a set is worth its least share. Which of several chains is best is decided among a few
 * found by different wishes: the best one alone, the best one beside the others, and the one that
 * shares best. */
#include "search/beside.h"

static int measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err)
{
    const struct tccl_beside *beside = context;
    struct tccl_side side = {0};
    struct tccl_worth worth;

    tccl_side_add(&side, set); /* there is room for one */
    if (tccl_beside_worth(beside, &side, &worth, err) != 0)
        return -1;
    out->spread = 0;
    out->gbps = worth.least * beside->own;
    return 0;
}

struct tccl_meter tccl_beside_meter(const struct tccl_beside *beside)
{
    return (struct tccl_meter){.measure = measure, .context = (void *)beside};
}

static int search_by(const struct tccl_machine *machine, struct tccl_meter meter, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *result,
                     struct tccl_error *err)
{
    struct tccl_search *search = tccl_search_new(machine, meter, NULL);
    if (!search)
        return tccl_fail(err, "out of memory");
    int status = tccl_search_ring(search, gpus, options, result, err);
    tccl_search_free(search);
    return status < 0 ? -1 : 0;
}

/* Keeps the chain if it is worth more than the best one. Returns 0, or -1 with err. */
static int offer(const struct tccl_beside *beside, const struct tccl_chain *chain, double noise,
                 struct tccl_result *best, struct tccl_worth *most, struct tccl_error *err)
{
    struct tccl_set set;
    struct tccl_side side = {0};
    struct tccl_worth worth;

    if (!chain->n_gpus)
        return 0;
    tccl_chain_set(chain, &set);
    tccl_side_add(&side, &set);
    if (tccl_beside_worth(beside, &side, &worth, err) != 0)
        return -1;
    if (best->chain.n_gpus && !tccl_worth_better(&worth, most, noise))
        return 0;
    *most = worth;
    best->chain = *chain;
    best->gbps = worth.gbps;
    return tccl_model_measure(beside->model, &set, &best->bound, NULL, NULL, err);
}

int tccl_beside_ring(struct tccl_beside *beside, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *best,
                     struct tccl_worth *worth, struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_model_machine(beside->model);
    struct tccl_result found[3];
    int n_found = beside->n > 0 ? 3 : 1; /* with nobody else all wishes are one */

    *best = (struct tccl_result){0};
    *worth = (struct tccl_worth){0};
    if (search_by(machine, tccl_model_meter(beside->model), gpus, options, &found[0], err) != 0)
        return -1;
    beside->own = found[0].gbps;
    if (!(beside->own > 0))
        return tccl_fail(err, "no ring over these GPUs");
    beside->selfish = false;
    for (int i = 1; i < n_found; i++) {
        beside->selfish = i == 1;
        if (search_by(machine, tccl_beside_meter(beside), gpus, options, &found[i], err) != 0)
            return -1;
    }
    for (int i = 0; i < n_found; i++)
        if (offer(beside, &found[i].chain, options->noise, best, worth, err) != 0)
            return -1;
    return 0;
}
