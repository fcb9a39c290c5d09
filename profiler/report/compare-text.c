/* compare-text.c: what differs between two profiles, for people and as JSON. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/numbers.h"
#include "chain/chain.h"
#include "report/compare.h"

enum { GPUS_TEXT = 64, RINGS_SHOWN = 20 };

static void print_side(const char *name, const struct tccl_report *report, FILE *out)
{
    char when[32] = "never";
    time_t last = (time_t)report->last;
    struct tm tm;

    if (last > 0 && localtime_r(&last, &tm))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
    fprintf(out, "%s  %s  %s, %s, measured %s, %zu sets, %d tables\n", name,
            tccl_profile_id(report->profile), report->machine->name,
            tccl_profile_source(report->profile), when, report->measured.sets.count,
            report->n_rings);
}

static void print_value(const struct tccl_measurement *value, FILE *out)
{
    if (value->failed)
        fprintf(out, " %9s ", "failed");
    else
        fprintf(out, " %9.2f%c", value->gbps, value->noisy ? '~' : ' ');
}

static void print_sets(const struct tccl_comparison *comparison, long limit, FILE *out)
{
    long shown = comparison->n_sets < limit ? comparison->n_sets : limit;
    char text[TCCL_SET_TEXT];

    fprintf(out, "\nSets     %ld measured in both, %ld only in A, %ld only in B\n",
            comparison->common, comparison->only_a, comparison->only_b);
    if (comparison->common == 0)
        return;
    fprintf(out,
            "B / A    %.3f (median), %.3f to %.3f; %ld differ by more than noise (%.0f%%, or "
            "their spread)\n",
            comparison->median, comparison->least, comparison->most, comparison->n_sets,
            comparison->noise * 100);
    if (shown > 0)
        fprintf(out, "\n%8s %9s  %9s   SET%s\n", "B / A", "A", "B",
                shown < comparison->n_sets ? " (those that differ most)" : "");
    for (long i = 0; i < shown; i++) {
        const struct tccl_changed_set *changed = &comparison->sets[i];
        tccl_set_format(&changed->set, text);
        if (changed->ratio > 0 && isfinite(changed->ratio))
            fprintf(out, "%8.3f", changed->ratio);
        else
            fprintf(out, "%8s", "-");
        print_value(&changed->a, out);
        print_value(&changed->b, out);
        fprintf(out, "  %s\n", text);
    }
}

static void format_chain(const struct tccl_result *result, const struct tccl_machine *machine,
                         char text[static TCCL_CHAIN_TEXT])
{
    strcpy(text, "-");
    if (result->chain.n_gpus > 0)
        tccl_chain_format(&result->chain, machine, text);
}

static void print_ring(const struct tccl_comparison *comparison,
                       const struct tccl_changed_ring *ring, FILE *out)
{
    char gpus[GPUS_TEXT], chain[TCCL_CHAIN_TEXT];

    tccl_numberset_format(ring->gpus, gpus, sizeof(gpus));
    format_chain(&ring->a, comparison->a->machine, chain);
    fprintf(out, "%-9s A %9.2f  %s\n", gpus, ring->a.gbps, chain);
    format_chain(&ring->b, comparison->b->machine, chain);
    fprintf(out, "%-9s B %9.2f  %s\n", ring->faster_or_slower ? "" : "as fast", ring->b.gbps,
            chain);
}

static void print_only(const char *name, const uint32_t *gpus, int count, FILE *out)
{
    char text[GPUS_TEXT];

    if (count == 0)
        return;
    fprintf(out, "Only in %s:", name);
    for (int i = 0; i < count; i++) {
        tccl_numberset_format(gpus[i], text, sizeof(text));
        fprintf(out, " %s", text);
    }
    fputc('\n', out);
}

static void print_rings(const struct tccl_comparison *comparison, FILE *out)
{
    int shown = comparison->n_rings < RINGS_SHOWN ? comparison->n_rings : RINGS_SHOWN;

    fprintf(out, "\nGPU sets %d with chains in both; %d best rings or chains are others%s\n",
            comparison->n_common_rings, comparison->n_rings,
            shown < comparison->n_rings ? ", the first:" : "");
    for (int i = 0; i < shown; i++)
        print_ring(comparison, &comparison->rings[i], out);
    print_only("A", comparison->gpus_only_a, comparison->n_only_a, out);
    print_only("B", comparison->gpus_only_b, comparison->n_only_b, out);
}

void tccl_compare_print(const struct tccl_comparison *comparison, long limit, FILE *out)
{
    print_side("A", comparison->a, out);
    print_side("B", comparison->b, out);
    fprintf(out, "\nMachine  %s\n",
            comparison->same_machine ? "the same"
                                     : "not the same: devices with the same number are compared");
    for (int i = 0; i < comparison->n_notes; i++)
        fprintf(out, "         %s\n", comparison->notes[i]);
    print_sets(comparison, limit, out);
    print_rings(comparison, out);
    fprintf(out, "\n%s\n",
            tccl_compare_differs(comparison) ? "Different" : "The same, within noise");
}

/* JSON. */

