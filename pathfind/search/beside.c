/* beside.c: the best chains of a step beside others: the same search with another meter, one to
 * which a set is worth its least share. Which of several chains is best is decided among a few
 * found by different wishes: the best one alone, the best one beside the others, and the one that
 * shares best. */
#include "search/beside.h"

#include "nccl/baseline.h"

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

/* A meter by which a set's bandwidth is its least share times own. It lives as long as beside. The
 * symmetries of the machine don't hold for it. */
static struct tccl_meter meter_of(const struct tccl_beside *beside)
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

int tccl_beside_ring(struct tccl_beside *beside, uint32_t gpus,
                     const struct tccl_search_options *options, struct tccl_result *best,
                     struct tccl_worth *worth, struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_model_machine(beside->model);
    struct tccl_result found[3];
    const struct tccl_result *list[3];
    struct tccl_candidates candidates = {.list = list, .noise = options->noise};
    struct tccl_choice choice = {.result = NULL};
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
        if (search_by(machine, meter_of(beside), gpus, options, &found[i], err) != 0)
            return -1;
    }
    for (int i = 0; i < n_found; i++) {
        struct tccl_set set;
        if (!found[i].chain.n_gpus)
            continue;
        tccl_chain_set(&found[i].chain, &set);
        if (tccl_model_measure(beside->model, &set, &found[i].gbps, NULL, NULL, err) != 0)
            return -1;
        list[candidates.n++] = &found[i];
    }
    if (tccl_choose(beside, &candidates, &choice, err) != 0)
        return -1;
    *worth = choice.worth;
    *best = *choice.result;
    best->bound = best->gbps; /* alone */
    best->gbps = worth->gbps;
    return 0;
}

/* Beside this side, unless it has no transfers. */
static int reply(const struct tccl_model *model, uint32_t gpus, const struct tccl_side *side,
                 double alone, const struct tccl_search_options *options, struct tccl_result *best,
                 struct tccl_error *err)
{
    struct tccl_beside beside = {
        .model = model, .n = side->count > 0, .others = {side}, .alone = {alone}};
    struct tccl_worth worth;
    return tccl_beside_ring(&beside, gpus, options, best, &worth, err);
}

static int keep_reply(const struct tccl_model *model, struct tccl_table *table,
                      const struct tccl_side *side, double alone,
                      const struct tccl_search_options *options, struct tccl_error *err)
{
    struct tccl_result best;
    if (side->count == 0 || !(alone > 0))
        return 0;
    if (reply(model, table->gpus, side, alone, options, &best, err) != 0)
        return -1;
    tccl_table_keep_other(table, &best.chain, best.bound);
    return 0;
}

/* What NCCL builds over the rest. */
static double nccl_side(const struct tccl_model *model, uint32_t rest, struct tccl_side *side)
{
    const struct tccl_side *sides[] = {side};
    struct tccl_baseline own;
    double gbps = 0;
    if (tccl_baseline_find(tccl_model_machine(model), rest, true, TCCL_NEWEST, &own, NULL) != 0 ||
        tccl_ring_set_side(&own.set, side) != 0)
        return 0;
    return side->count && tccl_model_sides(model, sides, 1, &gbps, NULL) == 0 ? gbps : 0;
}

int tccl_beside_replies(const struct tccl_model *model, struct tccl_table *table,
                        const struct tccl_search_options *options, struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_model_machine(model);
    uint32_t rest = ((UINT32_C(1) << machine->n_gpus) - 1) & ~table->gpus;
    struct tccl_side none = {0}, own = {0}, first = {0}, nccl = {0}, second = {0};
    struct tccl_result best, answer;
    if (__builtin_popcount(table->gpus) < 3 || __builtin_popcount(rest) < 2 ||
        !tccl_table_ring(table)->chain.n_gpus)
        return 0;
    if (reply(model, rest, &none, 0, options, &best, err) != 0 ||
        tccl_side_add_chain(&first, &best.chain) != 0 ||
        tccl_side_add_chain(&own, &tccl_table_ring(table)->chain) != 0 ||
        reply(model, rest, &own, tccl_table_ring(table)->gbps, options, &answer, err) != 0 ||
        tccl_side_add_chain(&second, &answer.chain) != 0)
        return -1;
    double nccl_alone = nccl_side(model, rest, &nccl);
    if (keep_reply(model, table, &first, best.gbps, options, err) != 0 ||
        keep_reply(model, table, &second, best.gbps, options, err) != 0)
        return -1;
    return keep_reply(model, table, &nccl, nccl_alone, options, err);
}
