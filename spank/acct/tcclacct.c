/* tcclacct.c: main: the command line, by one table; lists records in the manner of sacct, or runs a
 * command. */
#include <locale.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acct/acct.h"
#include "base/error.h"
#include "base/options.h"

enum { LIST, RING, SUMMARY, COMMANDS };
#define IN(command) (1u << (command))

static const char list_help[] =
    "Usage: tcclacct [OPTION]…           rings of job steps, and what NCCL built\n"
    "       tcclacct ring|summary …      draw one ring; summarize (--help)\n"
    "  -j JOB[.STEP],…   these jobs, any date  -X   one line per job, not step\n"
    "                    (12_3 or 12_[1-3]: tasks of array 12; 12+1: a component)\n"
    "  -S, -E TIME       started since, before (2026-01-31T08:00, 0131, now-2days)\n"
    "  -u USER,…  -a     these users; all users whose records you may see\n"
    "  -N NODES          ran on at least one of these nodes (n[1-4])\n"
    "  -s STATE,…        planned, left, failed, off; Built: yes, partly, no, unknown\n"
    "  -R CLASS,…        with a reason of this class (no profile, no daemon, …)\n"
    "  -r PART,…  -A ACCOUNT,…  -q QOS,…  --name=NAME,…  -i MIN[-MAX]   these\n"
    "                    partitions, accounts, QOS, job names, numbers of nodes\n"
    "  -o FIELD[%W],…    these fields, W characters wide (-W: left-aligned)\n"
    "  -l, -b            all fields; few fields   -e   list the fields\n"
    "  -n  -P  -p        no header; '|' between fields; also at the end\n"
    "  --delimiter=TEXT  use TEXT instead of '|'  --json   all data, as JSON\n"
    "  --config=FILE     instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "  --node=NAME       this node's Slurm name  -f, --file=FILE  that of tccl-run\n"
    "  -h, --help   -V, --version\n"
    "Long: --jobs --starttime --endtime --user --allusers --nodelist --state --reason\n"
    "--partition --accounts --qos --nnodes --allocations --format --long --brief\n"
    "--helpformat --noheader --parsable --parsable2. sacct's -D -L -M -T are\n"
    "ignored. Default: your steps since midnight; as root, everyone's.\n"
    "Environment: TCCLACCT_FORMAT (as -o), SLURM_TIME_FORMAT, TCCL_CONF; tcclacct(1).\n";

static const char ring_help[] =
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
    "  -f, --file=FILE    from a file of tccl-run's\n"
    "  -h, --help\n"
    "\n"
    "Arrows point the way the data go: -w> the GPU writes to the next, -r> the next\n"
    "one reads from it, -m0> through memory 0, -g> between NIC and GPU directly. See\n"
    "tcclacct(1).\n";

static const char summary_help[] =
    "Usage: tcclacct summary [OPTION]…\n"
    "Summarizes records: steps, how many got a ring, why others did not, the gain,\n"
    "the slowest nodes, each day. Default: your last 30 days; as root, everyone's.\n"
    "\n"
    "  -S, --starttime=TIME   started since (2026-01-31T08:00, 0131, now-7days)\n"
    "  -E, --endtime=TIME     started before\n"
    "  -u, --user=USER,…      these users (names or uids)\n"
    "  -a, --allusers         all users whose records you may see\n"
    "  -N, --nodelist=NODES   ran on at least one of these nodes (n[1-4])\n"
    "  -r, --partition=NAME,…   -A, --accounts=NAME,…  -q, --qos=NAME,…  these only\n"
    "      --name=NAME,…      jobs with one of these names\n"
    "  -i, --nnodes=MIN[-MAX] number of nodes\n"
    "  -s, --state=STATE,…    planned, left, failed, off; Built: yes, partly, no\n"
    "  -R, --reason=CLASS,…   with a reason of this class (no profile, no daemon, …)\n"
    "  -j, --jobs=JOB[.STEP],…  these jobs, any date\n"
    "      --html=FILE        as an HTML page (-: to standard output)\n"
    "      --json             as JSON\n"
    "      --config=FILE      instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "      --node=NAME        this node's Slurm name   -f, --file=FILE  of tccl-run's\n"
    "  -h, --help\n"
    "Bandwidths come from the profiles: see tcclacct(1).\n";

static const struct tccl_command commands[COMMANDS] = {
    {"", list_help, ""}, {"ring", ring_help, ""}, {"summary", summary_help, ""}};

static int (*const runs[COMMANDS])(struct acct_line *line, int count, char **words,
                                   struct tccl_error *err) = {acct_list, acct_draw, acct_summarize};

/* ---- options with a form of their own ---- */

