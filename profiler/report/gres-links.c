/* gres-links.c: a profile's bandwidths as numbers for Links= of gres.conf. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "search/place.h"

static const double NOISE = 0.03;

bool tccl_links_serve(int year, int month)
{
    return year < 24 || (year == 24 && month < 5);
}

struct pairs {
    struct tccl_profile *profile;
    void (*progress)(void *context, int done, int total); /* may be NULL */
    void *context;
};

static int find_table(void *context, uint32_t gpus, const struct tccl_table **table,
                      struct tccl_error *err UNUSED)
{
    const struct pairs *known = context;
    *table = tccl_profile_table(known->profile, gpus, NULL);
    return 0;
}

static void tell(void *context, int done, int total)
{
    const struct pairs *known = context;
    if (known->progress)
        known->progress(known->context, done, total);
}

/* All pairs, by their tables. */
static int rank(struct pairs *source, const struct tccl_model *model, struct tccl_place **pairs,
                int *n, struct tccl_error *err)
{
    struct tccl_symmetry *symmetry = model ? tccl_symmetry_of_model(model) : NULL;
    const struct tccl_place_source known = {.machine = tccl_profile_machine(source->profile),
                                            .table = find_table,
                                            .model = model,
                                            .symmetry = symmetry,
                                            .progress = tell,
                                            .context = source};
    int rc = tccl_place_rank(&known, 0, 2, NOISE, pairs, n, err);
    tccl_symmetry_free(symmetry);
    for (int i = 0; i < *n && rc == 0; i++)
        if (isnan((*pairs)[i].gbps)) {
            uint32_t gpus = (*pairs)[i].gpus;
            tccl_fail(err, "GPUs %d and %d were not measured together: tccl-profile run",
                      __builtin_ctz(gpus), 31 - __builtin_clz(gpus));
            rc = 1;
        }
    return rc;
}

int tccl_links_from_profile(struct tccl_profile *profile,
                            void (*progress)(void *context, int done, int total), void *context,
                            int links[static TCCL_MAX_GPUS][TCCL_MAX_GPUS], struct tccl_error *err)
{
    const struct tccl_machine *machine = tccl_profile_machine(profile);
    cleanup_free struct tccl_place *pairs = NULL;
    struct pairs known = {profile, progress, context};
    struct tccl_error why = {""};
    int n = 0;
    const struct tccl_model *model = tccl_profile_model(profile, &why);
    if (!model && why.text[0])
        return tccl_fail(err, "%s", why.text);
    int rc = rank(&known, model, &pairs, &n, err);
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
        /* The best tier has the most; where there are more tiers than numbers, some share one. */
        int tier = pairs[i].tier, tiers = pairs[n - 1].tier + 1, most = TCCL_LINKS_MOST;
        links[first][second] = most - (tiers <= most + 1 ? tier : tier * (most + 1) / tiers);
        links[second][first] = links[first][second];
    }
    return 0;
}

/* Has one of them a link, and not only zeros? */
bool tccl_links_said(const char *const *texts, int count)
{
    for (int i = 0; i < count; i++)
        for (const char *text = texts[i], *end = text; *text; text = end + (*end == ',')) {
            if (strtol(text, (char **)&end, 10) > 0)
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
    for (int i = 0; i < count && tccl_links_said(texts, count); i++)
        if (!is_as(links[gpus[i]], gpus, count, texts[i]))
            return i;
    return -1;
}
