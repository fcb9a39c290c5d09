/* html.c: the frame of a page for browsers, and what pages have in common. The pages are
 * well-formed XML too, so that any parser can check them. */
#include "draw/html.h"

#include <math.h>
#include <stdarg.h>

#include "base/cleanup.h"
#include "draw/svg.h"
#include "draw/term.h"

void tccl_html_begin(const char *program, const char *heading, const char *line, FILE *out)
{
    /* The policy is a second line of defence: whatever a name in the page holds, it does not run.
     */
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src '",
          out);
    fprintf(out, "%s'\"/>\n<title>", tccl_html_script_hash);
    tccl_svg_escape(heading, out);
    fprintf(out,
            " - %s</title>\n<style>\n%s</style>\n<script>%s</script>\n</head>\n<body>\n"
            "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>",
            program, tccl_html_style, tccl_html_script);
    tccl_svg_escape(heading, out);
    fputs("</h1>\n", out);
    if (line) {
        fputs("<p class=\"lead\">", out);
        tccl_svg_escape(line, out);
        fputs("</p>\n", out);
    }
    fputs("</header>\n<main id=\"main\" tabindex=\"-1\">\n", out);
}

void tccl_html_end(const char *program, FILE *out)
{
    fprintf(out,
            "</main>\n<footer class=\"dim\">%s (slurm-tccl) " TCCL_VERSION
            "</footer>\n</body>\n</html>\n",
            program);
}

void tccl_html_fact(FILE *out, const char *name, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fputs("<div><dt>", out);
    tccl_svg_escape(name, out);
    fputs("</dt><dd>", out);
    tccl_svg_escape(text, out);
    fputs("</dd></div>\n", out);
}

void tccl_html_bar(double part, FILE *out)
{
    fprintf(out, "<span class=\"track\"><span class=\"fill\" style=\"width:%.0f%%\"></span></span>",
            100 * fmax(0, fmin(1, part)));
}

void tccl_html_wide_begin(const char *name, FILE *out)
{
    fputs("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"", out);
    tccl_svg_escape(name, out);
    fputs("\">\n", out);
}

void tccl_html_wide_end(FILE *out)
{
    fputs("</div>\n", out);
}

void tccl_html_text(const char *text, int columns, FILE *out)
{
    cleanup_free char *cut = tccl_term_cut(text, columns + 1, "…");
    fputs("<bdi>", out);
    tccl_svg_escape(cut ? cut : "", out);
    fputs("</bdi>", out);
}

void tccl_html_chart(const char *heading, const struct tccl_chart *chart, FILE *out)
{
    if (chart->n_columns == 0)
        return;
    fprintf(out, "<h2>%s</h2>\n<div class=\"card\">\n", heading);
    tccl_chart_write(chart, out);
    fputs("</div>\n", out);
}

/* ---- a chain as a list of devices and arrows that wraps ---- */

static void put_gpu(const struct tccl_named_chain *chain, int i, FILE *out)
{
    char bus[TCCL_BUS_TEXT];
    if (chain->numbers) {
        fprintf(out, "<li class=\"gpu\">GPU&#160;%d</li>", (int)chain->gpus[i]);
        return;
    }
    tccl_bus_format(chain->gpus[i], bus);
    fprintf(out, "<li class=\"gpu\">%s</li>", bus);
}

static void put_nic(const char *name, FILE *out)
{
    fputs("<li class=\"nic\">", out);
    tccl_svg_escape(name, out);
    fputs("</li>", out);
}

/* "writes 12.60", "memory 1 11.45". */
static void put_arrow(struct tccl_text_arrow arrow, double gbps, bool slow, FILE *out)
{
    fprintf(out, "<li class=\"%s\">", slow ? "edge slow" : "edge");
    if (arrow.kind == 'm')
        fprintf(out, "memory&#160;%d", arrow.memory);
    else
        fputs(arrow.kind == 'g' ? "direct" : tccl_looks[tccl_look_of(arrow)].word, out);
    if (gbps > 0)
        fprintf(out, " <b>%.2f</b>", gbps);
    fputs(" &#8594;</li>", out);
}

void tccl_html_way(const struct tccl_named_chain *chain, const double *gbps, const bool *slow,
                   FILE *out)
{
    int n = tccl_named_arrows(chain);
    fputs("<ol class=\"way\">\n", out);
    if (!chain->closed)
        put_nic(chain->entry.nic, out);
    for (int i = 0; i < n; i++) {
        int gpu = chain->closed ? i : i - 1;
        if (gpu >= 0)
            put_gpu(chain, gpu, out);
        put_arrow(tccl_named_arrow(chain, i), gbps[i], slow[i], out);
        fputc('\n', out);
    }
    if (chain->closed)
        put_gpu(chain, 0, out);
    else
        put_nic(chain->exit.nic, out);
    fputs("\n</ol>\n", out);
}
