/* test-acct-ring.c: the ring of a record read and drawn, as text and as SVG. */
#include <locale.h>
#include <wchar.h>

#include "acct/acct.h"
#include "chain/beside-text.h"
#include "check.h"
#include "draw/term.h"

#define A "mlx5_0 -g> 3 -w> 1 -m0> 2 -m1> 0 -g> mlx5_1"
#define B "ib0 -m1> 0 -r> 1 -m12> 7 -m0> ib0"

TEST(reading)
{
    cleared_by(acct_ring_clear) struct acct_ring ring = {0};
    CHECK_OK(acct_ring_read("n1[" A "] n2[" A "] n3[" B "]", "", &ring, ERR));
    CHECK_INT(ring.n_nodes, 3);
    CHECK(ring.n_sets == 2 && ring.n_rings == 1);
    CHECK_INT(ring.n_runs, 2);
    CHECK_INT(ring.runs[0].count, 2);
    CHECK_INT(ring.n_gpus, 11);
    CHECK(!ring.cut);
    const struct tccl_named_chain *a = &ring.sets[0].chains[0], *b = &ring.sets[1].chains[0];
    CHECK(!a->closed);
    CHECK_STR(a->entry.nic, "mlx5_0");
    CHECK_STR(a->exit.nic, "mlx5_1");
    CHECK_INT(a->n_gpus, 4);
    CHECK_INT(tccl_named_arrows(a), 5);
    CHECK(a->gpus[0] == 3 && a->gpus[3] == 0);
    CHECK(tccl_named_arrow(a, 0).kind == 'g' && tccl_named_arrow(a, 1).kind == 'w' &&
          tccl_named_arrow(a, 3).kind == 'm');
    CHECK_INT(tccl_named_arrow(a, 3).memory, 1);
    CHECK(tccl_named_arrow(b, 0).kind == 'm' && tccl_named_arrow(b, 1).kind == 'r');
    CHECK_INT(tccl_named_arrow(b, 2).memory, 12);
}

TEST(sets)
{
    static const char *const both = A " | "
                                      "mlx5_1 -g> 0 -w> 1 -m0> 2 -m1> 3 -g> mlx5_0";
    struct acct_ring ring;
    CHECK_OK(acct_ring_read(check_printf("n1[%s] n2[%s] n3[" A " | " A "]", both, both), "", &ring,
                            ERR));
    CHECK(ring.n_rings == 2 && ring.n_sets == 2 && ring.n_runs == 2 && ring.n_nodes == 3);
    CHECK_INT(ring.n_gpus, 12);
    CHECK_STR(ring.sets[0].chains[1].entry.nic, "mlx5_1");
    CHECK_STR(ring.sets[1].chains[1].entry.nic, "mlx5_0");
    acct_ring_clear(&ring);
    CHECK_INT(acct_ring_read("0 -w> 1 -w> 0 | 1 -w> 0 -w> 1", "solo", &ring, ERR), 0);
    CHECK(ring.n_rings == 2 && ring.n_sets == 1 && ring.n_nodes == 1 && ring.n_gpus == 2);
    acct_ring_clear(&ring);
}

TEST(one_node)
{
    cleared_by(acct_ring_clear) struct acct_ring ring = {0};
    CHECK_INT(acct_ring_read("0 -w> 1-m0>2 -m1> 0", "solo", &ring, ERR), 0);
    CHECK(ring.n_nodes == 1 && ring.sets[0].chains[0].closed);
    CHECK_STR(ring.names[0], "solo");
    CHECK_INT(tccl_named_arrows(&ring.sets[0].chains[0]), 3);
    CHECK_INT(tccl_named_arrow(&ring.sets[0].chains[0], 2).memory, 1);
}

TEST(wrong)
{
    static const char *const wrong[] = {
        "",
        "n1[]",
        "n1[0 -x> 1]",
        "n1[0 -w> 1",
        "n1[mlx5_0 -g> 0]",
        "n1[0]",
        "n1[0 -w>]",
        "n1[0 -w> 1 -w>",
        "n1[0 -m> 1 -w> 0]",
        "n1[" A "] x",
        "n1[0 -w> 1 -w> 0 2]",
        "n1[a -g> 0 -g> b c]",
        "…",
        "n1[" A " | " B "] n2[" A "]",
        "n1[" A "] n2[" A " | " A "]",
        "n1[" A "|" A "|" A "|" A "|" A "|" A "|" A "|" A "|" A "]",
        "n1[0-w>1-w>2-w>3-w>4-w>5-w>6-w>7-w>8-w>9-w>10-w>11-w>12-w>13-w>14-w>15-w>16-w>0]"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        cleared_by(acct_ring_clear) struct acct_ring ring = {0};
        CHECK_NO(acct_ring_read(wrong[i], "", &ring, ERR) != -1 || !*check_err.text,
                 "'%s' was taken\n", wrong[i]);
    }
}

