/* html.c: the frame of a page for browsers. The pages are well-formed XML too, so that any parser
 * can check them. */
#include "draw/html.h"

#include <math.h>
#include <stdarg.h>

#include "draw/svg.h"

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
