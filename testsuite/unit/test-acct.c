/* test-acct.c: what tcclacct is made of: times, filters, fields and the table. */
#include <locale.h>

#include "acct/acct.h"
#include "check.h"

/* Saturday, 14 March 2026, 10:30:15 in the zone that main sets. */
static time_t now;

static void check_time(const char *text, const char *expected)
{
    time_t when = 0;
    char shown[64] = "";
    CHECK_OK(acct_time_parse(text, now, &when, ERR));
    acct_time_print(when, now, NULL, shown, sizeof(shown));
    CHECK_NO(strcmp(shown, expected) != 0, "time '%s' is %s, expected %s\n", text, shown, expected);
}

/* Slurm's own forms are in test-acct-time.c; these are beyond them. */
TEST(times)
{
    check_time("08:05", "2026-03-14T08:05:00");
    check_time("0131", "2026-01-31T00:00:00");
    check_time("0401", "2025-04-01T00:00:00");
    check_time("0331", "2026-03-31T00:00:00");
    check_time("Midnight", "2026-03-14T00:00:00");
    check_time("Today", "2026-03-14T00:00:00");
    check_time("yesterday", "2026-03-13T00:00:00");
    check_time("yesterday noon", "2026-03-13T12:00:00");
    check_time("now+1min", "2026-03-14T10:31:15");
    check_time("NOW-2Days", "2026-03-12T10:30:15");
}

TEST(bad_times)
{
    static const char *const bad[] = {"",       "x",
                                      "25:00",  "0132",
                                      "now-",   "now-5years",
                                      "now5",   "nowadays",
                                      "todays", "99999999",
                                      "01/31x", "now-999999999999",
                                      "uts5",   "2024-01-01T10:00:00.5"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        time_t when;
        CHECK_NO(acct_time_parse(bad[i], now, &when, ERR) != -1, "time '%s' was taken\n", bad[i]);
        CHECK(strstr(check_err.text, "is not a time: give YYYY-MM-DD") != NULL);
    }
}

static void check_shown(time_t when, const char *format, const char *expected)
{
    char text[64];
    acct_time_print(when, now, format, text, sizeof(text));
    CHECK_STR(text, expected);
}

TEST(shown_times)
{
    check_shown(now, "standard", "2026-03-14T10:30:15");
    check_shown(now, "%H h", "10 h");
    check_shown(now, "relative", "10:30:15");
    check_shown(now - 86400, "relative", "Ystday 10:30");
    check_shown(now - 2 * 86400, "relative", "12 Mar 10:30");
    check_shown(now + 2 * 86400, "relative", "Mon 10:30");
    check_shown(now, "no percent", "2026-03-14T10:30:15");
    check_shown(now - 30 * 86400, "relative", "12 Feb 10:30");
    check_shown(now - 400L * 86400, "relative", "7 Feb 2025");
    char small[8];
    acct_time_print(now, now, "%A %A %A", small, sizeof(small));
    CHECK(strlen(small) < sizeof(small));
}

static void check_filter(const char *option, const char *text, const char *expected)
{
    cleanup_json json_t *filter = json_object(), *wanted = json_loads(expected, 0, NULL);
    CHECK_OK(acct_filter(filter, option, text, ERR));
    cleanup_free char *dump = json_dumps(filter, JSON_COMPACT);
    CHECK_NO(!json_equal(filter, wanted), "'%s' gave %s, expected %s\n", text, dump, expected);
}

static void check_no_filter(const char *option, const char *text, const char *said)
{
    cleanup_json json_t *filter = json_object();
    CHECK_INT(acct_filter(filter, option, text, ERR), -1);
    CHECK_NO(!strstr(check_err.text, said), "'%s' said '%s', expected '%s'\n", text, check_err.text,
             said);
}