/* Whatever the text, reading ends, and says something where it fails. */
TEST(damaged)
{
    static const char good[] = "n1[" A "] n2[" B "] n3[" A "]…";
    for (int i = 0; i < 20000; i++) {
        char text[sizeof(good)];
        cleared_by(acct_ring_clear) struct acct_ring ring = {0};
        memcpy(text, good, sizeof(good));
        for (unsigned k = 1 + roll(3); k > 0; k--)
            text[roll(sizeof(good) - 1)] = " []-<>wmgr0123n_"[roll(16)];
        text[roll(4) ? sizeof(good) - 1 : roll(sizeof(good))] = '\0';
        if (acct_ring_read(text, "", &ring, ERR) != 0)
            CHECK(*check_err.text != '\0');
        else
            CHECK(ring.n_nodes > 0 && ring.n_groups > 0);
    }
}

#define NEIGHBOURS                                                                                 \
    "11.45/11.45 ring: 1 -m1> 2 -m1> 1; 5.20/10.40 nccl: 0 -m0> 3 -m1> 0 | 3 -m1> 0 -m0> 3"

TEST(beside_text)
{
    struct tccl_neighbour list[TCCL_MAX_BESIDE], again[TCCL_MAX_BESIDE];
    CHECK_INT(tccl_beside_parse(NEIGHBOURS, list, ERR), 2);
    CHECK_STR(check_err.text, "");
    CHECK(!list[0].nccl && list[1].nccl && list[1].gbps == 5.2 && list[1].alone == 10.4);
    CHECK_INT(list[1].rings.n, 2);
    CHECK_INT(tccl_named_arrow(&list[1].rings.chains[0], 1).memory, 1);
    cleanup_free char *text = tccl_beside_format(list, 2);
    CHECK_STR(text, NEIGHBOURS);
    CHECK(list[0].node == 0 && list[1].node == 0);
    list[1].node = 16383; /* of another node */
    cleanup_free char *far = tccl_beside_format(list, 2);
    CHECK_HOLDS(far, "; @16383 5.20/10.40 nccl: 0 -m0> 3");
    CHECK_INT(tccl_beside_parse(far, list, ERR), 2);
    CHECK(list[0].node == 0 && list[1].node == 16383 && list[1].rings.n == 2);
    CHECK_INT(tccl_beside_parse("", list, ERR), 0);
    static const char *const wrong[] = {"ring: 0 -w> 1 -w> 0",
                                        "1/2 mine: 0 -w> 1 -w> 0",
                                        "1e10/2 ring: 0 -w> 1 -w> 0",
                                        "nan/2 ring: 0 -w> 1 -w> 0",
                                        "-1/2 ring: 0 -w> 1 -w> 0",
                                        "1/2 ring:",
                                        "1/2 ring: 0 -w> 1 -w> 0;;",
                                        "@0 1/2 ring: 0 -w> 1 -w> 0",
                                        "@16384 1/2 ring: 0 -w> 1 -w> 0",
                                        "@-1 1/2 ring: 0 -w> 1 -w> 0",
                                        "@ 1/2 ring: 0 -w> 1 -w> 0"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        CHECK_INT(tccl_beside_parse(wrong[i], list, NULL), -1);
    char many[(TCCL_MAX_BESIDE + 2) * 40] = "";
    for (int i = 0; i < TCCL_MAX_BESIDE + 1; i++)
        strcat(many, i ? "; 1/2 ring: 0 -w> 1 -w> 0" : "1/2 ring: 0 -w> 1 -w> 0");
    CHECK_INT(tccl_beside_parse(many, list, NULL), -1);
    for (int i = 0; i < 20000; i++) { /* damaged: it ends, and what is read can be written */
        char damaged[] = NEIGHBOURS;
        for (unsigned k = 1 + roll(3); k > 0; k--)
            damaged[roll(sizeof(damaged) - 1)] = " ;:/.|-<>wmr0123n@"[roll(18)];
        int n = tccl_beside_parse(damaged, list, NULL);
        cleanup_free char *written = tccl_beside_format(list, n > 0 ? n : 0);
        CHECK_INT(tccl_beside_parse(written, again, NULL), n > 0 ? n : 0);
    }
}

/* Of a text that is too long the first ones are there, whole. */
TEST(beside_long)
{
    struct tccl_neighbour list[TCCL_MAX_BESIDE], again[TCCL_MAX_BESIDE];
    cleanup_free struct tccl_neighbour *one = calloc(1, sizeof(*one));
    CHECK_INT(tccl_named_rings_parse(A " | " A " | " A " | " A " | " A " | " A " | " A " | " A,
                                     &one->rings, NULL),
              0);
    for (int i = 0; i < TCCL_MAX_BESIDE; i++)
        list[i] = *one;
    cleanup_free char *text = tccl_beside_format(list, TCCL_MAX_BESIDE);
    int n = tccl_beside_parse(text, again, NULL);
    CHECK(strlen(text) <= TCCL_BESIDE_TEXT && n > 5 && n < TCCL_MAX_BESIDE);
}

static void set_text(json_t *record, const char *name, const char *value)
{
    json_object_set_new(record, name, json_string(value));
}

static char *text_of(const json_t *record, int columns, bool colour)
{
    return PRINTED(out, CHECK_OK(acct_ring_text(out, record, columns, colour, ERR)));
}

static char *svg_of(const json_t *record)
{
    return PRINTED(out, CHECK_INT(acct_ring_svg(out, record, ERR), 0));
}

TEST(beside_drawn)
{
    cleanup_json json_t *record =
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:s}", "state", "planned", "nodes", "n1", "ring",
                  "0 -m0> 3 -m0> 0", "gbps", 7.86, "alone_gbps", 11.45, "neighbours", 2, "beside",
                  NEIGHBOURS);
    for (int svg = 0; svg < 2; svg++) {
        cleanup_free char *text = svg ? svg_of(record) : text_of(record, 100, true);
        CHECK_HOLDS(text, "beside it: 5.20 of 10.40 GB/s, NCCL");
        CHECK_HOLDS(
            text, "7.86 GB/s beside 2 other steps that ran when it began, 11.45 alone: 31 % lost");
        CHECK_HOLDS(text, svg ? "<g class=\"other\">" : "\033[90m");
    }
    set_text(record, "nodes", "n[1-2]");
    set_text(record, "ring",
             "n1[mlx5_0 -g> 0 -m0> 3 -g> mlx5_0] n2[mlx5_0 -g> 0 -m0> 3 "
             "-g> mlx5_0]");
    set_text(record, "beside",
             NEIGHBOURS "; @1 4.00/8.00 ring: 1 -m0> 2 "
                        "-m0> 1; @7 1/2 nccl: 1 -m0> 2 -m0> 1");
    for (int svg = 0; svg < 2; svg++) {
        cleanup_free char *text = svg ? svg_of(record) : text_of(record, 100, true);
        CHECK_HOLDS(text, "beside it on n1: 5.20 of 10.40 GB/s, NCCL");
        CHECK_HOLDS(text, "beside it on n2: at least 4.00 of 8.00 GB/s, a ring");
        CHECK_HOLDS(text, "beside it on node 7: at least 1.00 of 2.00 GB/s, NCCL");
    }
    set_text(record, "beside", "what is this");
    cleanup_free char *text = svg_of(record);
    CHECK(!strstr(text, "class=\"other\""));
}

