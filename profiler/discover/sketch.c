/* sketch.c: a machine drawn as a tree of text. */
#include "discover/machine-text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PREFIX = 512, MOST_PARTS = TCCL_MAX_SWITCHES + TCCL_MAX_GPUS + TCCL_MAX_NICS };

enum part_kind { PACKAGE, MEMORY, SWITCH, GPU, NIC };

struct part {
    enum part_kind kind;
    int index;
};

struct sketch {
    FILE *out;
    const struct tccl_machine *machine;
    const int *package_of;
    bool lines;  /* box-drawing characters; else ASCII */
    bool colour; /* of a terminal */
    char prefix[PREFIX];
};

struct parts {
    int count;
    struct part list[MOST_PARTS];
};

static void add(struct parts *parts, enum part_kind kind, int index)
{
    parts->list[parts->count++] = (struct part){kind, index};
}

/* Devices and switches right below a switch, or, with parent -1, at the root complex of a memory.
 */
static void find_devices(const struct sketch *sketch, int parent, int numa, struct parts *parts)
{
    const struct tccl_machine *machine = sketch->machine;

    for (int i = 0; i < machine->n_switches; i++)
        if (machine->switches[i].parent == parent &&
            (parent >= 0 || machine->switches[i].numa == numa))
            add(parts, SWITCH, i);
    for (int i = 0; i < machine->n_gpus; i++)
        if (machine->gpus[i].parent == parent && (parent >= 0 || machine->gpus[i].numa == numa))
            add(parts, GPU, i);
    for (int i = 0; i < machine->n_nics; i++)
        if (machine->nics[i].parent == parent && (parent >= 0 || machine->nics[i].numa == numa))
            add(parts, NIC, i);
}

/* Memories of a package; with package -1 those of none. */
static void find_memories(const struct sketch *sketch, int package, struct parts *parts)
{
    for (int i = 0; i < sketch->machine->n_memories; i++)
        if ((sketch->package_of ? sketch->package_of[i] : -1) == package)
            add(parts, MEMORY, i);
}

static void print_part(const struct sketch *sketch, struct part part)
{
    static const char *const colours[] = {
        [PACKAGE] = "1", [MEMORY] = "34", [SWITCH] = "33", [GPU] = "32", [NIC] = "36"};
    const struct tccl_machine *machine = sketch->machine;
    FILE *out = sketch->out;

    if (sketch->colour)
        fprintf(out, "\033[%sm", colours[part.kind]);
    if (part.kind == PACKAGE)
        fprintf(out, "socket %d", part.index);
    else if (part.kind == MEMORY)
        fprintf(out, "memory %d (NUMA node %d)", part.index, machine->nodes[part.index]);
    else if (part.kind == SWITCH)
        fprintf(out, "switch %s", machine->switches[part.index].name);
    else if (part.kind == GPU)
        fprintf(out, "GPU %d  %s  %s", part.index, machine->gpus[part.index].busid,
                machine->gpus[part.index].model);
    else
        fprintf(out, "NIC %s  %s  %.4g GB/s  %s", machine->nics[part.index].name,
                machine->nics[part.index].busid, machine->nics[part.index].gbps,
                machine->nics[part.index].fabric);
    fputs(sketch->colour ? "\033[0m\n" : "\n", out);
}

static void draw(struct sketch *sketch, const struct parts *parts)
{
    static const char *const marks[2][4] = {{"|- ", "`- ", "|  ", "   "},
                                            {"├─ ", "└─ ", "│  ", "   "}};
    const char *const *mark = marks[sketch->lines];
    size_t length = strlen(sketch->prefix);

    for (int i = 0; i < parts->count; i++) {
        struct part part = parts->list[i];
        struct parts below = {0};
        bool last = i == parts->count - 1;
        fprintf(sketch->out, "%s%s", sketch->prefix, mark[last]);
        print_part(sketch, part);
        if (part.kind == PACKAGE)
            find_memories(sketch, part.index, &below);
        else if (part.kind == MEMORY || part.kind == SWITCH)
            find_devices(sketch, part.kind == SWITCH ? part.index : -1, part.index, &below);
        snprintf(sketch->prefix + length, sizeof(sketch->prefix) - length, "%s", mark[2 + last]);
        draw(sketch, &below);
        sketch->prefix[length] = '\0';
    }
}

void tccl_sketch(FILE *out, const struct tccl_machine *machine, const int *package_of)
{
    const char *terminal = getenv("TERM"), *plain = getenv("NO_COLOR");
    struct sketch sketch = {.out = out, .machine = machine, .package_of = package_of};
    struct parts top = {0};

    setlocale(LC_CTYPE, "");
    sketch.lines = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    sketch.colour =
        isatty(fileno(out)) && !(plain && *plain) && terminal && strcmp(terminal, "dumb") != 0;
    for (int i = 0; package_of && i < machine->n_memories; i++) {
        bool first = package_of[i] >= 0;
        for (int k = 0; k < i; k++)
            first = first && package_of[k] != package_of[i];
        if (first)
            add(&top, PACKAGE, package_of[i]);
    }
    find_memories(&sketch, -1, &top);
    fprintf(out, "%s\n", machine->name);
    draw(&sketch, &top);
}
