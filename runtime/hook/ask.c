/* ask.c: one question to this node's tccld, and its answer. */
#include "hook/ask.h"

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

static int open_socket(const char *path, int64_t deadline_us, struct shim_why *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof(address.sun_path))
        return shim_fail(why, "the path of tccld's socket is too long");
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return shim_fail(why, "no socket: %s", strerror(errno));
    if (connect_to(fd, &address, deadline_us) != 0) {
        shim_fail(why, "tccld does not listen on %s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static int send_all(int fd, const char *bytes, size_t size, int64_t deadline_us)
{
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (errno != EINTR && (errno != EAGAIN || wait_for(fd, POLLOUT, deadline_us) != 0)) {
            return -1;
        }
    }
    return 0;
}

static int receive_all(int fd, char *bytes, size_t size, int64_t deadline_us)
{
    while (size > 0) {
        ssize_t n = recv(fd, bytes, size, 0);
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (n == 0 || (errno != EINTR &&
                              (errno != EAGAIN || wait_for(fd, POLLIN, deadline_us) != 0))) {
            return -1;
        }
    }
    return 0;
}

/* Returns the length of the answer, or -1. */
static long receive_answer(int fd, char answer[static ANSWER], int64_t deadline_us,
                           struct shim_why *why)
{
    unsigned char head[HEAD];
    size_t size;

    if (receive_all(fd, (char *)head, sizeof(head), deadline_us) != 0)
        return shim_fail(why, "tccld did not answer in time");
    size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (size == 0 || size > ANSWER)
        return shim_fail(why, "tccld's answer is %zu bytes long", size);
    if (receive_all(fd, answer, size, deadline_us) != 0)
        return shim_fail(why, "tccld did not end its answer in time");
    return (long)size;
}

/* A question behind the head of its frame. */
struct question {
    char bytes[HEAD + QUESTION];
    struct tccl_line_writer lines;
};

static void begin(struct question *question, const struct shim_plan *plan, const char *name)
{
    tccl_lines_begin(&question->lines, question->bytes + HEAD, QUESTION, name, 1);
    shim_plan_put_key(plan, &question->lines);
}

/* Returns the length of the answer, or -1. */
static long exchange(const struct shim_plan *plan, struct question *question, int64_t deadline_us,
                     char answer[static ANSWER], struct shim_why *why)
{
    size_t size;
    long length = -1;
    int fd;

    if (tccl_lines_end(&question->lines) != 0)
        return shim_fail(why, "the question to tccld is too long");
    size = question->lines.length;
    for (int i = 0; i < HEAD; i++)
        question->bytes[i] = (char)(size >> 8 * (HEAD - 1 - i));
    fd = open_socket(plan->socket, deadline_us, why);
    if (fd < 0)
        return -1;
    if (send_all(fd, question->bytes, HEAD + size, deadline_us) != 0)
        shim_fail(why, "tccld did not take the question");
    else
        length = receive_answer(fd, answer, deadline_us, why);
    close(fd);
    return length;
}

/* The answer, to be freed, and its length; NULL with why. */
static char *ask(const struct shim_plan *plan, struct question *question, int64_t deadline_us,
                 size_t *size, struct shim_why *why)
{
    char *answer = shim_scratch(ANSWER);
    long length;

    if (!answer) {
        shim_fail(why, "out of memory");
        return NULL;
    }
    length = exchange(plan, question, deadline_us, answer, why);
    if (length >= 0) {
        *size = (size_t)length;
        return answer;
    }
    shim_scratch_free(answer, ANSWER);
    return NULL;
}

int shim_ask_chain(const struct shim_plan *plan, const shim_bus *gpus, int n, bool closed,
                   int64_t deadline_us, struct shim_chain *chain, struct shim_why *why)
{
    struct question question;
    char bus[TCCL_BUS_TEXT], list[SHIM_GPUS * TCCL_BUS_TEXT] = "", *answer;
    struct shim_text text = {list, sizeof(list), 0, false};
    size_t size;
    int status;

    for (int i = 0; i < n; i++) {
        tccl_bus_format(gpus[i], bus);
        shim_text_add(&text, "%s%s", i ? " " : "", bus);
    }
    begin(&question, plan, "tccl-chain");
    tccl_line_put_bool(&question.lines, "closed", closed);
    tccl_line_put(&question.lines, "gpus", "%s", list);
    answer = ask(plan, &question, deadline_us, &size, why);
    if (!answer)
        return -1;
    status = shim_chain_parse(answer, size, gpus, n, closed, chain, why);
    shim_scratch_free(answer, ANSWER);
    return status;
}

/* What is not ASCII comes from a log, and may be anything. */
static void plain_text(const char *text, char plain[static CONFIRM_TEXT + 1])
{
    size_t length = 0;
    for (; text[length] && length < CONFIRM_TEXT; length++)
        plain[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    plain[length] = '\0';
}

/* Is it an answer of that name? Else why has the error that it is. */
static int open_answer(const char *answer, size_t size, const char *name, struct tccl_lines *lines,
                       struct shim_why *why)
{
    struct tccl_error err = {""};
    char text[200];

    if (tccl_lines_open(answer, size, lines, &err) != 0)
        return shim_fail(why, "tccld's answer can't be read: %s", err.text);
    if (strcmp(lines->name, name) == 0)
        return 0;
    tccl_line_text(lines, "text", text, sizeof(text));
    return shim_fail(why, "tccld refused it%s%s", text[0] ? ": " : "", text);
}

int shim_ask_confirm(const struct shim_plan *plan, enum shim_verdict verdict, const char *text,
                     uint32_t nccl, int ranks, bool whole, int gpus, int lowest,
                     int64_t deadline_us, struct shim_why *why)
{
    static const char *const words[] = {"applied", "unknown",  "fewer",
                                        "differs", "not used", "begun"};
    struct question question;
    struct tccl_lines lines;
    char plain[CONFIRM_TEXT + 1], *answer;
    size_t size;
    int status;

    plain_text(text, plain);
    begin(&question, plan, "tccl-confirm");
    tccl_line_put(&question.lines, "verdict", "%s", words[verdict]);
    tccl_line_put(&question.lines, "text", "%s", plain);
    tccl_line_put(&question.lines, "nccl", "%u", nccl);
    tccl_line_put(&question.lines, "ranks", "%d", ranks);
    tccl_line_put(&question.lines, "gpus", "%d", gpus);
    tccl_line_put(&question.lines, "lowest", "%d", lowest);
    tccl_line_put_bool(&question.lines, "whole", whole);
    answer = ask(plan, &question, deadline_us, &size, why);
    if (!answer)
        return -1;
    status = open_answer(answer, size, "tccl-ok", &lines, why);
    shim_scratch_free(answer, ANSWER);
    return status;
}

/* Returns as shim_ask_agree. */
static int read_agreed(const char *answer, size_t size, struct shim_why *why)
{
    struct tccl_lines lines;
    char rings[8], text[200];

    if (open_answer(answer, size, "tccl-agreed", &lines, why) != 0)
        return -1;
    tccl_line_text(&lines, "rings", rings, sizeof(rings));
    if (strcmp(rings, "all") == 0)
        return 1;
    tccl_line_text(&lines, "why", text, sizeof(text));
    shim_fail(why, "%s", text);
    return strcmp(rings, "not") == 0 ? 0 : -1;
}

int shim_ask_agree(const struct shim_plan *plan, uint64_t comm, bool will, int64_t deadline_us,
                   struct shim_why *why)
{
    struct question question;
    char *answer;
    size_t size;
    int agreed;

    begin(&question, plan, "tccl-agree");
    tccl_line_put(&question.lines, "comm", "%016llx", (unsigned long long)comm);
    tccl_line_put_bool(&question.lines, "will", will);
    answer = ask(plan, &question, deadline_us, &size, why);
    if (!answer)
        return -1;
    agreed = read_agreed(answer, size, why);
    shim_scratch_free(answer, ANSWER);
    return agreed;
}
