/* acct-list.c: tcclacct without a command: records as a table or in parsable form. */
#include "acct/acct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acct/acct-request.h"
#include "acct/acct-table.h"
#include "acct/acct-time.h"
#include "base/cleanup.h"

#define DEFAULT_FIELDS                                                                             \
    "JobID,JobName,User,NodeList,GPUs,Mode,State,Built,GBps,BaselineGBps,Ratio,SolveTime,Reason"
#define BRIEF_FIELDS "JobID,State,Reason"

enum {
    OPTION_JSON = ACCT_OPTION_OWN,
    OPTION_DELIMITER,
    OPTION_IGNORED, /* of sacct: no effect here */
    OPTION_REFUSED, /* of sacct: would select records by data that they lack */
};

static const char help[] =
    "Usage: tcclacct [OPTION]…              rings of job steps, and what NCCL built\n"
    "       tcclacct ring|summary|purge …   draw one ring; summarize; remove (--help)\n"
    "  -j JOB[.STEP],…   these jobs, any date  -X   one line per job, not step\n"
    "                    (12_3 or 12_[1-3]: tasks of array 12; 12+1: a component)\n"
    "  -S, -E TIME       started since, before (2026-01-31T08:00, 0131, now-2days)\n"
    "  -u USER,…  -a     these users; all users whose records you may see\n"
    "  -N NODES          ran on at least one of these nodes (n[1-4])\n"
    "  -s STATE,…        off, applied, fallback, nothing-to-do, partial, differs\n"
    "  -R CLASS,…        with a reason of this class (no profile, no daemon, …)\n"
    "  -r PART,…  -A ACCOUNT,…  -q QOS,…  --name=NAME,…  -i MIN[-MAX]   these\n"
    "                    partitions, accounts, QOS, job names, numbers of nodes\n"
    "  -o FIELD[%W],…    these fields, W characters wide (-W: left-aligned)\n"
    "  -l, -b            all fields; few fields   -e   list the fields\n"
    "  -n  -P  -p        no header; '|' between fields; also at the end\n"
    "  --delimiter=TEXT  use TEXT instead of '|'  --json   all data, as JSON\n"
    "  --config=FILE     instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "  --node=NAME       this node's Slurm name, if not the host's\n"
    "  -h, --help   -V, --version\n"
    "Long: --jobs --starttime --endtime --user --allusers --nodelist --state --reason\n"
    "--partition --accounts --qos --nnodes --allocations --format --long --brief\n"
    "--helpformat --noheader --parsable --parsable2. sacct's -D -L -M -T are\n"
    "ignored. Default: your steps since midnight; as root, everyone's.\n"
    "Environment: TCCLACCT_FORMAT (as -o), SLURM_TIME_FORMAT, TCCL_CONF; tcclacct(1).\n";

#define LETTERS ACCT_REQUEST_LETTERS "o:XlbenpPhVDLM:TvBcC:f:F:g:I:k:K:UW:x:"

static const struct option long_options[] = {
    ACCT_REQUEST_OPTIONS,
    {"allocations", no_argument, NULL, 'X'},
    {"format", required_argument, NULL, 'o'},
    {"fields", required_argument, NULL, 'o'},
    {"long", no_argument, NULL, 'l'},
    {"brief", no_argument, NULL, 'b'},
    {"helpformat", no_argument, NULL, 'e'},
    {"help-fields", no_argument, NULL, 'e'},
    {"noheader", no_argument, NULL, 'n'},
    {"parsable", no_argument, NULL, 'p'},
    {"parsable2", no_argument, NULL, 'P'},
    {"delimiter", required_argument, NULL, OPTION_DELIMITER},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, 'h'},
    {"usage", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {"duplicates", no_argument, NULL, 'D'},
    {"allclusters", no_argument, NULL, 'L'},
    {"clusters", required_argument, NULL, 'M'},
    {"cluster", required_argument, NULL, 'M'},
    {"truncate", no_argument, NULL, 'T'},
    {"verbose", no_argument, NULL, 'v'},
    {"federation", no_argument, NULL, OPTION_IGNORED},
    {"local", no_argument, NULL, OPTION_IGNORED},
    {"noconvert", no_argument, NULL, OPTION_IGNORED},
    {"units", required_argument, NULL, OPTION_IGNORED},
    {"use-local-uid", no_argument, NULL, OPTION_IGNORED},
    {"whole-hetjob", optional_argument, NULL, OPTION_IGNORED},
    {"batch-script", no_argument, NULL, 'B'},
    {"completion", no_argument, NULL, 'c'},
    {"constraints", required_argument, NULL, 'C'},
    {"file", required_argument, NULL, 'f'},
    {"flags", required_argument, NULL, 'F'},
    {"gid", required_argument, NULL, 'g'},
    {"group", required_argument, NULL, 'g'},
    {"ncpus", required_argument, NULL, 'I'},
    {"timelimit-min", required_argument, NULL, 'k'},
    {"timelimit-max", required_argument, NULL, 'K'},
    {"wckeys", required_argument, NULL, 'W'},
    {"associations", required_argument, NULL, 'x'},
    {"env-vars", no_argument, NULL, OPTION_REFUSED},
    {"yaml", no_argument, NULL, OPTION_REFUSED},
    {NULL, 0, NULL, 0},
};

