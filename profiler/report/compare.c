/* compare.c: two profiles side by side. */
#include "report/compare.h"
#include "measure/backends/backend.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "measure/backends/backend.h"

static const double least_noise = 0.03;

__attribute__((format(printf, 2, 3))) static void note(struct tccl_comparison *comparison,
                                                       const char *fmt, ...)
{
    va_list args;

    if (comparison->n_notes == TCCL_NOTES)
        return;
    va_start(args, fmt);
    vsnprintf(comparison->notes[comparison->n_notes++], TCCL_NOTE, fmt, args);
    va_end(args);
}

/* Notes a text that differs. */
static void note_text(struct tccl_comparison *comparison, const char *what, const char *a,
                      const char *b)
{
    if (strcmp(a, b) != 0)
        note(comparison, "%s: %s / %s", what, *a ? a : "none", *b ? b : "none");
}

static void note_count(struct tccl_comparison *comparison, const char *what, int a, int b)
{
    if (a != b)
        note(comparison, "%s: %d / %d", what, a, b);
}

enum { PLACE = 2 * TCCL_NAME + 2 * TCCL_BUSID + 64 };

static const char *parent_name(const struct tccl_machine *machine, int parent)
{
    return parent >= 0 ? machine->switches[parent].name : "the root complex";
}

static void describe_gpu(const struct tccl_machine *machine, int i, char text[static PLACE])
{
    const struct tccl_gpu *gpu = &machine->gpus[i];

    snprintf(text, PLACE, "%s at %s, memory %d, below %s", gpu->model, gpu->busid, gpu->numa,
             parent_name(machine, gpu->parent));
}

static void describe_nic(const struct tccl_machine *machine, int i, char text[static PLACE])
{
    const struct tccl_nic *nic = &machine->nics[i];

    snprintf(text, PLACE, "%s at %s, %.4g GB/s, memory %d, below %s", nic->name, nic->busid,
             nic->gbps, nic->numa, parent_name(machine, nic->parent));
}

/* Compares the devices of one kind, and notes those that only one machine has. */
static void note_devices(struct tccl_comparison *comparison, const char *kind, int n_a, int n_b,
                         void (*describe)(const struct tccl_machine *machine, int i, char *text))
{
    char what[32], a[PLACE], b[PLACE];

    for (int i = 0; i < n_a || i < n_b; i++) {
        a[0] = b[0] = '\0';
        if (i < n_a)
            describe(comparison->a->machine, i, a);
        if (i < n_b)
            describe(comparison->b->machine, i, b);
        snprintf(what, sizeof(what), "%s %d", kind, i);
        note_text(comparison, what, a, b);
    }
}

static void note_meetings(struct tccl_comparison *comparison)
{
    const struct tccl_machine *a = comparison->a->machine, *b = comparison->b->machine;
    int p2p = 0, direct = 0;

    for (int i = 0; i < TCCL_MAX_GPUS; i++)
        for (int j = 0; j < TCCL_MAX_GPUS; j++) {
            p2p += i < j && a->p2p[i][j] != b->p2p[i][j];
            direct += a->gpudirect[i][j] != b->gpudirect[i][j];
        }
    if (p2p > 0)
        note(comparison, "%d pair%s of GPUs can meet directly in one of them only", p2p,
             p2p == 1 ? "" : "s");
    if (direct > 0)
        note(comparison, "%d pair%s of NIC and GPU can meet directly in one of them only", direct,
             direct == 1 ? "" : "s");
}