TEST(cut)
{
    cleared_by(acct_ring_clear) struct acct_ring ring = {0};
    CHECK_INT(acct_ring_read("n1[" A "] n2[" B "] n3[mlx5_0 -g…", "", &ring, ERR), 0);
    CHECK(ring.cut);
    CHECK_INT(ring.n_nodes, 2);
}

/* A record with a ring of these chains, one letter a node. Names n1, n2, … */
static json_t *record_of(const char *letters)
{
    cleanup_free char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; letters[i]; i++)
        fprintf(out, "%sn%d[%s]", i ? " " : "", i + 1, letters[i] == 'A' ? A : B);
    fclose(out);
    return json_pack("{s:i, s:i, s:s, s:s, s:i, s:s, s:s, s:s, s:f, s:f, s:f, s:i, s:s, s:i}",
                     "job", 12, "step", 0, "user", "ann", "job_name", "train", "n_nodes",
                     (int)strlen(letters), "first_node", "n1", "state", "planned", "ring", text,
                     "gbps", 9.8, "baseline_gbps", 5.1, "ratio", 1.92, "solve_us", 1530, "source",
                     "cuda", "start", 1000);
}

/* The groups put together again are the nodes in order: checked against a plain walk. */
TEST(groups)
{
    for (int round = 0; round < 300; round++) {
        char letters[64] = "";
        unsigned period = 1 + roll(9), count = 1 + roll(40);
        for (unsigned i = 0; i < count; i++)
            letters[i] = i < period || roll(12) == 0 ? "AB"[roll(2)] : letters[i - period];
        cleanup_json json_t *record = record_of(letters);
        cleared_by(acct_ring_clear) struct acct_ring ring = {0};
        CHECK_OK(
            acct_ring_read(json_string_value(json_object_get(record, "ring")), "", &ring, ERR));
        unsigned node = 0;
        for (int g = 0; g < ring.n_groups; g++)
            for (int t = 0; t < ring.groups[g].times; t++)
                for (int r = 0; r < ring.groups[g].n_runs; r++) {
                    const struct acct_run *first = &ring.runs[ring.groups[g].first];
                    const struct acct_run *run = first + r + t * ring.groups[g].n_runs;
                    CHECK(run->set == first[r].set && run->count == first[r].count);
                    for (int k = 0; k < run->count; k++, node++)
                        CHECK((letters[node] == letters[0]) == (run->set == 0));
                }
        CHECK_INT(node, count);
    }
}

