/* path-draw.c: tccl-path draw: a picture of the nodes and the rings through them. */
#include "command/path-draw.h"

#include <stdlib.h>
#include <string.h>

#include "base/fileio.h"
#include "command/path-commands.h"

/* Appends "n1-n4" to the panel's names, or "…" once there are too many. */
static void add_names(struct panel *panel, int first, int count)
{
    char name[32];
    size_t length = strlen(panel->names);
    format_nodes(first, count, name);
    panel->count += count;
    if (length + strlen(name) + 8 < sizeof(panel->names))
        snprintf(panel->names + length, sizeof(panel->names) - length, "%s%s", length ? ", " : "",
                 name);
    else if (!strstr(panel->names, "..."))
        strcat(panel->names, ", ...");
}

static struct panel *find_panel(struct drawing *drawing, const struct stop *stop)
{
    for (int i = 0; i < drawing->n_panels; i++) {
        const struct stop *other = drawing->panels[i].stop;
        if (other->class == stop->class && memcmp(&other->set, &stop->set, sizeof(stop->set)) == 0)
            return &drawing->panels[i];
    }
    struct panel *panel = &drawing->panels[drawing->n_panels++];
    panel->stop = stop;
    return panel;
}

static int make_panels(struct drawing *drawing, struct tccl_error *err)
{
    const struct route *route = &drawing->answer->route;
    drawing->panels = calloc(route->n, sizeof(*drawing->panels));
    if (!drawing->panels)
        return tccl_fail(err, "out of memory");
    for (int i = 0, n; i < route->n; i += n) {
        n = route_alike(route, i);
        add_names(find_panel(drawing, &route->stops[i]), i, n);
    }
    return 0;
}

static int print_svg(FILE *out, const void *drawing, struct tccl_error *err)
{
    return draw_svg(drawing, out, err);
}

static int draw(const struct options *options, struct nodes *nodes, struct answer *answer,
                struct tccl_error *err)
{
    struct drawing drawing = {.answer = answer};
    int rc =
        options->ring ? evaluate(options, nodes, answer, err) : solve(options, nodes, answer, err);
    if (rc == 0 && answer->nothing)
        rc = tccl_fail(err, "one GPU in all: there is no ring to draw");
    if (rc == 0)
        rc = make_panels(&drawing, err);
    if (rc == 0)
        rc = tccl_print_output(options->output, print_svg, &drawing, err);
    free(drawing.panels);
    return rc;
}

int command_draw(const struct options *options, struct tccl_error *err)
{
    struct nodes nodes;
    struct answer answer = {.nothing = false};
    int rc = nodes_open(options, &nodes, err);
    if (rc == 0)
        rc = draw(options, &nodes, &answer, err);
    answer_clear(&answer);
    nodes_clear(&nodes);
    return rc;
}
