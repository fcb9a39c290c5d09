/* Records as an accounting host can send them: all fields of tcclacct's table, and the ring as
 * text, SVG, page and JSON; and the same as a summary. What is not JSON is the ring's text of a
 * record. */
#include <locale.h>

#include "acct/acct.h"
#include "draw/term.h"
#include "fuzz.h"

/* One line after the other, without what could move the cursor. */
static void check_drawn_text(const char *text)
{
    for (const char *at = text; *at; at++)
        FUZZ_CHECK((unsigned char)*at >= ' ' || *at == '\n');
    cleanup_json json_t *utf8 = json_string(text);
    FUZZ_CHECK(utf8 && *text);
}

/* Goes behind the tag at at ('<'). *depth: of open elements. */
static const char *skip_tag(const char *at, int *depth)
{
    bool close = at[1] == '/', quoted = false;
    for (at++; *at && (quoted || *at != '>'); at++) {
        quoted ^= *at == '"';
        FUZZ_CHECK(*at != '<' && (*at != '&' || quoted));
    }
    FUZZ_CHECK(*at == '>' && !quoted);
    *depth += close ? -1 : at[-1] == '/' ? 0 : 1;
    return at;
}

/* Elements and quotes are closed, no number is "inf" or "nan", nothing is cut within a character.
 */
static void check_markup(const char *text, const char *begin)
{
    int depth = 0;
    cleanup_json json_t *utf8 = json_string(text);
    FUZZ_CHECK(utf8 && strncmp(text, begin, strlen(begin)) == 0);
    for (const char *at = text; *at; at++) {
        FUZZ_CHECK((unsigned char)*at >= ' ' || *at == '\n');
        if (*at == '<')
            at = skip_tag(at, &depth);
        FUZZ_CHECK(depth > 0 || strcmp(at, ">\n") == 0 || strcmp(at, "\n") == 0);
        if (*at == '&')
            FUZZ_CHECK(strncmp(at, "&amp;", 5) == 0 || strncmp(at, "&lt;", 4) == 0 ||
                       strncmp(at, "&gt;", 4) == 0 || strncmp(at, "&quot;", 6) == 0 ||
                       strncmp(at, "&#", 2) == 0);
    }
    FUZZ_CHECK(depth == 0);
    FUZZ_CHECK(!strstr(text, "=\"inf") && !strstr(text, "=\"nan") && !strstr(text, "width=\"-") &&
               !strstr(text, "height=\"-"));
}

static void check_page(const char *text)
{
    static const char first[] = "<!DOCTYPE html>\n";
    FUZZ_CHECK(strncmp(text, first, strlen(first)) == 0);
    check_markup(text + strlen(first), "<html ");
    FUZZ_CHECK(!strstr(strstr(text, "</script>\n</head>"), "<script"));
    FUZZ_CHECK(!strstr(text, " href=\"h"));
}

static const struct acct_asked asked = {.complete = true};
enum { SVG = 0, PAGE = -1 }; /* or so many columns of text */

/* Each way of drawing a record. Returns 0 with *text (allocated), or -1. */
static int draw(const json_t *record, int columns, char **text, struct tccl_error *err)
{
    size_t size;
    FILE *out = open_memstream(text, &size);
    if (!out)
        abort();
    int rc = columns == SVG    ? acct_ring_svg(out, record, err)
             : columns == PAGE ? acct_ring_page(out, record, &asked, err)
                               : acct_ring_text(out, record, columns, false, err);
    if (fclose(out) != 0)
        abort();
    FUZZ_CHECK(rc == 0 || (size == 0 && err->text[0]));
    return rc;
}