TEST(filters)
{
    check_filter("jobs", "12", "{\"jobs\":[{\"job\":12}]}");
    check_filter("jobs", ",12,,13,", "{\"jobs\":[{\"job\":12},{\"job\":13}]}");
    check_filter("jobs", "12,13.0,14+1,15+0.2",
                 "{\"jobs\":[{\"job\":12},{\"job\":13,\"step\":0},{\"job\":14,\"het_offset\":1},"
                 "{\"job\":15,\"het_offset\":0,\"step\":2}]}");
    check_filter("jobs", "7.batch,7.EXTERN,7.interactive",
                 "{\"jobs\":[{\"job\":7,\"step\":4294967291},{\"job\":7,\"step\":4294967292},"
                 "{\"job\":7,\"step\":4294967290}]}");
    check_filter("user", "root,1234", "{\"users\":[0,1234]}");
    check_filter("nodelist", "n[08-10],x", "{\"nodes\":[\"n08\",\"n09\",\"n10\",\"x\"]}");
    check_filter("state", "Off,left,PL,no,partly",
                 "{\"states\":[\"off\",\"left\",\"planned\",\"no\",\"partly\"]}");
    check_filter(
        "state", "Applied,fallback,nothing-to-do,partial,fewer,differs,not used",
        "{\"states\":[\"planned\",\"failed\",\"left\",\"partly\",\"partly\",\"no\",\"no\"]}");
    check_filter("reason", "No Profile,munge,no d",
                 "{\"classes\":[\"no profile\",\"munge\",\"no daemon\"]}");
    static const char *const jobs[] = {
        "",       "0",       "x",          "1.",           "1+",          "1.x",    "-1",
        "1 ",     "1.0.0",   "4294967296", "1.4294967296", "1+x",         "1+.0",   "1.batchx",
        "_1",     "1_",      "1_x",        "1_1-2",        "1_[",         "1_[]",   "1_[1",
        "1_[1,]", "1_[2-1]", "1_[1-]",     "1_[1-2:0]",    "1_[1-2:]",    "1_[1]x", "1_[1%]",
        "1_1%2",  "1_1+1",   "1+1_1",      "1_-1",         "1_4294967296"};
    for (size_t i = 0; i < COUNT(jobs); i++)
        check_no_filter("jobs", jobs[i], "is not a job");
    check_filter("jobs", "17_1", "{\"jobs\":[{\"array_job\":17,\"first\":1,\"last\":1}]}");
    check_filter("jobs", "17_0.batch,5",
                 "{\"jobs\":[{\"array_job\":17,\"first\":0,\"last\":0,\"step\":4294967291},"
                 "{\"job\":5}]}");
    check_filter("jobs", "17_[1-3,7,10-14:2%2].0,18_[4]",
                 "{\"jobs\":[{\"array_job\":17,\"first\":1,\"last\":3,\"step\":0},"
                 "{\"array_job\":17,\"first\":7,\"last\":7,\"step\":0},"
                 "{\"array_job\":17,\"first\":10,\"last\":10,\"step\":0},"
                 "{\"array_job\":17,\"first\":12,\"last\":12,\"step\":0},"
                 "{\"array_job\":17,\"first\":14,\"last\":14,\"step\":0},"
                 "{\"array_job\":18,\"first\":4,\"last\":4}]}");
    check_no_filter("jobs", "1_[0-1000000:2]", "more than 256 jobs");
    check_no_filter("user", "no-such-user-here", "unknown user 'no-such-user-here'");
    check_no_filter("user", "", "unknown user");
    check_no_filter("nodelist", "n[1-", "is not a node list");
    check_no_filter("nodelist", "n[1-2000]", "more than 1024 nodes");
    check_no_filter("state", "on", "is not a state: give one of: off");
    check_no_filter("state", "", "is not a state: give one of: off");
    check_no_filter("state", "planned,CD", "'CD' is a job state");
    check_no_filter("state", "running", "'running' is a job state");
    check_no_filter("state", "F", "'F' is a job state");
    check_no_filter("reason", "no", "'no' is not a class of reason: give one of: policy");
    check_no_filter("reason", "", "is not a class of reason");
}

TEST(ranges)
{
    static const char *const bad[] = {"", "x", "-1", "4-2", "0", "1-", "1-x", "2 "};
    check_filter("nnodes", "4", "{\"min_nodes\":4,\"max_nodes\":4}");
    check_filter("nnodes", "2-32", "{\"min_nodes\":2,\"max_nodes\":32}");
    for (size_t i = 0; i < COUNT(bad); i++)
        check_no_filter("nnodes", bad[i], "is not a number of nodes: give MIN[-MAX]");
}

static json_t *example(void)
{
    json_t *record =
        json_pack("{s:i, s:i, s:i, s:s, s:s, s:s, s:i, s:i, s:s, s:f, s:f, s:i, s:s, s:I}", "job",
                  12, "step", 3, "uid", 1000, "user", "ann", "job_name", "train", "nodes", "n[1-4]",
                  "n_nodes", 4, "gpus", 16, "state", "planned", "gbps", 12.345, "ratio", 2.0,
                  "solve_us", 1530, "ring", "n1[a -g> 0 -g> a]", "start", (json_int_t)now);
    CHECK(record != NULL);
    return record;
}