static json_t *value_to_json(const struct tccl_measurement *value)
{
    return value->failed ? json_null() : json_real(value->gbps);
}

static json_t *sets_to_json(const struct tccl_comparison *comparison)
{
    json_t *list = json_array();
    char text[TCCL_SET_TEXT];

    for (long i = 0; i < comparison->n_sets; i++) {
        const struct tccl_changed_set *changed = &comparison->sets[i];
        bool finite = changed->ratio > 0 && isfinite(changed->ratio);
        tccl_set_format(&changed->set, text);
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:f, s:f, s:o}", "set", text, "a_gbps",
                            value_to_json(&changed->a), "b_gbps", value_to_json(&changed->b),
                            "a_spread", changed->a.spread, "b_spread", changed->b.spread, "ratio",
                            finite ? json_real(changed->ratio) : json_null()));
    }
    return list;
}

static json_t *rings_to_json(const struct tccl_comparison *comparison)
{
    json_t *list = json_array();
    char gpus[GPUS_TEXT], a[TCCL_CHAIN_TEXT], b[TCCL_CHAIN_TEXT];

    for (int i = 0; i < comparison->n_rings; i++) {
        const struct tccl_changed_ring *ring = &comparison->rings[i];
        tccl_numberset_format(ring->gpus, gpus, sizeof(gpus));
        format_chain(&ring->a, comparison->a->machine, a);
        format_chain(&ring->b, comparison->b->machine, b);
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:s, s:s, s:b}", "gpus", gpus,
                                              "a_gbps", ring->a.gbps, "b_gbps", ring->b.gbps, "a",
                                              a, "b", b, "differs", ring->faster_or_slower));
    }
    return list;
}

static json_t *masks_to_json(const uint32_t *gpus, int count)
{
    json_t *list = json_array();
    char text[GPUS_TEXT];

    for (int i = 0; i < count; i++) {
        tccl_numberset_format(gpus[i], text, sizeof(text));
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *side_to_json(const struct tccl_report *report)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i}", "id", tccl_profile_id(report->profile),
                     "name", report->machine->name, "source", tccl_profile_source(report->profile),
                     "conditions", tccl_profile_conditions(report->profile), "last_measured",
                     (json_int_t)report->last, "sets", (json_int_t)report->measured.sets.count,
                     "tables", report->n_rings);
}

json_t *tccl_compare_to_json(const struct tccl_comparison *comparison)
{
    json_t *notes = json_array();

    for (int i = 0; i < comparison->n_notes; i++)
        json_array_append_new(notes, json_string(comparison->notes[i]));
    json_t *sets = json_pack(
        "{s:I, s:I, s:I, s:f, s:f, s:f, s:o}", "common", (json_int_t)comparison->common, "only_a",
        (json_int_t)comparison->only_a, "only_b", (json_int_t)comparison->only_b, "least_ratio",
        comparison->least, "median_ratio", comparison->median, "most_ratio", comparison->most,
        "changed", sets_to_json(comparison));
    return json_pack("{s:b, s:b, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "differs",
                     tccl_compare_differs(comparison), "same_machine", comparison->same_machine,
                     "noise", comparison->noise, "a", side_to_json(comparison->a), "b",
                     side_to_json(comparison->b), "notes", notes, "sets", sets, "rings",
                     rings_to_json(comparison), "gpus_only_a",
                     masks_to_json(comparison->gpus_only_a, comparison->n_only_a), "gpus_only_b",
                     masks_to_json(comparison->gpus_only_b, comparison->n_only_b));
}
