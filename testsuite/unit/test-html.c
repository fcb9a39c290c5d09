/* test-html.c: the frame of pages, and charts. */
#include "check.h"
#include "draw/html.h"
#include "draw/svg.h"

static int count(const char *text, const char *part)
{
    int found = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        found++;
    return found;
}

TEST(escape)
{
    cleanup_free char *text = PRINTED(out, tccl_svg_escape("<a b='c'>&\"\\\x01\x1b\t日\n", out));
    CHECK_STR(text, "&lt;a b='c'&gt;&amp;&quot;&#92;&#xFFFD;&#xFFFD;\t日\n");
}

static char *page_of(const char *heading, const char *line, const char *value)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    tccl_html_begin("program", heading, line, out);
    fputs("<dl class=\"facts\">\n", out);
    tccl_html_fact(out, value, "%s", value);
    fputs("</dl>\n", out);
    tccl_html_wide_begin(value, out);
    tccl_html_bar(7, out);
    tccl_html_bar(-1, out);
    tccl_html_bar(0.5, out);
    tccl_html_wide_end(out);
    tccl_html_end("program", out);
    fclose(out);
    return text;
}

TEST(page)
{
    const char *bad = "\"><script>x</script>&";
    cleanup_free char *page = page_of(bad, bad, bad);
    CHECK(!strncmp(page, "<!DOCTYPE html>\n<html lang=\"en\">\n", 33));
    CHECK_STR(page + strlen(page) - 16, "</body>\n</html>\n");
    CHECK(!strstr(strstr(page, "</head>"), "<script"));
    /* title, h1, the line, a name and its value, the region */
    CHECK_INT(count(page, "&quot;&gt;&lt;script&gt;x&lt;/script&gt;&amp;"), 6);
    CHECK_HOLDS(page, "default-src 'none'");
    CHECK_HOLDS(page, "<a class=\"skip\" href=\"#main\">");
    CHECK_HOLDS(page, "<main id=\"main\"");
    CHECK_HOLDS(page, "width:100%");
    CHECK_HOLDS(page, "width:0%");
    CHECK_HOLDS(page, "width:50%");
    CHECK(!strstr(page, "width:700%") && !strstr(page, "width:-"));
    cleanup_free char *bare = page_of("h", NULL, "v");
    CHECK_HOLDS(bare, "<h1>h</h1>\n</header>");
    char value[9000];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    cleanup_free char *cut = page_of("h", NULL, value);
    const char *told = strstr(cut, "<dd>");
    CHECK_INT(told ? strcspn(told + 4, "<") : 0, 4095);
}

/* The style is all that html.css says, and nothing in it is loaded. */
TEST(style)
{
    CHECK_HOLDS(tccl_html_style, ".chart svg {");
    CHECK_HOLDS(tccl_html_style, "prefers-color-scheme: dark");
    CHECK_HOLDS(tccl_html_style, "@media print {");
    CHECK(!strstr(tccl_html_style, "url(") && !strstr(tccl_html_style, "@import"));
    CHECK(!strstr(tccl_html_style, "/*") && !strstr(tccl_html_style, "</"));
    int depth = 0;
    for (const char *at = tccl_html_style; *at; at++)
        depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
    CHECK_INT(depth, 0);
}

static char *chart_of(const struct tccl_chart *chart)
{
    return PRINTED(out, tccl_chart_write(chart, out));
}