/* The command line. */
struct listing {
    struct acct_request request;
    struct acct_layout layout;
    char *fields;       /* of all -o, with commas; NULL: none given */
    const char *preset; /* of -l or -b */
    bool json, fold;
    void (*instead)(void); /* --help and the like: done in place of listing */
};

static void print_help(void)
{
    fputs(help, stdout);
}

static void print_version(void)
{
    puts("tcclacct " TCCL_RELEASE);
}

static void print_fields(void)
{
    for (int i = 0, n = acct_field_count(); i < n; i++)
        printf("%-16s%s", acct_field_at(i)->name, i % 4 == 3 || i == n - 1 ? "\n" : "");
}

/* The name of an option as it stands on the command line, for messages. */
static const char *option_name(int option, int index, char text[static 40])
{
    if (index >= 0)
        snprintf(text, 40, "--%s", long_options[index].name);
    else
        snprintf(text, 40, "-%c", option);
    return text;
}

/* An option of sacct that has no effect here: accepted with a note. */
static void ignore(int option, int index)
{
    char name[40];
    static const struct {
        int option;
        const char *why;
    } reasons[] = {{'M', "the records of all clusters that AccountingHost serves are shown"},
                   {'L', "the records of all clusters that AccountingHost serves are shown"},
                   {'D', "all steps of a requeued job are always shown"},
                   {'T', "records have a start time only"}};
    const char *why = "it has no effect on these records";
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].option == option)
            why = reasons[i].why;
    fprintf(stderr, "tccl: %s is ignored: %s\n", option_name(option, index, name), why);
}

/* An option of sacct that can't be honoured is an error: ignoring it would show other records than
 * those asked for. */
static int refuse(int option, int index, struct tccl_error *err)
{
    char name[40];
    if (index >= 0 && !strcmp(long_options[index].name, "yaml"))
        return tccl_fail(err, "--yaml: give --json");
    return tccl_fail(
        err, "%s: not in the records of rings; ask sacct for the jobs and pass them with -j",
        option_name(option, index, name));
}

/* Appends the fields of another -o. */
static int add_fields(struct listing *listing, const char *value, struct tccl_error *err)
{
    char *both;
    if (asprintf(&both, "%s%s%s", listing->fields ? listing->fields : "",
                 listing->fields ? "," : "", value) < 0)
        return tccl_fail(err, "out of memory");
    free(listing->fields);
    listing->fields = both;
    return 0;
}

static int set_delimiter(struct listing *listing, const char *value, struct tccl_error *err)
{
    listing->layout.delimiter = value;
    return *value ? 0 : tccl_fail(err, "--delimiter: give at least one character");
}

/* Output options. Returns 0; 1 if the option is none of them; -1 with err. */
static int take_output(struct listing *listing, int option, const char *value,
                       struct tccl_error *err)
{
    switch (option) {
    case 'o':
        return add_fields(listing, value, err);
    case 'X':
        listing->fold = true;
        return 0;
    case 'l':
        listing->preset = "all";
        return 0;
    case 'b':
        listing->preset = BRIEF_FIELDS;
        return 0;
    case 'n':
        listing->layout.header = false;
        return 0;
    case 'p':
        listing->layout.style = ACCT_PARSABLE_ENDING;
        return 0;
    case 'P':
        listing->layout.style = ACCT_PARSABLE;
        return 0;
    case OPTION_DELIMITER:
        return set_delimiter(listing, value, err);
    case OPTION_JSON:
        listing->json = true;
        return 0;
    default:
        return 1;
    }
}

