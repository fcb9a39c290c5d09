/* test-acct-summary.c: a summary as people read it. */
#include <locale.h>

#include "acct/acct.h"
#include "check.h"
#include "draw/term.h"

static json_t *example(void)
{
    json_t *days = json_array();
    for (int i = 0; i < 70; i++)
        json_array_append_new(days, json_pack("{s:i, s:i, s:i, s:i, s:i, s:f}", "start", i * 86400,
                                              "steps", 10, "planned", 5, "built", 3, "failed", 2,
                                              "gain_mean", i < 35 ? 1.0 : 2.0));
    return json_pack(
        "{s:i, s:i, s:i, s:{s:i, s:i}, s:{s:i}, s:[{s:s, s:i, s:s, s:i}], s:[{s:f, s:f, s:i}, "
        "{s:f, "
        "s:f, s:i}, {s:f, s:n, s:i}], s:f, s:f, s:[{s:s, s:i, s:f, s:i, s:s}, {s:s, s:i, s:n, s:i, "
        "s:s}], "
        "s:o, "
        "s:{s:f, s:f, s:f}, s:{s:i, s:f}}",
        "start", 0, "end", 86400, "steps", 700, "states", "failed", 200, "planned", 500, "built",
        "yes", 400, "reasons", "class", "no profile", "steps", 200, "example",
        "n2: \x1b[31m no profile of this machine, and many more words behind this, so many that no "
        "line holds them",
        "last", 50000, "gains", "from", 1.0, "to", 1.5, "steps", 0, "from", 1.5, "to", 2.0, "steps",
        300, "from", 2.0, "to", "steps", 100, "gain_median", 1.7, "gain_mean", 1.8, "nodes", "node",
        "n7", "steps", 12, "share", 0.5, "failed", 3, "stands_out", "slow", "node", "n8", "steps",
        4, "share", "failed", 4, "stands_out", "failures", "days", days, "solve_us", "median",
        1500.0, "p99", 2500.0, "max", 9000.0, "gain_built", "steps", 100, "median", 1.6);
}

static char *printed(const json_t *summary, int columns, bool utf8)
{
    return PRINTED(out, acct_summary_text(out, summary, columns, utf8));
}

TEST(text)
{
    cleanup_json json_t *summary = example();
    CHECK(summary != NULL);
    cleanup_free char *text = printed(summary, 80, false);
    CHECK_HOLDS(text, "700 steps, started from 1970-01-01T00:00:00 to 1970-01-02T00:00:00\n");
    CHECK_HOLDS(text, "  planned                 500   71.4 %  #####################\n"
                      "  failed                  200   28.6 %  #########\n");
    CHECK_HOLDS(
        text, "  no profile              200          0  1970-01-01 13:53\n      n2: \\x1b[31m no");
    CHECK_HOLDS(text,
                "\nPredicted gain over the baseline\nmedian 1.60 of 100 rings that NCCL built\n"
                "for all: median 1.70, mean 1.80\n"
                "  Gain                  Steps\n"
                "  1.50 - 2.00             300  ##############################\n"
                "  2.00 -                  100  ##########\n");
    CHECK_HOLDS(text, "  n7: slow             50.0 %       12          3  ###############\n");
    CHECK_HOLDS(text, "  n8: failures              -        4          4\n");
    CHECK_HOLDS(text, "median 1.50 ms, 99 % within 2.50 ms, longest 9.00 ms\n");
    CHECK_HOLDS(
        text, "  3 days from    Steps  Planned    Failed   Gain\n"
              "  1970-01-01        30       15         6   1.00  ##############################\n");
    CHECK(!strstr(text, "1.00 - 1.50") && !strchr(text, '\033'));
}

static void check_columns(const json_t *summary, int columns)
{
    cleanup_free char *text = printed(summary, columns, true);
    int lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        CHECK(tccl_term_width(line) <= columns);
        lines++;
    }
    CHECK(lines > 20);
}