static void compare_machines(struct tccl_comparison *comparison)
{
    const struct tccl_machine *a = comparison->a->machine, *b = comparison->b->machine;
    char id_a[TCCL_HASH_HEX], id_b[TCCL_HASH_HEX];

    tccl_machine_id(a, id_a);
    tccl_machine_id(b, id_b);
    comparison->same_machine = strcmp(id_a, id_b) == 0;
    comparison->noise =
        fmax(least_noise, fmax(tccl_backend_noise_of(tccl_profile_source(comparison->a->profile)),
                               tccl_backend_noise_of(tccl_profile_source(comparison->b->profile))));
    note_text(comparison, "source", tccl_profile_source(comparison->a->profile),
              tccl_profile_source(comparison->b->profile));
    note_text(comparison, "conditions", tccl_profile_conditions(comparison->a->profile),
              tccl_profile_conditions(comparison->b->profile));
    if (comparison->same_machine)
        return;
    note_count(comparison, "memories", a->n_memories, b->n_memories);
    note_count(comparison, "PCI switches", a->n_switches, b->n_switches);
    note_devices(comparison, "GPU", a->n_gpus, b->n_gpus, describe_gpu);
    note_devices(comparison, "NIC", a->n_nics, b->n_nics, describe_nic);
    note_meetings(comparison);
}

/* The ratio, and whether it is more than noise. */
static bool differs(const struct tccl_comparison *comparison, const struct tccl_measurement *a,
                    const struct tccl_measurement *b, double *ratio)
{
    double noise = fmax(comparison->noise, fmax(a->spread, b->spread));

    *ratio = 1;
    if (a->failed && b->failed)
        return false;
    if (a->gbps == b->gbps && a->failed == b->failed)
        return false;
    *ratio = a->gbps > 0 ? b->gbps / a->gbps : INFINITY;
    return *ratio > 1 + noise || *ratio < 1 / (1 + noise);
}

static double distance(double ratio)
{
    return ratio > 0 ? fabs(log(ratio)) : INFINITY;
}

