/* report-text.c: a report for a terminal. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/numbers.h"
#include "chain/chain.h"
#include "report/report.h"
#include "search/setlog.h"

enum { GPUS_TEXT = 64, RINGS_SHOWN = 16, WRAP = 70 };

static void print_date(const char *what, long long when, FILE *out)
{
    char text[32] = "unknown";
    time_t seconds = (time_t)when;
    struct tm tm;

    if (when > 0 && localtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
    fprintf(out, "%-11s%s\n", what, text);
}

static void print_marks(const struct tccl_quality *quality, FILE *out)
{
    fprintf(out, "%-11s%ld sets were measured with", "Marked", quality->marked);
    for (int i = 0; i < TCCL_MARKS; i++)
        if (quality->marks & 1u << i)
            fprintf(out, " %s", tccl_mark_name(1u << i));
    fputs(": no chains are served from them\n", out);
}

static void print_origin(const struct tccl_report *report, FILE *out)
{
    const struct tccl_quality *quality = &report->quality;
    const char *conditions = tccl_profile_conditions(report->profile);

    fprintf(out, "%-11s%s\n%-11s%s\n%-11s%s%s%s\n", "Machine", report->machine->name, "Id",
            tccl_profile_id(report->profile), "Source", tccl_profile_source(report->profile),
            *conditions ? ": " : "", conditions);
    print_date("Measured", report->last, out);
    fprintf(out, "%-11s%ld, %ld noisy, %ld failed; spread %.1f%% (median), %.1f%% (worst)\n",
            "Sets", quality->sets, quality->noisy, quality->failed, quality->median_spread * 100,
            quality->worst_spread * 100);
    if (quality->timed > 0)
        fprintf(out, "%-11s%.1f us skew (median), %.1f us (worst); overlap at least %.1f%%\n",
                "Starts", quality->median_skew, quality->worst_skew, quality->least_overlap * 100);
    if (quality->marked > 0)
        print_marks(quality, out);
}

static void print_matrices(const struct tccl_report *report, bool colours, FILE *out)
{
    int from_model = 0;

    for (int i = 0; i < TCCL_MATRICES; i++)
        from_model += report->matrices[i].from_model;
    fputs("\nBandwidth, GB/s. - not possible, ? not measured, ! failed, ~ noisy", out);
    fprintf(out, "%s\n", from_model > 0 ? ", * from the model" : "");
    for (int i = 0; i < TCCL_MATRICES; i++) {
        const struct tccl_matrix *matrix = &report->matrices[i];
        if (matrix->row_kind == TCCL_NIC && report->machine->n_nics == 0)
            continue;
        fputc('\n', out);
        tccl_matrix_print(matrix, report->machine, colours ? report->fastest : 0, out);
    }
}

/* Breaks the text between words, which has only ASCII characters. */
static void print_wrapped(const char *text, FILE *out)
{
    while (strlen(text) > WRAP) {
        size_t length = WRAP;
        while (length > WRAP / 2 && text[length] != ' ')
            length--;
        fprintf(out, "%.*s\n%30s", (int)length, text, "");
        text += length + (text[length] == ' ');
    }
    fprintf(out, "%s\n", text);
}

static void print_congested(const struct tccl_congested *one, FILE *out)
{
    char set[TCCL_SET_TEXT], text[TCCL_SET_TEXT + 80];

    tccl_set_format(&one->set, set);
    int length = snprintf(text, sizeof(text), "%s%s", set,
                          one->from == TCCL_ANSWER_MODEL ? "  (from the model)" : "");
    if (one->alike > 0)
        length +=
            snprintf(text + length, sizeof(text) - (size_t)length, "  (%ld like it)", one->alike);
    if (one->hides > 0)
        snprintf(text + length, sizeof(text) - (size_t)length, "  (%ld larger)", one->hides);
    fprintf(out, "%7.0f%%%c %8.2f %2s%6.2f  ", one->ratio * 100, one->noisy ? '~' : ' ', one->gbps,
            one->at_least ? ">=" : "", one->alone);
    print_wrapped(text, out);
}

/* How many are left when those like one before them are not counted. */
static long count_forms(const struct tccl_report *report)
{
    long forms = 0;

    for (long i = 0; i < report->n_congested; i++)
        forms += !report->congested[i].repeats;
    return forms;
}