static int count(const char *text, const char *part)
{
    int found = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        found++;
    return found;
}

TEST(text)
{
    setenv("LC_ALL", "C.UTF-8", 1);
    cleanup_json json_t *record = record_of("AAB");
    cleanup_free char *text = text_of(record, 80, false);
    CHECK_HOLDS(text, "Step 12.0: train of ann\nPredicted: 9.80 in place of 5.10 GB/s\n3 nodes, 11 "
                      "GPUs, started 1970-");
    CHECK_HOLDS(text, "planned; what NCCL built is not reported yet\npredicted to be 1.92 times as "
                      "fast as the baseline");
    CHECK_HOLDS(text, "╭─▶ n[1-2]  ×2\n"
                      "│   mlx5_0 ─g▶ GPU 3 ─w▶ GPU 1 ─m0▶ GPU 2 ─m1▶ GPU 0 ─g▶ mlx5_1\n"
                      "├─▶ n3\n"
                      "│   ib0 ─m1▶ GPU 0 ─r▶ GPU 1 ─m12▶ GPU 7 ─m0▶ ib0\n"
                      "╰── over the network back to n1\n");
    CHECK(!strchr(text, '\033'));
    cleanup_free char *coloured = text_of(record, 80, true);
    CHECK(strchr(coloured, '\033') != NULL);
    setenv("LC_ALL", "C", 1);
    cleanup_free char *plain = text_of(record, 80, false);
    CHECK_HOLDS(plain,
                "+-> n[1-2]  x2\n|   mlx5_0 -g> GPU 3 -w> GPU 1 -m0> GPU 2 -m1> GPU 0 -g> mlx5_1\n"
                "+-> n3\n|   ib0 -m1> GPU 0 -r> GPU 1 -m12> GPU 7 -m0> ib0\n+-- over");
    for (const char *at = plain; *at; at++)
        CHECK((unsigned char)*at < 0x80);
}

/* Rings that run at once: each has its own chain on each node. */
TEST(sets_drawn)
{
    cleanup_json json_t *record = record_of("AAB");
    set_text(record, "ring",
             "n1[" A " | " A "] n2[" A " | " A "] n3[" B " | ib0 -m1> 7 -r> 1 -m0> 0 -m0> ib0]");
    setenv("LC_ALL", "C", 1);
    cleanup_free char *text = text_of(record, 100, false), *svg = svg_of(record);
    CHECK_HOLDS(text, "3 nodes, 11 GPUs, 2 rings of 4.90 GB/s, together 9.80, started");
    CHECK_HOLDS(text, "these rings");
    CHECK_HOLDS(text, "+-> n[1-2]  x2\n"
                      "|   ring 1: mlx5_0 -g> GPU 3 -w> GPU 1 -m0> GPU 2 -m1> GPU 0 -g> mlx5_1\n"
                      "|   ring 2: mlx5_0 -g> GPU 3 -w> GPU 1 -m0> GPU 2 -m1> GPU 0 -g> mlx5_1\n"
                      "+-> n3\n"
                      "|   ring 1: ib0 -m1> GPU 0 -r> GPU 1 -m12> GPU 7 -m0> ib0\n");
    CHECK_HOLDS(svg, ">n[1-2]  (2 nodes): ring 1 of 2: 4.90 GB/s<");
    CHECK_HOLDS(svg, ">n3: ring 2 of 2: 4.90 GB/s, together 9.80<");
    CHECK_INT(count(svg, "class=\"gpu\""), 4 + 3 + 4 + 3);
    CHECK_INT(count(svg, "stroke-dasharray=\"6 3\" d=\"M"), 2 * 2 + 2 * 2 + 1);
    cleanup_json json_t *json = acct_ring_json(record, ERR);
    int rings = 0;
    const char *entry = "";
    CHECK_INT(json_unpack(json, "{s:{s:i, s:[[], [{}, {s:s}]]}}", "ring", "rings", &rings, "chains",
                          "entry", &entry),
              0);
    CHECK_INT(rings, 2);
    CHECK_STR(entry, "ib0");
}

/* No line is wider than the terminal, whatever is in the record. */
TEST(width)
{
    setenv("LC_ALL", "C.UTF-8", 1);
    for (int round = 0; round < 200; round++) {
        char letters[80] = "", reason[300] = "";
        int columns = 40 + (int)roll(100);
        for (unsigned i = 0, n = 1 + roll(70); i < n; i++)
            letters[i] = "AB"[roll(2)];
        for (unsigned i = 0, n = roll(280); i < n; i++)
            reason[i] = "abc  日"[roll(5)];
        cleanup_json json_t *record = record_of(letters);
        set_text(record, "built", "no");
        set_text(record, "built_reason", reason);
        set_text(record, "job_name", "日本日本日本日本日本日本日本日本日本日本日本");
        cleanup_free char *text = text_of(record, columns, false);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            CHECK_NO(tccl_term_width(line) > columns, "%d columns: %s\n", columns, line);
    }
}