static TCCL_OPTION_SETTER(set_filter)
{
    return acct_filter(*(json_t **)field, option->name, text, err);
}

/* Behind the fields of another -o. */
static TCCL_OPTION_SETTER(set_fields)
{
    char **fields = field, *both;
    if (asprintf(&both, "%s%s%s", *fields ? *fields : "", *fields ? "," : "", text) < 0)
        return tccl_fail(err, "out of memory");
    free(*fields);
    *fields = both;
    return 0;
}

static TCCL_OPTION_SETTER(set_preset)
{
    *(const char **)field = option->letter == 'l' ? "all" : "JobID,State,Reason";
    return 0;
}

static TCCL_OPTION_SETTER(set_style)
{
    *(enum acct_style *)field = option->letter == 'p' ? ACCT_PARSABLE_ENDING : ACCT_PARSABLE;
    return 0;
}

static TCCL_OPTION_SETTER(set_delimiter)
{
    *(const char **)field = text;
    return *text ? 0 : tccl_fail(err, "--delimiter: give at least one character");
}

/* The value may be an option, which stood behind --html. */
static TCCL_OPTION_SETTER(set_html)
{
    *(const char **)field = text;
    return *text && !(text[0] == '-' && text[1])
               ? 0
               : tccl_fail(err, "--html: give a file, or - for standard output");
}

static TCCL_OPTION_SETTER(set_svg)
{
    struct acct_line *line = field;
    line->svg = true;
    line->svg_file = text;
    return !text || *text
               ? 0
               : tccl_fail(err, "--svg=: give a file, or --svg alone for standard output");
}

/* An option of sacct that has no effect here: accepted with a note. */
static TCCL_OPTION_SETTER(ignore)
{
    fprintf(stderr, "tccl: --%s is ignored: %s\n", option->name,
            option->values ? option->values : "it has no effect on these records");
    return 0;
}

/* One that can't be honoured is an error: ignoring it would show other records than those asked
 * for.
 */
static TCCL_OPTION_SETTER(refuse)
{
    if (strcmp(option->name, "yaml") == 0)
        return tccl_fail(err, "--yaml: give --json");
    return tccl_fail(
        err, "--%s: not in the records of rings; ask sacct for the jobs and pass them with -j",
        option->name);
}

/* ---- the table ---- */

#define AT(member) offsetof(struct acct_line, member)
#define ROW(name, letter, commands, kind, member, values, set)                                     \
    {                                                                                              \
        name, letter, commands, TCCL_OPTION_##kind, AT(member), values, NULL, 0, 0, set            \
    }
#define SELECT(name, letter, values)                                                               \
    ROW(name, letter, IN(LIST) | IN(SUMMARY), OWN, request.filter, values, set_filter)
#define HIDDEN(name, letter, kind, member, why, set)                                               \
    {                                                                                              \
        name, letter, IN(LIST), TCCL_OPTION_##kind, AT(member), why, "", 0, 0, set                 \
    }
#define IGNORE(name, letter, kind, why) HIDDEN(name, letter, kind, request, why, ignore)
#define REFUSE(name, letter, kind) HIDDEN(name, letter, kind, request, NULL, refuse)

static const char all_clusters[] =
    "the records of all clusters that AccountingHost serves are shown";

