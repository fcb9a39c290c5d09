/* profile-report.c: tccl-profile report: the bandwidths and what congests, as text, JSON or a page.
 */

#include "base/fileio.h"
#include "command/profile-command.h"
#include "draw/term.h"
#include "report/report.h"

enum { CONGESTED_SHOWN = 20 };
static const double THRESHOLD = 0.9;

static int print_page(FILE *out, const void *report, struct tccl_error *err UNUSED)
{
    tccl_report_page(report, out);
    return 0;
}

int profile_report(const struct profile_options *options, struct tccl_profile *profile,
                   struct tccl_error *err)
{
    struct tccl_report report;
    struct tccl_error unwritten = {0};
    int rc = tccl_report_make(profile, THRESHOLD, &report, err);
    if (rc == 0 && options->json && !options->html)
        rc = profile_print(tccl_report_to_json(&report));
    else if (rc == 0 && !options->html)
        tccl_report_print(&report, tccl_term_colour(), CONGESTED_SHOWN, stdout);
    else if (rc == 0 && tccl_print_output(options->html, print_page, &report, &unwritten) != 0)
        rc = profile_complain(&unwritten);
    /* What is wrong with the profile, but not so wrong that there is no report. */
    if (rc >= 0 && report.measured.dropped)
        profile_say_torn(profile, "sets");
    if (rc >= 0 && report.bad_rings > 0)
        rc = profile_complain(&report.bad);
    tccl_report_free(&report);
    return rc;
}
