/* acct-summary-main.c: tcclacct summary: outcomes of steps over time. */
#include <stdio.h>

#include "acct/acct-request.h"
#include "acct/acct-time.h"
#include "acct/acct.h"
#include "base/cleanup.h"
#include "base/fileio.h"
#include "draw/term.h"

enum { OPTION_JSON = ACCT_OPTION_OWN, OPTION_HTML, DAYS = 30 };

static const char help[] =
    "Usage: tcclacct summary [OPTION]…\n"
    "Summarizes records: steps, how many got a ring, why others did not, the gain,\n"
    "the slowest nodes, each day. Default: your last 30 days; as root, everyone's.\n"
    "\n"
    "  -S, --starttime=TIME   started since (2026-01-31T08:00, 0131, now-7days)\n"
    "  -E, --endtime=TIME     started before\n"
    "  -u, --user=USER,…      these users (names or uids)\n"
    "  -a, --allusers         all users whose records you may see\n"
    "  -N, --nodelist=NODES   ran on at least one of these nodes (n[1-4])\n"
    "  -r, --partition=NAME,…   -A, --accounts=NAME,…   -q, --qos=NAME,…  these only\n"
    "      --name=NAME,…      jobs with one of these names\n"
    "  -i, --nnodes=MIN[-MAX] number of nodes\n"
    "  -s, --state=STATE,…    off, applied, fallback, nothing-to-do, partial, differs\n"
    "  -R, --reason=CLASS,…   with a reason of this class (no profile, no daemon, …)\n"
    "  -j, --jobs=JOB[.STEP],…  these jobs, any date\n"
    "      --html=FILE        as an HTML page (-: to standard output)\n"
    "      --json             as JSON\n"
    "      --config=FILE      instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "      --node=NAME        this node's Slurm name, if not the host's\n"
    "  -h, --help\n"
    "Bandwidths come from the profiles: see tcclacct(1).\n";

static const struct option long_options[] = {
    ACCT_REQUEST_OPTIONS,
    {"html", required_argument, NULL, OPTION_HTML},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct summing {
    struct acct_request request;
    bool help, json;
    const char *html; /* the page's file; NULL: none is asked for */
    struct acct_asked asked;
};

static int take_option(struct summing *summing, int option, char *const *argv,
                       struct tccl_error *err)
{
    switch (option) {
    case 'h':
        summing->help = true;
        return 0;
    case OPTION_JSON:
        summing->json = true;
        return 0;
    case OPTION_HTML:
        summing->html = optarg;
        return 0;
    case '?':
        return acct_refuse_option(argv, err);
    default:
        return acct_request_option(&summing->request, option, optarg, err);
    }
}

static int parse_options(struct summing *summing, int argc, char **argv, struct tccl_error *err)
{
    int option;
    opterr = 0;
    while (!summing->help &&
           (option = getopt_long(argc, argv, ACCT_REQUEST_LETTERS "h", long_options, NULL)) != -1)
        if (take_option(summing, option, argv, err) != 0)
            return -1;
    if (!summing->help && optind < argc)
        return tccl_fail(err, "%.60s: unexpected argument; see tcclacct summary --help",
                         argv[optind]);
    if (summing->html && summing->json)
        return tccl_fail(err, "--html and --json: give one of them");
    return summing->html ? acct_request_html(summing->html, err) : 0;
}

/* Local midnight, that many days ago. */
static time_t days_ago(time_t now)
{
    struct tm fields;
    time_t midnight = acct_midnight(now);
    localtime_r(&midnight, &fields);
    fields.tm_mday -= DAYS;
    fields.tm_isdst = -1;
    return mktime(&fields);
}

struct page {
    const struct acct_asked *asked;
    const json_t *summary;
};

static int print_page(FILE *out, const void *what, struct tccl_error *err)
{
    const struct page *page = what;
    (void)err;
    acct_summary_page(out, page->summary, page->asked);
    return 0;
}

static int answer(struct summing *summing, struct tccl_error *err)
{
    struct acct_request *request = &summing->request;
    int complete;
    char text[ACCT_LOST_TEXT];
    bool jobs = json_object_get(request->filter, "jobs") != NULL;
    if (acct_request_finish(request, days_ago(request->now), err) != 0)
        return -1;
    cleanup_json json_t *summary = acct_request_summary(request, &complete, err);
    if (!summary)
        return -1;
    const char *lost = acct_request_lost(request, NULL, text) ? text : NULL;
    if (summing->html) {
        summing->asked.lost = lost;
        summing->asked.complete = complete;
        return tccl_print_output(summing->html, print_page,
                                 &(struct page){&summing->asked, summary}, err);
    }
    if (summing->json) {
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

int summary_main(int argc, char **argv)
{
    struct tccl_error err = {0};
    struct summing summing = {.asked = {.argv = argv, .argc = argc}};
    int rc = acct_request_begin(&summing.request, &err);
    if (rc == 0)
        rc = parse_options(&summing, argc, argv, &err);
    if (rc == 0 && summing.help)
        fputs(help, stdout);
    else if (rc == 0)
        rc = answer(&summing, &err);
    acct_request_clear(&summing.request);
    return acct_end(rc, &err);
}
