/* chart.c: a chart in a page. It has no fixed width: columns are placed at percentages of the
 * page's width, heights are in pixels, and texts keep their size, so that it is readable on phones
 * as well as on large screens. */
#include "draw/html.h"

#include <math.h>

#include "draw/svg.h"

enum {
    TOP = 26, /* of the plot; above it: what the y axis is */
    PLOT = 170,
    BOTTOM = TOP + PLOT,
    HEIGHT = BOTTOM + 46, /* below the plot: labels, and what the x axis is */
    LABELS = 14,          /* that fit on a large screen */
    NARROW = 3,           /* one of so many of these fits on a phone */
    FEW = 5,              /* columns: each has its value above it */
    VALUE_TEXT = 32
};
static const double MOST = 1e12; /* larger values are cut to this: no bandwidth is so high */

struct scale {
    double least, most, step;
};

static double value_of(const struct tccl_chart_column *column, int series)
{
    double value = column->values[series];
    return isnan(value) ? -1 : fmin(value, MOST);
}

static int colour_of(const struct tccl_chart *chart, int series)
{
    return chart->colours ? chart->colours[series] : series;
}

/* About four steps of 1, 2, 2.5 or 5 times a power of ten; integers if all values are. */
static double step_for(double range, int digits)
{
    static const double sizes[] = {1, 2, 2.5, 5, 10};
    double raw = range / 4, power = pow(10, floor(log10(raw)));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double step = sizes[i] * power;
        if (step >= raw && (digits > 0 || step == floor(step)))
            return step;
    }
    return fmax(1, 10 * power);
}

static double y_of(const struct scale *scale, double value)
{
    return BOTTOM - (value - scale->least) / (scale->most - scale->least) * PLOT;
}

/* The centre of a column, in percent. */
static double x_of(const struct tccl_chart *chart, int i)
{
    return (i + 0.5) * 100 / chart->n_columns;
}

static const char *format_value(const struct tccl_chart *chart, double value, char *text)
{
    if (value < 0)
        snprintf(text, VALUE_TEXT, "-");
    else if (value < 1e7)
        snprintf(text, VALUE_TEXT, "%.*f", chart->digits, value);
    else
        snprintf(text, VALUE_TEXT, "%.3g", value);
    return text;
}

static void put_text(const char *x, double y, const char *class, const char *text, FILE *out)
{
    fprintf(out, "<text class=\"%s\" x=\"%s\" y=\"%.1f\">", class, x, y);
    tccl_svg_escape(text, out);
    fputs("</text>\n", out);
}

static void put_rule(const char *class, double y, FILE *out)
{
    fprintf(out, "<line class=\"%s\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/>\n", class, y,
            y);
}

static void put_axes(const struct tccl_chart *chart, const struct scale *scale, FILE *out)
{
    int steps = (int)lround((scale->most - scale->least) / scale->step);
    for (int i = 0; i <= steps; i++) {
        double value = scale->least + i * scale->step, y = y_of(scale, value);
        char text[VALUE_TEXT];
        snprintf(text, sizeof(text), "%.7g", fabs(value) < scale->step / 2 ? 0 : value);
        put_rule("rule", y, out);
        put_text("-8", y + 4, "end", text, out);
    }
    put_text("-44", TOP - 13, "", chart->y_axis, out);
    put_text("100%", HEIGHT - 4, "end", chart->x_axis, out);
}

/* On a phone, some labels are omitted if there are many columns; if there are few, their labels,
 * which are names, are placed on two lines. */
static void put_labels(const struct tccl_chart *chart, FILE *out)
{
    bool few = chart->n_columns <= FEW;
    int each = (chart->n_columns + LABELS - 1) / LABELS;
    for (int i = 0; i < chart->n_columns; i += each) {
        char x[32];
        snprintf(x, sizeof(x), "%.2f%%", x_of(chart, i));
        const char *class = few && i % 2                  ? "mid odd"
                            : !few && i % (each * NARROW) ? "mid often"
                                                          : "mid";
        put_text(x, BOTTOM + 17, class, chart->columns[i].label, out);
    }
}

/* The tooltip of a column. */
static void put_tip(const struct tccl_chart *chart, const struct tccl_chart_column *column,
                    FILE *out)
{
    fputs("<title>", out);
    tccl_svg_escape(column->name, out);
    for (int i = 0; i < chart->n_series; i++) {
        char text[VALUE_TEXT];
        fprintf(out, "%s ", i ? "," : ":");
        tccl_svg_escape(chart->series[i], out);
        fprintf(out, " %s", format_value(chart, value_of(column, i), text));
    }
    fputs("</title>", out);
}

static void put_column(const struct tccl_chart *chart, const struct scale *scale, int i, FILE *out)
{
    const struct tccl_chart_column *column = &chart->columns[i];
    double width = (chart->n_columns <= FEW ? 0.4 : 0.76) * 100 / chart->n_columns, base = 0;
    fputs("<g>", out);
    put_tip(chart, column, out);
    for (int k = 0; k < chart->n_series; k++) {
        double value = value_of(column, k), top = y_of(scale, base + fmax(0, value));
        if (value > 0)
            fprintf(out,
                    "<rect class=\"s%d\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"%.1f\" "
                    "height=\"%.1f\"/>",
                    colour_of(chart, k), x_of(chart, i) - width / 2, width, top,
                    y_of(scale, base) - top);
        base += fmax(0, value);
    }
    fputs("</g>\n", out);
    if (chart->n_columns <= FEW) {
        char x[32], text[VALUE_TEXT];
        snprintf(x, sizeof(x), "%.2f%%", x_of(chart, i));
        put_text(x, y_of(scale, base) - 5, "value mid", format_value(chart, base, text), out);
    }
}