TEST(folded)
{
    setenv("LC_ALL", "C", 1);
    char letters[65] = "";
    memset(letters, 'A', 64);
    letters[40] = 'B';
    cleanup_json json_t *record = record_of(letters);
    cleanup_free char *text = text_of(record, 80, false);
    CHECK_HOLDS(text, "+-> n[1-40]  x40\n");
    CHECK_HOLDS(text, "+-> n41\n");
    CHECK_HOLDS(text, "+-> n[42-64]  x23\n|   as n1\n");
    cleanup_json json_t *turns = record_of("ABABABAB");
    cleanup_free char *folded = text_of(turns, 80, false);
    CHECK_HOLDS(folded, "these 2 in turn, x4:\n+-> n[1,3,5,7]  x4\n");
}

static void check_none(json_t *record, const char *said)
{
    cleanup_free char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    CHECK_SAYS(acct_ring_svg(out, record, ERR) == -1, said);
    CHECK_SAYS(acct_ring_text(out, record, 80, false, ERR) == -1, said);
    CHECK_SAYS(acct_ring_page(out, record, &(struct acct_asked){0}, ERR) == -1, said);
    fclose(out);
    CHECK_INT(size, 0);
}

TEST(none)
{
    cleanup_json json_t *record = record_of("A");
    set_text(record, "ring", "");
    set_text(record, "state", "failed");
    set_text(record, "reason", "no profile on n2");
    check_none(record, "step 12.0 has no ring: failed: no profile on n2");
    set_text(record, "reason",
             "\xc2\x9b"
             "31m");
    check_none(record, "step 12.0 has no ring: failed: ??31m");
    set_text(record, "reason", "trial: to compare them");
    json_object_set_new(record, "achieved_gbps", json_real(7.25));
    json_object_set_new(record, "achieved_share", json_real(0.97));
    json_object_set_new(record, "samples", json_integer(1));
    set_text(record, "achieved_with", "own");
    check_none(record,
               "trial: to compare them; achieved 7.25 GB/s with NCCL's own rings, 97 % of what was "
               "predicted of these: the best tenth of 1 large collective");
    set_text(record, "ring", "n1[what]");
    check_none(record, "the ring of step 12.0 can't be read");
    cleanup_json json_t *empty = json_object();
    check_none(empty, "has no ring");
}

TEST(svg)
{
    cleanup_json json_t *record = record_of("AAB");
    set_text(record, "job_name", "<script>&\"\x1b[31m\xef\xbf\xbf");
    cleanup_free char *svg = svg_of(record);
    CHECK(!strncmp(svg, "<svg xmlns=", 11));
    CHECK_STR(svg + strlen(svg) - 7, "</svg>\n");
    CHECK(!strstr(svg, "<script") && !strchr(svg, '\033'));
    CHECK_HOLDS(svg, "&lt;script&gt;&amp;&quot;&#92;x1b[31m&#92;uffff");
    CHECK_HOLDS(svg, "n[1-2]  (2 nodes)");
    CHECK_INT(count(svg, "class=\"gpu\""), 4 + 3);
    CHECK_INT(count(svg, "class=\"nic\""), 4);
    CHECK_INT(count(svg, "class=\"memory\""), 2 + 3);
    CHECK(!strstr(svg, "href") && !strstr(svg, "url(http"));
    char name[256];
    memset(name, 'x', 255);
    name[255] = '\0';
    set_text(record, "job_name", name);
    cleanup_free char *wide = svg_of(record);
    CHECK(atoi(strstr(wide, "width=\"") + 7) < 1100);
    cleanup_json json_t *solo = record_of("A");
    set_text(solo, "ring", "n1[0 -w> 1 -w> 0]");
    cleanup_free char *closed = svg_of(solo);
    CHECK_INT(count(closed, "class=\"gpu"), 3); /* the first one again at the end */
    CHECK_INT(count(closed, "class=\"nic\""), 0);
}

static int height_of(const char *svg)
{
    return atoi(strstr(svg, " height=\"") + 9);
}