static void print_congestion(const struct tccl_report *report, long limit, FILE *out)
{
    long forms = count_forms(report), shown = limit > 0 && limit < forms ? limit : forms;

    fprintf(out, "\nCongested sets, below %.0f%% of the slowest member alone",
            report->threshold * 100);
    if (report->n_congested == 0)
        fputs(": none\n", out);
    else
        fprintf(out, ": %s%ld, of %ld kinds%s\n",
                report->n_congested == TCCL_MAX_CONGESTED ? "at least " : "", report->n_congested,
                forms, shown < forms ? "; the worst" : "");
    if (shown > 0)
        fputs("A set is as fast as its slowest member. Not listed: those like it, and larger sets "
              "that hold\none and are as slow. g0>m1: GPU 0 writes to memory 1, g0<m1: it reads "
              "from it.\n\nOF ALONE      GB/S    ALONE  SET\n",
              out);
    for (long i = 0; shown > 0; i++)
        if (!report->congested[i].repeats) {
            print_congested(&report->congested[i], out);
            shown--;
        }
}

/* Where several rings at once are faster than one: what they reach, and each on a line. */
static void print_set(const struct tccl_class_set *set, double single,
                      const struct tccl_baseline *baseline, const struct tccl_machine *machine,
                      FILE *out)
{
    char chain[TCCL_CHAIN_TEXT];

    if (set->gbps <= single)
        return;
    fprintf(out, "%-9s %8.2f ", "", set->gbps);
    if (baseline->gbps > 0)
        fprintf(out, "%8.2f %5.2fx", baseline->gbps, set->gbps / baseline->gbps);
    else
        fprintf(out, "%8s %6s", "-", "-");
    if (isfinite(set->bound))
        fprintf(out, " %5.1f%%  %d rings at once:\n", tccl_report_set_gap(set) * 100, set->set.n);
    else
        fprintf(out, " %6s  %d rings at once:\n", "-", set->set.n);
    for (int i = 0; i < set->set.n; i++) {
        tccl_chain_format(&set->set.rings[i], machine, chain);
        fprintf(out, "%44s%s\n", "", chain);
    }
}

static void print_ring(const struct tccl_found_rings *found, const struct tccl_machine *machine,
                       FILE *out)
{
    bool alone = found->ring.gbps > 0;
    const struct tccl_result *best = alone ? &found->ring : &found->chain;
    const struct tccl_baseline *baseline = alone ? &found->baseline_ring : &found->baseline_chain;
    char gpus[GPUS_TEXT], chain[TCCL_CHAIN_TEXT] = "-";

    tccl_numberset_format(found->gpus, gpus, sizeof(gpus));
    if (best->chain.n_gpus > 0)
        tccl_chain_format(&best->chain, machine, chain);
    fprintf(out, "%-9s %8.2f ", gpus, best->gbps);
    if (baseline->gbps > 0)
        fprintf(out, "%8.2f %5.2fx", baseline->gbps, best->gbps / baseline->gbps);
    else
        fprintf(out, "%8s %6s", "-", "-");
    fprintf(out, " %5.1f%%  %s\n", tccl_report_gap(best) * 100, chain);
    print_set(alone ? &found->ring_set : &found->chain_set, best->gbps, baseline, machine, out);
}

static void print_rings(const struct tccl_report *report, FILE *out)
{
    int shown = report->n_rings < RINGS_SHOWN ? report->n_rings : RINGS_SHOWN;

    if (report->n_rings == 0) {
        fputs("\nNo rings were searched yet\n", out);
        return;
    }
    fputs("\nRings found", out);
    if (shown < report->n_rings)
        fprintf(out, ": %d of %d sets of GPUs; all: tccl-profile show", shown, report->n_rings);
    fprintf(out, "\n%-9s %8s %8s %6s %6s  %s\n", "GPUS", "GB/S", "NCCL", "RATIO", "GAP", "RING");
    for (int i = 0; i < shown; i++)
        print_ring(&report->rings[i], report->machine, out);
}

void tccl_report_print(const struct tccl_report *report, bool colours, long limit, FILE *out)
{
    print_origin(report, out);
    print_matrices(report, colours, out);
    print_congestion(report, limit, out);
    print_rings(report, out);
}