TEST(columns)
{
    struct tccl_chart_column columns[] = {{"<one>", "1", {3, 1}}, {"two", "2", {0, 2}}};
    struct tccl_chart chart = {.name = "a \"name\"",
                               .x_axis = "<x>",
                               .y_axis = "steps",
                               .series = {"s&1", "s2"},
                               .n_series = 2,
                               .columns = columns,
                               .n_columns = 2};
    cleanup_free char *text = chart_of(&chart);
    CHECK_HOLDS(text, "aria-label=\"a &quot;name&quot;; the same as a table below\"");
    CHECK_INT(count(text, "<rect"), 3); /* of nothing there is no box */
    CHECK_HOLDS(text, "<title>&lt;one&gt;: s&amp;1 3, s2 1</title>");
    CHECK_HOLDS(text,
                "<th scope=\"row\">&lt;one&gt;</th><td class=\"n\">3</td><td class=\"n\">1</td>");
    CHECK_HOLDS(text, "<th scope=\"col\">&lt;x&gt;</th>");
    CHECK_HOLDS(text, "<li><span class=\"key s1\"></span>s2</li>");
    /* The axis goes up to 4, the height of the first column. */
    CHECK_HOLDS(text, "<text class=\"end\" x=\"-8\" y=\"30.0\">4</text>");
    CHECK_HOLDS(text, "<text class=\"value mid\" x=\"25.00%\" y=\"21.0\">4</text>");
    chart.n_columns = 0;
    cleanup_free char *none = chart_of(&chart);
    CHECK_STR(none, "");
}

TEST(line)
{
    struct tccl_chart_column columns[] = {
        {"a", "a", {1.5}}, {"b", "b", {-1}}, {"c", "c", {2}}, {"d", "d", {NAN}}, {"e", "e", {1.2}}};
    struct tccl_chart chart = {.name = "gain",
                               .x_axis = "day",
                               .y_axis = "times",
                               .series = {"gain"},
                               .n_series = 1,
                               .line = true,
                               .base = "one",
                               .digits = 2,
                               .columns = columns,
                               .n_columns = 5};
    cleanup_free char *text = chart_of(&chart);
    CHECK_INT(count(text, "<circle"), 3);
    CHECK_INT(count(text, "class=\"s0 curve\""), 2); /* over what is not known */
    CHECK_INT(count(text, "<line class=\"base\""), 1);
    CHECK_HOLDS(text, "<th scope=\"row\">b</th><td class=\"n\">-</td>");
    CHECK_HOLDS(text, "<th scope=\"row\">c</th><td class=\"n\">2.00</td>");
    CHECK_HOLDS(text, "<span class=\"key base\"></span>one");
}

/* Each number behind name="…" lies between these. */
static void check_between(const char *text, const char *name, double least, double most)
{
    for (const char *at = text; (at = strstr(at, name));) {
        char *end;
        at += strlen(name);
        double value = strtod(at, &end);
        CHECK_NO(end == at || !(value >= least - 0.06 && value <= most + 0.06), "%s%.20s\n", name,
                 at);
    }
}

/* Whatever the values, all that is drawn is within the plot, and columns stand on its ground. */
TEST(random)
{
    static const double scales[] = {1e-9, 1, 3, 1000, 1e6, 1e308};
    for (int round = 0; round < 2000; round++) {
        struct tccl_chart_column columns[40] = {0};
        bool line = roll(2), whole = roll(2);
        struct tccl_chart chart = {.name = "n",
                                   .x_axis = "x",
                                   .y_axis = "y",
                                   .series = {"a", "b", "c"},
                                   .n_series = line ? 1 : 1 + (int)roll(3),
                                   .line = line,
                                   .base = roll(2) ? "one" : NULL,
                                   .digits = whole ? 0 : 2,
                                   .columns = columns,
                                   .n_columns = 1 + (int)roll(40)};
        double scale = scales[roll(6)];
        for (int i = 0; i < chart.n_columns; i++)
            for (int k = 0; k < chart.n_series; k++) {
                double value = scale * roll(1000) / 1000;
                columns[i].values[k] = roll(5) == 0 ? -1 : whole ? floor(value) : value;
            }
        cleanup_free char *text = chart_of(&chart);
        check_between(text, " y1=\"", 26, 196);
        check_between(text, " y2=\"", 26, 196);
        check_between(text, " cy=\"", 26, 196);
        check_between(text, " cx=\"", 0, 100);
        check_between(text, " height=\"", 0, 242);
        CHECK(!strstr(text, "inf") && !strstr(text, "nan") && !strstr(text, "height=\"-"));
        int axis = count(text, "<line class=\"rule\"");
        CHECK(axis >= 2 && axis <= 9);
    }
}