/* Only what is in the picture is explained, takes room, and names end within their card. */
TEST(svg_economy)
{
    cleanup_json json_t *record = record_of("A");
    set_text(record, "ring", "n1[0 -w> 1 -w> 2 -w> 0]");
    cleanup_free char *writes = svg_of(record);
    CHECK_INT(count(writes, "(-w&gt;)"), 1);
    CHECK_INT(count(writes, "(-r&gt;)") + count(writes, "(-mK&gt;)") + count(writes, "network"), 0);
    CHECK_INT(count(writes, ">again<"), 1);
    set_text(record, "ring", "n1[0 -w> 1 -m0> 2 -w> 0]");
    cleanup_free char *bounces = svg_of(record);
    CHECK_INT(count(bounces, "(-mK&gt;)"), 1);
    CHECK(height_of(writes) < height_of(bounces));
    char ring[400] = "n1.of.a.cluster.with.long.names.at.a.place.far.away[a -g> 0 -g> a] ";
    for (int i = 0; i < 60; i++)
        strcat(ring, "\xc3\xa4");
    strcat(ring, "[a -g> 1 -g> a]");
    set_text(record, "ring", ring);
    cleanup_free char *names = svg_of(record);
    CHECK_HOLDS(names, ">n1.of.a.cluster.with.long.names.at.a.place.f...<");
    CHECK_HOLDS(names, "\xc3\xa4...<");
    cleanup_json json_t *whole = json_string(names);
    CHECK(whole); /* no character was cut */
}

/* Names of NICs stay within their boxes. */
TEST(svg_nics)
{
    cleanup_json json_t *record = record_of("A");
    set_text(record, "ring", "n1[rocep193s0f0np0 -g> 0 -w> 1 -m0> mlx5_bond_of_this_port_7]");
    cleanup_free char *svg = svg_of(record);
    CHECK_HOLDS(svg, ">rocep193s0f0np0<");
    CHECK_HOLDS(svg, ">..._this_port_7<");
    CHECK(!strstr(svg, "mlx5_bond_of"));
}

static char *page_of(const json_t *record)
{
    char *argv[] = {"ring", "12", NULL};
    return PRINTED(
        out,
        CHECK_INT(acct_ring_page(out, record, &(struct acct_asked){argv, 2, true, NULL}, ERR), 0));
}

/* What was achieved: a line, a bar beside the predictions, and facts on the page. */
TEST(achieved)
{
    cleanup_json json_t *record = record_of("AAB");
    cleanup_free char *before = text_of(record, 100, false);
    CHECK(!strstr(before, "achieved"));
    json_object_update_new(record, json_pack("{s:f, s:f, s:s, s:i, s:f}", "achieved_gbps", 9.11,
                                             "achieved_share", 0.929, "achieved_with", "rings",
                                             "samples", 412, "sent_share", 0.31));
    cleanup_free char *text = text_of(record, 100, false);
    CHECK_HOLDS(text,
                "\nachieved 9.11 GB/s, 93 % of what was predicted: the best tenth of 412 large "
                "collectives\n");
    CHECK_HOLDS(text, "achieved      ");
    cleanup_free char *page = page_of(record);
    CHECK_HOLDS(page, "<th scope=\"row\">achieved</th><td class=\"n\">9.11</td>");
    CHECK_HOLDS(page, "<dt>Part of its time in them</dt><dd>0.31</dd>");
    json_object_update_new(record, json_pack("{s:s, s:f, s:i}", "achieved_with", "own",
                                             "achieved_share", 0.0, "samples", 1));
    cleanup_free char *own = text_of(record, 100, false);
    CHECK_HOLDS(own, "\nachieved 9.11 GB/s with NCCL's own rings: the best tenth of 1 large "
                     "collective\n");
    cleanup_free char *own_page = page_of(record);
    CHECK(!strstr(own_page, "<th scope=\"row\">achieved</th>"));
}

TEST(page)
{
    cleanup_json json_t *record = record_of("AAB");
    set_text(record, "job_name", "<script>&\"\x1b[31m\xef\xbf\xbf");
    set_text(record, "account", "\xe2\x80\xae<b>");
    set_text(record, "fewer_rings", "n2: mlx5_1 has no link");
    cleanup_free char *page = page_of(record);
    CHECK(!strstr(strstr(page, "</head>"), "<script") && !strchr(page, '\033') &&
          !strstr(page, "://"));
    CHECK_HOLDS(page, "<h1>Step 12.0: &lt;script&gt;&amp;&quot;&#92;x1b[31m&#92;uffff of ann</h1>");
    CHECK_HOLDS(page, "<p class=\"lead\">Predicted: 9.80 in place of 5.10 GB/s</p>");
    CHECK_HOLDS(page, "<p>predicted to be 1.92 times as fast as the baseline</p>");
    CHECK_HOLDS(page, "<dt>Account</dt><dd>&#92;u202e&lt;b&gt;</dd>");
    CHECK_HOLDS(page, "<dt>Why no more at once</dt><dd>n2: mlx5_1 has no link</dd>");
    CHECK_HOLDS(
        page, "<bdi>n[1-2]</bdi></th><td class=\"n\">2</td><td class=\"long\"><code>mlx5_0 -g&gt; "
              "3 -w&gt; 1 -m0&gt; 2 -m1&gt; 0 -g&gt; mlx5_1</code>");
    CHECK_HOLDS(page, "<th scope=\"row\">this ring</th><td class=\"n\">9.80</td>");
    CHECK_INT(count(page, "<rect class=\"gpu\""), 4 + 3);
    CHECK_INT(count(page, "<svg "), 2);
    CHECK_INT(count(page, "role=\"img\""), 2);
    CHECK(!strstr(page, "fill=\"#fff\"")); /* no white sheet in the dark */
    set_text(record, "ring", "n1[0 -w> 1 -m2> 0]");
    cleanup_free char *closed = page_of(record);
    CHECK_HOLDS(closed, "<code>0 -w&gt; 1 -m2&gt; 0</code>");
}

