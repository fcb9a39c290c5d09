/* tccl-profile diff. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "command/profile-command.h"
#include "profile/exchange.h"
#include "report/compare.h"

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2, SETS_SHOWN = 20 };

/* What an operand stands for. */
struct side {
    struct tccl_profile *profile;
    struct tccl_report report;
    char folder[PATH_MAX]; /* of an exported file, for as long as it is open; "" none */
};

static int open_file(const char *path, struct side *side, struct tccl_error *err)
{
    const char *tmp = getenv("TMPDIR");
    cleanup_free char *text = NULL;
    struct tccl_exchanged made;
    size_t size;

    if (tccl_exchange_load(path, &text, &size, err) < 0)
        return -1;
    snprintf(side->folder, sizeof(side->folder), "%.*s/tccl-diff-XXXXXX", PATH_MAX / 2,
             tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(side->folder)) {
        tccl_fail(err, "%s: no folder can be made there", side->folder);
        side->folder[0] = '\0';
        return -1;
    }
    if (tccl_exchange_unpack(text, size, side->folder, &made, err) < 0)
        return tccl_fail_in(err, "%s", path);
    return tccl_profile_open_folder(side->folder, &side->profile, err);
}

/* An exported file, or a profile as other commands know it. */
static int open_side(const struct profile_options *options, const char *operand, struct side *side,
                     struct tccl_error *err)
{
    struct profile_options one = *options;
    struct stat status;

    one.profile = operand;
    bool is_file = stat(operand, &status) == 0 && S_ISREG(status.st_mode);
    int rc = is_file ? open_file(operand, side, err) : profile_choose(&one, &side->profile, err);
    return rc < 0 ? -1 : tccl_report_make(side->profile, 0, &side->report, err);
}

static void close_side(struct side *side)
{
    tccl_report_free(&side->report);
    tccl_profile_close(side->profile);
    if (side->folder[0])
        tccl_exchange_remove(side->folder);
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