static int take_option(struct listing *listing, int option, int index, char *const *argv,
                       struct tccl_error *err)
{
    int rc = acct_request_option(&listing->request, option, optarg, err);
    if (rc > 0)
        rc = take_output(listing, option, optarg, err);
    if (rc <= 0)
        return rc;
    switch (option) {
    case '?':
        return acct_refuse_option(argv, err);
    case 'h':
    case 'U':
        listing->instead = print_help;
        return 0;
    case 'V':
        listing->instead = print_version;
        return 0;
    case 'e':
        listing->instead = print_fields;
        return 0;
    default:
        if (option == OPTION_IGNORED || strchr("DLMTv", option)) {
            ignore(option, index);
            return 0;
        }
        return refuse(option, index, err);
    }
}

/* An argument that is no option: a misplaced command, or a mistake. */
static int refuse_word(const char *word, struct tccl_error *err)
{
    static const char *const commands[] = {"purge", "ring", "summary"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (!strcmp(word, commands[i]))
            return tccl_fail(err, "the command comes before options: tcclacct %s ...", word);
    return tccl_fail(err, "%.60s: unexpected argument; give jobs with -j, see --help", word);
}

static int parse_options(struct listing *listing, int argc, char **argv, struct tccl_error *err)
{
    int option, index = -1;
    opterr = 0;
    while (!listing->instead &&
           (option = getopt_long(argc, argv, LETTERS, long_options, &index)) != -1) {
        if (take_option(listing, option, index, argv, err) != 0)
            return -1;
        index = -1;
    }
    if (!listing->instead && optind < argc)
        return refuse_word(argv[optind], err);
    return 0;
}

static int choose_fields(struct listing *listing, struct tccl_error *err)
{
    const char *variable = getenv("TCCLACCT_FORMAT");
    if (listing->fields)
        return acct_layout_columns(&listing->layout, listing->fields, err);
    if (listing->preset || !variable || !*variable)
        return acct_layout_columns(&listing->layout,
                                   listing->preset ? listing->preset : DEFAULT_FIELDS, err);
    return acct_layout_columns(&listing->layout, variable, err) == 0
               ? 0
               : tccl_fail_in(err, "TCCLACCT_FORMAT");
}

/* lost: NULL where nothing is known of that. */
static int print_json(json_t *records, int complete, json_t *lost, struct tccl_error *err)
{
    cleanup_json json_t *all =
        json_pack("{s:{s:s, s:b, s:O?}, s:O}", "meta", "version", TCCL_VERSION, "complete",
                  complete, "lost", lost, "records", records);
    return acct_print_json(all, err);
}

static int print_table(const struct acct_layout *layout, const json_t *records, time_t now,
                       struct tccl_error *err)
{
    struct acct_clock clock = {.now = now, .format = getenv("SLURM_TIME_FORMAT")};
    if (layout->header)
        acct_print_header(stdout, layout);
    for (size_t i = 0; i < json_array_size(records) && !ferror(stdout); i++)
        if (acct_print_row(stdout, layout, json_array_get(records, i), &clock) != 0)
            return tccl_fail(err, "out of memory");
    return 0;
}

/* Behind the table, for whoever misses a step in it. */
static void note_lost(const struct acct_request *request, const json_t *records)
{
    char text[ACCT_LOST_TEXT];
    if (!acct_request_lost(request, records, text))
        return;
    fflush(stdout);
    fprintf(stderr, "tccl: %s\n", text);
}

/* Returns 0, or -1 with err. */
static int answer(struct listing *listing, struct tccl_error *err)
{
    struct acct_request *request = &listing->request;
    int complete = 0;
    if (choose_fields(listing, err) != 0 ||
        acct_request_finish(request, acct_midnight(request->now), err) != 0)
        return -1;
    cleanup_json json_t *steps = acct_request_records(request, &complete, err);
    if (!steps)
        return -1;
    cleanup_json json_t *records = listing->fold ? acct_fold(steps) : json_incref(steps);
    if (!records)
        return tccl_fail(err, "out of memory");
    if (listing->json)
        return print_json(records, complete, request->lost, err);
    int rc = print_table(&listing->layout, records, request->now, err);
    note_lost(request, steps);
    return rc;
}

int list_main(int argc, char **argv)
{
    struct tccl_error err = {0};
    struct listing listing = {
        .layout = {.style = ACCT_ALIGNED, .delimiter = "|", .header = true},
    };
    int rc = acct_request_begin(&listing.request, &err);
    if (rc == 0)
        rc = parse_options(&listing, argc, argv, &err);
    if (rc == 0 && listing.instead)
        listing.instead();
    else if (rc == 0)
        rc = answer(&listing, &err);
    acct_request_clear(&listing.request);
    free(listing.fields);
    return acct_end(rc, &err);
}