/* NCCL's own rings are drawn beside ours, each with its part of the GB/s; the memory that they ask
 * most of is marked; green is only what NCCL built. */
TEST(nccl)
{
    cleanup_json json_t *record = record_of("A");
    set_text(record, "ring", "n1[0 -m1> 1 -m0> 3 -m2> 2 -m3> 0]");
    set_text(record, "baseline_rings",
             "0 -m0> 3 -m1> 1 -m1> 2 -m3> 0 | 0 -m0> 3 -w> 1 -m1> 2 -w> 0");
    cleanup_free char *svg = svg_of(record), *page = page_of(record);
    CHECK_HOLDS(svg, "Predicted: 9.80 in place of 5.10 GB/s. Why ours is faster: NCCL sends "
                     "three devices through memory 1");
    CHECK_HOLDS(svg, ">NCCL's own on n1: 5.10 GB/s, ring 2 of 2<");
    CHECK_INT(count(svg, ">2.55<"), 8);
    CHECK_INT(count(svg, ">9.80<"), 4);
    CHECK_INT(count(svg, "class=\"memory busy\""), 3);
    CHECK_HOLDS(svg, "thick red frame: NCCL sends three devices through memory 1");
    CHECK_INT(count(page, "<ol class=\"way\">"), 3);
    CHECK_INT(count(page, "class=\"edge slow\">memory&#160;1 <b>2.55</b>"), 3);
    set_text(record, "built", "yes");
    cleanup_free char *built = svg_of(record);
    CHECK_HOLDS(built, ">9.80 in place of 5.10 GB/s. Why ours is faster: NCCL sends");
    CHECK_INT(count(built, "rx=\"2\" fill=\"#2e7d32\""), 1);
    CHECK_INT(count(svg, "rx=\"2\" fill=\"#2e7d32\""), 0);
    set_text(record, "built", "no");
    cleanup_free char *other = svg_of(record);
    CHECK_HOLDS(other, "Planned, but not built: 9.80 in place of 5.10 GB/s");
    CHECK_INT(count(other, "rx=\"2\" fill=\"#2e7d32\""), 0);
    /* Three rings copy as often to and from memory 1, but each a third of the data. */
    set_text(record, "ring",
             "n1[0 -m1> 1 -m0> 3 -m2> 2 -m3> 0 | 0 -m3> 2 -m1> 3 -m0> 1 "
             "-m2> 0 | 0 -m2> 3 -m1> 1 -m3> 2 -m0> 0]");
    cleanup_free char *several = page_of(record);
    CHECK_HOLDS(several,
                "9.80 in place of 5.10 GB/s. Why ours is faster: NCCL sends three devices");
    CHECK_HOLDS(several, "<h2>The rings, and NCCL's own</h2>");
    CHECK_INT(count(several, "class=\"memory busy\""), 3);
    set_text(record, "ring",
             "n1[0 -m1> 1 -m1> 3 -m1> 2 -w> 0 | 0 -w> 2 -m1> 3 -m1> 1 "
             "-m1> 0 | 0 -w> 3 -m1> 1 -m1> 2 -m1> 0]");
    cleanup_free char *as_busy = page_of(record);
    CHECK_INT(count(as_busy, "class=\"memory busy\""), 0);
    set_text(record, "baseline_rings", "what");
    cleanup_free char *none = svg_of(record);
    CHECK_INT(count(none, "NCCL's own on"), 0);
}

/* A step on one node beside three others: one with two of our rings, one with NCCL's own, one that
 * is not in the text. */
static json_t *shared_record(const char *by)
{
    json_t *record = record_of("A");
    set_text(record, "ring", "n1[0 -m0> 3 -m0> 0]");
    json_object_set_new(record, "alone_gbps", json_real(19.6));
    json_object_set_new(record, "placed_gbps", json_real(21.5));
    json_object_set_new(record, "neighbours", json_integer(3));
    set_text(record, "neighbours_by", by);
    set_text(record, "beside",
             "6.60/8.80 ring: 1 -w> 2 -r> 1 | 2 -w> 1 -w> 2; 4.40/5.50 nccl: 4 -m1> 5 "
             "-m1> 4");
    return record;
}

