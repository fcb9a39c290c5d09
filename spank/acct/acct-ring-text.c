/* acct-ring-text.c: the ring of a step on a terminal. */
#include <stdarg.h>
#include <string.h>

#include "acct/acct-output.h"
#include "acct/acct-ring-facts.h"
#include "acct/acct-ring.h"
#include "acct/acct-text.h"
#include "base/cleanup.h"

enum { LEAST_COLUMNS = 40, LABEL = 13, NUMBER = 14 };

/* The characters of the drawing. */
struct strokes {
    const char *first, *next, *rail, *last; /* of the line along the left side */
    const char *shaft, *head;               /* of an arrow */
    const char *times, *dots, *bar;
};

static const struct strokes utf8_strokes = {"╭─▶ ", "├─▶ ", "│   ", "╰── ", "─",
                                            "▶",    "×",    "…",    "█"};
static const struct strokes ascii_strokes = {"+-> ", "+-> ", "|   ", "+-- ", "-",
                                             ">",    "x",    "...",  "#"};

struct pen {
    FILE *out;
    const struct strokes *strokes;
    int columns, used; /* used: of the line so far */
    bool colour, utf8, grey;
    bool links[128]; /* by kind: drawn so far */
};

static void set_colour(struct pen *pen, const char *code)
{
    if (pen->colour)
        fprintf(pen->out, "\033[%sm", code);
}

/* Prints text; without UTF-8, '?' for anything that is not ASCII. */
static void put(struct pen *pen, const char *text)
{
    pen->used += acct_columns(text);
    for (; *text; text++)
        if (pen->utf8 || (unsigned char)*text < 0x80)
            fputc(*text, pen->out);
        else if (((unsigned char)*text & 0xc0) == 0xc0)
            fputc('?', pen->out);
}

static void end_line(struct pen *pen)
{
    fputc('\n', pen->out);
    pen->used = 0;
}

/* Begins a line with the left margin of the previous one. */
static void wrap(struct pen *pen, const char *left, const char *indent)
{
    end_line(pen);
    put(pen, left);
    put(pen, indent);
}

/* Wraps words over lines; a word wider than a line is cut. */
static void put_words(struct pen *pen, const char *text, const char *left, const char *indent)
{
    int begin = pen->used;
    while (*text) {
        size_t length = strcspn(text, " ");
        cleanup_free char *word = strndup(text, length);
        if (!word)
            return;
        if (pen->used > begin && pen->used + 1 + acct_columns(word) > pen->columns)
            wrap(pen, left, indent);
        else if (pen->used > begin)
            put(pen, " ");
        while (acct_columns(word) > pen->columns - pen->used) {
            int used, bytes = acct_bytes_within(word, pen->columns - pen->used, &used);
            cleanup_free char *part = strndup(word, bytes ? (size_t)bytes : strlen(word));
            put(pen, part ? part : "");
            memmove(word, word + (bytes ? (size_t)bytes : strlen(word)),
                    strlen(word + (bytes ? (size_t)bytes : strlen(word))) + 1);
            wrap(pen, left, indent);
        }
        put(pen, word);
        text += length + (text[length] == ' ');
    }
}

__attribute__((format(printf, 2, 3))) static char *print(struct pen *pen, const char *format, ...)
{
    char *text;
    va_list list;
    (void)pen;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    return length < 0 ? NULL : text;
}

/* The arrow of a link, such as "-m0>". */
static void format_link(const struct pen *pen, struct tccl_text_arrow link, char *text, size_t size)
{
    const struct strokes *strokes = pen->strokes;
    if (link.kind == 'm')
        snprintf(text, size, " %sm%d%s ", strokes->shaft, link.memory, strokes->head);
    else
        snprintf(text, size, " %s%c%s ", strokes->shaft, link.kind, strokes->head);
}

static const char *colour_of(char kind)
{
    return kind == 'w' ? "34" : kind == 'r' ? "33" : kind == 'm' ? "32" : "35";
}

/* Between the two, the colours of a link don't count. */
static void set_grey(struct pen *pen, bool grey)
{
    set_colour(pen, grey ? "90" : "0");
    pen->grey = grey;
}

/* A link and the device after it, on the next line if they don't fit on this one. */
static void put_link(struct pen *pen, struct tccl_text_arrow link, const char *device,
                     const char *left)
{
    char text[40];
    format_link(pen, link, text, sizeof(text));
    if (pen->used + acct_columns(text) + acct_columns(device) > pen->columns)
        wrap(pen, left, "   ");
    if (!pen->grey)
        set_colour(pen, colour_of(link.kind));
    put(pen, text);
    if (!pen->grey)
        set_colour(pen, "0");
    put(pen, device);
    pen->links[(unsigned char)link.kind] = true;
}

