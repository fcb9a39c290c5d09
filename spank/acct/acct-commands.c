/* acct-commands.c: what tcclacct does: lists records as a table or in parsable form, draws the ring
 * of a job's step, summarizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acct/acct.h"
#include "base/cleanup.h"
#include "base/fileio.h"
#include "draw/term.h"

enum { DAYS = 30 /* summarized by default */ };

#define DEFAULT_FIELDS                                                                             \
    "JobID,JobName,User,NodeList,GPUs,Mode,State,Built,GBps,BaselineGBps,Ratio,AchievedGBps,"      \
    "Reason"

/* ---- a list ---- */

static int choose_fields(struct acct_line *line, struct tccl_error *err)
{
    const char *variable = getenv("TCCLACCT_FORMAT");
    if (line->fields)
        return acct_layout_columns(&line->layout, line->fields, err);
    if (line->preset || !variable || !*variable)
        return acct_layout_columns(&line->layout, line->preset ? line->preset : DEFAULT_FIELDS,
                                   err);
    return acct_layout_columns(&line->layout, variable, err) == 0
               ? 0
               : tccl_fail_in(err, "TCCLACCT_FORMAT");
}

int acct_list(struct acct_line *line, int count, char **words, struct tccl_error *err)
{
    struct acct_request *request = &line->request;
    int complete = 0, n = acct_field_count();
    if (line->list_fields) {
        for (int i = 0; i < n; i++)
            printf("%-18s%s", acct_field_at(i)->name, i % 4 == 3 || i == n - 1 ? "\n" : "");
        return 0;
    }
    if (count > 0 && (strcmp(words[0], "ring") == 0 || strcmp(words[0], "summary") == 0))
        return tccl_fail(err, "the command comes before options: tcclacct %s ...", words[0]);
    if (count > 0)
        return tccl_fail(err, "%.60s: unexpected argument; give jobs with -j, see --help",
                         words[0]);
    line->layout.header = !line->no_header;
    if (choose_fields(line, err) != 0 ||
        acct_request_finish(request, acct_midnight(request->now), err) != 0)
        return -1;
    cleanup_json json_t *steps = acct_request_records(request, &complete, err);
    if (!steps)
        return -1;
    cleanup_json json_t *records = line->fold ? acct_fold(steps) : json_incref(steps);
    if (!records)
        return tccl_fail(err, "out of memory");
    if (line->json) {
        cleanup_json json_t *all =
            json_pack("{s:{s:s, s:b, s:O?}, s:O}", "meta", "version", TCCL_VERSION, "complete",
                      complete, "lost", request->lost, "records", records);
        return acct_print_json(all, err);
    }
    struct acct_clock clock = {.now = request->now, .format = getenv("SLURM_TIME_FORMAT")};
    char text[ACCT_LOST_TEXT];
    int rc = 0;
    if (line->layout.header)
        acct_print_header(stdout, &line->layout);
    for (size_t i = 0; rc == 0 && i < json_array_size(records) && !ferror(stdout); i++)
        rc = acct_print_row(stdout, &line->layout, json_array_get(records, i), &clock);
    fflush(stdout);
    if (acct_request_lost(request, steps, text))
        fprintf(stderr, "tccl: %s\n", text);
    return rc == 0 ? 0 : tccl_fail(err, "out of memory");
}

/* ---- a ring ---- */

static bool has_ring(const json_t *record)
{
    const char *ring = json_string_value(json_object_get(record, "ring"));
    return ring && *ring;
}

/* What is printed to a file, and how. */
struct page {
    const struct acct_asked *asked;
    const json_t *record;
    char kind; /* 's': a ring as SVG, 'r': as a page; 'm': a summary */
};

static int print_page(FILE *out, const void *what, struct tccl_error *err)
{
    const struct page *page = what;
    if (page->kind != 'm')
        return page->kind == 's' ? acct_ring_svg(out, page->record, err)
                                 : acct_ring_page(out, page->record, page->asked, err);
    acct_summary_page(out, page->record, page->asked);
    return 0;
}