/* What each neighbour takes, on each of its edges; where this is known by bounds, that it is at
 * least so much; and who is not drawn. The same in text, picture and page. */
TEST(neighbours_shown)
{
    cleanup_json json_t *bounds = shared_record("bounds"), *model = shared_record("model"),
                        *measured = shared_record("measured");
    setenv("LC_ALL", "C.UTF-8", 1);
    cleanup_free char *text = text_of(bounds, 200, false), *svg = svg_of(bounds),
                      *page = page_of(bounds), *sure = text_of(model, 200, false),
                      *sure_svg = svg_of(model), *together = text_of(measured, 200, false);
    const char *all[] = {text, svg, page};
    for (int i = 0; i < 3; i++) {
        CHECK_HOLDS(all[i], "Predicted: at least 9.80 in place of 5.10 GB/s");
        CHECK_HOLDS(all[i], "at least 9.80 GB/s beside 3 other steps that ran when it began (by "
                            "bounds), 19.60 alone: at most 50 % lost");
        CHECK_HOLDS(all[i], "1 of the steps beside it is not drawn");
        CHECK_HOLDS(all[i], "beside it: at least 6.60 of 8.80 GB/s, ");
        CHECK_HOLDS(all[i], "beside it: at least 4.40 of 5.50 GB/s, NCCL's own");
    }
    CHECK_HOLDS(text, "of 8.80 GB/s, 2 rings\n");
    CHECK_HOLDS(svg, "of 8.80 GB/s, ring 1 of 2<");
    CHECK_HOLDS(svg, "of 8.80 GB/s, ring 2 of 2<");
    CHECK_HOLDS(svg, "grey: steps that ran beside it");
    CHECK_INT(count(svg, ">≥ 3.30<"), 4);
    CHECK_INT(count(svg, ">≥ 4.40<"), 2);
    CHECK_INT(count(svg, ">≥ 9.80<"), 2);
    CHECK_INT(count(sure_svg, ">3.30<"), 4);
    CHECK_INT(count(sure_svg, "≥"), 0);
    CHECK_INT(count(page, "<div class=\"grey\">"), 1);
    CHECK_INT(count(page, "<ol class=\"way\">"), 1 + 2 + 1);
    CHECK_INT(count(page, " <b>3.30</b>"), 4);
    CHECK_HOLDS(
        page, "<bdi>2 rings on n1</bdi></th><td class=\"n\">≥ 6.60</td><td class=\"n\">8.80</td>");
    CHECK_HOLDS(page, "Other steps beside it</dt><dd>3</dd>");
    CHECK_HOLDS(page, "Bandwidths beside them by</dt><dd>bounds</dd>");
    CHECK_HOLDS(page, "Beside nobody, GB/s</dt><dd>19.60</dd>");
    CHECK_HOLDS(page, "On the machine's best GPUs, GB/s</dt><dd>21.50</dd>");
    CHECK_HOLDS(sure, "\n9.80 GB/s beside 3 other steps that ran when it began, 19.60 alone: 50 % "
                      "lost");
    CHECK_HOLDS(together, "that ran when it began (measured together), 19.60 alone: 50 % lost");
    json_object_set_new(model, "n_nodes", json_integer(2));
    cleanup_free char *several = text_of(model, 200, false);
    CHECK_HOLDS(several, "beside 3 other steps (counted on each node) that ran");
}

TEST(json)
{
    cleanup_json json_t *record = record_of("ABA"), *json = acct_ring_json(record, ERR);
    int chain = -1, memory = -1, closed = -1;
    const char *name = "", *kind = "", *entry = "";
    CHECK_INT(json_unpack(json, "{s:{s:b, s:[{}, {s:s, s:i}], s:[[], [{s:s, s:[{s:s, s:i}]}]]}}",
                          "ring", "closed", &closed, "nodes", "name", &name, "chains", &chain,
                          "chains", "entry", &entry, "links", "kind", &kind, "memory", &memory),
              0);
    CHECK(closed == 0 && chain == 1 && memory == 1);
    CHECK_STR(name, "n2");
    CHECK_STR(entry, "ib0");
    CHECK_STR(kind, "memory");
}

/* Bandwidths that no number in between can hold: bars stay within their room. */
TEST(endless_bars)
{
    cleanup_json json_t *record = record_of("AB");
    json_object_set_new(record, "gbps", json_real(1e308));
    cleanup_free char *svg = svg_of(record), *text = text_of(record, 80, false);
    CHECK_INT(count(svg, "inf"), 0);
    CHECK(count(text, "█") + count(text, "#") > 40);
}

SETUP
{
    setlocale(LC_CTYPE, "C.UTF-8");
}
