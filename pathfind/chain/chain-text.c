/* chain-text.c: chains and rings on one line that a person can read. Of libc only. */
#include "chain/chain-text.h"

#include <string.h>

#include "base/append.h"

/* Not those of ctype.h: they depend on the locale, and newer libcs give them new names. */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Printing */

int tccl_named_edges(const struct tccl_named_chain *chain)
{
    return chain->closed || chain->n_gpus == 0 ? chain->n_gpus : chain->n_gpus - 1;
}

int tccl_named_arrows(const struct tccl_named_chain *chain)
{
    return chain->closed ? chain->n_gpus : chain->n_gpus + 1;
}

static struct tccl_text_arrow port_arrow(const struct tccl_named_port *port)
{
    return (struct tccl_text_arrow){.kind = port->gpudirect ? 'g' : 'm',
                                    .memory = port->gpudirect ? -1 : port->memory};
}

struct tccl_text_arrow tccl_named_arrow(const struct tccl_named_chain *chain, int i)
{
    if (!chain->closed && i == 0)
        return port_arrow(&chain->entry);
    if (!chain->closed && i == chain->n_gpus)
        return port_arrow(&chain->exit);
    const struct tccl_named_edge *edge = &chain->edges[chain->closed ? i : i - 1];
    bool memory = edge->kind >= TCCL_BOUNCE;
    return (struct tccl_text_arrow){"wrmn"[edge->kind], memory ? edge->memory : (int16_t)-1,
                                    edge->to_memory, edge->from_nic, edge->to_nic};
}

static void put_memory(struct tccl_append *to, int memory)
{
    if (memory < 0)
        return;
    tccl_append(to, "m");
    tccl_append_number(to, (unsigned)memory, 1, 10);
}

static void put_arrow(struct tccl_append *to, struct tccl_text_arrow arrow)
{
    if (arrow.kind != 'm' && arrow.kind != 'n') {
        tccl_append(to, (char[]){arrow.kind, '\0'});
        return;
    }
    put_memory(to, arrow.memory);
    if (arrow.kind == 'm')
        return;
    tccl_append(to, "n");
    tccl_append_number(to, (unsigned)arrow.from_nic, 1, 10);
    tccl_append(to, "n");
    tccl_append_number(to, (unsigned)arrow.to_nic, 1, 10);
    put_memory(to, arrow.to_memory);
}

void tccl_text_arrow_format(struct tccl_text_arrow arrow, char text[static TCCL_ARROW_TEXT])
{
    struct tccl_append to = {.text = text, .size = TCCL_ARROW_TEXT};
    text[0] = '\0';
    put_arrow(&to, arrow);
}

static void put_gpu(struct tccl_append *to, const struct tccl_named_chain *chain, int i)
{
    char bus[TCCL_BUS_TEXT];
    if (chain->numbers) {
        tccl_append_number(to, chain->gpus[i], 1, 10);
        return;
    }
    tccl_bus_format(chain->gpus[i], bus);
    tccl_append(to, bus);
}

void tccl_named_format(const struct tccl_named_chain *chain, char text[static TCCL_CHAIN_TEXT])
{
    struct tccl_append to = {.text = text, .size = TCCL_CHAIN_TEXT};
    text[0] = '\0';
    if (chain->n_gpus == 0)
        return;
    if (!chain->closed)
        tccl_append(&to, chain->entry.nic);
    for (int i = 0; i < tccl_named_arrows(chain); i++) {
        if (chain->closed || i > 0)
            put_gpu(&to, chain, chain->closed ? i : i - 1);
        tccl_append(&to, " -");
        put_arrow(&to, tccl_named_arrow(chain, i));
        tccl_append(&to, "> ");
    }
    if (chain->closed)
        put_gpu(&to, chain, 0);
    else
        tccl_append(&to, chain->exit.nic);
}

/* Parsing */

struct reader {
    const char *text, *at;
    struct tccl_error *err;
};

static void skip_blanks(struct reader *reader)
{
    while (is_blank(*reader->at))
        reader->at++;
}

static int fail_at(const struct reader *reader, const char *at, const char *wanted)
{
    const char *quote = *at ? "\"" : "";
    return tccl_fail(reader->err, "column %d: %s was expected, found %s%.12s%s",
                     (int)(at - reader->text) + 1, wanted, quote, *at ? at : "the end", quote);
}

static int fail_here(const struct reader *reader, const char *wanted)
{
    return fail_at(reader, reader->at, wanted);
}

