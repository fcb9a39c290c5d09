/* acct-ring-main.c: tcclacct ring: draws the ring of a job's step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acct/acct-request.h"
#include "acct/acct-ring.h"
#include "acct/acct-table.h"
#include "acct/acct.h"
#include "base/cleanup.h"
#include "base/fileio.h"
#include "draw/term.h"

enum { OPTION_SVG = ACCT_OPTION_OWN, OPTION_HTML, OPTION_JSON };

static const char help[] =
    "Usage: tcclacct ring [OPTION]… JOB[_TASK][.STEP]\n"
    "Draws the ring of a job step: the nodes in order, how each GPU passes data on\n"
    "to the next, the bandwidth, and what NCCL built. Without STEP: of the steps with\n"
    "a ring, the one on most nodes; of these the latest.\n"
    "\n"
    "      --svg[=FILE]   as a picture (SVG), to FILE or standard output\n"
    "      --html=FILE    as an HTML page (-: to standard output)\n"
    "      --json         as JSON\n"
    "      --config=FILE  instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "      --node=NAME    this node's Slurm name, if not the host's\n"
    "  -h, --help\n"
    "\n"
    "Arrows point the way the data go: -w> the GPU writes to the next, -r> the next\n"
    "one reads from it, -m0> through memory 0, -g> between NIC and GPU directly. See\n"
    "tcclacct(1).\n";

static const struct option long_options[] = {
    {"svg", optional_argument, NULL, OPTION_SVG},
    {"html", required_argument, NULL, OPTION_HTML},
    {"json", no_argument, NULL, OPTION_JSON},
    {"config", required_argument, NULL, ACCT_OPTION_CONFIG},
    {"node", required_argument, NULL, ACCT_OPTION_NODE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct drawing {
    struct acct_request request;
    bool help, svg, json;
    const char *file; /* of the SVG; NULL: standard output */
    const char *html; /* the page's file; NULL: none is asked for */
    struct acct_asked asked;
};

static int parse_options(struct drawing *drawing, int argc, char **argv, struct tccl_error *err)
{
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
        switch (option) {
        case 'h':
            drawing->help = true;
            return 0;
        case OPTION_SVG:
            drawing->svg = true;
            drawing->file = optarg;
            break;
        case OPTION_HTML:
            drawing->html = optarg;
            break;
        case OPTION_JSON:
            drawing->json = true;
            break;
        case '?':
            return acct_refuse_option(argv, err);
        default:
            acct_request_option(&drawing->request, option, optarg, err);
        }
    if (drawing->svg + drawing->json + (drawing->html != NULL) > 1)
        return tccl_fail(err, "--svg, --html and --json: give one of them");
    if (drawing->html && acct_request_html(drawing->html, err) != 0)
        return -1;
    if (drawing->file && !*drawing->file)
        return tccl_fail(err, "--svg=: give a file, or --svg alone for standard output");
    if (drawing->svg && !drawing->file && optind + 2 == argc)
        return tccl_fail(err, "%.60s: give the file with '=': --svg=FILE", argv[optind + 1]);
    if (drawing->html && optind == argc)
        return tccl_fail(err, "--html %.60s: is the file: give one job or step, too",
                         drawing->html);
    if (optind + 1 != argc || strchr(argv[optind], ','))
        return tccl_fail(err, "give one job or step, such as 12 or 12.0; see tcclacct ring --help");
    return acct_request_option(&drawing->request, 'j', argv[optind], err);
}

static bool has_ring(const json_t *record)
{
    const char *ring = json_string_value(json_object_get(record, "ring"));
    return ring && *ring;
}

/* The step to draw, one with a ring if there is one; borrowed, NULL if there are no records.
 * *rings: how many steps have a ring. */
static json_t *choose_step(const json_t *records, int *rings)
{
    json_t *best = NULL;
    *rings = 0;
    for (size_t i = 0; i < json_array_size(records); i++) {
        json_t *record = json_array_get(records, i);
        *rings += has_ring(record);
        if (!best || has_ring(record) > has_ring(best) ||
            (has_ring(record) == has_ring(best) && acct_fold_prefers(record, best)))
            best = record;
    }
    return best;
}

/* Says on stderr which of several steps is drawn. */
static void name_choice(const json_t *record, int rings)
{
    const struct acct_field *field = acct_field_find("JobID");
    struct acct_clock clock = {0};
    cleanup_free char *name = field->text(field, record, &clock);
    if (rings > 1 && name)
        fprintf(stderr, "tccl: this is step %s; %d more step%s a ring: see tcclacct -j\n", name,
                rings - 1, rings == 2 ? " of this job has" : "s of this job have");
}

static int print_svg(FILE *out, const void *record, struct tccl_error *err)
{
    return acct_ring_svg(out, record, err);
}

struct page {
    const struct acct_asked *asked;
    const json_t *record;
};

static int print_page(FILE *out, const void *what, struct tccl_error *err)
{
    const struct page *page = what;
    return acct_ring_page(out, page->record, page->asked, err);
}

static int draw(const struct drawing *drawing, json_t *record, struct tccl_error *err)
{
    if (drawing->svg)
        return tccl_print_output(drawing->file, print_svg, record, err);
    if (drawing->html)
        return tccl_print_output(drawing->html, print_page, &(struct page){&drawing->asked, record},
                                 err);
    if (!drawing->json)
        return acct_ring_text(stdout, record, tccl_term_columns(), tccl_term_colour(), err);
    cleanup_json json_t *json = acct_ring_json(record, err);
    return json ? acct_print_json(json, err) : -1;
}

static int answer(struct drawing *drawing, const char *job, struct tccl_error *err)
{
    int complete, rings;
    if (acct_request_finish(&drawing->request, 0, err) != 0)
        return -1;
    cleanup_json json_t *records = acct_request_records(&drawing->request, &complete, err);
    if (!records)
        return -1;
    json_t *record = choose_step(records, &rings);
    if (!record)
        return tccl_fail(err, "no record of %.60s that you may see", job);
    drawing->asked.complete = complete;
    int rc = draw(drawing, record, err);
    if (rc == 0)
        name_choice(record, rings);
    return rc;
}

int ring_main(int argc, char **argv)
{
    struct tccl_error err = {0};
    struct drawing drawing = {.asked = {.argv = argv, .argc = argc}};
    int rc = acct_request_begin(&drawing.request, &err);
    if (rc == 0)
        rc = parse_options(&drawing, argc, argv, &err);
    if (rc == 0 && drawing.help)
        fputs(help, stdout);
    else if (rc == 0)
        rc = answer(&drawing, argv[optind], &err);
    acct_request_clear(&drawing.request);
    return acct_end(rc, &err);
}