/* Header and one row, printed. */
static char *printed(const char *columns, enum acct_style style, const json_t *record)
{
    static char *text;
    size_t size;
    struct acct_clock clock = {.now = now};
    struct acct_layout layout = {.style = style, .delimiter = "|", .header = true};
    CHECK_OK(acct_layout_columns(&layout, columns, ERR));
    FILE *out = open_memstream(&text, &size);
    acct_print_header(out, &layout);
    CHECK_INT(acct_print_row(out, &layout, record, &clock), 0);
    fclose(out);
    return text;
}

static void check_printed(const char *columns, enum acct_style style, const json_t *record,
                          const char *expected)
{
    cleanup_free char *text = printed(columns, style, record);
    CHECK_STR(text, expected);
}

TEST(table)
{
    cleanup_json json_t *record = example();
    check_printed("jobid,user%5,gbps,sta%-8", ACCT_ALIGNED, record,
                  "JobID         User     GBps State\n"
                  "------------ ----- -------- --------\n"
                  "12.3           ann    12.35 planned\n");
    check_printed("mode%3,state%4,user%2", ACCT_ALIGNED, record,
                  "Mo+ Sta+ U+\n--- ---- --\n    pla+ a+\n");
}

TEST(styles)
{
    cleanup_json json_t *record = example();
    check_printed("JobID,User,GBps,BaselineGBps,Ratio,SolveTime", ACCT_PARSABLE, record,
                  "JobID|User|GBps|BaselineGBps|Ratio|SolveTime\n12.3|ann|12.35||2.00|1.53ms\n");
    check_printed("JobID,Start,NNodes", ACCT_PARSABLE_ENDING, record,
                  "JobID|Start|NNodes|\n12.3|2026-03-14T10:30:15|4|\n");
    cleanup_free char *all = printed("all", ACCT_PARSABLE, record);
    int bars = 0;
    for (const char *at = all; *at; at++)
        bars += *at == '|';
    CHECK_INT(bars, 2 * (acct_field_count() - 1));
}

TEST(job_names)
{
    cleanup_json json_t *record = example();
    json_object_set_new(record, "step", json_integer(0xfffffffb));
    check_printed("jobid", ACCT_PARSABLE, record, "JobID\n12.batch\n");
    json_object_set_new(record, "array_job_id", json_integer(10));
    json_object_set_new(record, "array_task_id", json_integer(0));
    check_printed("jobid,jobidraw", ACCT_PARSABLE, record, "JobID|JobIDRaw\n10_0.batch|12.batch\n");
    json_object_del(record, "array_job_id");
    json_object_set_new(record, "het_job", json_integer(11));
    json_object_set_new(record, "het_offset", json_integer(1));
    json_object_set_new(record, "step", json_integer(0));
    check_printed("jobid", ACCT_PARSABLE, record, "JobID\n11+1.0\n");
    json_object_set_new(record, "user", json_string(""));
    check_printed("user", ACCT_PARSABLE, record, "User\n1000\n");
}

static json_t *step_of(int job, int step, const char *state, int nodes)
{
    return json_pack("{s:i, s:i, s:s, s:i, s:i}", "job", job, "step", step, "state", state,
                     "n_nodes", nodes, "start", 1000 + step);
}

/* One line a job, of the step that tells most, in the order of first steps. */
TEST(fold)
{
    cleanup_json json_t *steps =
        json_pack("[o, o, o, o, o, o]", step_of(7, 0, "off", 4), step_of(5, 0, "failed", 8),
                  step_of(7, 1, "planned", 2), step_of(7, 2, "planned", 1),
                  step_of(5, 1, "failed", 8), step_of(7, 3, "failed", 9));
    cleanup_json json_t *jobs = acct_fold(steps);
    CHECK_INT(json_array_size(jobs), 2);
    check_printed("jobid,state,nnodes,steps", ACCT_PARSABLE, json_array_get(jobs, 0),
                  "JobID|State|NNodes|Steps\n7|planned|2|4\n");
    check_printed("jobid,state,nnodes,steps", ACCT_PARSABLE, json_array_get(jobs, 1),
                  "JobID|State|NNodes|Steps\n5|failed|8|2\n");
    CHECK_INT(json_integer_value(json_object_get(json_array_get(jobs, 1), "start")), 1001);
    check_printed("jobid,steps", ACCT_PARSABLE, json_array_get(steps, 2), "JobID|Steps\n7.1|1\n");
    cleanup_json json_t *none = json_array(), *nothing = acct_fold(none);
    CHECK_INT(json_array_size(nothing), 0);
}