static int draw(const struct acct_line *line, json_t *record, struct tccl_error *err)
{
    struct page page = {&line->asked, record, line->svg ? 's' : 'r'};
    if (line->svg || line->html)
        return tccl_print_output(line->svg ? line->svg_file : line->html, print_page, &page, err);
    if (!line->json)
        return acct_ring_text(stdout, record, tccl_term_columns(), tccl_term_colour(), err);
    cleanup_json json_t *json = acct_ring_json(record, err);
    return json ? acct_print_json(json, err) : -1;
}

int acct_draw(struct acct_line *line, int count, char **words, struct tccl_error *err)
{
    int complete, rings = 0;
    if (line->svg + line->json + (line->html != NULL) > 1)
        return tccl_fail(err, "--svg, --html and --json: give one of them");
    if (line->svg && !line->svg_file && count == 2)
        return tccl_fail(err, "%.60s: give the file with '=': --svg=FILE", words[1]);
    if (line->html && count == 0)
        return tccl_fail(err, "--html %.60s: is the file: give one job or step, too", line->html);
    if (count != 1 || strchr(words[0], ','))
        return tccl_fail(err, "give one job or step, such as 12 or 12.0; see tcclacct ring --help");
    if (acct_filter(line->request.filter, "jobs", words[0], err) != 0 ||
        acct_request_finish(&line->request, 0, err) != 0)
        return -1;
    cleanup_json json_t *records = acct_request_records(&line->request, &complete, err);
    if (!records)
        return -1;
    /* The step to draw, one with a ring if there is one. */
    json_t *record = NULL, *each;
    size_t i;
    json_array_foreach(records, i, each)
    {
        rings += has_ring(each);
        if (!record || has_ring(each) > has_ring(record) ||
            (has_ring(each) == has_ring(record) && acct_fold_prefers(each, record)))
            record = each;
    }
    if (!record)
        return tccl_fail(err, "no record of %.60s that you may see", words[0]);
    line->asked.complete = complete;
    int rc = draw(line, record, err);
    cleanup_free char *name =
        acct_field_text(acct_field_find("JobID"), record, &(struct acct_clock){0});
    if (rc == 0 && rings > 1 && name)
        fprintf(stderr, "tccl: this is step %s; %d more step%s a ring: see tcclacct -j\n", name,
                rings - 1, rings == 2 ? " of this job has" : "s of this job have");
    return rc;
}

/* ---- a summary ---- */

int acct_summarize(struct acct_line *line, int count, char **words, struct tccl_error *err)
{
    struct acct_request *request = &line->request;
    int complete;
    char text[ACCT_LOST_TEXT];
    bool jobs = json_object_get(request->filter, "jobs") != NULL;
    struct tm fields; /* local midnight, that many days ago */
    time_t midnight = acct_midnight(request->now);
    localtime_r(&midnight, &fields);
    fields.tm_mday -= DAYS;
    fields.tm_isdst = -1;
    if (count > 0)
        return tccl_fail(err, "%.60s: unexpected argument; see tcclacct summary --help", words[0]);
    if (line->html && line->json)
        return tccl_fail(err, "--html and --json: give one of them");
    if (acct_request_finish(request, mktime(&fields), err) != 0)
        return -1;
    cleanup_json json_t *summary = acct_request_summary(request, &complete, err);
    if (!summary)
        return -1;
    const char *lost = acct_request_lost(request, NULL, text) ? text : NULL;
    if (line->html) {
        line->asked.lost = lost;
        line->asked.complete = complete;
        return tccl_print_output(line->html, print_page, &(struct page){&line->asked, summary, 'm'},
                                 err);
    }
    if (line->json) {
        json_object_set_new(summary, "complete", json_boolean(complete));
        return acct_print_json(summary, err);
    }
    if (!request->start && !jobs)
        printf("The last %d days (change with --starttime)\n", DAYS);
    acct_summary_text(stdout, summary, tccl_term_columns(), tccl_term_utf8());
    if (lost)
        printf("\nNot complete: %s\n", lost);
    return 0;
}