static const struct tccl_option options[] = {
    SELECT("jobs", 'j', NULL),
    SELECT("user", 'u', "@user"),
    ROW("allusers", 'a', IN(LIST) | IN(SUMMARY), FLAG, request.all_users, NULL, NULL),
    ROW("starttime", 'S', IN(LIST) | IN(SUMMARY), TEXT, request.start, NULL, NULL),
    ROW("endtime", 'E', IN(LIST) | IN(SUMMARY), TEXT, request.end, NULL, NULL),
    SELECT("nodelist", 'N', NULL),
    SELECT("state", 's', ",planned|left|failed|off|yes|partly|no|unknown"),
    SELECT("reason", 'R', NULL),
    SELECT("partition", 'r', NULL),
    SELECT("accounts", 'A', NULL),
    SELECT("qos", 'q', NULL),
    SELECT("name", 0, NULL),
    SELECT("nnodes", 'i', NULL),
    ROW("allocations", 'X', IN(LIST), FLAG, fold, NULL, NULL),
    ROW("format", 'o', IN(LIST), OWN, fields, NULL, set_fields),
    ROW("long", 'l', IN(LIST), OWN_FLAG, preset, NULL, set_preset),
    ROW("brief", 'b', IN(LIST), OWN_FLAG, preset, NULL, set_preset),
    ROW("helpformat", 'e', IN(LIST), FLAG, list_fields, NULL, NULL),
    ROW("noheader", 'n', IN(LIST), FLAG, no_header, NULL, NULL),
    ROW("parsable", 'p', IN(LIST), OWN_FLAG, layout.style, NULL, set_style),
    ROW("parsable2", 'P', IN(LIST), OWN_FLAG, layout.style, NULL, set_style),
    ROW("delimiter", 0, IN(LIST), OWN, layout.delimiter, NULL, set_delimiter),
    {"svg", 0, IN(RING), TCCL_OPTION_OWN_MAYBE, 0, "@file", NULL, 0, 0, set_svg},
    ROW("html", 0, IN(RING) | IN(SUMMARY), OWN, html, "@file", set_html),
    ROW("json", 0, 0, FLAG, json, NULL, NULL),
    ROW("file", 'f', 0, TEXT, request.file, "@file", NULL),
    ROW("config", 0, 0, TEXT, request.config, "@file", NULL),
    ROW("node", 0, 0, TEXT, request.node, NULL, NULL),
    {"help", 'h', 0, TCCL_OPTION_HELP, 0, NULL, NULL, 0, 0, NULL},
    {"version", 'V', IN(LIST), TCCL_OPTION_VERSION, 0, NULL, NULL, 0, 0, NULL},
    /* Other names, and what sacct has more. */
    HIDDEN("uid", 0, OWN, request.filter, NULL, set_filter),
    HIDDEN("fields", 0, OWN, fields, NULL, set_fields),
    HIDDEN("help-fields", 0, FLAG, list_fields, NULL, NULL),
    HIDDEN("usage", 'U', HELP, request, NULL, NULL),
    IGNORE("duplicates", 'D', OWN_FLAG, "all steps of a requeued job are always shown"),
    IGNORE("allclusters", 'L', OWN_FLAG, all_clusters),
    IGNORE("clusters", 'M', OWN, all_clusters),
    IGNORE("cluster", 0, OWN, all_clusters),
    IGNORE("truncate", 'T', OWN_FLAG, "records have a start time only"),
    IGNORE("verbose", 'v', OWN_FLAG, NULL),
    IGNORE("federation", 0, OWN_FLAG, NULL),
    IGNORE("local", 0, OWN_FLAG, NULL),
    IGNORE("noconvert", 0, OWN_FLAG, NULL),
    IGNORE("units", 0, OWN, NULL),
    IGNORE("use-local-uid", 0, OWN_FLAG, NULL),
    IGNORE("whole-hetjob", 0, OWN_MAYBE, NULL),
    REFUSE("batch-script", 'B', OWN_FLAG),
    REFUSE("completion", 'c', OWN_FLAG),
    REFUSE("constraints", 'C', OWN),
    REFUSE("flags", 'F', OWN),
    REFUSE("gid", 'g', OWN),
    REFUSE("group", 0, OWN),
    REFUSE("ncpus", 'I', OWN),
    REFUSE("timelimit-min", 'k', OWN),
    REFUSE("timelimit-max", 'K', OWN),
    REFUSE("wckeys", 'W', OWN),
    REFUSE("associations", 'x', OWN),
    REFUSE("env-vars", 0, OWN_FLAG),
    REFUSE("yaml", 0, OWN_FLAG),
};

/* Classes of reasons, and fields. */
static void complete_more(int command)
{
    if (command != RING)
        fputs("--reason|-R|,", stdout);
    for (int i = 1; command != RING && tccl_reason_words[i]; i++)
        printf("%s%s", tccl_reason_words[i], tccl_reason_words[i + 1] ? "|" : "\n");
    if (command == LIST)
        fputs("--format|-o|,", stdout);
    for (int i = 0, n = acct_field_count(); command == LIST && i < n; i++)
        printf("%s%s", acct_field_at(i)->name, i + 1 < n ? "|" : "\n");
}

static const struct tccl_program program = {
    "tcclacct", commands,     COMMANDS, options, sizeof(options) / sizeof(*options),
    false,      complete_more};

int main(int argc, char **argv)
{
    struct tccl_error err = {0};
    int command = tccl_command_of(&program, argc, argv);
    struct acct_line line = {
        .layout = {.style = ACCT_ALIGNED, .delimiter = "|"},
        .asked = {.argv = argv + 1, .argc = argc - 1},
    };
    setlocale(LC_TIME, "");
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters */
    int rc = acct_request_begin(&line.request, &err);
    if (rc == 0)
        rc = tccl_options_read(&program, command, argc, argv, &line, &err);
    if (rc == 0)
        rc = runs[command](&line, argc - optind, argv + optind, &err);
    acct_request_clear(&line.request);
    free(line.fields);
    return acct_end(rc < 0 ? -1 : 0, &err);
}
