/* tcclacct.c: shows what ring each job step got, as sacct would. */
#include <getopt.h>
#include <locale.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acct-filter.h"
#include "acct-table.h"
#include "acct-time.h"
#include "cleanup.h"
#include "client.h"
#include "conf.h"

#define DEFAULT_FIELDS                                                                             \
    "JobID,JobName,User,NodeList,GPUs,Mode,State,Built,GBps,BaselineGBps,Ratio,SolveTime,Reason"

enum { ANSWER_WITHIN_MS = 20000 };
enum { OPTION_JSON = 256, OPTION_DELIMITER, OPTION_CONFIG, OPTION_NODE };

static const char help[] =
    "Usage: tcclacct [OPTION]…\n"
    "Shows which ring job steps got, and what NCCL built: yours of today, as root everyone's.\n"
    "\n"
    "  -j, --jobs=JOB[.STEP],…   these jobs or steps (12, 13.0, 14+1, 15.batch), of any day\n"
    "  -u, --user=USER,…         of these users (names or uids)\n"
    "  -a, --allusers            of all users, as far as you may see them\n"
    "  -S, --starttime=TIME      started since (2026-01-31T08:00, 0131, 08:00, now-2days)\n"
    "  -E, --endtime=TIME        started until\n"
    "  -N, --nodelist=NODES      that ran on one of these nodes (n[1-4])\n"
    "  -s, --state=STATE,…       off, applied, fallback, nothing-to-do, partial, differs\n"
    "  -o, --format=FIELD[%W],…  these fields, W characters wide (-W: to the left)\n"
    "  -l, --long                all fields\n"
    "  -e, --helpformat          list the fields\n"
    "  -n, --noheader            no header\n"
    "  -P, --parsable2           fields with '|' between them, -p: and at the end\n"
    "      --delimiter=TEXT      this instead of '|'\n"
    "      --json                everything that is known, as JSON\n"
    "      --config=FILE         instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "      --node=NAME           this node's Slurm name, where it isn't the host's\n"
    "  -h, --help   -V, --version\n"
    "Environment: TCCLACCT_FORMAT (as -o), SLURM_TIME_FORMAT, TCCL_CONF. See tcclacct(1).\n";