/* How many characters the name of a device has here. */
static size_t name_length(const char *at)
{
    size_t length = 0;
    while (is_letter(at[length]) || is_digit(at[length]) || at[length] == '_' ||
           at[length] == '.' || at[length] == ':')
        length++;
    return length;
}

/* A bus id may begin with a letter, but only bus ids have a colon. */
static bool at_nic(const char *at)
{
    return is_letter(*at) && !memchr(at, ':', name_length(at));
}

static int read_nic(struct reader *reader, char nic[static TCCL_CHAIN_NIC])
{
    size_t length = name_length(reader->at);
    if (!at_nic(reader->at) || length >= TCCL_CHAIN_NIC)
        return fail_here(reader, "the name of a NIC");
    memcpy(nic, reader->at, length);
    reader->at += length;
    return 0;
}

/* A number of one to three digits that ends there, or -1. */
static int small_number(const char *at, size_t length)
{
    int number = 0;
    if (length < 1 || length > 3)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(at[i]))
            return -1;
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

static int read_gpu(struct reader *reader, bool *number, tccl_bus *gpu)
{
    char bus[TCCL_BUS_TEXT] = "";
    size_t length = name_length(reader->at);
    int small = small_number(reader->at, length);
    *number = small >= 0;
    if (*number)
        *gpu = (tccl_bus)small;
    else if (length < sizeof(bus))
        memcpy(bus, reader->at, length);
    if (!*number && tccl_bus_parse(bus, gpu) != 0)
        return fail_here(reader, "a GPU");
    reader->at += length;
    return 0;
}

/* A letter and a number, if they stand there; false: not the letter, or no number (-1) behind it.
 */
static bool read_place(const char **at, char letter, int16_t *number)
{
    size_t digits = 0;
    if (**at != letter)
        return false;
    while (is_digit((*at)[1 + digits]))
        digits++;
    *number = (int16_t)small_number(*at + 1, digits);
    *at += 1 + digits;
    return *number >= 0;
}

/* Reads any arrow, and the blanks behind it. Returns 0, or -1 without a text. */
static int read_arrow(struct reader *reader, struct tccl_text_arrow *arrow)
{
    const char *at = reader->at + 1;
    *arrow = (struct tccl_text_arrow){.kind = *reader->at == '-' ? *at : '\0', .memory = -1};
    if (arrow->kind == 'w' || arrow->kind == 'r' || arrow->kind == 'g')
        at++;
    else if (arrow->kind == '\0' || (!read_place(&at, 'm', &arrow->memory) && arrow->kind != 'n'))
        return -1;
    else if (*at == 'n') {
        arrow->kind = 'n';
        arrow->to_memory = -1;
        if (!read_place(&at, 'n', &arrow->from_nic) || !read_place(&at, 'n', &arrow->to_nic) ||
            (*at == 'm' && !read_place(&at, 'm', &arrow->to_memory)))
            return -1;
    }
    if (*at != '>')
        return -1;
    reader->at = at + 1;
    skip_blanks(reader);
    return 0;
}

/* Reads the arrow at a NIC (-g>, -mK>), or between two GPUs (-w>, -r>, -mK>). */
static int read_link(struct reader *reader, struct tccl_text_arrow *arrow, bool *port)
{
    const char *start = reader->at;
    bool good = read_arrow(reader, arrow) == 0;
    *port = *port || (good && at_nic(reader->at));
    if (good && (arrow->kind == 'm' || (*port ? arrow->kind == 'g' : arrow->kind != 'g')))
        return 0;
    return fail_at(reader, start,
                   *port ? "an arrow such as -g> or -m0>" : "an arrow such as -w>, -r> or -m0>");
}

static void set_port(struct tccl_named_port *port, struct tccl_text_arrow arrow)
{
    port->gpudirect = arrow.kind == 'g';
    port->memory = arrow.memory;
}

/* Takes a GPU up. Returns 1 if it is the first one again, which ends a closed chain; 0; -1. */
static int take_gpu(struct reader *reader, struct tccl_named_chain *chain)
{
    tccl_bus gpu;
    bool number;
    const char *start = reader->at;
    if (read_gpu(reader, &number, &gpu) != 0)
        return -1;
    if (chain->n_gpus > 0 && number != chain->numbers)
        return fail_at(reader, start,
                       chain->numbers ? "a number, as before," : "a bus id, as before,");
    if (chain->closed && chain->n_gpus > 0 && gpu == chain->gpus[0])
        return 1;
    for (int i = 0; i < chain->n_gpus; i++)
        if (chain->gpus[i] == gpu)
            return tccl_fail(reader->err, "GPU %.*s is in the chain twice",
                             (int)(reader->at - start), start);
    if (chain->n_gpus == TCCL_CHAIN_GPUS)
        return fail_at(reader, start, "the end of a chain of so many GPUs");
    chain->numbers = number;
    chain->gpus[chain->n_gpus++] = gpu;
    return 0;
}