TEST(nodes)
{
    cleanup_json json_t *summary =
        json_pack("{s:i, s:[{s:s, s:f, s:i, s:i, s:s}]}", "steps", 3, "nodes", "node", "n1",
                  "share", 0.94, "steps", 1, "failed", 1, "stands_out", "");
    json_t *node = json_array_get(json_object_get(summary, "nodes"), 0);
    cleanup_free char *well = printed(summary, 80, true);
    CHECK_HOLDS(well, "No node stands out.");
    CHECK(!strstr(well, "  n1"));
    json_object_set_new(node, "stands_out", json_string("slow"));
    cleanup_free char *slow = printed(summary, 80, true);
    CHECK_HOLDS(slow, "  n1: slow             94.0 %        1          1  ");
    CHECK(!strstr(slow, "No node"));
}

static char *page_of(const json_t *summary, bool complete)
{
    char *argv[] = {"summary", "--name=<b>", NULL};
    struct acct_asked asked = {.argv = argv, .argc = 2, .complete = complete};
    return PRINTED(out, acct_summary_page(out, summary, &asked));
}

static json_t *group(const char *class, double gain, double low, double high, const char *verdict,
                     int more, int more_own)
{
    bool known = gain > 0;
    return json_pack("{s:s, s:i, s:i, s:i, s:{s:i, s:f}, s:{s:i, s:f}, s:f, s:o, s:o, s:o, s:s, "
                     "s:{s:i, s:i}, s:n, s:i}",
                     "node_class", class, "n_nodes", 2, "gpus", 8, "from", 64 << 20, "rings",
                     "jobs", 20, "gbps", 10.5, "own", "jobs", 7, "gbps", known ? 7.0 : 0.0, "share",
                     0.93, "gain", known ? json_real(gain) : json_null(), "low",
                     known ? json_real(low) : json_null(), "high",
                     known ? json_real(high) : json_null(), "verdict", verdict, "needs", "rings",
                     more, "own", more_own, "stale", "users", 3);
}

/* What was achieved comes first, with what is known of the gain, and what it takes to know it. */
TEST(achieved)
{
    cleanup_json json_t *summary = example();
    json_t *groups =
        json_pack("[o, o, o, o, o]", group("9f3c01aa:0-3", 1.5, 1.41, 1.59, "faster", 0, 0),
                  group("9f3c01aa:0-1", 0.9, 0.85, 0.95, "slower", 0, 0),
                  group("<b>\x1b", 1.0, 0.99, 1.01, "as fast", 0, 0),
                  group("0badcafe:0", 1.1, 0.9, 1.3, "unknown", 30, 12),
                  group("0badcafe:1", 0, 0, 0, "unknown", 0, 1));
    json_object_set_new(
        json_array_get(groups, 2), "stale",
        json_pack("{s:i, s:f, s:s}", "steps", 9, "share", 0.71, "nodes", "n[1-4]\n"));
    json_object_set_new(
        summary, "achieved",
        json_pack(
            "{s:i, s:i, s:f, s:o, s:[{s:s, s:n, s:i, s:i, s:f, s:f}, {s:s, s:i, s:i, s:i, s:f, "
            "s:f}]}",
            "rings", 812, "own", 0, "share", 0.931, "groups", groups, "accounts", "account", "bio",
            "uid", "steps", 5, "small", 5, "bytes", 12.5e12, "share", 0.021, "account", "", "uid",
            1000, "steps", 3, "small", 1, "bytes", 999.0, "share", 0.31));
    cleanup_free char *text = printed(summary, 100, false);
    CHECK_HOLDS(text, "\n\nWhat was achieved\nRings reached 93 % of what was "
                      "predicted (the median of 812 steps).\n");
    CHECK_HOLDS(
        text,
        "  2x8 9f3c01aa:0-3         64 MiB   10.50    7.00     93 %\n"
        "      1.50 times (1.41 to 1.59; 20 and 7 jobs of 3 users): faster than NCCL's own\n");
    CHECK_HOLDS(text,
                "0.90 times (0.85 to 0.95; 20 and 7 jobs of 3 users): slower than NCCL's own\n");
    CHECK_HOLDS(text,
                "1.00 times (0.99 to 1.01; 20 and 7 jobs of 3 users): as fast as NCCL's own\n");
    CHECK_HOLDS(text, "of 3 users): not yet known: it takes some 30 more jobs");
    CHECK_HOLDS(text, "      not yet known: it takes 1 more job with NCCL's own\n");
    CHECK_HOLDS(text,
                "<b>\\x1b: 9 steps beside no other reached 71 % of what the profile says, on");
    CHECK_HOLDS(text, "n[1-4]\\n: profile no\n  longer true here: measure again\n");
    CHECK_HOLDS(text, "Trial= of a policy has some jobs");
    CHECK_HOLDS(text, "  bio                       5   12.5 TB   2.1 %         5\n"
                      "      would save at most 2.1 %: they don't matter here\n");
    CHECK_HOLDS(text, "  user 1000                 3     999 B  31.0 %         1\n"
                      "      would save at most 31.0 %\n");
    CHECK(!strchr(text, '\033'));
    check_columns(summary, 72);
    cleanup_free char *page = page_of(summary, true);
    CHECK_HOLDS(page, ", which reached 93 % of what was predicted (predicted: 1.60 times ");
    CHECK_HOLDS(page, "<dt>Achieved of what was predicted, median</dt><dd>93 %</dd>");
    CHECK_HOLDS(page, "<bdi>2x8 &lt;b&gt;&#92;x1b</bdi>");
    CHECK_HOLDS(page, "would save at most 2.1 %");
    CHECK(!strchr(page, '\033') && !strstr(page, "<b>"));
}

