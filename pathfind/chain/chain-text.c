/* chain-text.c: chains and rings on one line that a person can read. */
#include "chain/chain-text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Formatting */

struct writer {
    char *text;
    size_t length, size;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *fmt, ...)
{
    va_list args;
    size_t left = writer->size - writer->length;

    va_start(args, fmt);
    int more = vsnprintf(writer->text + writer->length, left, fmt, args);
    va_end(args);
    if (more > 0)
        writer->length += (size_t)more < left ? (size_t)more : left - 1;
}

static void put_edge(struct writer *writer, struct tccl_edge edge)
{
    if (edge.kind == TCCL_BOUNCE)
        put(writer, " -m%d> ", edge.memory);
    else
        put(writer, " -%c> ", edge.kind == TCCL_P2P_WRITE ? 'w' : 'r');
}

static void put_port(struct writer *writer, struct tccl_port port)
{
    if (port.via.kind == TCCL_GPU)
        put(writer, " -g> ");
    else
        put(writer, " -m%d> ", port.via.index);
}

void tccl_chain_format(const struct tccl_chain *chain, const struct tccl_machine *machine,
                       char text[static TCCL_CHAIN_TEXT])
{
    struct writer writer = {.text = text, .size = TCCL_CHAIN_TEXT};

    text[0] = '\0';
    if (chain->n_gpus == 0)
        return;
    if (!chain->closed) {
        put(&writer, "%s", machine->nics[chain->entry.nic].name);
        put_port(&writer, chain->entry);
    }
    for (int i = 0; i < chain->n_gpus; i++) {
        put(&writer, "%d", chain->gpus[i]);
        if (i < tccl_chain_edges(chain))
            put_edge(&writer, chain->edges[i]);
    }
    if (chain->closed) {
        put(&writer, "%d", chain->gpus[0]);
    } else {
        put_port(&writer, chain->exit);
        put(&writer, "%s", machine->nics[chain->exit.nic].name);
    }
}

/* Parsing */

struct reader {
    const char *text, *at;
    const struct tccl_machine *machine;
    struct tccl_error *err;
};

/* What an arrow says: w, r, g, or m with a memory. */
struct arrow {
    char kind;
    int memory;
};

static void skip_spaces(struct reader *reader)
{
    while (isspace((unsigned char)*reader->at))
        reader->at++;
}

static int fail_here(struct reader *reader, const char *wanted)
{
    return tccl_fail(reader->err, "column %d: %s was expected, found \"%.12s\"",
                     (int)(reader->at - reader->text) + 1, wanted,
                     *reader->at ? reader->at : "the end");
}

/* A number of one to three digits, or -1. */
static int read_number(struct reader *reader)
{
    int number = 0, digits = 0;

    for (; isdigit((unsigned char)*reader->at) && digits < 3; digits++)
        number = number * 10 + (*reader->at++ - '0');
    return digits ? number : -1;
}

static int read_gpu(struct reader *reader)
{
    skip_spaces(reader);
    struct reader before = *reader;
    int gpu = read_number(reader);

    if (gpu >= 0 && gpu < reader->machine->n_gpus)
        return gpu;
    *reader = before;
    return fail_here(reader, "a GPU of this machine");
}

static int read_nic(struct reader *reader)
{
    char name[TCCL_NAME];
    size_t length = 0;

    skip_spaces(reader);
    while (isalnum((unsigned char)reader->at[length]) || reader->at[length] == '_' ||
           reader->at[length] == '.')
        length++;
    if (length == 0 || length >= sizeof name)
        return fail_here(reader, "the name of a NIC");
    memcpy(name, reader->at, length);
    name[length] = '\0';
    int nic = tccl_machine_find_nic(reader->machine, name);
    if (nic < 0)
        return fail_here(reader, "the name of a NIC of this machine");
    reader->at += length;
    return nic;
}

/* Reads an arrow of one of the kinds. Returns 0, or -1 with the reader's err. */
static int read_arrow(struct reader *reader, const char *kinds, const char *wanted,
                      struct arrow *arrow)
{
    skip_spaces(reader);
    struct reader before = *reader;
    bool good = *reader->at == '-' && reader->at[1] && strchr(kinds, reader->at[1]);