/* Reads GPUs and arrows up to the first GPU again, or, when open, up to the exit NIC. */
static int read_gpus(struct reader *reader, struct tccl_named_chain *chain)
{
    for (;;) {
        struct tccl_text_arrow arrow;
        bool exit = false;
        int end = take_gpu(reader, chain);
        if (end != 0)
            return end < 0 ? -1 : 0;
        skip_blanks(reader);
        if (read_link(reader, &arrow, &exit) != 0)
            return -1;
        if (exit && chain->closed)
            return fail_here(reader, "a GPU");
        if (exit) {
            set_port(&chain->exit, arrow);
            return read_nic(reader, chain->exit.nic);
        }
        struct tccl_named_edge *edge = &chain->edges[chain->n_gpus - 1];
        edge->kind = arrow.kind == 'w'   ? TCCL_P2P_WRITE
                     : arrow.kind == 'r' ? TCCL_P2P_READ
                     : arrow.kind == 'n' ? TCCL_BY_NICS
                                         : TCCL_BOUNCE;
        edge->memory = arrow.memory;
        edge->to_memory = arrow.to_memory;
        edge->from_nic = arrow.from_nic;
        edge->to_nic = arrow.to_nic;
    }
}

static int read_entry(struct reader *reader, struct tccl_named_port *entry)
{
    struct tccl_text_arrow arrow;
    bool port = true;
    if (read_nic(reader, entry->nic) != 0)
        return -1;
    skip_blanks(reader);
    if (read_link(reader, &arrow, &port) != 0)
        return -1;
    set_port(entry, arrow);
    return 0;
}

/* Reads a chain, and the blanks behind it; what then stands there is the caller's. */
static int read_chain(struct reader *reader, struct tccl_named_chain *chain)
{
    memset(chain, 0, sizeof(*chain));
    skip_blanks(reader);
    reader->text = reader->at;
    chain->closed = !at_nic(reader->at);
    if ((!chain->closed && read_entry(reader, &chain->entry) != 0) || read_gpus(reader, chain) != 0)
        return -1;
    skip_blanks(reader);
    if (chain->closed && chain->n_gpus < 2)
        return tccl_fail(reader->err, "a ring needs at least two GPUs");
    return 0;
}

int tccl_named_parse(const char *text, struct tccl_named_chain *chain, struct tccl_error *err)
{
    struct reader reader = {.text = text, .at = text, .err = err};
    if (read_chain(&reader, chain) != 0)
        return -1;
    return *reader.at ? fail_here(&reader, "the end") : 0;
}

/* Rings */

/* Reads "name[". */
static int read_node(struct tccl_ring_reader *ring, struct tccl_error *err)
{
    const char *at = ring->text, *open = strchr(at, '[');
    size_t length = open ? (size_t)(open - at) : 0;
    while (length > 0 && is_blank(at[length - 1]))
        length--;
    if (length == 0 || memchr(at, ']', length))
        return tccl_fail(err, "node %d of the ring: name[chain] was expected, found \"%.20s\"",
                         ring->node + 1, at);
    if (length >= sizeof(ring->name))
        return tccl_fail(err, "node %d of the ring: its name is too long", ring->node + 1);
    memcpy(ring->name, at, length);
    ring->name[length] = '\0';
    ring->text = open + 1;
    return 0;
}

/* The chains of a node before this one, which are written out there; NULL: there is no such node.
 * All up to here has been read once, so it has its brackets. */
static const char *find_chains(const struct tccl_ring_reader *ring, const char *name, size_t length)
{
    const char *at = ring->begin;
    while (at < ring->text) {
        while (is_blank(*at))
            at++;
        const char *open = strchr(at, '['), *chains = open + 1;
        while (is_blank(open[-1]))
            open--;
        while (is_blank(*chains))
            chains++;
        if ((size_t)(open - at) == length && memcmp(at, name, length) == 0)
            return *chains != '=' && chains < ring->text ? chains : NULL;
        at = strchr(chains, ']') + 1;
    }
    return NULL;
}

/* "= name]" stands for the chains of that node: goes there, and behind it later. Returns 0, or -1
 * with err. */