TEST(nothing)
{
    cleanup_json json_t *none = json_pack("{s:i, s:i, s:i}", "start", 0, "end", 0, "steps", 0);
    cleanup_free char *text = printed(none, 80, true);
    CHECK_STR(text, "no steps in this time that you may see\n");
    cleanup_json json_t *empty = json_object();
    cleanup_free char *nothing = printed(empty, 80, true);
    CHECK_STR(nothing, text);
    cleanup_json json_t *one = json_pack("{s:i, s:i, s:i}", "start", 0, "end", 60, "steps", 1);
    cleanup_free char *single = printed(one, 80, true);
    CHECK_HOLDS(single, "1 step, started from 1970-01-01T00:00:00 to 1970-01-01T00:01:00\n");
}

TEST(page)
{
    cleanup_json json_t *summary = example();
    cleanup_free char *page = page_of(summary, true);
    CHECK_HOLDS(page, "<p class=\"lead\">700 steps; NCCL built 100 of 500 planned rings "
                      "(predicted: 1.60 times NCCL's own, the median); 200 failed</p>");
    CHECK_HOLDS(page, "<p class=\"dim\">Started from 1970-01-01T00:00:00 to 1970-01-02");
    CHECK_HOLDS(page, "<dt>With a ring</dt><dd>500 (71 %)</dd>");
    CHECK_HOLDS(page, "<dt>Built by NCCL</dt><dd>400 (80 %)</dd>");
    CHECK_HOLDS(page, "<dd>1.70× (1.80×)</dd>");
    CHECK_HOLDS(page, "<dd>1.5 ms (2.5 ms)</dd>");
    CHECK_HOLDS(page, ">3 days from<");
    CHECK_HOLDS(page,
                "<th scope=\"row\">1970-01-04</th><td class=\"n\">9</td><td class=\"n\">6</td>"
                "<td class=\"n\">6</td><td class=\"n\">9</td>");
    CHECK_HOLDS(page, "<th scope=\"row\">1970-01-04</th><td class=\"n\">1.00</td>");
    CHECK_HOLDS(page, "<th scope=\"row\">1.50 - 2.00</th><td class=\"n\">300</td>");
    CHECK_HOLDS(page, "<th scope=\"row\"><bdi>planned</bdi></th><td class=\"n\">500</td>");
    CHECK_HOLDS(page, "<bdi>n2: &#92;x1b[31m no profile");
    CHECK_HOLDS(page, "<bdi>n7: slow</bdi></th><td class=\"n\">50.0 %");
    CHECK_HOLDS(page, "<bdi>--name=&lt;b&gt;</bdi>");
    CHECK(!strchr(page, '\033') && !strstr(page, "on this node only"));
    CHECK(strstr(page, "<bdi>planned</bdi>") < strstr(page, "<bdi>failed</bdi>"));
    cleanup_json json_t *none = json_pack("{s:i}", "steps", 0);
    cleanup_free char *empty = page_of(none, false);
    CHECK_HOLDS(empty, "No steps in this time");
    CHECK_HOLDS(empty, "on this node only");
    CHECK(!strstr(empty, "<svg"));
    cleanup_json json_t *bare = json_pack("{s:i}", "steps", 1);
    cleanup_free char *little = page_of(bare, true);
    CHECK_HOLDS(little, "No data yet.");
    CHECK(!strstr(little, "<svg"));
}

