/* profile-diff.c: tccl-profile diff: what differs between two profiles. */
#include "command/profile-command.h"
#include "report/compare.h"

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2, SETS_SHOWN = 20 };

/* What an operand stands for. */
struct side {
    struct tccl_profile *profile;
    struct tccl_report report;
};

static int open_side(const struct profile_options *options, const char *operand, struct side *side,
                     struct tccl_error *err)
{
    struct profile_options one = *options;

    one.profile = operand;
    return profile_choose(&one, &side->profile, err) != 0
               ? -1
               : tccl_report_make(side->profile, 0, &side->report, err);
}

static void close_side(struct side *side)
{
    tccl_report_free(&side->report);
    tccl_profile_close(side->profile);
}

static int show(const struct profile_options *options, const struct tccl_comparison *comparison)
{
    if (options->json && profile_print(tccl_compare_to_json(comparison)) != 0)
        return EXIT_TROUBLE;
    if (!options->json && !options->quiet)
        tccl_compare_print(comparison, SETS_SHOWN, stdout);
    return tccl_compare_differs(comparison) ? EXIT_DIFFERENT : EXIT_SAME;
}

/* Tables that can't be read would otherwise pass for missing ones. */
static int check_tables(const struct tccl_report *report, struct tccl_error *err)
{
    return report->bad_rings > 0 ? tccl_fail(err, "%s", report->bad.text) : 0;
}

int profile_diff(const struct profile_options *options)
{
    struct side a = {.profile = NULL}, b = {.profile = NULL};
    struct tccl_comparison comparison = {.a = NULL};
    struct tccl_error err = {0};
    int rc = EXIT_TROUBLE;

    if (open_side(options, options->profile, &a, &err) == 0 &&
        open_side(options, options->other, &b, &err) == 0 && check_tables(&a.report, &err) == 0 &&
        check_tables(&b.report, &err) == 0 &&
        tccl_compare(&a.report, &b.report, &comparison, &err) == 0)
        rc = show(options, &comparison);
    if (err.text[0])
        profile_complain(&err);
    tccl_compare_free(&comparison);
    close_side(&a);
    close_side(&b);
    return rc;
}
