/* path-place.c: tccl-path place: which GPUs of a node a job should get. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/numbers.h"
#include "command/path-commands.h"
#include "ring/neighbours.h"
#include "search/place.h"

enum { SHOWN = 10, GAP_PERCENT = 3, BUDGET = 5000 };

struct placing {
    struct source *source;
    int k;
    uint32_t busy, free;
    double noise;
    struct tccl_place *places;
    int n;
    struct tccl_together *together; /* of a profile without a model; NULL: nothing was measured */
    enum tccl_basis basis;          /* the least sure one of all places */
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
        return tccl_fail(err, "--gpus %.40s: how many GPUs the job gets is wanted, 1 to %d (%s)",
                         options->gpus, all, placing->source->path);
    if (options->busy && tccl_numberset_parse(options->busy, all, &placing->busy, &why) != 0)
        return tccl_fail(err, "--busy %.60s: %s (%s has %d GPUs)", options->busy, why.text,
                         placing->source->path, all);
    placing->k = k;
    placing->free = ((UINT32_C(1) << all) - 1) & ~placing->busy;
    placing->noise = options->noise >= 0 ? options->noise : GAP_PERCENT / 100.0;
    int left = __builtin_popcount(placing->free);
    if (k > left)
        return tccl_fail(err, "--gpus %ld: more than are not busy: %d", k, left);
    return 0;
}

static void cleanup_class_(struct tccl_node_class **class)
{
    tccl_node_class_free(*class);
}
#define cleanup_class __attribute__((cleanup(cleanup_class_)))

/* The best ring that the table of some GPUs has beside those that run, to whom it is added; in the
 * busy GPUs' case that is what is best alone. *class: NULL where there is no table or ring. */
static int add_measured(struct placing *placing, uint32_t gpus, struct tccl_beside *running,
                        struct tccl_side *side, struct tccl_node_class **class, double *least,
                        struct tccl_error *err)
{
    struct tccl_table *table = NULL;
    *class = NULL;
    if (__builtin_popcount(gpus) < 2)
        return 0;
    if (source_table(placing->source, gpus, &table, err) != 0)
        return -1;
    if (!table)
        return 0;
    double alone = table->ring.gbps;
    *class = tccl_beside_class(running, table, true, false, err);
    tccl_table_free(table);
    if (!*class)
        return -1;
    const struct tccl_cell *ring = &(*class)->ring;
    *side = (struct tccl_side){.alone = ring->alone};
    if (!ring->chain.n_gpus || tccl_side_add_chain(side, &ring->chain) != 0)
        return 0;
    *least = fmin(isnan(*least) ? 1 : *least, fmin(ring->gbps / alone, ring->share));
    if (running->n > 0 && ring->basis > placing->basis)
        placing->basis = ring->basis;
    running->others[running->n] = side;
    running->alone[running->n++] = ring->alone;
    return 0;
}

/* A set of GPUs, then the rest of those that are free. */
static int rate_measured(struct placing *placing, const struct tccl_beside *busy,
                         struct tccl_place *place, struct tccl_error *err)
{
    struct tccl_beside running = *busy;
    struct tccl_side side, rest_side;
    cleanup_class struct tccl_node_class *class = NULL, *rest = NULL;
    if (add_measured(placing, place->gpus, &running, &side, &class, &place->least, err) != 0)
        return -1;
    if (class && class->ring.chain.n_gpus)
        place->gbps = class->ring.gbps;
    if (class && class->baselines[TCCL_NEWEST].ring_gbps > 0)
        place->nccl = class->baselines[TCCL_NEWEST].ring_gbps;
    if (add_measured(placing, placing->free & ~place->gpus, &running, &rest_side, &rest,
                     &place->least, err) != 0)
        return -1;
    if (rest && rest->ring.chain.n_gpus)
        place->rest = rest->ring.gbps;
    return 0;
}

/* By what was measured together, else by bounds. */
static int rate_all_measured(struct placing *placing, struct tccl_error *err)
{
    struct tccl_beside busy = {.machine = &placing->source->machine, .together = placing->together};
    struct tccl_side side;
    cleanup_class struct tccl_node_class *class = NULL;
    double least = NAN;
    if (add_measured(placing, placing->busy, &busy, &side, &class, &least, err) != 0)
        return -1;
    for (int i = 0; i < placing->n; i++)
        if (rate_measured(placing, &busy, &placing->places[i], err) != 0)
            return -1;
    return 0;
}

