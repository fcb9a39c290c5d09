/* acct-purge-main.c: tcclacct purge: records whose start can't be right are shown, and removed if
 * that is confirmed. What comes after they were shown is not touched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acct/acct-request.h"
#include "acct/acct-table.h"
#include "acct/acct-time.h"
#include "acct/acct.h"
#include "base/cleanup.h"
#include "base/fields.h"

#define FIELDS "JobID,User,NodeList%-20,State,Start,Arrived"
#define ANY_TIME 253402300799 /* the end of the year 9999 */

enum { OPTION_DRY_RUN = ACCT_OPTION_OWN, OPTION_YES };

static const char help[] =
    "Usage: tcclacct purge [OPTION]…\n"
    "Removes records whose start can't be right, as the clock of a node was wrong by\n"
    "a month or more (tcclacct -o Start,Arrived): shows them, and asks. For root,\n"
    "SlurmUser and TccldUser. Other records are removed by KeepRecords= alone.\n"
    "\n"
    "      --dry-run          show them, remove nothing\n"
    "  -y, --yes              don't ask\n"
    "  -j, --jobs=JOB[.STEP],…   of these jobs only\n"
    "  -S, --starttime=TIME   dated since\n"
    "  -E, --endtime=TIME     dated before\n"
    "  -u, --user=USER,…      of these users\n"
    "  -N, --nodelist=NODES   that ran on at least one of these nodes (n[1-4])\n"
    "  -r, --partition=NAME,…   -A, --accounts=NAME,…  of these partitions, accounts\n"
    "      --name=NAME,…      jobs with one of these names\n"
    "  -i, --nnodes=MIN[-MAX]   -s, --state=STATE,…  -R, --reason=CLASS,…\n"
    "      --config=FILE      instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "      --node=NAME        this node's Slurm name, if not the host's\n"
    "  -h, --help\n";

static const struct option long_options[] = {
    ACCT_REQUEST_OPTIONS,
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"yes", no_argument, NULL, 'y'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct purging {
    struct acct_request request;
    bool help, dry_run, yes;
};

static int take_option(struct purging *purging, int option, char *const *argv,
                       struct tccl_error *err)
{
    switch (option) {
    case 'h':
        purging->help = true;
        return 0;
    case 'y':
        purging->yes = true;
        return 0;
    case OPTION_DRY_RUN:
        purging->dry_run = true;
        return 0;
    case '?':
        return acct_refuse_option(argv, err);
    default:
        return acct_request_option(&purging->request, option, optarg, err);
    }
}

static int parse_options(struct purging *purging, int argc, char **argv, struct tccl_error *err)
{
    int option;
    opterr = 0;
    while (!purging->help &&
           (option = getopt_long(argc, argv, ACCT_REQUEST_LETTERS "yh", long_options, NULL)) != -1)
        if (take_option(purging, option, argv, err) != 0)
            return -1;
    if (!purging->help && optind < argc)
        return tccl_fail(err, "%.60s: unexpected argument; see tcclacct purge --help",
                         argv[optind]);
    if (purging->dry_run && purging->yes)
        return tccl_fail(err, "--dry-run and --yes: give one of them");
    return 0;
}

static int show(const struct purging *purging, const json_t *records, struct tccl_error *err)
{
    size_t i;
    const json_t *record;
    struct acct_clock clock = {.now = purging->request.now, .format = getenv("SLURM_TIME_FORMAT")};
    struct acct_layout layout = {.style = ACCT_ALIGNED, .header = true};
    if (acct_layout_columns(&layout, FIELDS, err) != 0)
        return -1;
    acct_print_header(stdout, &layout);
    json_array_foreach(records, i, record) if (acct_print_row(stdout, &layout, record, &clock) !=
                                               0) return tccl_fail(err, "out of memory");
    fflush(stdout);
    return 0;
}

/* Returns 0: yes; 1: no; -1 with err: there is nobody to ask. */
static int confirm(size_t count, struct tccl_error *err)
{
    char answer[16];
    if (!isatty(STDIN_FILENO))
        return tccl_fail(err, "nothing is removed: give --yes, or --dry-run");
    fprintf(stderr, "Remove %s %zu record%s? [y/N] ", count > 1 ? "these" : "this", count,
            count > 1 ? "s" : "");
    bool yes = fgets(answer, sizeof(answer), stdin) &&
               (strcasecmp(answer, "y\n") == 0 || strcasecmp(answer, "yes\n") == 0);
    return yes ? 0 : 1;
}

static int set_arrived(struct acct_request *request, json_int_t arrived, struct tccl_error *err)
{
    return json_object_set_new(request->filter, "arrived", json_integer(arrived)) == 0
               ? 0
               : tccl_fail(err, "out of memory");
}

static json_int_t last_arrival(const json_t *records)
{
    size_t i;
    const json_t *record;
    json_int_t last = 0;
    json_array_foreach(records, i, record)
    {
        json_int_t arrived = tccl_number_of(record, "arrived");
        last = arrived > last ? arrived : last;
    }
    return last;
}

static int purge(struct purging *purging, const json_t *records, struct tccl_error *err)
{
    struct acct_request *request = &purging->request;
    size_t count = json_array_size(records);
    int rc = purging->yes ? 0 : confirm(count, err);
    if (rc != 0)
        return rc < 0 ? -1 : tccl_fail(err, "nothing is removed");
    if (set_arrived(request, last_arrival(records), err) != 0)
        return -1;
    long removed = acct_request_purge(request, err);
    if (removed >= 0)
        printf("%ld record%s removed\n", removed, removed == 1 ? "" : "s");
    return removed < 0 ? -1 : 0;
}

static int answer(struct purging *purging, struct tccl_error *err)
{
    struct acct_request *request = &purging->request;
    int complete;
    request->all_users = !json_object_get(request->filter, "users");
    if (acct_request_finish(request, 0, err) != 0 || set_arrived(request, ANY_TIME, err) != 0)
        return -1;
    cleanup_json json_t *records = acct_request_records(request, &complete, err);
    if (!records)
        return -1;
    if (json_array_size(records) == 0) {
        puts("no misdated records");
        return 0;
    }
    if (show(purging, records, err) != 0)
        return -1;
    return purging->dry_run ? 0 : purge(purging, records, err);
}

int purge_main(int argc, char **argv)
{
    struct tccl_error err = {0};
    struct purging purging = {0};
    int rc = acct_request_begin(&purging.request, &err);
    if (rc == 0)
        rc = parse_options(&purging, argc, argv, &err);
    if (rc == 0 && purging.help)
        fputs(help, stdout);
    else if (rc == 0)
        rc = answer(&purging, &err);
    acct_request_clear(&purging.request);
    return acct_end(rc, &err);
}
