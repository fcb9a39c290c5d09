/* ask.c: one question to this node's tccld, and its answer. */
#include "base/state.h"
#include "hook/achieved.h"
#include "hook/hook.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { QUESTION = 2048, ANSWER = 16 * 1024, HEAD = 4, CONFIRM_TEXT = 255 };

/* Waits until the socket can be read or written. What is there is taken, however late this process
 * comes to look. */
static int wait_for(int fd, short events, int64_t deadline_us)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    for (;;) {
        int64_t left = deadline_us - shim_now_us();
        int most = left <= 0 ? 0 : left > 60000000 ? 60000 : (int)(left / 1000 + 1);
        int ready = poll(&poll_fd, 1, most);
        if (ready > 0)
            return 0;
        if (ready < 0 ? errno != EINTR : most == 0)
            return -1;
    }
}

/* A unix socket connects at once or not at all; where its queue is full, a little later. */
static int connect_to(int fd, const struct sockaddr_un *address, int64_t deadline_us)
{
    while (connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
        if (errno != EAGAIN && errno != EINTR)
            return errno == EISCONN ? 0 : -1;
        if (shim_now_us() >= deadline_us) {
            errno = ETIMEDOUT;
            return -1;
        }
        shim_sleep_us(500);
    }
    return 0;
}

