/* path-dot.c: a drawing for Graphviz. */
#include "command/path-draw.h"
#include "draw/svg.h"

static const char *const colours[TCCL_ARROW_KINDS] = {"#1769aa", "#c2570c", "#2e7d32", "#6a4c93"};
static const char *const labels[TCCL_ARROW_KINDS] = {"write", "read", "bounce", "network"};

/* The name of a device in a panel: p0_g3. */
static void put_name(int panel, struct tccl_device device, FILE *out)
{
    static const char letters[] = {[TCCL_GPU] = 'g', [TCCL_MEMORY] = 'm', [TCCL_NIC] = 'n'};
    fprintf(out, "p%d_%c%d", panel, letters[device.kind], device.index);
}

static void put_device(int panel, uint8_t kind, int index, const char *shape, const char *label,
                       FILE *out)
{
    fputs("      ", out);
    put_name(panel, (struct tccl_device){kind, index}, out);
    fprintf(out, " [shape=%s, label=\"", shape);
    tccl_svg_escape(label, out);
    fputs("\"];\n", out);
}

static void put_numa(int panel, const struct tccl_machine *machine, int numa, FILE *out)
{
    char label[TCCL_BUSID + 32];
    fprintf(out, "    subgraph cluster_p%d_%d {\n      label=\"NUMA node %d\";\n", panel, numa,
            numa);
    snprintf(label, sizeof(label), "memory %d", numa);
    put_device(panel, TCCL_MEMORY, numa, "cylinder", label, out);
    for (int i = 0; i < machine->n_gpus; i++) {
        snprintf(label, sizeof(label), "GPU %d %s", i, machine->gpus[i].busid);
        if (machine->gpus[i].numa == numa)
            put_device(panel, TCCL_GPU, i, "box", label, out);
    }
    for (int i = 0; i < machine->n_nics; i++)
        if (machine->nics[i].numa == numa)
            put_device(panel, TCCL_NIC, i, "hexagon", machine->nics[i].name, out);
    fputs("    }\n", out);
}

/* Of several rings each arrow says which it belongs to: "ring 2: 1 write". */
static void put_arrows(int panel, const struct tccl_ring_set *set, int ring, FILE *out)
{
    const struct tccl_chain *chain = &set->rings[ring];
    char which[24] = "";
    if (set->n > 1)
        snprintf(which, sizeof(which), "ring %d: ", ring + 1);
    struct tccl_arrow arrows[TCCL_MAX_ARROWS];
    int count = tccl_chain_arrows(chain, arrows);
    for (int i = 0; i < count; i++) {
        fputs("    ", out);
        put_name(panel, arrows[i].from, out);
        fputs(" -> ", out);
        put_name(panel, arrows[i].to, out);
        fprintf(out, " [color=\"%s\", label=\"%s%d %s\"%s];\n", colours[arrows[i].kind], which,
                arrows[i].step, labels[arrows[i].kind],
                arrows[i].kind == TCCL_ARROW_NETWORK ? ", style=dashed" : "");
    }
}

void draw_dot(const struct drawing *drawing, FILE *out)
{
    fprintf(out, "digraph ring {\n  label=\"%d nodes, %.2f GB/s\";\n  fontname=Helvetica;\n",
            drawing->answer->route.n, drawing->answer->route.gbps);
    for (int i = 0; i < drawing->n_panels; i++) {
        const struct panel *panel = &drawing->panels[i];
        const struct tccl_machine *machine = &panel->stop->class->source->machine;
        fprintf(out, "  subgraph cluster_p%d {\n    label=\"%s: ", i, panel->names);
        tccl_svg_escape(machine->name, out);
        fprintf(out, ", %.2f GB/s\";\n", panel->stop->gbps);
        for (int numa = 0; numa < machine->n_memories; numa++)
            put_numa(i, machine, numa, out);
        for (int k = 0; k < panel->stop->set.n; k++)
            put_arrows(i, &panel->stop->set, k, out);
        fputs("  }\n", out);
    }
    fputs("}\n", out);
}
