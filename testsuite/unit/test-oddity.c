/* test-oddity.c: machines on which a further transfer makes a set faster, which the searches'
 * bounds rest on not to be: a transfer is slow unless another one keeps it company. Against all
 * rings tried, with noise and without. */
#include "enumerate.h"
#include "machines.h"
#include "owned.h"
#include "random-model.h"
#include "search/oddity.h"

enum { ROUNDS = 150, GPUS = 4 };

/* A model, and what it is not. Remembers what it measured, as a profile does. */
struct odd {
    const struct tccl_model *model;
    tccl_transfer slow, company; /* equal: none is slow */
    double most;                 /* of slow without company, GB/s */
    double noise;                /* the deviation of a measurement, as a ratio */
    unsigned long *state;
    struct tccl_setmap sets;
};

static double truth(void *context, const struct tccl_set *set)
{
    const struct odd *odd = context;
    double gbps = 0;
    CHECK_INT(tccl_model_measure(odd->model, set, &gbps, NULL, NULL, NULL), 0);
    bool slow = odd->slow != odd->company && tccl_set_has(set, odd->slow) &&
                !tccl_set_has(set, odd->company);
    return slow ? fmin(gbps, odd->most) : gbps;
}

static double draw(unsigned long *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += random_below(state, 100000) / 100000.0;
    return sum;
}

static int measure(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                   struct tccl_error *err)
{
    struct odd *odd = context;
    out->gbps = truth(odd, set) * fmax(0.1, 1 + odd->noise * draw(odd->state));
    return tccl_setmap_note(&odd->sets, set, out) ? 0 : tccl_fail(err, "out of memory");
}

static int look(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                struct tccl_error *err)
{
    const struct odd *odd = context;
    const struct tccl_setmap_entry *entry = tccl_setmap_find(&odd->sets, set);
    if (!entry || entry->measured == 0)
        return measure(context, set, out, err);
    *out = entry->best;
    return 0;
}

/* As tccl-profile run --neighbours does before it searches: the transfers alone, and both. */
static void measure_first(struct odd *odd)
{
    struct tccl_measurement out = {0};
    const struct tccl_set first[] = {
        {1, {odd->slow}},
        {1, {odd->company}},
        tccl_set_sorted((tccl_transfer[]){odd->slow, odd->company}, 2)};
    for (int i = 0; i < 3; i++)
        CHECK_INT(measure(odd, &first[i], &out, NULL), 0);
}

/* A transfer between GPUs of the best ring, which is slow but for another one there. Returns false
 * if the ring has none. */
static bool pick(struct odd *odd, const struct tccl_chain *ring)
{
    struct tccl_set set;
    tccl_chain_set(ring, &set);
    odd->slow = set.transfers[random_below(odd->state, set.count)];
    odd->company = set.transfers[random_below(odd->state, set.count)];
    return odd->slow != odd->company;
}

/* What is listed breaks the rule in truth. */
static int check_list(const struct odd *odd)
{
    struct tccl_oddity list[TCCL_MAX_ODDITIES];
    int n = tccl_oddity_list(&odd->sets, list);
    for (int i = 0; i < n; i++) {
        char text[TCCL_ODDITY_TEXT];
        CHECK(tccl_set_contains(&list[i].whole->set, &list[i].part->set));
        CHECK(truth((void *)odd, &list[i].whole->set) > truth((void *)odd, &list[i].part->set));
        tccl_oddity_format(&list[i], text);
        CHECK_HOLDS(text, " GB/s, but ");
        CHECK_HOLDS(text, " beside it");
    }
    return n;
}

struct outcomes {
    int machines, listed, best, wholly;
};

/* known: both were measured together before. */
static void check_one(unsigned long *state, double noise, bool odd_at_all, bool known,
                      struct outcomes *sum)
{
    owned(model) struct tccl_model *model = random_model(state, GPUS, 2, 0);
    const uint32_t all = (1u << GPUS) - 1;
    struct odd odd = {.model = model, .noise = noise, .state = state};
    const struct tccl_meter meter = {
        .measure = look, .again = measure, .context = &odd, .sets = &odd.sets};
    const struct tccl_search_options options = {.gap = noise > 0 ? 0.03 : 0,
                                                .noise = noise,
                                                .blur = 3 * noise,
                                                .budget = 5000},
                                     exact = {.gap = 0};
    struct tccl_result ring = {0}, plain;
    owned(search) struct tccl_search *ideal =
        tccl_search_new(tccl_model_machine(model), tccl_model_meter(model), NULL);
    if (tccl_search_ring(ideal, all, &exact, &plain, NULL) < 0 || !plain.chain.n_gpus)
        return;
    if (odd_at_all && !pick(&odd, &plain.chain))
        return;
    odd.most = plain.gbps * 0.4;
    if (odd_at_all && known)
        measure_first(&odd);
    owned(search) struct tccl_search *search =
        tccl_search_new(tccl_model_machine(model), meter, NULL);
    CHECK_INT(tccl_search_ring(search, all, &options, &ring, ERR), 0);
    double best = enumerate_all(
        &(struct optimum_kind){.model = model, .closed = true, .rate = truth, .context = &odd});
    struct tccl_set set;
    tccl_chain_set(&ring.chain, &set);
    double own = truth(&odd, &set);
    CHECK(own <= best * (1 + 1e-9) && own > 0);
    sum->machines++;
    sum->best += own >= best * (1 - 1e-9 - (noise > 0 ? options.gap + 6 * noise : 0));
    sum->listed += check_list(&odd) > 0;
    tccl_setmap_clear(&odd.sets);
}

static struct outcomes check_all(double noise, bool odd, bool known)
{
    unsigned long state = check_seed();
    struct outcomes sum = {0};
    for (int i = 0; i < ROUNDS; i++)
        check_one(&state, noise, odd, known, &sum);
    printf("noise %g, %s: %d machines, the best ring on %d, said on %d\n", noise,
           !odd    ? "as the rule says"
           : known ? "against the rule, both measured together before"
                   : "against the rule, not measured together before",
           sum.machines, sum.best, sum.listed);
    CHECK(sum.machines > ROUNDS / 2);
    return sum;
}

/* Known pairs: the best one is never cut off, as it would be by the slow one. */
TEST(known)
{
    struct outcomes sum = check_all(0, true, true);
    CHECK_INT(sum.best, sum.machines);
    sum = check_all(0.03, true, true);
    CHECK(sum.best >= sum.machines * 97 / 100 && sum.listed >= sum.machines * 97 / 100);
}

/* What nobody measured nobody knows: but the search ends, and what it says of its ring is so. */
TEST(unknown)
{
    check_all(0, true, false);
    check_all(0.03, true, false);
}

/* Noise alone is no such thing. */
TEST(noise)
{
    for (double noise = 0; noise < 0.11; noise += 0.05)
        CHECK_INT(check_all(noise, false, false).listed, 0);
}