    *arrow = (struct arrow){0};
    if (good) {
        arrow->kind = reader->at[1];
        reader->at += 2;
        if (arrow->kind == 'm')
            arrow->memory = read_number(reader);
        good = arrow->memory >= 0 && arrow->memory < reader->machine->n_memories &&
               *reader->at++ == '>';
    }
    if (good)
        return 0;
    *reader = before;
    return fail_here(reader, wanted);
}

static int read_port(struct reader *reader, struct arrow *arrow)
{
    return read_arrow(reader, "gm", "an arrow such as -g> or -m0>, with a memory of this machine,",
                      arrow);
}

static struct tccl_port make_port(int nic, struct arrow arrow, int gpu)
{
    struct tccl_device via = {.kind = arrow.kind == 'g' ? TCCL_GPU : TCCL_MEMORY,
                              .index = (uint8_t)(arrow.kind == 'g' ? gpu : arrow.memory)};

    return (struct tccl_port){.nic = (uint8_t)nic, .via = via};
}

static struct tccl_edge make_edge(struct arrow arrow)
{
    uint8_t kind = arrow.kind == 'w'   ? TCCL_P2P_WRITE
                   : arrow.kind == 'r' ? TCCL_P2P_READ
                                       : TCCL_BOUNCE;

    return (struct tccl_edge){.kind = kind, .memory = (uint8_t)arrow.memory};
}

/* Does the text go on with "-...> NIC", the exit of an open chain? */
static bool at_exit(const struct reader *reader)
{
    const char *arrow_end = strchr(reader->at, '>');

    if (!arrow_end)
        return false;
    for (arrow_end++; isspace((unsigned char)*arrow_end);)
        arrow_end++;
    return isalpha((unsigned char)*arrow_end);
}

/* Reads GPUs and edges up to the exit, or back to the first GPU. Returns 0, or -1 with err. */
static int read_gpus(struct reader *reader, struct tccl_chain *chain)
{
    for (;;) {
        int gpu = read_gpu(reader);
        if (gpu < 0)
            return -1;
        if (chain->closed && chain->n_gpus > 0 && gpu == chain->gpus[0])
            return 0;
        if (chain->n_gpus == TCCL_MAX_GPUS)
            return fail_here(reader, "the end of a chain of so many GPUs");
        chain->gpus[chain->n_gpus] = (uint8_t)gpu;
        chain->n_gpus++;
        if (!chain->closed && at_exit(reader))
            return 0;
        struct arrow arrow;
        if (read_arrow(reader, "wrm",
                       "an arrow such as -w>, -r> or -m0>, with a memory of this machine,",
                       &arrow) < 0)
            return -1;
        chain->edges[chain->n_gpus - 1] = make_edge(arrow);
    }
}

static int read_open(struct reader *reader, struct tccl_chain *chain)
{
    struct arrow entry, exit;

    int nic = read_nic(reader);
    if (nic < 0 || read_port(reader, &entry) < 0 || read_gpus(reader, chain) < 0)
        return -1;
    chain->entry = make_port(nic, entry, chain->gpus[0]);
    if (read_port(reader, &exit) < 0 || (nic = read_nic(reader)) < 0)
        return -1;
    chain->exit = make_port(nic, exit, chain->gpus[chain->n_gpus - 1]);
    return 0;
}

int tccl_chain_parse(const char *text, const struct tccl_machine *machine, struct tccl_chain *chain,
                     struct tccl_error *err)
{
    struct reader reader = {.text = text, .at = text, .machine = machine, .err = err};

    memset(chain, 0, sizeof *chain);
    skip_spaces(&reader);
    chain->closed = !isalpha((unsigned char)*reader.at);
    if ((chain->closed ? read_gpus(&reader, chain) : read_open(&reader, chain)) < 0)
        return -1;
    skip_spaces(&reader);
    if (*reader.at)
        return fail_here(&reader, "the end");
    return tccl_chain_check(chain, machine, err);
}

/* Rings */

