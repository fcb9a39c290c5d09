/* gres-links.c: a profile's bandwidths as numbers for Links= of gres.conf. */
#include "report/gres-links.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/place.h"

static const double NOISE = 0.03;

bool tccl_links_serve(int year, int month)
{
    return year < 24 || (year == 24 && month < 5);
}

/* All pairs by what their tables say. */
static int rank_by_tables(struct tccl_profile *profile, uint32_t all, struct tccl_place **pairs,
                          int *n, struct tccl_error *err)
{
    struct tccl_error why = {""};
    *pairs = tccl_places_new(all, 2, n);
    if (!*pairs)
        return tccl_fail(err, "out of memory");
    for (int i = 0; i < *n; i++) {
        struct tccl_place *pair = &(*pairs)[i];
        const struct tccl_table *table = tccl_profile_table(profile, pair->gpus, &why);
        if (!table || !table->ring.chain.n_gpus) {
            int first = __builtin_ctz(pair->gpus), second = 31 - __builtin_clz(pair->gpus);
            tccl_fail(err, "GPUs %d and %d were not measured together: tccl-profile run", first,
                      second);
            return 1;
        }
        tccl_place_take(pair, table);
    }
    tccl_places_sort(*pairs, *n, NOISE);
    return 0;
}

static int rank_by_model(const struct tccl_model *model, struct tccl_place **pairs, int *n,
                         struct tccl_error *err)
{
    const struct tccl_search_options options = {.gap = NOISE, .noise = NOISE, .budget = 5000};
    struct tccl_symmetry *symmetry = tccl_symmetry_of_model(model);
    int rc = tccl_place_rank(model, symmetry, 0, 2, &options, pairs, n, err);
    tccl_symmetry_free(symmetry);
    return rc;
}

/* The best tier has the most; where there are more tiers than numbers, some share one. */
static int number_of(int tier, int tiers)
{
    if (tiers <= TCCL_LINKS_MOST + 1)
        return TCCL_LINKS_MOST - tier;
    return TCCL_LINKS_MOST - tier * (TCCL_LINKS_MOST + 1) / tiers;
}

int tccl_links_from_profile(struct tccl_profile *profile,
                            int links[static TCCL_MAX_GPUS][TCCL_MAX_GPUS], struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_profile_machine(profile);
    cleanup_free struct tccl_place *pairs = NULL;
    struct tccl_error why = {""};
    int n = 0;
    const struct tccl_model *model = tccl_profile_model(profile, &why);
    if (!model && why.text[0])
        return tccl_fail(err, "%s", why.text);
    int rc = model ? rank_by_model(model, &pairs, &n, err)
                   : rank_by_tables(profile, (1u << machine->n_gpus) - 1, &pairs, &n, err);
    if (rc != 0)
        return rc;
    if (n == 0 || pairs[n - 1].tier == 0) {
        tccl_fail(err, "all pairs of GPUs are equally good");
        return 1;
    }
    for (int i = 0; i < machine->n_gpus; i++)
        links[i][i] = -1;
    for (int i = 0; i < n; i++) {
        int first = __builtin_ctz(pairs[i].gpus), second = 31 - __builtin_clz(pairs[i].gpus);
        links[first][second] = number_of(pairs[i].tier, pairs[n - 1].tier + 1);
        links[second][first] = links[first][second];
    }
    return 0;
}

/* Has it a link, and not only zeros? */
static bool says_something(const char *text)
{
    for (char *end; *text; text = *end == ',' ? end + 1 : end) {
        if (strtol(text, &end, 10) > 0)
            return true;
        if (end == text)
            break;
    }
    return false;
}

static bool is_as(const int *links, const int *gpus, int count, const char *text)
{
    for (int i = 0; i < count; i++) {
        char *end;
        if (strtol(text, &end, 10) != links[gpus[i]] || end == text)
            return false;
        text = *end == ',' ? end + 1 : end;
    }
    return !*text;
}

int tccl_links_differ(const int links[TCCL_MAX_GPUS][TCCL_MAX_GPUS], const int *gpus, int count,
                      const char *const *texts)
{
    for (int i = 0; i < count; i++)
        if (says_something(texts[i]) && !is_as(links[gpus[i]], gpus, count, texts[i]))
            return i;
    return -1;
}