static const struct option long_options[] = {
    {"jobs", required_argument, NULL, 'j'},
    {"user", required_argument, NULL, 'u'},
    {"uid", required_argument, NULL, 'u'},
    {"allusers", no_argument, NULL, 'a'},
    {"starttime", required_argument, NULL, 'S'},
    {"endtime", required_argument, NULL, 'E'},
    {"nodelist", required_argument, NULL, 'N'},
    {"state", required_argument, NULL, 's'},
    {"format", required_argument, NULL, 'o'},
    {"long", no_argument, NULL, 'l'},
    {"helpformat", no_argument, NULL, 'e'},
    {"noheader", no_argument, NULL, 'n'},
    {"parsable", no_argument, NULL, 'p'},
    {"parsable2", no_argument, NULL, 'P'},
    {"delimiter", required_argument, NULL, OPTION_DELIMITER},
    {"json", no_argument, NULL, OPTION_JSON},
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"node", required_argument, NULL, OPTION_NODE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* What was asked on the command line. */
struct request {
    const char *config, *node;
    const char *fields; /* of -o or -l, NULL: not given */
    const char *start, *end;
    bool all_users, json;
    json_t *filter;
    struct acct_layout layout;
    void (*instead)(void); /* help and the like: nothing else is done */
};

static void print_help(void)
{
    fputs(help, stdout);
}

static void print_version(void)
{
    puts("tcclacct " TCCL_VERSION);
}

static void print_fields(void)
{
    for (int i = 0; i < ACCT_FIELDS; i++)
        printf("%-16s%s", acct_fields[i].name, i % 4 == 3 || i == ACCT_FIELDS - 1 ? "\n" : "");
}

/* The options that make the filter. Returns 0, or -1 with err. */
static int take_filter(struct request *request, int option, const char *value,
                       struct tccl_error *err)
{
    switch (option) {
    case 'j':
        return acct_filter_jobs(request->filter, value, err);
    case 'u':
        return acct_filter_users(request->filter, value, err);
    case 'N':
        return acct_filter_nodes(request->filter, value, err);
    case 's':
        return acct_filter_states(request->filter, value, err);
    case 'S':
        request->start = value;
        return 0;
    default:
        request->end = value;
        return 0;
    }
}

/* The options of the output. Returns 0, or -1 with err. */
static int take_output(struct request *request, int option, const char *value,
                       struct tccl_error *err)
{
    struct acct_layout *layout = &request->layout;
    switch (option) {
    case 'o':
        request->fields = value;
        break;
    case 'l':
        request->fields = request->fields ? request->fields : "all";
        break;
    case 'n':
        layout->header = false;
        break;
    case 'p':
        layout->style = ACCT_PARSABLE_ENDING;
        break;
    case 'P':
        layout->style = ACCT_PARSABLE;
        break;
    case OPTION_DELIMITER:
        layout->delimiter = value;
        return *value ? 0 : tccl_fail(err, "--delimiter: give at least one character");
    default:
        request->json = true;
    }
    return 0;
}

/* A wrong option, or one without its value; argv[optind - 1] is where getopt stands. */
static int refuse_option(char *const *argv, struct tccl_error *err)
{
    const char *word = argv[optind - 1];
    if (optopt > 0 && optopt < OPTION_JSON && strncmp(word, "--", 2) != 0)
        return tccl_fail(err, "-%c: no such option, or its value is missing; see --help", optopt);
    return tccl_fail(err, "%.60s: no such option, or its value is missing or too much; see --help",
                     word);
}

static int take_option(struct request *request, int option, char *const *argv,
                       struct tccl_error *err)
{
    switch (option) {
    case 'h':
        request->instead = print_help;
        return 0;
    case 'V':
        request->instead = print_version;
        return 0;
    case 'e':
        request->instead = print_fields;
        return 0;
    case 'a':
        request->all_users = true;
        return 0;
    case OPTION_CONFIG:
        request->config = optarg;
        return 0;
    case OPTION_NODE:
        request->node = optarg;
        return 0;
    case '?':
        return refuse_option(argv, err);
    default:
        return option < OPTION_JSON && strchr("juNsSE", option)
                   ? take_filter(request, option, optarg, err)
                   : take_output(request, option, optarg, err);
    }
}

static int parse_options(struct request *request, int argc, char **argv, struct tccl_error *err)
{
    int option;
    opterr = 0;
    while (!request->instead &&
           (option = getopt_long(argc, argv, "j:u:aS:E:N:s:o:lenpPhV", long_options, NULL)) != -1)
        if (take_option(request, option, argv, err) != 0)
            return -1;
    if (!request->instead && optind < argc)
        return tccl_fail(err, "%.60s: what is that? jobs are given with -j; see --help",
                         argv[optind]);
    return 0;
}

static int choose_fields(struct request *request, struct tccl_error *err)
{
    const char *variable = getenv("TCCLACCT_FORMAT");
    if (request->fields)
        return acct_layout_columns(&request->layout, request->fields, err);
    if (!variable || !*variable)
        return acct_layout_columns(&request->layout, DEFAULT_FIELDS, err);
    return acct_layout_columns(&request->layout, variable, err) == 0
               ? 0
               : tccl_fail_in(err, "TCCLACCT_FORMAT");
}

static int add_time(json_t *filter, const char *name, time_t when, struct tccl_error *err)
{
    if (when < 0)
        when = 0;
    return json_object_set_new(filter, name, json_integer(when)) == 0 ? 0
                                                                      : tccl_fail(err, "no memory");
}

/* Since midnight, unless jobs or times are given. */
static int choose_times(struct request *request, time_t now, struct tccl_error *err)
{
    bool jobs = json_object_get(request->filter, "jobs") != NULL;
    time_t start = jobs ? 0 : acct_midnight(now), end;
    if (request->start && acct_time_parse(request->start, now, &start, err) != 0)
        return tccl_fail_in(err, "--starttime");
    if (add_time(request->filter, "start", start, err) != 0)
        return -1;
    if (!request->end)
        return 0;
    if (acct_time_parse(request->end, now, &end, err) != 0)
        return tccl_fail_in(err, "--endtime");
    if (end < start)
        return tccl_fail(err, "--endtime=%.60s is before the start", request->end);
    return add_time(request->filter, "end", end, err);
}

/* One's own, unless users, all users or jobs are asked for; root asks for everyone's. tccld shows
 * nobody what isn't theirs, whatever the filter says. */
static int choose_users(struct request *request, struct tccl_error *err)
{
    json_t *filter = request->filter;
    if (request->all_users)
        json_object_del(filter, "users");
    if (request->all_users || getuid() == 0 || json_object_get(filter, "users") ||
        json_object_get(filter, "jobs"))
        return 0;
    return json_object_set_new(filter, "users", json_pack("[I]", (json_int_t)getuid())) == 0
               ? 0
               : tccl_fail(err, "no memory");
}

static json_t *query(const struct request *request, int *complete, struct tccl_error *err)
{
    struct tccl_conf conf;
    if (tccl_conf_read(tccl_conf_tool_path(request->config), request->node, &conf, err) != 0)
        return NULL;
    json_t *records = tccl_client_query(&conf, request->filter, ANSWER_WITHIN_MS, complete, err);
    if (!records)
        tccl_fail_in(err, "no records from %s",
                     *conf.accounting_host ? conf.accounting_host : "this node");
    else if (!*complete)
        fprintf(stderr,
                "tccl: AccountingHost is not set in %s: only records of this node (%s) are shown\n",
                conf.path, conf.node);
    tccl_conf_clear(&conf);
    return records;
}

/* Slurm does not tell a batch step its user's name: it is looked up here, as it would be for ls(1).
 */
static void name_users(json_t *records)
{
    size_t i;
    json_t *record;
    json_int_t known = -1;
    cleanup_free char *name = NULL;
    json_array_foreach(records, i, record)
    {
        const char *user = json_string_value(json_object_get(record, "user"));
        json_int_t uid = json_integer_value(json_object_get(record, "uid"));
        if (user && *user)
            continue;
        if (uid != known) {
            const struct passwd *entry = getpwuid((uid_t)uid);
            free(name);
            name = entry ? strdup(entry->pw_name) : NULL;
            known = uid;
        }
        if (name)
            json_object_set_new(record, "user", json_string(name));
    }
}

static int print_json(json_t *records, int complete, struct tccl_error *err)
{
    cleanup_json json_t *all = json_pack("{s:{s:s, s:b}, s:O}", "meta", "version", TCCL_VERSION,
                                         "complete", complete, "records", records);
    if (!all || json_dumpf(all, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0)
        return tccl_fail(err, "the records can't be written as JSON");
    putchar('\n');
    return 0;
}

static int print_table(const struct acct_layout *layout, const json_t *records, time_t now,
                       struct tccl_error *err)
{
    struct acct_clock clock = {.now = now, .format = getenv("SLURM_TIME_FORMAT")};
    if (layout->header)
        acct_print_header(stdout, layout);
    for (size_t i = 0; i < json_array_size(records); i++)
        if (acct_print_row(stdout, layout, json_array_get(records, i), &clock) != 0)
            return tccl_fail(err, "no memory");
    return 0;
}

/* Returns 0, or -1 with err. */
static int answer(struct request *request, struct tccl_error *err)
{
    time_t now = time(NULL);
    int complete = 0;
    if (choose_fields(request, err) != 0 || choose_times(request, now, err) != 0 ||
        choose_users(request, err) != 0)
        return -1;
    cleanup_json json_t *records = query(request, &complete, err);
    if (!records)
        return -1;
    name_users(records);
    return request->json ? print_json(records, complete, err)
                         : print_table(&request->layout, records, now, err);
}

int main(int argc, char **argv)
{
    struct tccl_error err = {0};
    struct request request = {
        .filter = json_object(),
        .layout = {.style = ACCT_ALIGNED, .delimiter = "|", .header = true},
    };
    setlocale(LC_TIME, "");
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters */
    int rc = parse_options(&request, argc, argv, &err);
    if (rc == 0 && request.instead)
        request.instead();
    else if (rc == 0)
        rc = answer(&request, &err);
    json_decref(request.filter);
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        rc = tccl_fail(&err, "the output can't be written: %m");
    if (rc != 0)
        fprintf(stderr, "tccl: %s\n", err.text);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