static void put_chain(struct pen *pen, const struct tccl_named_chain *chain, const char *left)
{
    char gpu[24];
    int link = 0;
    snprintf(gpu, sizeof(gpu), "GPU %d", (int)chain->gpus[0]);
    put(pen, chain->closed ? gpu : chain->entry.nic);
    if (!chain->closed)
        put_link(pen, tccl_named_arrow(chain, link++), gpu, left);
    for (int i = 1; i < chain->n_gpus; i++) {
        snprintf(gpu, sizeof(gpu), "GPU %d", (int)chain->gpus[i]);
        put_link(pen, tccl_named_arrow(chain, link++), gpu, left);
    }
    snprintf(gpu, sizeof(gpu), "GPU %d", (int)chain->gpus[0]);
    put_link(pen, tccl_named_arrow(chain, link), chain->closed ? gpu : chain->exit.nic, left);
    end_line(pen);
}

/* The nodes of a card, cut to fit the line. */
static void put_names(struct pen *pen, const char *names, int count)
{
    char times[32] = "";
    int used;
    if (count > 1)
        snprintf(times, sizeof(times), "  %s%d", pen->strokes->times, count);
    int room = pen->columns - pen->used - acct_columns(times);
    set_colour(pen, "1");
    if (acct_columns(names) <= room) {
        put(pen, names);
    } else {
        int dots = acct_columns(pen->strokes->dots);
        int bytes = acct_bytes_within(names, room > dots ? room - dots : 0, &used);
        cleanup_free char *part = strndup(names, (size_t)bytes);
        put(pen, part ? part : "");
        put(pen, pen->strokes->dots);
    }
    set_colour(pen, "0");
    put(pen, times);
    end_line(pen);
}

/* The chains of a card, each on a line of its own. */
static void put_set(struct pen *pen, const struct tccl_named_rings *set, const char *left)
{
    char label[24];
    for (int r = 0; r < set->n; r++) {
        put(pen, left);
        if (set->n > 1) {
            snprintf(label, sizeof(label), "ring %d: ", r + 1);
            put(pen, label);
        }
        put_chain(pen, &set->chains[r], left);
    }
}

/* A card: nodes that share their chains, and these unless they were drawn above. */
static int put_card(struct pen *pen, const struct acct_ring *ring, const struct acct_group *group,
                    int place, const char **drawn)
{
    int count;
    int set = ring->runs[group->first + place].set;
    bool rail = !ring->sets[0].chains[0].closed;
    const char *left = rail ? pen->strokes->rail : "    ";
    cleanup_free char *all = acct_group_names(ring, group, place, &count);
    cleanup_free char *names = all ? acct_escape(all, NULL) : NULL;
    if (!names)
        return -1;
    put(pen, !rail ? "    " : group->first + place == 0 ? pen->strokes->first : pen->strokes->next);
    put_names(pen, names, count);
    if (drawn[set]) {
        cleanup_free char *other = acct_escape(drawn[set], NULL);
        put(pen, left);
        put(pen, "as ");
        put_words(pen, other ? other : "", left, "   ");
        end_line(pen);
        return 0;
    }
    drawn[set] = ring->names[ring->runs[group->first + place].first];
    put_set(pen, &ring->sets[set], left);
    return 0;
}

static int put_group(struct pen *pen, const struct acct_ring *ring, const struct acct_group *group,
                     const char **drawn)
{
    if (group->times > 1) {
        put(pen, group->first ? pen->strokes->rail : "    ");
        cleanup_free char *text =
            print(pen, "these %d in turn, %s%d:", group->n_runs, pen->strokes->times, group->times);
        set_colour(pen, "2");
        put_words(pen, text ? text : "", pen->strokes->rail, "");
        set_colour(pen, "0");
        end_line(pen);
    }
    for (int place = 0; place < group->n_runs; place++)
        if (put_card(pen, ring, group, place, drawn) != 0)
            return -1;
    return 0;
}

static int put_ring(struct pen *pen, const struct acct_ring *ring)
{
    cleanup_free const char **drawn = calloc((size_t)ring->n_sets, sizeof(*drawn));
    cleanup_free char *first = acct_escape(ring->names[0], NULL);
    if (!drawn || !first)
        return -1;
    for (int i = 0; i < ring->n_groups; i++)
        if (put_group(pen, ring, &ring->groups[i], drawn) != 0)
            return -1;
    if (ring->sets[0].chains[0].closed)
        return 0;
    put(pen, pen->strokes->last);
    put(pen, ring->cut ? pen->strokes->dots : "over the network back to ");
    put(pen, ring->cut ? "" : first);
    end_line(pen);
    return 0;
}