/* What the tables of a profile say: each set alone. */
static int rate_alone(struct placing *placing, struct tccl_error *err)
{
    for (int i = 0; i < placing->n; i++) {
        struct tccl_place *place = &placing->places[i];
        struct tccl_table *table;
        if (source_table(placing->source, place->gpus, &table, err) != 0)
            return -1;
        if (table)
            tccl_place_take(place, table);
        tccl_table_free(table);
    }
    return 0;
}

static int rate_by_tables(struct placing *placing, struct tccl_error *err)
{
    placing->places = tccl_places_new(placing->free, placing->k, &placing->n);
    if (!placing->places)
        return tccl_fail(err, "out of memory");
    if (source_together(placing->source, &placing->together, err) != 0 ||
        (placing->together ? rate_all_measured(placing, err) : rate_alone(placing, err)) != 0)
        return -1;
    tccl_places_sort(placing->places, placing->n, placing->noise);
    return 0;
}

/* On a terminal. */
static int show_progress(void *context, const struct tccl_search_progress *progress)
{
    const struct source *source = context;
    fprintf(stderr, "\r%s: %d of %d sets of GPUs\033[K", source->machine.name, progress->pairs_done,
            progress->pairs_total);
    return 0;
}

static int rate_by_model(struct placing *placing, struct tccl_error *err)
{
    struct source *source = placing->source;
    bool shown = isatty(STDERR_FILENO);
    struct tccl_search_options search = {.gap = GAP_PERCENT / 100.0,
                                         .noise = placing->noise,
                                         .budget = BUDGET,
                                         .progress = shown ? show_progress : NULL,
                                         .context = source};
    int rc = tccl_place_rank(source_plain_model(source), source->symmetry, placing->busy,
                             placing->k, &search, &placing->places, &placing->n, err);
    if (shown)
        fputs("\r\033[K", stderr);
    return rc;
}

static int rate(struct placing *placing, struct tccl_error *err)
{
    return source_plain_model(placing->source) ? rate_by_model(placing, err)
                                               : rate_by_tables(placing, err);
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

static void print_place(const struct placing *placing, const struct tccl_place *place)
{
    char gpus[64], rest[64];
    list(place->gpus, gpus);
    list(placing->free & ~place->gpus, rest);
    printf("%-18s", gpus);
    print_value(place->gbps, "%8.2f", 8);
    print_value(place->nccl, "%8.2f", 8);
    print_value(place->least * 100, "%8.0f %%", 10);
    print_value(place->rest, "%8.2f", 8);
    printf("  %s\n", rest);
}

/* What the figures mean here. */
static void print_notes(const struct placing *placing)
{
    char busy[64];
    list(placing->busy, busy);
    bool known = source_plain_model(placing->source) || placing->together;
    if (placing->together)
        puts(
            "What jobs do to each other was measured together; where it was not, each has at least "
            "so much.");
    if (!known)
        puts("From a profile without a model: what jobs do to each other is not known.");
    else if (__builtin_popcount(placing->busy) > 1)
        printf("Beside GPUs %s, taken as one job with its best ring.\n", busy);
    if (placing->k == 1)
        puts("One GPU has no ring on one node: ranked by what the others keep.");
}

static void print_places(const struct placing *placing)
{
    int shown = placing->n < SHOWN ? placing->n : SHOWN;
    print_notes(placing);
    printf("%-18s%8s%8s%10s%8s  %s\n", "GPUs", "GB/s", "NCCL", "share", "rest", "rest's GPUs");
    for (int i = 0; i < shown; i++)
        print_place(placing, &placing->places[i]);
    if (placing->n > shown)
        printf("%d more: see --json\n", placing->n - shown);
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
    for (int i = 0; i < placing->n; i++) {
        const struct tccl_place *place = &placing->places[i];
        json_array_append_new(
            sets,
            json_pack("{s:o, s:i, s:o, s:o, s:o, s:o}", "gpus", numbers(place->gpus), "tier",
                      place->tier, "gbps", known(place->gbps), "baseline_gbps", known(place->nccl),
                      "least_share", known(place->least), "rest_gbps", known(place->rest)));
    }
    bool model = source_plain_model(placing->source) != NULL;
    return json_pack("{s:s, s:s, s:i, s:o, s:f, s:b, s:s, s:o}", "machine",
                     placing->source->machine.name, "source", placing->source->name, "count",
                     placing->k, "busy", numbers(placing->busy), "noise", placing->noise,
                     "neighbours", model || placing->together, "neighbours_by",
                     tccl_basis_name(model ? TCCL_BASIS_MODEL : placing->basis), "places", sets);
}

static int place_and_print(const struct options *options, struct placing *placing,
                           struct tccl_error *err)
{
    if (read_options(options, placing, err) != 0 || rate(placing, err) != 0)
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
    tccl_together_free(placing.together);
    return rc;
}
