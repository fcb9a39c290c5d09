/* doc.c: what people are told, on a terminal or as a page. */
#include "draw/doc.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "draw/html.h"
#include "draw/svg.h"

enum { BAR = 30, FACT = 24, TEXT = 4096, INDENT = 6 };

#define FORMAT(text, format)                                                                       \
    char text[TEXT];                                                                               \
    va_list args;                                                                                  \
    va_start(args, format);                                                                        \
    vsnprintf(text, sizeof(text), format, args);                                                   \
    va_end(args)

static void put_words(struct tccl_doc *doc, const char *text, const char *indent)
{
    tccl_pen_words(&doc->pen, text, "", indent);
    tccl_pen_end(&doc->pen);
}

void tccl_doc_begin(struct tccl_doc *doc, const char *heading, const char *about)
{
    FILE *out = doc->pen.out;
    doc->heading = heading;
    if (!doc->html) {
        fprintf(out, "\n%s\n", heading);
        if (about)
            put_words(doc, about, "");
        return;
    }
    fprintf(out, "<h2>%s</h2>\n", heading);
    if (about) {
        fputs("<p class=\"dim\">", out);
        tccl_svg_escape(about, out);
        fputs("</p>\n", out);
    }
    fputs("<div class=\"card\">\n", out);
}

void tccl_doc_end(struct tccl_doc *doc)
{
    if (doc->html)
        fputs("</div>\n", doc->pen.out);
}

void tccl_doc_line(struct tccl_doc *doc, const char *format, ...)
{
    FORMAT(text, format);
    if (!doc->html) {
        put_words(doc, text, "  ");
        return;
    }
    fputs("<p>", doc->pen.out);
    tccl_svg_escape(text, doc->pen.out);
    fputs("</p>\n", doc->pen.out);
}

void tccl_doc_fact(struct tccl_doc *doc, const char *name, const char *format, ...)
{
    FORMAT(text, format);
    if (doc->html)
        tccl_html_fact(doc->pen.out, name, "%s", text);
    else
        fprintf(doc->pen.out, "%-*s %s\n", FACT, name, text);
}

/* One cell of a terminal's row. */
static void put_column(struct tccl_doc *doc, const char *text)
{
    int width = abs(doc->columns[doc->at].width), begin = doc->pen.used;
    bool left = doc->columns[doc->at].width < 0;
    cleanup_free char *cut = tccl_term_cut(text, width, doc->pen.utf8 ? "…" : "...");
    int blank = cut ? width - tccl_term_width(cut) : 0;
    if (begin == 0)
        tccl_pen_put(&doc->pen, "  ");
    if (!left)
        tccl_pen_print(&doc->pen, "%*s", blank, "");
    tccl_pen_put(&doc->pen, cut ? cut : "");
    if (left)
        tccl_pen_print(&doc->pen, "%*s", blank, "");
}

static void end_line(struct tccl_doc *doc)
{
    if (doc->bar >= 0) {
        int room = doc->pen.columns - doc->pen.used - 2;
        tccl_pen_put(&doc->pen, "  ");
        tccl_pen_bar(&doc->pen, doc->bar, room < BAR ? room : BAR);
    }
    tccl_pen_end(&doc->pen);
}

void tccl_doc_table(struct tccl_doc *doc, const char *class, const char *caption,
                    const struct tccl_doc_column *columns, int n)
{
    FILE *out = doc->pen.out;
    doc->columns = columns;
    doc->n_columns = n;
    doc->at = 0;
    doc->bar = -1;
    doc->open = false;
    bool named = !caption && doc->heading;
    if (doc->html)
        fprintf(out, "<table class=\"rows%s%s\"%s%s%s>\n%s%s%s<tr>", *class ? " " : "", class,
                named ? " aria-label=\"" : "", named ? doc->heading : "", named ? "\"" : "",
                caption ? "<caption>" : "", caption ? caption : "", caption ? "</caption>\n" : "");
    for (; doc->at < n; doc->at++)
        if (doc->html)
            fprintf(out, "<th scope=\"col\"%s>%s</th>",
                    columns[doc->at].width > 0    ? " class=\"n\""
                    : columns[doc->at].width == 0 ? " class=\"long\""
                                                  : "",
                    columns[doc->at].head);
        else if (columns[doc->at].width != 0)
            put_column(doc, columns[doc->at].head);
    if (doc->html)
        fputs("</tr>\n", out);
    else
        tccl_pen_end(&doc->pen);
    doc->at = 0;
}