/* What a job's owner chose for a name can't act on the terminal, or on who parses the output. */
TEST(hostile)
{
    cleanup_json json_t *record = example();
    json_object_set_new(record, "job_name",
                        json_string("a\x1b[31mb\nc|d\\e\xc2\x9b"
                                    "f\xe2\x80\xae"
                                    "g\xc3\xa9\x7f"));
    check_printed("jobname", ACCT_PARSABLE, record,
                  "JobName\na\\x1b[31mb\\nc\\x7cd\\\\e\\x9bf\\u202eg\xc3\xa9\\x7f\n");
    check_printed("jobname%-12,gpus", ACCT_ALIGNED, record,
                  "JobName       GPUs\n------------ -----\na\\x1b[31mb\\+    16\n");
    json_object_set_new(record, "job_name", json_string("ééééé日本"));
    check_printed("jobname%6,gpus", ACCT_ALIGNED, record,
                  "JobNa+  GPUs\n------ -----\nééééé+    16\n");
    json_object_set_new(record, "job_name", json_string("日本"));
    check_printed("jobname%6,gpus", ACCT_ALIGNED, record,
                  "JobNa+  GPUs\n------ -----\n  日本    16\n");
    json_object_set_new(record, "job_name", json_string("a\xef\xbf\xbe"));
    check_printed("jobname", ACCT_PARSABLE, record, "JobName\na\\ufffe\n");
    cleanup_free char *broken = tccl_term_escape("\xff\xc3", NULL);
    CHECK_STR(broken, "\\xff\\xc3");
}

/* A spreadsheet takes what begins so for a formula, and runs it. */
TEST(formulas)
{
    static const struct {
        const char *name, *cell;
    } cases[] = {{"=1+1", "\\x3d1+1"},
                 {"@SUM(A1)", "\\x40SUM(A1)"},
                 {"+1+cmd()", "\\x2b1+cmd()"},
                 {"-2+3", "\\x2d2+3"},
                 {"-", "\\x2d"},
                 {"=a|b", "\\x3da\\x7cb"},
                 {"-2.5", "-2.5"},
                 {"+7", "+7"},
                 {"a=b", "a=b"},
                 {"", ""}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        cleanup_json json_t *record = json_pack("{s:s}", "job_name", cases[i].name);
        check_printed("jobname", ACCT_PARSABLE, record,
                      check_printf("JobName\n%s\n", cases[i].cell));
        cleanup_free char *aligned = printed("jobname%-20", ACCT_ALIGNED, record);
        CHECK(!strstr(aligned, "\\x") || strchr(cases[i].name, '|'));
    }
}

/* The last column, to the left, is written whole unless a width is asked for. */
TEST(last_column)
{
    cleanup_json json_t *record = example();
    char ring[201] = "";
    memset(ring, 'r', 200);
    json_object_set_new(record, "ring", json_string(ring));
    cleanup_free char *whole = printed("jobid,ring", ACCT_ALIGNED, record);
    CHECK(strstr(whole, ring) != NULL);
    cleanup_free char *cut = printed("jobid,ring%-10", ACCT_ALIGNED, record);
    CHECK(strstr(cut, " rrrrrrrrr+\n") != NULL);
}

static void check_no_columns(const char *text, const char *said)
{
    struct acct_layout layout = {.delimiter = "|"};
    CHECK_SAYS(acct_layout_columns(&layout, text, ERR) == -1, said);
}

TEST(bad_columns)
{
    check_no_columns("nofield", "unknown field 'nofield'; known: JobID");
    check_no_columns("", "unknown field ''");
    check_no_columns(",", "unknown field ','");
    check_no_columns("jobid%", "give a width from 1 to 1000");
    check_no_columns("jobid%0", "give a width from 1 to 1000");
    check_no_columns("jobid%1001", "give a width from 1 to 1000");
    check_no_columns("jobid%5x", "give a width from 1 to 1000");
    check_no_columns("all,all,all", "more than 64 fields");
}

/* The name of the uid, if this machine has one; nobody else's word. */
TEST(users)
{
    cleanup_json json_t *records =
        json_pack("[{s:i,s:s},{s:I,s:s},{s:i,s:s}]", "uid", 0, "user", "ann", "uid",
                  (json_int_t)4000000000, "user", "far", "uid", 0, "user", "");
    static const char *const names[] = {"root", "", "root"};
    acct_name_users(records);
    for (size_t i = 0; i < 3; i++)
        CHECK_STR(json_string_value(json_object_get(json_array_get(records, i), "user")), names[i]);
}

SETUP
{
    setenv("TZ", "XST-3", 1);
    setlocale(LC_CTYPE, "C.UTF-8");
    struct tm fields = {
        .tm_year = 126, .tm_mon = 2, .tm_mday = 14, .tm_hour = 10, .tm_min = 30, .tm_sec = 15};
    now = mktime(&fields);
}
