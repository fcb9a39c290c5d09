/* path-place.c: tccl-path place: which GPUs of a node a job should get. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "command/path.h"
#include "search/place.h"

enum { SHOWN = 10, NOISE_PERCENT = 3 };

struct placing {
    struct source *source;
    int k;
    uint32_t busy, free;
    double noise;
    struct tccl_place *places;
    int n;
    const struct tccl_together
        *together;            /* of a profile without a model; NULL: nothing was measured */
    struct tccl_table *table; /* the last one that was asked for */
};

static int read_options(const struct options *options, struct placing *placing,
                        struct tccl_error *err)
{
    struct tccl_error why = {""};
    int all = placing->source->machine.n_gpus;
    char *end;
    errno = 0;
    long k = strtol(options->gpus, &end, 10);
    if (errno || end == options->gpus || *end || k < 1 || k > all)
        return tccl_fail(err, "--gpus %.40s: give how many GPUs the job gets, 1 to %d (%s)",
                         options->gpus, all, placing->source->path);
    if (options->busy && tccl_numberset_parse(options->busy, all, &placing->busy, &why) != 0)
        return tccl_fail(err, "--busy %.60s: %s (%s has %d GPUs)", options->busy, why.text,
                         placing->source->path, all);
    placing->k = k;
    placing->free = ((UINT32_C(1) << all) - 1) & ~placing->busy;
    placing->noise = options->noise >= 0 ? options->noise : NOISE_PERCENT / 100.0;
    int left = __builtin_popcount(placing->free);
    if (k > left)
        return tccl_fail(err, "--gpus %ld: GPUs that are not busy: %d", k, left);
    return 0;
}

/* The table of a profile. */
static int find_table(void *context, uint32_t gpus, const struct tccl_table **table,
                      struct tccl_error *err)
{
    struct placing *placing = context;
    tccl_table_free(placing->table);
    int status = source_table(placing->source, gpus, &placing->table, err);
    *table = placing->table;
    return status;
}

/* On a terminal. */
static void show_progress(void *context, int done, int total)
{
    const struct placing *placing = context;
    fprintf(stderr, "\r%s: %d of %d sets of GPUs\033[K", placing->source->machine.name, done,
            total);
}

/* ---- printing ---- */

static void list(uint32_t gpus, char text[static 64])
{
    if (tccl_numberset_format(gpus, text, 64) <= 0)
        snprintf(text, 64, "-");
}

static void print_value(double value, const char *format, int width)
{
    if (isnan(value))
        printf("%*s", width, "-");
    else
        printf(format, value);
}

static void print_places(const struct placing *placing)
{
    int shown = placing->n < SHOWN ? placing->n : SHOWN;
    /* What the figures mean here. */
    char busy[64];
    list(placing->busy, busy);
    bool known = placing->source->model || placing->together;
    if (placing->together)
        puts("What jobs do to each other was measured together, or is foretold within 10 % by what "
             "was; else each has at least so much.");
    if (!known)
        puts("From a profile without a model: what jobs do to each other is not known.");
    else if (__builtin_popcount(placing->busy) > 1)
        printf("Beside GPUs %s, taken as one job.\n", busy);
    if (placing->k == 1)
        puts("One GPU has no ring on one node: ranked by what the others keep.");
    printf("%-18s%8s%8s%10s%8s  %s\n", "GPUs", "GB/s", "NCCL", "share", "rest", "rest's GPUs");
    for (int i = 0; i < shown; i++) {
        const struct tccl_place *place = &placing->places[i];
        static const char *const by[TCCL_BASES] = {[TCCL_BASIS_MODEL] = "",
                                                   [TCCL_BASIS_MEASURED] = "  measured",
                                                   [TCCL_BASIS_FORETOLD] = "  foretold",
                                                   [TCCL_BASIS_BOUNDS] = "  at least"};
        char gpus[64], rest[64];
        list(place->gpus, gpus);
        list(placing->free & ~place->gpus, rest);
        printf("%-18s", gpus);
        print_value(place->gbps, "%8.2f", 8);
        print_value(place->nccl, "%8.2f", 8);
        print_value(place->least * 100, "%8.0f %%", 10);
        print_value(place->rest, "%8.2f", 8);
        printf("  %s%s%s\n", rest,
               placing->together && place->basis != TCCL_BASIS_NONE ? by[place->basis] : "",
               place->collapses ? "  NCCL's own collapses" : "");
    }
    if (placing->n > shown)
        printf("%d more: see --json\n", placing->n - shown);
    puts("share: what the job that loses most keeps; rest: a job on the free GPUs left");
}

static json_t *known(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *numbers(uint32_t gpus)
{
    json_t *list = json_array();
    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        if (gpus >> i & 1)
            json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *places_to_json(const struct placing *placing)
{
    json_t *sets = json_array();
    bool model = placing->source->model != NULL;
    for (int i = 0; i < placing->n; i++) {
        const struct tccl_place *place = &placing->places[i];
        json_array_append_new(
            sets, json_pack("{s:o, s:i, s:o, s:o, s:o, s:b, s:o, s:o, s:s}", "gpus",
                            numbers(place->gpus), "tier", place->tier, "gbps", known(place->gbps),
                            "alone_gbps", known(place->alone), "baseline_gbps", known(place->nccl),
                            "collapses", place->collapses, "least_share", known(place->least),
                            "rest_gbps", known(place->rest), "by",
                            tccl_basis_name(model ? TCCL_BASIS_MODEL : place->basis)));
    }
    enum tccl_basis basis = model ? TCCL_BASIS_MODEL : TCCL_BASIS_NONE;
    for (int i = 0; i < placing->n; i++)
        basis = placing->places[i].basis > basis ? placing->places[i].basis : basis;
    return json_pack("{s:s, s:s, s:i, s:o, s:f, s:b, s:s, s:o}", "machine",
                     placing->source->machine.name, "source", placing->source->name, "count",
                     placing->k, "busy", numbers(placing->busy), "noise", placing->noise,
                     "neighbours", model || placing->together, "neighbours_by",
                     tccl_basis_name(basis), "places", sets);
}

static int place_and_print(const struct options *options, struct placing *placing,
                           struct tccl_error *err)
{
    if (read_options(options, placing, err) != 0)
        return -1;
    struct source *source = placing->source;
    const struct tccl_model *model = source->model;
    if (!model && source_together(source, &placing->together, err) != 0)
        return -1;
    const struct tccl_place_source known = {.machine = &source->machine,
                                            .table = find_table,
                                            .model = model,
                                            .symmetry = source->symmetry,
                                            .together = placing->together,
                                            .progress =
                                                isatty(STDERR_FILENO) ? show_progress : NULL,
                                            .context = placing};
    int rc = tccl_place_rank(&known, placing->busy, placing->k, placing->noise, &placing->places,
                             &placing->n, err);
    if (known.progress)
        fputs("\r\033[K", stderr);
    if (rc != 0)
        return -1;
    if (options->json) {
        cleanup_json json_t *json = places_to_json(placing);
        return print_json(json, err);
    }
    print_places(placing);
    return 0;
}

int command_place(const struct options *options, struct tccl_error *err)
{
    const char *path = options->model ? options->model : options->profile;
    struct placing placing = {0};
    if (source_check(path, options->profile != NULL, err) < 0)
        return -1;
    placing.source = source_open(path, err);
    int rc = placing.source ? place_and_print(options, &placing, err) : -1;
    source_free(placing.source);
    free(placing.places);
    tccl_table_free(placing.table);
    return rc;
}