void tccl_doc_table_end(struct tccl_doc *doc)
{
    if (doc->html)
        fputs("</table>\n", doc->pen.out);
}

/* The cell that is open stays so for a bar. */
static const char *end_of(const struct tccl_doc *doc)
{
    return doc->at == 1 && doc->columns[0].width < 0 ? "</th>" : "</td>";
}

/* Begins the next cell of a page. */
static void open_cell(struct tccl_doc *doc)
{
    FILE *out = doc->pen.out;
    int width = doc->columns[doc->at].width;
    fputs(doc->at > 0 ? end_of(doc) : "<tr>", out);
    fputs(width > 0      ? "<td class=\"n\">"
          : width == 0   ? "<td class=\"long\">"
          : doc->at == 0 ? "<th scope=\"row\">"
                         : "<td>",
          out);
}

static void put_cell(struct tccl_doc *doc, const char *text, int most)
{
    if (doc->html) {
        open_cell(doc);
        if (most > 0)
            tccl_html_text(text, most, doc->pen.out);
        else
            tccl_svg_escape(text, doc->pen.out);
    } else if (doc->columns[doc->at].width != 0) {
        put_column(doc, text);
    } else {
        cleanup_free char *safe = tccl_term_cut(text, most > 0 ? most : TEXT, "...");
        end_line(doc);
        doc->open = true;
        tccl_pen_print(&doc->pen, "%*s", INDENT, "");
        put_words(doc, safe ? safe : "", "      ");
    }
    doc->at++;
}

void tccl_doc_cell(struct tccl_doc *doc, const char *format, ...)
{
    FORMAT(text, format);
    put_cell(doc, text, 0);
}

void tccl_doc_text(struct tccl_doc *doc, const char *text, int most)
{
    put_cell(doc, text, most);
}

void tccl_doc_code(struct tccl_doc *doc, const char *text)
{
    if (!doc->html) {
        int behind = doc->open ? doc->behind : doc->pen.used + 2;
        bool fits = doc->bar < 0 && behind + tccl_term_width(text) <= doc->pen.columns;
        if (!doc->open && !fits)
            end_line(doc);
        doc->behind = behind;
        tccl_pen_print(&doc->pen, "%*s", fits ? behind - doc->pen.used : INDENT, "");
        put_words(doc, text, "        ");
    } else {
        if (!doc->open)
            open_cell(doc);
        fputs(doc->open ? "<br/><code>" : "<code>", doc->pen.out);
        tccl_svg_escape(text, doc->pen.out);
        fputs("</code>", doc->pen.out);
    }
    doc->at += !doc->open;
    doc->open = true;
}

void tccl_doc_chains(struct tccl_doc *doc, const struct tccl_named_rings *rings)
{
    char text[TCCL_CHAIN_TEXT];
    for (int i = 0; i < rings->n; i++) {
        tccl_named_format(&rings->chains[i], text);
        cleanup_free char *safe = tccl_term_escape(text, NULL);
        tccl_doc_code(doc, safe ? safe : "");
    }
}

void tccl_doc_bar(struct tccl_doc *doc, double part)
{
    doc->bar = part < 0 ? 0 : part;
    if (doc->html)
        tccl_html_bar(part, doc->pen.out);
}

void tccl_doc_row(struct tccl_doc *doc)
{
    if (doc->html)
        fprintf(doc->pen.out, "%s</tr>\n", end_of(doc));
    else if (!doc->open)
        end_line(doc);
    doc->at = 0;
    doc->bar = -1;
    doc->open = false;
}
