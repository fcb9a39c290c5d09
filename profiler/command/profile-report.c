/* profile-report.c: tccl-profile report: the bandwidths and what congests, as text, JSON or a page.
 */

#include "base/fileio.h"
#include "command/profile-command.h"
#include "draw/term.h"
#include "report/report.h"

enum { CONGESTED_SHOWN = 20 };
static const double THRESHOLD = 0.9;

/* What is wrong with the profile, but not so wrong that there is no report. Returns 1 if anything
 * is. */
static int warn(const struct tccl_report *report)
{
    if (report->measured.dropped)
        profile_say_torn(report->profile, "sets");
    return report->bad_rings > 0 ? profile_complain(&report->bad) : 0;
}

static int print_page(FILE *out, const void *report, struct tccl_error *err UNUSED)
{
    tccl_report_page(report, out);
    return 0;
}

static int show(const struct profile_options *options, const struct tccl_report *report)
{
    struct tccl_error err = {0};
    if (options->json && !options->html)
        return profile_print(tccl_report_to_json(report));
    if (!options->html)
        tccl_report_print(report, tccl_term_colour(), CONGESTED_SHOWN, stdout);
    else if (tccl_print_output(options->html, print_page, report, &err) != 0)
        return profile_complain(&err);
    return 0;
}

int profile_report(const struct profile_options *options, struct tccl_profile *profile,
                   struct tccl_error *err)
{
    struct tccl_report report;
    int rc = tccl_report_make(profile, THRESHOLD, &report, err);
    if (rc == 0) {
        rc = show(options, &report);
        rc |= warn(&report);
    }
    tccl_report_free(&report);
    return rc;
}