static int follow(struct tccl_ring_reader *ring, struct tccl_error *err)
{
    const char *at = ring->text, *close = strchr(at, ']');
    while (is_blank(*at))
        at++;
    if (*at != '=')
        return 0;
    do
        at++;
    while (is_blank(*at));
    size_t length = close ? (size_t)(close - at) : 0;
    while (length > 0 && is_blank(at[length - 1]))
        length--;
    const char *chains = length > 0 ? find_chains(ring, at, length) : NULL;
    if (!chains)
        return tccl_fail(err,
                         "node %d of the ring: = and a node before it, with its chains, was "
                         "expected, found \"%.20s\"",
                         ring->node + 1, ring->text);
    ring->behind = close + 1;
    ring->text = chains;
    return 0;
}

/* Goes to the next node, if there is one. Returns 1, 0 at the end, or -1 with err. */
static int next_node(struct tccl_ring_reader *ring, struct tccl_error *err)
{
    while (is_blank(*ring->text))
        ring->text++;
    if (!*ring->text && ring->begun)
        return 0;
    ring->node += ring->begun;
    ring->chain = 0;
    ring->named = ring->begun || strchr(ring->text, '[');
    if (!ring->begun)
        ring->begin = ring->text;
    ring->begun = true;
    return !ring->named || (read_node(ring, err) == 0 && follow(ring, err) == 0) ? 1 : -1;
}

/* Behind a chain: another one of this node, or the node's end. Returns 0, or -1 with err. */
static int end_chain(struct tccl_ring_reader *ring, const struct reader *reader)
{
    char end = ring->named ? ']' : '\0';
    if (*reader->at != '|' && *reader->at != end)
        return fail_here(reader, ring->named ? "\"]\"" : "the end");
    ring->more = *reader->at == '|';
    ring->text = reader->at + (*reader->at != '\0');
    if (!ring->more && ring->behind) {
        ring->text = ring->behind;
        ring->behind = NULL;
    }
    return 0;
}

int tccl_ring_next(struct tccl_ring_reader *ring, struct tccl_named_chain *chain,
                   struct tccl_error *err)
{
    int more = ring->more ? 1 : next_node(ring, err);
    if (more <= 0)
        return more;
    ring->chain += ring->more;
    struct reader reader = {.text = ring->text, .at = ring->text, .err = err};
    if (read_chain(&reader, chain) == 0 && end_chain(ring, &reader) == 0)
        return 1;
    return ring->named ? tccl_fail_in(err, "node %d of the ring", ring->node + 1) : -1;
}

/* Ring sets */

void tccl_named_rings_format(const struct tccl_named_rings *rings,
                             char text[static TCCL_RINGS_TEXT])
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < rings->n; i++) {
        if (i > 0) {
            strcpy(text + length, " | ");
            length += 3;
        }
        tccl_named_format(&rings->chains[i], text + length);
        length += strlen(text + length);
    }
}

static bool visits(const struct tccl_named_chain *chain, tccl_bus gpu)
{
    for (int i = 0; i < chain->n_gpus; i++)
        if (chain->gpus[i] == gpu)
            return true;
    return false;
}

/* Can both be chains of one set? */
static int check_pair(const struct tccl_named_chain *first, const struct tccl_named_chain *chain,
                      int number, struct tccl_error *err)
{
    if (chain->closed != first->closed)
        return tccl_fail(err, "ring %d is %s, the first one isn't", number,
                         chain->closed ? "closed" : "open");
    bool same = chain->n_gpus == first->n_gpus && chain->numbers == first->numbers;
    for (int i = 0; i < first->n_gpus && same; i++)
        same = visits(chain, first->gpus[i]);
    return same ? 0 : tccl_fail(err, "ring %d has other GPUs than the first one", number);
}

int tccl_named_rings_parse(const char *text, struct tccl_named_rings *rings, struct tccl_error *err)
{
    struct reader reader = {.text = text, .at = text, .err = err};
    bool more = true;
    for (rings->n = 0; more; rings->n++) {
        if (rings->n == TCCL_CHAIN_RINGS)
            return tccl_fail(err, "at most %d rings can run at once", TCCL_CHAIN_RINGS);
        struct tccl_named_chain *chain = &rings->chains[rings->n];
        if (read_chain(&reader, chain) != 0)
            return rings->n ? tccl_fail_in(err, "ring %d", rings->n + 1) : -1;
        if (check_pair(&rings->chains[0], chain, rings->n + 1, err) != 0)
            return -1;
        more = *reader.at == '|';
        reader.at += more;
    }
    return *reader.at ? fail_here(&reader, "the end") : 0;
}