/* What NCCL builds by itself on the first node. */
static void put_nccl(struct pen *pen, const struct acct_ring *ring,
                     const struct acct_ring_facts *facts)
{
    char text[ACCT_RING_LABEL];
    for (int i = 0; i < facts->nccl.n; i++) {
        acct_ring_nccl(ring, facts, i, text);
        end_line(pen);
        put_words(pen, text, "", "  ");
        end_line(pen);
        put(pen, "    ");
        put_chain(pen, &facts->nccl.chains[i], "    ");
    }
}

/* The steps that ran beside it, node by node. */
static void put_beside(struct pen *pen, const struct acct_ring *ring,
                       const struct acct_ring_facts *facts)
{
    char text[ACCT_RING_LABEL];
    set_grey(pen, true);
    for (int i = 0; i < facts->n_beside; i++) {
        acct_ring_beside(ring, facts, i, -1, text);
        end_line(pen);
        put_words(pen, text, "", "  ");
        end_line(pen);
        for (int k = 0; k < facts->beside[i].rings.n; k++) {
            put(pen, "    ");
            put_chain(pen, &facts->beside[i].rings.chains[k], "    ");
        }
    }
    set_grey(pen, false);
}

/* A legend of the arrows that were drawn. */
static void put_legend(struct pen *pen)
{
    static const struct {
        char kind;
        const char *meaning;
    } kinds[] = {{'w', "GPU writes to the next"},
                 {'r', "next GPU reads from it"},
                 {'m', "through the memory of that number"},
                 {'g', "NIC and GPU directly"}};
    bool first = true;
    end_line(pen);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        cleanup_free char *text =
            print(pen, "%s%c%s%s %s", pen->strokes->shaft, kinds[i].kind,
                  kinds[i].kind == 'm' ? "N" : "", pen->strokes->head, kinds[i].meaning);
        if (!pen->links[(unsigned char)kinds[i].kind] || !text)
            continue;
        if (!first && pen->used + 3 + acct_columns(text) > pen->columns)
            end_line(pen);
        else if (!first)
            put(pen, "   ");
        set_colour(pen, colour_of(kinds[i].kind));
        put(pen, text);
        set_colour(pen, "0");
        first = false;
    }
    end_line(pen);
}

static void put_bars(struct pen *pen, const struct acct_ring_facts *facts)
{
    double most = 0;
    int room = pen->columns - LABEL - NUMBER - 2;
    for (int i = 0; i < facts->n_bars; i++)
        most = facts->bars[i].gbps > most ? facts->bars[i].gbps : most;
    if (room > 48)
        room = 48;
    for (int i = 0; i < facts->n_bars; i++) {
        int length = (int)(room * (facts->bars[i].gbps / most) + 0.5);
        fprintf(pen->out, "%-*s%*.2f GB/s  ", LABEL, facts->bars[i].label, NUMBER - 5,
                facts->bars[i].gbps);
        set_colour(pen, !facts->bars[i].ring ? "2" : facts->built ? "32" : "34");
        for (int k = 0; k < (length ? length : 1); k++)
            fputs(pen->strokes->bar, pen->out);
        set_colour(pen, "0");
        end_line(pen);
    }
}

static void put_head(struct pen *pen, const struct acct_ring_facts *facts)
{
    set_colour(pen, "1");
    put_words(pen, facts->title, "", "  ");
    set_colour(pen, "0");
    end_line(pen);
    if (facts->lead) {
        put_words(pen, facts->lead, "", "  ");
        end_line(pen);
    }
    for (int i = 0; i < facts->n_lines; i++) {
        put_words(pen, facts->lines[i], "", "  ");
        end_line(pen);
    }
    if (facts->n_bars)
        end_line(pen);
    put_bars(pen, facts);
    end_line(pen);
}

int acct_ring_text(FILE *out, const json_t *record, int columns, bool colour,
                   struct tccl_error *err)
{
    struct acct_ring ring;
    struct acct_ring_facts facts;
    bool utf8 = acct_terminal_utf8();
    struct pen pen = {.out = out,
                      .strokes = utf8 ? &utf8_strokes : &ascii_strokes,
                      .columns = columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns,
                      .colour = colour,
                      .utf8 = utf8};
    int rc = acct_ring_facts_read(record, &ring, &facts, err);
    if (rc == 0) {
        put_head(&pen, &facts);
        rc = put_ring(&pen, &ring) == 0 ? 0 : tccl_fail(err, "out of memory for a drawing");
        put_nccl(&pen, &ring, &facts);
        put_beside(&pen, &ring, &facts);
        put_legend(&pen);
    }
    acct_ring_facts_clear(&ring, &facts);
    return rc;
}