static void check_record(json_t *record)
{
    struct tccl_error err[5] = {0};
    cleanup_free char *narrow = NULL, *wide = NULL, *svg = NULL, *page = NULL;
    const struct acct_clock clock = {.now = 1764000000, .format = "relative"};
    const struct acct_field *field;
    for (int i = 0; (field = acct_field_at(i)); i++) {
        cleanup_free char *text = acct_field_text(field, record, &clock);
        cleanup_free char *safe = text ? tccl_term_escape(text, "|") : NULL;
        FUZZ_CHECK(safe && !strpbrk(safe, "|\n\033\177"));
    }
    int rc = draw(record, 40, &narrow, &err[0]);
    FUZZ_CHECK(draw(record, 200, &wide, &err[1]) == rc && draw(record, SVG, &svg, &err[2]) == rc &&
               draw(record, PAGE, &page, &err[3]) == rc);
    cleanup_json json_t *json = acct_ring_json(record, &err[4]);
    FUZZ_CHECK((rc == 0) == (json != NULL));
    if (rc != 0)
        return;
    check_drawn_text(narrow);
    check_drawn_text(wide);
    check_markup(svg, "<svg ");
    FUZZ_CHECK(!strstr(svg, "=\"-")); /* nothing is outside of the sheet */
    check_page(page);
    json_t *ring = json_object_get(json, "ring");
    FUZZ_CHECK(json_array_size(json_object_get(ring, "chains")) <=
               json_array_size(json_object_get(ring, "nodes")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    setenv("LC_ALL", "C.UTF-8", 1);
    cleanup_free char *text = fuzz_text(data, size);
    cleanup_json json_t *record = fuzz_json(data, size);
    if (!record)
        record =
            json_pack("{s:i, s:s, s:i, s:s}", "job", 7, "nodes", "n1", "gpus", 4, "ring", text);
    if (record) {
        check_record(record);
        cleanup_free char *page = PRINTED(out, acct_summary_page(out, record, &asked)),
                          *text = PRINTED(out, acct_summary_text(out, record, 80, true));
        check_page(page);
        check_drawn_text(text);
    }
    return 0;
}

FUZZ_SEEDS(
    "n1[mlx5_0 -g> 0 -w> 1 -r> 2 -m0> 3 -m1> mlx5_1] n2[mlx5_0 -g> 0 -w> 1 -g> mlx5_1] "
    "n3[mlx5_0 -g> 0 -w> 1 -g> mlx5_1] n4[mlx5_0 -g> 0 -w> 1 -r> 2 -m0> 3 -m1> mlx5_1]",
    "0 -w> 1 -r> 3 -m1> 2 -w> 0",
    "n1[a -g> 0 -w> 1 -g> b | b -m0> 1 -m0> 0 -m0> a] n2[a -g> 0 -g> b | b -g> 0 -g> a]",
    "n1[a -g> 0 -g> b] n2[a -g> 1 -g> b] n3[a -g> 0 -g> b] n4[a -g> 1 -g> b] n5[a "
    "-m\xe2\x80\xa6",
    "{\"job\":7,\"step\":3,\"user\":\"u\",\"job_name\":\"<x> & y\",\"n_nodes\":1,\"gpus\":3,"
    "\"nodes\":\"n1\",\"state\":\"planned\",\"built\":\"differs\",\"built_reason\":\"2 rings\","
    "\"gbps\":9.5,\"baseline_gbps\":4.5,\"bound_gbps\":10,\"ratio\":2.1,\"source\":\"cuda\","
    "\"solve_us\":1200,\"start\":1764000000,\"end\":1764000100,\"ring\":\"0 -w> 1 -w> 2 -m0> "
    "0\"}",
    "{\"job\":7,\"array_job\":6,\"array_task\":1,\"het_job\":5,\"het_offset\":1,\"step\":-5,"
    "\"state\":\"failed\",\"reason\":\"no profile\",\"bound_gbps\":1e308,\"gbps\":1e-300,"
    "\"ring\":\"n1[ib0 -g> 0 -g> ib0] n2[ib0 -g> 0 -g> ib0]\",\"source\":\"model\"}",
    "{\"steps\":9,\"start\":0,\"end\":99,\"states\":{\"<b>\":5,\"off\":4},\"built\":{\"x\":1},"
    "\"reasons\":[{\"class\":\"&\",\"steps\":2,\"failed\":1,\"example\":\"\\u202e\","
    "\"last\":5}],"
    "\"gains\":[{\"from\":1,\"to\":2,\"steps\":3},{\"from\":2,\"to\":null,\"steps\":1}],"
    "\"gain_median\":1.5,\"gain_mean\":1.6,\"nodes\":[{\"node\":\"n1\",\"steps\":1,\"share\":0."
    "5,"
    "\"failed\":2}],\"days\":[{\"start\":0,\"steps\":5,\"planned\":3,\"failed\":1,"
    "\"gain_mean\":1.5},{\"start\":86400,\"steps\":4,\"planned\":0,\"failed\":0,"
    "\"gain_mean\":null}],\"solve_us\":{\"median\":1,\"p99\":2,\"max\":3}}")
