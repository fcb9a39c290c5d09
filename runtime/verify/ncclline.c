/* ncclline.c: one line of NCCL's log. Lines can be cut at any place, and hold anything. */
#include "verify/verify.h"

#include <string.h>

/* A piece of text that is read from the front. */
struct piece {
    const char *at, *end;
};

static bool skip(struct piece *piece, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(piece->end - piece->at) < length || memcmp(piece->at, text, length) != 0)
        return false;
    piece->at += length;
    return true;
}

/* Goes behind the next place where text stands. */
static bool skip_to(struct piece *piece, const char *text)
{
    const char *found = memmem(piece->at, (size_t)(piece->end - piece->at), text, strlen(text));
    if (found)
        piece->at = found + strlen(text);
    return found;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static bool take(struct piece *piece, int base, uint64_t max, uint64_t *number)
{
    const char *start = piece->at;
    for (*number = 0; piece->at < piece->end && digit(*piece->at) < base; piece->at++) {
        uint64_t next = *number * (uint64_t)base + (uint64_t)digit(*piece->at);
        if (*number > max / (uint64_t)base || next > max)
            return false;
        *number = next;
    }
    return piece->at > start;
}

static bool take_int(struct piece *piece, int *number)
{
    uint64_t value;
    if (!take(piece, 10, INT32_MAX, &value))
        return false;
    *number = (int)value;
    return true;
}

static bool read_init(struct piece piece, struct shim_line *line)
{
    struct piece kind = piece;
    uint64_t bus;
    line->kind = skip_to(&kind, "- Init START")      ? SHIM_LINE_START
                 : skip_to(&kind, "- Init COMPLETE") ? SHIM_LINE_COMPLETE
                                                     : SHIM_LINE_OTHER;
    if (line->kind == SHIM_LINE_OTHER || !skip_to(&piece, "comm 0x") ||
        !take(&piece, 16, UINT64_MAX, &line->comm) || !skip(&piece, " rank ") ||
        !take_int(&piece, &line->rank) || !skip(&piece, " nranks ") ||
        !take_int(&piece, &line->ranks) || !skip_to(&piece, " busId ") ||
        !take(&piece, 16, UINT64_MAX, &bus))
        return false;
    /* NCCL writes 0000:41:00.0 as 41000. */
    line->gpu = (bus >> 20) << 16 | (bus >> 12 & 0xff) << 8 | (bus >> 4 & 0x1f) << 3 | (bus & 7);
    return true;
}

static bool read_ring(struct piece piece, struct shim_line *line)
{
    line->kind = SHIM_LINE_RING;
    return skip(&piece, "Ring ") && take_int(&piece, &line->channel) && skip(&piece, " : ") &&
           take_int(&piece, &line->prev) && skip(&piece, " -> ") && take_int(&piece, &line->rank) &&
           skip(&piece, " -> ") && take_int(&piece, &line->next);
}

/* "0[0] -> 1[1] [send] via NET/…": in brackets a device number, once the bus id. */
static bool read_edge(struct piece piece, struct shim_line *line)
{
    if (!take_int(&piece, &line->from) || !skip(&piece, "[") || !skip_to(&piece, "] -> ") ||
        !take_int(&piece, &line->to) || !skip(&piece, "[") || !skip_to(&piece, "]"))
        return false;
    line->kind = SHIM_LINE_EDGE;
    line->send = skip(&piece, " [send]");
    line->receive = skip(&piece, " [receive]");
    if (!skip(&piece, " via "))
        return false;
    line->text = piece.at;
    line->end = piece.end;
    return true;
}

/* Behind the slash is the connection: 0 of rings, 1 of ncclSend and ncclRecv. */
static bool read_channel(struct piece piece, struct shim_line *line)
{
    int second = 0;
    if (!skip(&piece, "Channel ") || !take_int(&piece, &line->channel) ||
        (skip(&piece, "/") && !take_int(&piece, &second)) || !skip(&piece, " : "))
        return false;
    line->p2p = second > 0;
    return read_edge(piece, line);
}

static bool rest(struct piece piece, enum shim_line_kind kind, struct shim_line *line)
{
    line->kind = kind;
    line->text = piece.at;
    line->end = piece.end;
    return true;
}

static bool read_text(struct piece text, struct shim_line *line)
{
    struct piece piece = text;
    if (skip(&piece, "NET/IB : Using"))
        return rest(piece, SHIM_LINE_NICS, line);
    if (skip(&piece, "NET/IB : Made virtual device")) {
        line->kind = SHIM_LINE_VIRTUAL;
        return skip_to(&piece, " ndevs=") && take_int(&piece, &line->devices);
    }
    if (skip(&piece, "Using network "))
        return rest(piece, SHIM_LINE_NETWORK, line);
    if (skip(&piece, "Connected all rings"))
        return rest(piece, SHIM_LINE_RINGS, line);
    if (skip(&piece, "Connected all trees"))
        return rest(piece, SHIM_LINE_TREES, line);
    if (take_int(&piece, &line->channel) && skip(&piece, " coll channels, "))
        return rest(piece, SHIM_LINE_CHANNELS, line);
    return read_ring(text, line) || read_channel(text, line) || read_init(text, line);
}

/* A number in decimal that ends where *end points, which goes to its first digit. */
static bool number_before(const char *start, const char **end, int *number)
{
    const char *at = *end;
    while (at > start && digit(at[-1]) < 10)
        at--;
    struct piece piece = {at, *end};
    *end = at;
    return take_int(&piece, number) && piece.at == piece.end;
}

static bool before(const char *start, const char **end, char c)
{
    return *end > start && *--*end == c;
}

/* Threads without a device have any number. */
static bool before_sign(const char *start, const char **end)
{
    if (*end > start && (*end)[-1] == '-')
        --*end;
    return true;
}

/* "[2026-11-21 15:00:00] host:1234:1240 [0] NCCL INFO ": the time may stand there from 2.26 on, in
 * a format of the user's. Read from behind. */
static bool read_prefix(const char *start, const char *end, struct shim_line *line)
{
    int device;
    return before(start, &end, ' ') && before(start, &end, ']') &&
           number_before(start, &end, &device) && before_sign(start, &end) &&
           before(start, &end, '[') && before(start, &end, ' ') &&
           number_before(start, &end, &line->tid) && before(start, &end, ':') &&
           number_before(start, &end, &line->pid) && before(start, &end, ':');
}

bool shim_line_read(const char *start, const char *end, struct shim_line *line)
{
    static const char mark[] = "NCCL INFO ";
    struct piece piece = {start, end};
    memset(line, 0, sizeof(*line));
    if (!skip_to(&piece, mark) || !read_prefix(start, piece.at - strlen(mark), line) ||
        !read_text(piece, line)) {
        line->kind = SHIM_LINE_OTHER;
        return false;
    }
    return true;
}

static bool in_name(char c)
{
    return ' ' < c && c <= '~' && c != ':';
}

int shim_line_nic(const char **at, const char *end, int *number, char name[static SHIM_NAME])
{
    struct piece piece = {*at, end};
    size_t length = 0;
    if (!skip(&piece, " [") || !take_int(&piece, number))
        return 0; /* "[RO]", "; OOB" */
    if (!skip(&piece, "]"))
        return -1;
    while (piece.at < end && in_name(*piece.at) && length < SHIM_NAME - 1)
        name[length++] = *piece.at++;
    name[length] = '\0';
    /* "[0]={[0] mlx5_0:1/IB, …}" */
    if (length == 0 || name[0] == '=' || !skip(&piece, ":"))
        return -1;
    while (piece.at < end && *piece.at != ' ')
        piece.at++;
    *at = piece.at;
    return 1;
}