/* Copies length characters of a piece without the spaces around them. Returns 0, or -1. */
static int copy_piece(char *out, size_t size, const char *from, size_t length)
{
    while (length > 0 && isspace((unsigned char)*from)) {
        from++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)from[length - 1]))
        length--;
    if (length >= size)
        return -1;
    memcpy(out, from, length);
    out[length] = '\0';
    return 0;
}

enum { NAME_TEXT = 256, PIECE_TEXT = 2 * TCCL_CHAIN_TEXT };

/* Reads "name[chain]" and moves *text behind it. Returns 0, or -1 with err. */
static int read_piece(const char **text, int index, char name[static NAME_TEXT],
                      char chain[static PIECE_TEXT], struct tccl_error *err)
{
    const char *open = strchr(*text, '[');
    const char *close = open ? strchr(open, ']') : NULL;

    if (!close)
        return tccl_fail(err, "node %d of the ring: name[chain] was expected, found \"%.20s\"",
                         index + 1, *text);
    if (copy_piece(name, NAME_TEXT, *text, (size_t)(open - *text)) < 0 ||
        copy_piece(chain, PIECE_TEXT, open + 1, (size_t)(close - open) - 1) < 0)
        return tccl_fail(err, "node %d of the ring: the text is too long", index + 1);
    *text = close + 1;
    while (isspace((unsigned char)**text))
        (*text)++;
    return 0;
}

int tccl_ring_split(const char *text,
                    int (*each)(void *context, int index, const char *name, const char *chain,
                                struct tccl_error *err),
                    void *context, struct tccl_error *err)
{
    char name[NAME_TEXT] = "", chain[PIECE_TEXT];
    int index = 0;

    if (!strchr(text, '[')) {
        if (copy_piece(chain, sizeof chain, text, strlen(text)) < 0)
            return tccl_fail(err, "the chain's text is too long");
        int answer = each(context, 0, "", chain, err);
        return answer ? answer : 1;
    }
    while (*text) {
        if (read_piece(&text, index, name, chain, err) < 0)
            return -1;
        int answer = each(context, index, name, chain, err);
        if (answer)
            return answer;
        index++;
    }
    return index;
}

/* JSON */

static json_t *edge_json(const struct tccl_chain *chain, int i)
{
    static const char *const kinds[] = {"p2p-write", "p2p-read", "bounce"};
    struct tccl_edge edge = chain->edges[i];
    json_t *json = json_pack("{s:s, s:i, s:i}", "kind", kinds[edge.kind], "from", chain->gpus[i],
                             "to", chain->gpus[(i + 1) % chain->n_gpus]);

    if (edge.kind == TCCL_BOUNCE)
        json_object_set_new(json, "memory", json_integer(edge.memory));
    return json;
}

/* "via": "gpu" or "memory", and which. */
static json_t *port_json(struct tccl_port port, const struct tccl_machine *machine)
{
    const char *via = port.via.kind == TCCL_GPU ? "gpu" : "memory";

    return json_pack("{s:s, s:s, s:i}", "nic", machine->nics[port.nic].name, "via", via, via,
                     port.via.index);
}

json_t *tccl_chain_to_json(const struct tccl_chain *chain, const struct tccl_machine *machine)
{
    char text[TCCL_CHAIN_TEXT], set_text[TCCL_SET_TEXT];
    json_t *gpus = json_array(), *busids = json_array(), *edges = json_array();
    bool ports = !chain->closed && chain->n_gpus > 0;
    struct tccl_set set;

    for (int i = 0; i < chain->n_gpus; i++) {
        json_array_append_new(gpus, json_integer(chain->gpus[i]));
        json_array_append_new(busids, json_string(machine->gpus[chain->gpus[i]].busid));
    }
    for (int i = 0; i < tccl_chain_edges(chain); i++)
        json_array_append_new(edges, edge_json(chain, i));
    tccl_chain_format(chain, machine, text);
    tccl_chain_set(chain, &set);
    tccl_set_format(&set, set_text);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:s}", "gpus", gpus, "busids", busids, "edges",
                     edges, "entry", ports ? port_json(chain->entry, machine) : json_null(), "exit",
                     ports ? port_json(chain->exit, machine) : json_null(), "chain", text, "set",
                     set_text);
}