/* The line skips unknown values. */
static void put_line(const struct tccl_chart *chart, const struct scale *scale, FILE *out)
{
    for (int i = 0, last = -1; i < chart->n_columns; i++) {
        double value = value_of(&chart->columns[i], 0);
        if (!(value > 0))
            continue;
        if (last >= 0)
            fprintf(out,
                    "<line class=\"s0 curve\" x1=\"%.2f%%\" y1=\"%.1f\" x2=\"%.2f%%\" "
                    "y2=\"%.1f\"/>\n",
                    x_of(chart, last), y_of(scale, value_of(&chart->columns[last], 0)),
                    x_of(chart, i), y_of(scale, value));
        last = i;
    }
    for (int i = 0; i < chart->n_columns; i++) {
        double value = value_of(&chart->columns[i], 0);
        if (!(value > 0))
            continue;
        fprintf(out, "<circle class=\"s0\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\">", x_of(chart, i),
                y_of(scale, value));
        put_tip(chart, &chart->columns[i], out);
        fputs("</circle>\n", out);
    }
}

static void put_legend(const struct tccl_chart *chart, FILE *out)
{
    fputs("<ul class=\"legend\">\n", out);
    for (int i = 0; i < chart->n_series; i++) {
        fprintf(out, "<li><span class=\"key s%d\"></span>", colour_of(chart, i));
        tccl_svg_escape(chart->series[i], out);
        fputs("</li>\n", out);
    }
    if (chart->base) {
        fputs("<li><span class=\"key base\"></span>", out);
        tccl_svg_escape(chart->base, out);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

static void put_table(const struct tccl_chart *chart, FILE *out)
{
    fputs("<details><summary aria-label=\"The same as a table: ", out);
    tccl_svg_escape(chart->name, out);
    fputs("\">The same as a table</summary>\n<table class=\"rows\">\n<caption>", out);
    tccl_svg_escape(chart->name, out);
    fputs("</caption>\n<tr><th scope=\"col\">", out);
    tccl_svg_escape(chart->x_axis, out);
    fputs("</th>", out);
    for (int i = 0; i < chart->n_series; i++) {
        fputs("<th scope=\"col\" class=\"n\">", out);
        tccl_svg_escape(chart->series[i], out);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (int i = 0; i < chart->n_columns; i++) {
        fputs("<tr><th scope=\"row\">", out);
        tccl_svg_escape(chart->columns[i].name, out);
        fputs("</th>", out);
        for (int k = 0; k < chart->n_series; k++) {
            char text[VALUE_TEXT];
            fprintf(out, "<td class=\"n\">%s</td>",
                    format_value(chart, value_of(&chart->columns[i], k), text));
        }
        fputs("</tr>\n", out);
    }
    fputs("</table>\n</details>\n", out);
}

void tccl_chart_write(const struct tccl_chart *chart, FILE *out)
{
    if (chart->n_columns == 0)
        return;
    /* The axis of columns begins at 0, that of a line at the smallest value, or at 1 if that is its
     * base. */
    struct scale scale = {.least = chart->line ? MOST : 0, .most = chart->base ? 1 : 0};
    for (int i = 0; i < chart->n_columns; i++) {
        double height = 0; /* unknown values count as 0 */
        for (int k = 0; k < (chart->line ? 1 : chart->n_series); k++)
            height += fmax(0, value_of(&chart->columns[i], k));
        scale.most = fmax(scale.most, height);
        if (chart->line && height > 0)
            scale.least = fmin(scale.least, height);
    }
    if (chart->base)
        scale.least = fmin(scale.least, 1);
    if (!(scale.least < scale.most))
        scale = (struct scale){.least = fmin(scale.least, 0), .most = fmax(scale.most, 1)};
    scale.step = step_for(scale.most - scale.least, chart->digits);
    scale.least = floor(scale.least / scale.step + 1e-9) * scale.step;
    scale.most = ceil(scale.most / scale.step - 1e-9) * scale.step;
    fprintf(out,
            "<figure class=\"chart\">\n<svg role=\"img\" width=\"100%%\" height=\"%d\" "
            "aria-label=\"",
            HEIGHT);
    tccl_svg_escape(chart->name, out);
    fputs("; the same as a table below\">\n<g aria-hidden=\"true\">\n", out);
    put_axes(chart, &scale, out);
    put_labels(chart, out);
    for (int i = 0; i < chart->n_columns && !chart->line; i++)
        put_column(chart, &scale, i, out);
    if (chart->line)
        put_line(chart, &scale, out);
    if (chart->base)
        put_rule("base", y_of(&scale, 1), out);
    fputs("</g>\n</svg>\n", out);
    put_legend(chart, out);
    put_table(chart, out);
    fputs("</figure>\n", out);
}