static int farthest_first(const void *a, const void *b)
{
    const struct tccl_changed_set *x = a, *y = b;
    double dx = distance(x->ratio), dy = distance(y->ratio);

    if (dx != dy)
        return dx > dy ? -1 : 1;
    if (x->set.count != y->set.count)
        return x->set.count - y->set.count;
    return memcmp(x->set.transfers, y->set.transfers, x->set.count * sizeof(*x->set.transfers));
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void summarize(struct tccl_comparison *comparison, double *ratios, size_t count)
{
    qsort(ratios, count, sizeof(*ratios), compare_numbers);
    comparison->least = comparison->median = comparison->most = 1;
    if (count == 0)
        return;
    comparison->least = ratios[0];
    comparison->median = (ratios[(count - 1) / 2] + ratios[count / 2]) / 2;
    comparison->most = ratios[count - 1];
}

static int compare_sets(struct tccl_comparison *comparison, struct tccl_error *err)
{
    const struct tccl_measured *a = &comparison->a->measured, *b = &comparison->b->measured;
    cleanup_free double *ratios = calloc(a->sets.count + 1, sizeof(*ratios));
    size_t n_ratios = 0;

    comparison->sets = calloc(a->sets.count + 1, sizeof(*comparison->sets));
    if (!ratios || !comparison->sets)
        return tccl_fail(err, "out of memory");
    for (size_t i = 0; i < a->sets.count; i++) {
        const struct tccl_set *set = &a->sets.entries[i].set;
        const struct tccl_setmap_entry *other = tccl_setmap_find(&b->sets, set);
        if (!other)
            continue;
        struct tccl_changed_set changed = {
            .set = *set, .a = a->sets.entries[i].best, .b = other->best};
        comparison->common++;
        if (differs(comparison, &changed.a, &changed.b, &changed.ratio))
            comparison->sets[comparison->n_sets++] = changed;
        if (!changed.a.failed && !changed.b.failed && changed.a.gbps > 0)
            ratios[n_ratios++] = changed.ratio;
    }
    comparison->only_a = (long)a->sets.count - comparison->common;
    comparison->only_b = (long)b->sets.count - comparison->common;
    summarize(comparison, ratios, n_ratios);
    qsort(comparison->sets, (size_t)comparison->n_sets, sizeof(*comparison->sets), farthest_first);
    return 0;
}

static bool same_chain(const struct tccl_chain *a, const struct tccl_chain *b)
{
    struct tccl_set x, y;

    if (a->n_gpus == 0 || b->n_gpus == 0)
        return a->n_gpus == b->n_gpus;
    tccl_chain_set(a, &x);
    tccl_chain_set(b, &y);
    return a->n_gpus == b->n_gpus && a->closed == b->closed && tccl_set_equal(&x, &y);
}

static void compare_results(struct tccl_comparison *comparison, uint32_t gpus,
                            const struct tccl_result *a, const struct tccl_result *b)
{
    struct tccl_measurement x = {.gbps = a->gbps}, y = {.gbps = b->gbps};
    double ratio;
    bool changed = differs(comparison, &x, &y, &ratio);

    if (changed || !same_chain(&a->chain, &b->chain))
        comparison->rings[comparison->n_rings++] =
            (struct tccl_changed_ring){.gpus = gpus, .a = *a, .b = *b, .faster_or_slower = changed};
}

static const struct tccl_found_rings *find_rings(const struct tccl_report *report, uint32_t gpus)
{
    for (int i = 0; i < report->n_rings; i++)
        if (report->rings[i].gpus == gpus)
            return &report->rings[i];
    return NULL;
}

/* The GPU sets of one that the other has not. */
static int only_in(const struct tccl_report *one, const struct tccl_report *other, uint32_t *gpus)
{
    int count = 0;

    for (int i = 0; i < one->n_rings; i++)
        if (!find_rings(other, one->rings[i].gpus))
            gpus[count++] = one->rings[i].gpus;
    return count;
}

static int compare_rings(struct tccl_comparison *comparison, struct tccl_error *err)
{
    const struct tccl_report *a = comparison->a, *b = comparison->b;

    comparison->rings = calloc(2 * (size_t)a->n_rings + 1, sizeof(*comparison->rings));
    comparison->gpus_only_a = calloc((size_t)a->n_rings + 1, sizeof(uint32_t));
    comparison->gpus_only_b = calloc((size_t)b->n_rings + 1, sizeof(uint32_t));
    if (!comparison->rings || !comparison->gpus_only_a || !comparison->gpus_only_b)
        return tccl_fail(err, "out of memory");
    comparison->n_only_a = only_in(a, b, comparison->gpus_only_a);
    comparison->n_only_b = only_in(b, a, comparison->gpus_only_b);
    for (int i = 0; i < a->n_rings; i++) {
        const struct tccl_found_rings *mine = &a->rings[i];
        const struct tccl_found_rings *other = find_rings(b, mine->gpus);
        if (!other)
            continue;
        comparison->n_common_rings++;
        compare_results(comparison, mine->gpus, &mine->ring, &other->ring);
        compare_results(comparison, mine->gpus, &mine->chain, &other->chain);
    }
    return 0;
}

int tccl_compare(const struct tccl_report *a, const struct tccl_report *b,
                 struct tccl_comparison *comparison, struct tccl_error *err)
{
    *comparison = (struct tccl_comparison){.a = a, .b = b};
    compare_machines(comparison);
    return compare_sets(comparison, err) != 0 ? -1 : compare_rings(comparison, err);
}

void tccl_compare_free(struct tccl_comparison *comparison)
{
    free(comparison->sets);
    free(comparison->rings);
    free(comparison->gpus_only_a);
    free(comparison->gpus_only_b);
}

bool tccl_compare_differs(const struct tccl_comparison *comparison)
{
    if (!comparison->same_machine || comparison->n_notes > 0 || comparison->n_sets > 0 ||
        comparison->n_only_a > 0 || comparison->n_only_b > 0)
        return true;
    for (int i = 0; i < comparison->n_rings; i++)
        if (comparison->rings[i].faster_or_slower)
            return true;
    return false;
}