/* Texts on the page are bounded. */
TEST(long_texts)
{
    enum { LENGTH = 100000 };
    cleanup_free char *name = malloc(LENGTH + 1);
    memset(name, 'x', LENGTH);
    name[LENGTH] = '\0';
    cleanup_json json_t *summary =
        json_pack("{s:i, s:{s:i}, s:[{s:s, s:s}], s:[{s:s, s:i}]}", "steps", 1, "states", name, 1,
                  "reasons", "class", name, "example", name, "nodes", "node", name, "failed", 1);
    cleanup_free char *page = page_of(summary, true);
    CHECK(strlen(page) < 20000);
    CHECK_HOLDS(page, "xxx…</bdi>");
}

/* Spans hold all days, each in its place, counted again by a plain walk; across changes of the
 * clocks, where days have 23 or 25 hours. */
TEST(spans)
{
    unsigned seed = (unsigned)check_seed();
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    for (int round = 0; round < 300; round++) {
        cleanup_json json_t *summary = json_pack("{s:[]}", "days");
        json_t *days = json_object_get(summary, "days");
        int first = (int)(rand_r(&seed) % 700), most = 1 + rand_r(&seed) % 1100;
        int steps[2000] = {0}, length = 0;
        for (int day = 0; day < most; day++) {
            struct tm tm = {.tm_year = 124, .tm_mday = 1 + first + day, .tm_isdst = -1};
            if (day > 0 && rand_r(&seed) % 3)
                continue;
            steps[day] = 1 + rand_r(&seed) % 9;
            length = day + 1;
            json_array_append_new(days,
                                  json_pack("{s:I, s:i, s:i}", "start", (json_int_t)mktime(&tm),
                                            "steps", steps[day], "planned", steps[day]));
        }
        struct acct_span spans[ACCT_SPANS];
        json_int_t each;
        int count = acct_summary_spans(summary, spans, &each), walked = 0;
        CHECK(count <= ACCT_SPANS && (each == 1 || length > ACCT_SPANS));
        for (int i = 0; i < count; i++) {
            int sum = 0, from = spans[i].place * (int)each;
            for (int day = from; day < from + each; day++)
                sum += steps[day];
            CHECK(sum > 0 && (i == 0 || spans[i].place > spans[i - 1].place));
            CHECK_INT(spans[i].steps, sum);
            CHECK_INT(spans[i].planned, sum);
            walked += sum;
            struct tm tm = {.tm_year = 124, .tm_mday = 1 + first + from, .tm_isdst = -1}, shown;
            mktime(&tm);
            localtime_r(&(time_t){spans[i].noon}, &shown);
            CHECK(shown.tm_yday == tm.tm_yday && shown.tm_year == tm.tm_year);
        }
        for (int day = 0; day < length; day++)
            walked -= steps[day];
        CHECK_INT(walked, 0);
    }
    setenv("TZ", "UTC", 1);
}

SETUP
{
    setenv("TZ", "UTC", 1);
    unsetenv("SLURM_TIME_FORMAT");
    setlocale(LC_CTYPE, "C.UTF-8");
}

TEST(columns)
{
    cleanup_json json_t *summary = example();
    check_columns(summary, 72);
    check_columns(summary, 80);
    check_columns(summary, 132);
}