static int open_socket(const char *path, int64_t deadline_us, struct tccl_error *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;
    if (strlen(path) >= sizeof(address.sun_path))
        return tccl_fail(why, "the path of tccld's socket is too long");
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tccl_fail(why, "no socket: %s", strerror(errno));
    if (connect_to(fd, &address, deadline_us) != 0) {
        tccl_fail(why, "tccld does not listen on %s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends or receives all of it. */
static int move(int fd, bool sends, char *bytes, size_t size, int64_t deadline_us)
{
    while (size > 0) {
        ssize_t n = sends ? send(fd, bytes, size, MSG_NOSIGNAL) : recv(fd, bytes, size, 0);
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (n == 0 ||
                   (errno != EINTR && (errno != EAGAIN ||
                                       wait_for(fd, sends ? POLLOUT : POLLIN, deadline_us) != 0))) {
            return -1;
        }
    }
    return 0;
}

/* A question behind the head of its frame, and its answer. */
struct exchange {
    char question[HEAD + QUESTION], answer[ANSWER];
    struct tccl_line_writer lines;
    size_t size; /* of the answer */
};

/* To be freed; NULL with why. */
static struct exchange *begin(const struct shim_plan *plan, const char *name,
                              struct tccl_error *why)
{
    struct exchange *exchange = shim_scratch(sizeof(*exchange));
    if (!exchange)
        return tccl_fail_null(why, "out of memory");
    tccl_lines_begin(&exchange->lines, exchange->question + HEAD, QUESTION, name, 1);
    shim_plan_put_key(plan, &exchange->lines);
    return exchange;
}

static int receive_answer(int fd, struct exchange *exchange, int64_t deadline_us,
                          struct tccl_error *why)
{
    unsigned char head[HEAD];
    if (move(fd, false, (char *)head, sizeof(head), deadline_us) != 0)
        return tccl_fail(why, "tccld did not answer in time");
    exchange->size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (exchange->size == 0 || exchange->size > ANSWER)
        return tccl_fail(why, "tccld's answer is %zu bytes long", exchange->size);
    if (move(fd, false, exchange->answer, exchange->size, deadline_us) != 0)
        return tccl_fail(why, "tccld did not end its answer in time");
    return 0;
}

static int ask(const struct shim_plan *plan, struct exchange *exchange, int64_t deadline_us,
               struct tccl_error *why)
{
    size_t size;
    int fd, status;
    if (tccl_lines_end(&exchange->lines) != 0)
        return tccl_fail(why, "the question to tccld is too long");
    size = exchange->lines.length;
    for (int i = 0; i < HEAD; i++)
        exchange->question[i] = (char)(size >> 8 * (HEAD - 1 - i));
    fd = open_socket(plan->socket, deadline_us, why);
    if (fd < 0)
        return -1;
    status = move(fd, true, exchange->question, HEAD + size, deadline_us) != 0
                 ? tccl_fail(why, "tccld did not take the question")
                 : receive_answer(fd, exchange, deadline_us, why);
    close(fd);
    return status;
}

int shim_ask_chain(const struct shim_plan *plan, const tccl_bus *gpus, int n, bool closed,
                   int64_t deadline_us, struct shim_chain *chain, struct tccl_error *why)
{
    struct exchange *exchange = begin(plan, "tccl-chain", why);
    char bus[TCCL_BUS_TEXT], list[SHIM_GPUS * TCCL_BUS_TEXT] = "";
    struct shim_text text = {list, sizeof(list), 0, false};
    if (!exchange)
        return -1;
    for (int i = 0; i < n; i++) {
        tccl_bus_format(gpus[i], bus);
        shim_text_add(&text, "%s%s", i ? " " : "", bus);
    }
    tccl_line_put_bool(&exchange->lines, "closed", closed);
    tccl_line_put(&exchange->lines, "gpus", "%s", list);
    int status = ask(plan, exchange, deadline_us, why);
    if (status == 0)
        status = shim_chain_parse(exchange->answer, exchange->size, gpus, n, closed, chain, why);
    shim_scratch_free(exchange, sizeof(*exchange));
    return status;
}

/* Is the answer one of that name? Else why has the error that it is. */
static int open_answer(const struct exchange *exchange, const char *name, struct tccl_lines *lines,
                       struct tccl_error *why)
{
    char text[200];
    if (tccl_lines_open(exchange->answer, exchange->size, lines, why) != 0)
        return tccl_fail_in(why, "tccld's answer can't be read");
    if (strcmp(lines->name, name) == 0)
        return 0;
    tccl_line_text(lines, "text", text, sizeof(text));
    return tccl_fail(why, "tccld refused it%s%s", text[0] ? ": " : "", text);
}

/* Asks what tccld has but to note, and frees it. Returns 0, or -1 with why. */
static int tell(const struct shim_plan *plan, struct exchange *exchange, int64_t deadline_us,
                struct tccl_error *why)
{
    struct tccl_lines lines;
    int status = ask(plan, exchange, deadline_us, why);
    if (status == 0)
        status = open_answer(exchange, "tccl-ok", &lines, why);
    shim_scratch_free(exchange, sizeof(*exchange));
    return status;
}

int shim_ask_confirm(const struct shim_plan *plan, enum shim_verdict verdict, const char *text,
                     uint32_t nccl, int ranks, bool whole, int gpus, int lowest,
                     int64_t deadline_us, struct tccl_error *why)
{
    static const enum tccl_built built[] = {[SHIM_APPLIED] = TCCL_BUILT_YES,
                                            [SHIM_UNKNOWN] = TCCL_BUILT_UNKNOWN,
                                            [SHIM_FEWER] = TCCL_BUILT_PARTLY,
                                            [SHIM_DIFFERS] = TCCL_BUILT_DIFFERS,
                                            [SHIM_NOT_USED] = TCCL_BUILT_NOT_USED};
    struct exchange *exchange = begin(plan, "tccl-confirm", why);
    char plain[CONFIRM_TEXT + 1];
    size_t length = 0;
    if (!exchange)
        return -1;
    /* What is not ASCII comes from a log, and may be anything. */
    for (; text[length] && length < CONFIRM_TEXT; length++)
        plain[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    plain[length] = '\0';
    tccl_line_put(&exchange->lines, "verdict", "%s",
                  verdict == SHIM_BEGUN ? "begun" : tccl_built_word(built[verdict]));
    tccl_line_put(&exchange->lines, "text", "%s", plain);
    tccl_line_put(&exchange->lines, "nccl", "%u", nccl);
    tccl_line_put(&exchange->lines, "ranks", "%d", ranks);
    tccl_line_put(&exchange->lines, "gpus", "%d", gpus);
    tccl_line_put(&exchange->lines, "lowest", "%d", lowest);
    tccl_line_put_bool(&exchange->lines, "whole", whole);
    return tell(plan, exchange, deadline_us, why);
}

int shim_ask_achieved(const struct shim_plan *plan, const struct shim_figures *figures, int ranks,
                      int rank, bool steered, uint32_t nccl, int64_t deadline_us,
                      struct tccl_error *why)
{
    struct exchange *exchange = begin(plan, "tccl-achieved", why);
    if (!exchange)
        return -1;
    tccl_line_put(&exchange->lines, "nccl", "%u", nccl);
    tccl_line_put(&exchange->lines, "ranks", "%d", ranks);
    tccl_line_put(&exchange->lines, "rank", "%d", rank);
    tccl_line_put_bool(&exchange->lines, "steered", steered);
    tccl_line_put(&exchange->lines, "from", "%llu", (unsigned long long)figures->from);
    tccl_line_put(&exchange->lines, "samples", "%u", figures->samples);
    tccl_line_put_number(&exchange->lines, "best", figures->best);
    tccl_line_put_number(&exchange->lines, "median", figures->median);
    tccl_line_put(&exchange->lines, "bytes", "%llu", (unsigned long long)figures->bytes);
    if (figures->algorithm)
        tccl_line_put(&exchange->lines, "algorithm", "%s", figures->algorithm);
    if (figures->captured > 0)
        tccl_line_put(&exchange->lines, "captured", "%u", figures->captured);
    if (figures->share >= 0)
        tccl_line_put_number(&exchange->lines, "share", figures->share);
    return tell(plan, exchange, deadline_us, why);
}

/* Returns as shim_ask_agree. */
static int read_agreed(const struct exchange *exchange, struct tccl_error *why)
{
    struct tccl_lines lines;
    char rings[8], text[200];
    if (open_answer(exchange, "tccl-agreed", &lines, why) != 0)
        return -1;
    tccl_line_text(&lines, "rings", rings, sizeof(rings));
    if (strcmp(rings, "all") == 0)
        return 1;
    tccl_line_text(&lines, "why", text, sizeof(text));
    tccl_fail(why, "%s", text);
    return strcmp(rings, "not") == 0 ? 0 : -1;
}

int shim_ask_agree(const struct shim_plan *plan, uint64_t comm, bool will, int64_t deadline_us,
                   struct tccl_error *why)
{
    struct exchange *exchange = begin(plan, "tccl-agree", why);
    if (!exchange)
        return -1;
    tccl_line_put(&exchange->lines, "comm", "%016llx", (unsigned long long)comm);
    tccl_line_put_bool(&exchange->lines, "will", will);
    int agreed = ask(plan, exchange, deadline_us, why);
    if (agreed == 0)
        agreed = read_agreed(exchange, why);
    shim_scratch_free(exchange, sizeof(*exchange));
    return agreed;
}
