/* Connections to tccld, over socketpairs: the unix socket's front end and TCP's by the same cases.
 * Who is at the other end, and what munge does, the test says. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "check.h"
#include "client/frame.h"
#include "client/message.h"
#include "tccld/net/front.h"
#include "tccld/net/resolver.h"
#include "tccld/net/share.h"

enum { USER = 1000, TCCLD = 999, PATIENCE_MS = 120000, SOON_MS = 50, PAGE = 200000 };

static struct tccl_conf conf = {.node = "n1"};
static struct daemon daemon_ = {.conf = &conf,
                                .users = {.tccld = TCCLD, .munge = TCCLD, .slurm = (uid_t)-1}};
static struct connections *all;
static struct front front; /* a copy of the one that is tested, with bounds of the test's */
static uid_t uid = USER;   /* of who connects next */
static struct sockaddr_in address = {.sin_family = AF_INET}; /* over TCP; begin() sets it back */

/* In place of munge: a credential is "UID TEXT", opened and made at the loop's next turn. Of what
 * it has packed only spaces are missing. */

struct task {
    char *in;
    void *context;
    void (*closed)(void *context, char *cred, const struct tccl_error *err);
    void (*opened)(void *context, uid_t uid, char *text, size_t size, const struct tccl_error *err);
};

static int tasks;
static size_t packed; /* spaces after each text */

/* The caller frees it. */
static char *unpack(const char *text)
{
    char *unpacked;
    CHECK(asprintf(&unpacked, "%s%*s", text, (int)packed, "") > 0);
    return unpacked;
}

static void run_task(evutil_socket_t fd, short what, void *argument)
{
    struct tccl_error err = {0};
    struct task *task = argument;
    char *text = NULL;
    unsigned from = 0;
    int skip = 0;
    tasks--;
    if (task->closed) {
        task->closed(task->context, task->in, &err);
        free(task);
        return;
    }
    if (sscanf(task->in, "%u %n", &from, &skip) == 1 && skip)
        text = unpack(task->in + skip);
    else
        tccl_fail(&err, "not a credential");
    task->opened(task->context, from, text, text ? strlen(text) : 0, &err);
    free(task->in);
    free(task);
}

static int add_task(struct task first)
{
    static const struct timeval now = {0, 0};
    struct task *task = malloc(sizeof(*task));
    *task = first;
    tasks++;
    return event_base_once(daemon_.base, -1, EV_TIMEOUT, run_task, task, &now);
}

int seal_close(struct daemon *daemon, uid_t reader, char *text, int64_t deadline,
               void (*done)(void *context, char *cred, const struct tccl_error *err), void *context,
               struct tccl_error *err)
{
    char *cred;
    CHECK(asprintf(&cred, "%u %s", reader, text) > 0);
    free(text);
    return add_task((struct task){.in = cred, .context = context, .closed = done});
}

int seal_open(struct daemon *daemon, char *cred, int64_t deadline,
              void (*done)(void *context, uid_t uid, char *text, size_t size,
                           const struct tccl_error *err),
              void *context, struct tccl_error *err)
{
    return add_task((struct task){.in = cred, .context = context, .opened = done});
}

static bool busy;
bool seal_is_busy(const struct daemon *daemon)
{
    return busy;
}

static int meet(int fd, const struct sockaddr *from, socklen_t size, struct asker *asker)
{
    if (front.from == FROM_UNIX)
        asker->uid = uid;
    strcpy(asker->place, "the test");
    return 0;
}

/* What can be asked */

static int heard;
static struct connection *kept;

static void hear_echo(struct daemon *daemon, struct connection *connection, json_t *message)
{
    heard++;
    CHECK_INT(connection_uid(connection), uid);
    CHECK_STR(connection_node(connection), front.from == FROM_TCP ? "n2" : "");
    cleanup_json json_t *answer = tccl_message_new("ok");
    json_object_set(answer, "n", json_object_get(message, "n"));
    connection_answer(connection, answer);
}

static void hear_keep(struct daemon *daemon, struct connection *connection, json_t *message)
{
    heard++;
    CHECK(kept == NULL); /* one question at a time */
    kept = connection_hold(connection);
}

static struct connection *under_way[8];
static int n_under_way;

static void hear_work(struct daemon *daemon, struct connection *connection, json_t *message)
{
    under_way[n_under_way++] = connection_hold(connection);
}

static void finish_one(void)
{
    cleanup_json json_t *answer = tccl_message_new("ok");
    struct connection *connection = under_way[--n_under_way];
    connection_answer(connection, answer);
    connection_drop(connection);
}

static void hear_drop(struct daemon *daemon, struct connection *connection, json_t *message)
{
    connection_drop(connection_hold(connection));
}

static void hear_page(struct daemon *daemon, struct connection *connection, json_t *message)
{
    static char filler[PAGE + 1];
    heard++;
    memset(filler, 'x', PAGE);
    cleanup_json json_t *answer = tccl_message_new("page");
    json_object_set_new(answer, "filler", json_string(filler));
    connection_answer(connection, answer);
}

static void hear_lines(struct daemon *daemon, struct connection *connection,
                       const struct tccl_lines *lines)
{
    char text[64], n[16];
    struct tccl_line_writer writer;
    heard++;
    CHECK_INT(connection_uid(connection), uid);
    tccl_line_text(lines, "n", n, sizeof(n));
    tccl_lines_begin(&writer, text, sizeof(text), "answer", 1);
    tccl_line_put(&writer, "n", "%s", n);
    connection_answer_lines(connection, &writer);
}

static const struct request requests[] = {
    {"echo", FROM_UNIX | FROM_TCP, false, hear_echo, NULL},
    {"keep", FROM_UNIX | FROM_TCP, false, hear_keep, NULL},
    {"work", FROM_UNIX | FROM_TCP, false, hear_work, NULL},
    {"drop", FROM_UNIX | FROM_TCP, false, hear_drop, NULL},
    {"page", FROM_UNIX | FROM_TCP, false, hear_page, NULL},
    {"root", FROM_UNIX | FROM_TCP, true, hear_echo, NULL},
    {"here", FROM_UNIX, false, hear_echo, NULL},
    {"far", FROM_TCP, false, hear_echo, NULL},
    {"lines", FROM_UNIX, false, NULL, hear_lines},
    {"own", FROM_UNIX, true, NULL, hear_lines},
    {0},
};

/* Of each share, and of all that aren't trusted, or that are. */
static struct turns *new_turns(int each, int all_others, int all_trusted, bool first)
{
    struct turn_limits others = {each, all_others}, trusted = {each, all_trusted};
    return turns_new(daemon_.base, others, trusted, first);
}

static void answer_kept(void)
{
    cleanup_json json_t *answer = tccl_message_new("ok");
    struct connection *connection = tccl_steal(kept);
    connection_answer(connection, answer);
    connection_drop(connection);
}

/* The other end */

static void turn(void)
{
    CHECK(event_base_loop(daemon_.base, EVLOOP_NONBLOCK) >= 0);
}

/* Until nothing is left to do at once. */
static void settle(void)
{
    for (int i = 0; i < 20 || tasks > 0; i++)
        turn();
}

static int ends[64], n_ends; /* that are open, until the test is over */

/* Connects; what is sent waits in the kernel, of which there is room for size bytes. */
static int open_end(int size)
{
    int fds[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    for (int i = 0; i < 2 && size; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    connections_add(all, fds[1], (struct sockaddr *)&address, sizeof(address));
    ends[n_ends++] = fds[0];
    return fds[0];
}

static void hang_up(int fd)
{
    for (int i = 0; i < n_ends; i++)
        if (ends[i] == fd)
            ends[i] = ends[--n_ends];
    close(fd);
}

static void send_bytes(int fd, const void *data, size_t size)
{
    size_t sent = 0;
    for (int64_t until = tccl_now_ms() + PATIENCE_MS; sent < size && tccl_now_ms() < until;) {
        ssize_t more = send(fd, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EAGAIN)
            return;
        sent += more > 0 ? (size_t)more : 0;
        turn();
    }
    CHECK_INT(sent, size);
}

/* A whole frame with a message; the caller frees it. */
static char *frame_of(const char *type, int n, size_t *size)
{
    cleanup_json json_t *message = tccl_message_new(type);
    struct tccl_envelope envelope = {.to = "n1", .from = "n2", .epoch = 1};
    cleanup_free char *data = NULL;
    json_object_set_new(message, "n", json_integer(n));
    if (front.from == FROM_TCP)
        CHECK_INT(tccl_envelope_put(message, &envelope, ERR), 0);
    cleanup_free char *text = tccl_message_text(message);
    int length =
        front.from == FROM_TCP ? asprintf(&data, "%u %s", uid, text) : asprintf(&data, "%s", text);
    char *frame = malloc((size_t)length + TCCL_FRAME_HEADER);
    tccl_frame_header((size_t)length, (unsigned char *)frame);
    memcpy(frame + TCCL_FRAME_HEADER, data, (size_t)length);
    *size = (size_t)length + TCCL_FRAME_HEADER;
    return frame;
}

static void ask(int fd, const char *type, int n)
{
    size_t size;
    cleanup_free char *frame = frame_of(type, n, &size);
    send_bytes(fd, frame, size);
}

/* Reads that many bytes. Returns 0; -1: closed. */
static int read_bytes(int fd, char *data, size_t size)
{
    size_t got = 0;
    for (int64_t until = tccl_now_ms() + PATIENCE_MS; got < size && tccl_now_ms() < until;) {
        ssize_t more = recv(fd, data + got, size - got, 0);
        if (more == 0 || (more < 0 && errno != EAGAIN))
            return -1;
        got += more > 0 ? (size_t)more : 0;
        turn();
    }
    CHECK_INT(got, size);
    return 0;
}

/* Type of the next answer: "closed" without one; n gets its member of that name. */
static const char *next(int fd, int *n)
{
    static char type[32];
    unsigned char header[TCCL_FRAME_HEADER];
    if (read_bytes(fd, (char *)header, sizeof(header)) != 0)
        return "closed";
    size_t size = tccl_frame_size(header);
    cleanup_free char *data = malloc(size + 1);
    if (read_bytes(fd, data, size) != 0)
        return "torn";
    data[size] = '\0';
    const char *text = front.from == FROM_TCP ? strchr(data, ' ') + 1 : data;
    cleanup_json json_t *answer = tccl_message_parse(text, strlen(text), ERR);
    snprintf(type, sizeof(type), "%.31s", answer ? tccl_message_type(answer) : check_err.text);
    if (n)
        *n = (int)json_integer_value(json_object_get(answer, "n"));
    return type;
}

/* Asks, and gets an answer of that type. */
static void hears(int fd, const char *type, int n, const char *answer)
{
    ask(fd, type, n);
    CHECK_STR(next(fd, NULL), answer);
}

/* A new end, whose question has come there. */
static int asks(int size, const char *type, int n)
{
    int fd = open_end(size);
    ask(fd, type, n);
    settle();
    return fd;
}

static void note(void *called)
{
    if (called)
        *(bool *)called = true;
}

static bool is_open(int fd)
{
    char byte;
    settle();
    return recv(fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

static uint32_t hosts = 0x0a000000;

static void begin(const struct front *of)
{
    front = *of;
    front.meet = meet;
    front.first_ms = front.next_ms = PATIENCE_MS;
    uid = USER;
    heard = 0;
    address.sin_addr.s_addr = htonl(++hosts); /* a new one: nobody knows it */
    all = connections_new(&daemon_, &front, requests);
}

/* Other turns, until the test is over. */
static struct turns **limited, *unlimited;

static void limit(struct turns **turns, struct turns *to)
{
    limited = turns;
    unlimited = *turns;
    *turns = to;
}

static void end(void)
{
    while (n_ends > 0)
        hang_up(ends[0]);
    settle();
    CHECK_INT(connections_count(all), 0);
    while (n_under_way > 0)
        finish_one();
    connections_free(all);
    settle();
    CHECK(kept == NULL);
    if (limited) {
        turns_free(*limited);
        *limited = unlimited;
        limited = NULL;
    }
    hosts += 8; /* of which the test has had some */
}

/* A test of each front end, or of the second one. */
static void with_fronts(void (*test)(void), int first)
{
    static const struct front *const fronts[] = {&front_unix, &front_tcp};
    for (int i = first; i < 2; i++) {
        begin(fronts[i]);
        test();
        end();
    }
}

#define TEST_WITH(name, first)                                                                     \
    static void name##_by(void);                                                                   \
    TEST(name)                                                                                     \
    {                                                                                              \
        with_fronts(name##_by, first);                                                             \
    }                                                                                              \
    static void name##_by(void)
#define TEST_BOTH(name) TEST_WITH(name, 0)
#define TEST_TCP(name) TEST_WITH(name, 1)

/* Frames */

TEST_BOTH(questions)
{
    int fd = open_end(0), n;
    for (int i = 1; i <= 3; i++) {
        ask(fd, "echo", i);
        CHECK_STR(next(fd, &n), "ok");
        CHECK_INT(n, i);
    }
    for (int i = 1; i <= 50; i++)
        ask(fd, "echo", i); /* without waiting */
    for (int i = 1; i <= 50; i++) {
        CHECK_STR(next(fd, &n), "ok");
        CHECK_INT(n, i);
    }
    CHECK_INT(connections_count(all), 1);
}

TEST_BOTH(torn)
{
    size_t size;
    int fd = open_end(0), n;
    cleanup_free char *frame = frame_of("echo", 7, &size);
    for (size_t i = 0; i < size; i++) {
        CHECK_INT(heard, 0);
        send_bytes(fd, frame + i, 1);
        settle();
    }
    CHECK_STR(next(fd, &n), "ok");
    CHECK_INT(n, 7);
    ask(fd, "echo", 8);
    send_bytes(fd, frame, size - 1); /* its end never comes */
    CHECK_STR(next(fd, &n), "ok");
    CHECK_INT(n, 8);
    CHECK(is_open(fd));
    hang_up(fd);
    settle();
    CHECK_INT(connections_count(all), 0);
    CHECK_INT(heard, 2);
}

static void check_length(size_t length, bool good)
{
    unsigned char header[TCCL_FRAME_HEADER];
    int fd = open_end(0);
    tccl_frame_header(length, header);
    send_bytes(fd, header, sizeof(header));
    CHECK_INT(is_open(fd), good);
    if (!good)
        CHECK_STR(next(fd, NULL), "closed");
    hang_up(fd);
    settle();
}

TEST_BOTH(length)
{
    size_t most = front.from == FROM_UNIX ? front.untrusted : front.frame;
    check_length(0, false);
    check_length(most, true);
    check_length(most + 1, false);
    check_length(0xffffffff, false);
    uid = TCCLD;
    check_length(front.frame, true);
    check_length(front.frame + 1, false);
    CHECK_INT(connections_count(all), 0);
}

/* A long message of a user who may only ask ends the connection, whatever its frame allows. */
TEST_BOTH(long_message)
{
    for (int i = 0; i < 2; i++) {
        size_t size;
        uid = i ? TCCLD : USER;
        front.untrusted = 20;
        int fd = open_end(0);
        cleanup_free char *frame = frame_of("echo", 1, &size);
        send_bytes(fd, frame, size);
        CHECK_STR(next(fd, NULL), i ? "ok" : "closed");
    }
}

TEST_BOTH(refused)
{
    static const char *const types[] = {"root", "dance"};
    for (int i = 0; i < 3; i++) {
        int fd = open_end(0);
        const char *other = front.from == FROM_UNIX ? "far" : "here";
        hears(fd, i < 2 ? types[i] : other, 1, front.forgiving ? "error" : "closed");
        if (front.forgiving) /* may go on */
            hears(fd, "echo", 1, "ok");
    }
    uid = TCCLD;
    int fd = open_end(0);
    hears(fd, "root", 1, "ok");
    hears(fd, front.from == FROM_UNIX ? "here" : "far", 1, "ok");
    send_bytes(fd, "\0\0\0\5{junk", 9);
    CHECK_STR(next(fd, NULL), front.forgiving ? "error" : "closed");
}

/* Sends a text as a frame; the answer has to be that text. */
static void exchange_text(int fd, const char *text, const char *expected)
{
    unsigned char header[TCCL_FRAME_HEADER];
    char answer[512] = "";
    tccl_frame_header(strlen(text), header);
    send_bytes(fd, header, sizeof(header));
    send_bytes(fd, text, strlen(text));
    if (read_bytes(fd, (char *)header, sizeof(header)) != 0)
        strcpy(answer, "closed");
    else if (tccl_frame_size(header) < sizeof(answer))
        read_bytes(fd, answer, tccl_frame_size(header));
    CHECK_STR(answer, expected);
}

/* What does not begin with a brace is lines, and is answered by lines; over TCP it is no message.
 */
TEST_BOTH(lines)
{
    if (front.from == FROM_TCP) {
        int fd = open_end(0);
        exchange_text(fd, "1000 lines 1\nn 5\nend\n", "closed");
        CHECK_INT(heard, 0);
        hang_up(fd);
        return;
    }
    int fd = open_end(0), n;
    exchange_text(fd, "lines 1\nn 5\nend\n", "answer 1\nn 5\nend\n");
    CHECK_INT(heard, 1);
    exchange_text(fd, "lines 2\nn 5\nend\n",
                  "tccl-error 1\ntext version 2 of \"lines\", this tccld knows 1\nend\n");
    exchange_text(fd, "lines 1\nn 5\n",
                  "tccl-error 1\ntext it is truncated: its last line is not \"end\"\nend\n");
    exchange_text(fd, "echo 1\nn 5\nend\n", "tccl-error 1\ntext a message of type \"echo\"\nend\n");
    exchange_text(fd, "own 1\nn 5\nend\n",
                  "tccl-error 1\ntext uid 1000 may not send \"own\"\nend\n");
    CHECK_INT(heard, 1);
    ask(fd, "lines", 5); /* as JSON there is no such type */
    CHECK_STR(next(fd, &n), "error");
    ask(fd, "echo", 6);
    CHECK_STR(next(fd, &n), "ok");
    CHECK_INT(n, 6);
    exchange_text(fd, "lines 1\nn 7\nend\n", "answer 1\nn 7\nend\n");
}

/* Timers */

/* Who stops in the middle of a frame is closed, and who has had an answer and says no more. */
TEST_BOTH(slow)
{
    size_t size;
    front.first_ms = front.next_ms = SOON_MS;
    cleanup_free char *frame = frame_of("echo", 1, &size);
    int fd = open_end(0);
    send_bytes(fd, frame, size / 2);
    CHECK_STR(next(fd, NULL), "closed");
    hang_up(fd);
    fd = open_end(0);
    CHECK_STR(next(fd, NULL), "closed");
    hang_up(fd);
    front.first_ms = PATIENCE_MS;
    fd = open_end(0);
    send_bytes(fd, frame, size);
    CHECK_STR(next(fd, NULL), "ok");
    front.first_ms = SOON_MS; /* should its timer be late */
    CHECK_STR(next(fd, NULL), "closed");
}

/* No timer runs while a question is under way. */
TEST_BOTH(patient)
{
    int fd = open_end(0);
    ask(fd, "keep", 1);
    settle();
    front.first_ms = front.next_ms = SOON_MS;
    for (int64_t until = tccl_now_ms() + 4 * SOON_MS; tccl_now_ms() < until; turn())
        poll(NULL, 0, 1);
    CHECK(is_open(fd));
    answer_kept();
    CHECK_STR(next(fd, NULL), "ok");
}

/* Answers */

TEST_BOTH(hang_up)
{
    int fd = open_end(0);
    ask(fd, "keep", 1);
    settle();
    CHECK(kept && !connection_closed(kept));
    ask(fd, "echo", 1); /* waits for its turn */
    CHECK_INT(heard, 1);
    hang_up(fd);
    settle();
    CHECK(connection_closed(kept));
    CHECK_INT(connections_count(all), 0);
    answer_kept();
    /* while munge opens its question, or makes the credential of its answer */
    fd = open_end(0);
    ask(fd, "echo", 1);
    hang_up(fd);
    settle();
    fd = open_end(0);
    ask(fd, "keep", 1);
    settle();
    answer_kept();
}

/* A connection that has no reader any more is seen as closed, even before the loop has seen it. */
TEST_BOTH(gone)
{
    int fd = open_end(0);
    ask(fd, "keep", 1);
    settle();
    hang_up(fd);
    CHECK(connection_closed(kept));
    answer_kept();
    settle();
    CHECK_INT(connections_count(all), 0);
}

TEST_BOTH(forgotten)
{
    int fd = open_end(0);
    hears(fd, "drop", 1, "closed");
}

TEST_BOTH(stop)
{
    int fd = open_end(0);
    ask(fd, "keep", 1);
    settle();
    connections_free(all);
    CHECK_STR(next(fd, NULL), "closed");
    CHECK(connection_closed(kept));
    answer_kept();
    hang_up(fd);
    all = connections_new(&daemon_, &front, requests);
}

/* Who doesn't read gets no second answer, and is closed. */
TEST_BOTH(unread)
{
    int fd = open_end(4096);
    for (int i = 0; i < 20; i++)
        ask(fd, "page", i);
    settle();
    CHECK_INT(heard, 1);
    CHECK(connections_count(all) == 1);
    for (int i = 0; i < 20; i++)
        CHECK_STR(next(fd, NULL), "page"); /* all the same, if it does read */
    CHECK_INT(heard, 20);
    front.first_ms = front.next_ms = SOON_MS;
    ask(fd, "page", 1);
    for (int64_t until = tccl_now_ms() + PATIENCE_MS;
         connections_count(all) > 0 && tccl_now_ms() < until; turn())
        poll(NULL, 0, 1);
    CHECK_INT(connections_count(all), 0);
    CHECK_STR(next(fd, NULL), "torn");
}

/* Unread answers, and unfinished messages, of all together. */
TEST_BOTH(buffers)
{
    static char filler[20000];
    int fds[8];
    front.buffered = 4 * PAGE;
    for (int i = 0; i < 8; i++)
        fds[i] = asks(4096, "page", i);
    CHECK(connections_count(all) >= 3 && connections_count(all) <= 4);
    for (int i = 0; i < 8; i++)
        hang_up(fds[i]);
    settle();
    CHECK_INT(connections_count(all), 0);
    front.buffered = 3 * sizeof(filler);
    for (int i = 0; i < 8; i++) {
        fds[i] = open_end(0);
        send_bytes(fds[i], "\0\0\xea\x60", 4); /* 60000 */
        send_bytes(fds[i], filler, sizeof(filler));
        settle();
    }
    CHECK_INT(connections_count(all), 2);
}

/* Who begins many messages loses them, and nobody who has begun less in all, whose one message is
 * longer. */
TEST_BOTH(fullest)
{
    static char filler[30000];
    int fds[9];
    front.buffered = 8 * 20000;
    for (int i = 0; i < 9; i++) {
        uid = i == 0 ? USER + 1 : USER;
        address.sin_addr.s_addr = htonl(hosts + (i == 0));
        fds[i] = open_end(0);
        send_bytes(fds[i], "\0\0\xea\x60", 4); /* 60000 */
        send_bytes(fds[i], filler, i == 0 ? 30000 : 20000);
        settle();
    }
    CHECK(is_open(fds[0]));
    CHECK_INT(connections_count(all), 7);
    hosts++;
}

/* What munge has unpacked counts while it waits for its turn; what is too long doesn't wait. */
TEST_TCP(packed)
{
    int fds[7];
    limit(&daemon_.questions, new_turns(1, 1, 1, true));
    front.buffered = 100000;
    for (int i = 0; i < 7; i++) {
        packed = i < 6 ? 40000 : front.untrusted;
        fds[i] = asks(0, "work", i);
        CHECK_INT(connections_count(all), i < 3 ? i + 1 : 3);
    }
    packed = 0;
    CHECK_INT(n_under_way, 1);
    CHECK(is_open(fds[0]) && is_open(fds[4]) && is_open(fds[5]));
}

/* Room */

/* The oldest idle one has to go, but nobody who is being answered. */
TEST_BOTH(room)
{
    int fds[6];
    front.most = 3;
    fds[0] = asks(0, "keep", 1);
    for (int i = 1; i < 4; i++)
        fds[i] = open_end(0);
    CHECK(!is_open(fds[1]) && is_open(fds[2]) && is_open(fds[3]) && is_open(fds[0]));
    for (int i = 2; i < 4; i++)
        hears(fds[i], "echo", 1, "ok");
    fds[4] = open_end(0);
    CHECK(!is_open(fds[2]) && is_open(fds[3]) && is_open(fds[4]));
    ask(fds[3], "drop", 1); /* room for one more */
    settle();
    CHECK(!is_open(fds[3]));
    fds[5] = open_end(0);
    CHECK(is_open(fds[5]) && is_open(fds[0]));
    answer_kept();
    CHECK_STR(next(fds[0], NULL), "ok");
}

/* Strangers of which each has an address of its own fill all that there is: who has shown who he
 * is stays, with a few connections. */
TEST_BOTH(many_strangers)
{
    int fds[9];
    front.most = 5;
    for (int i = 0; i < 9; i++) {
        uid = USER + (i < 3 ? 0 : i);
        address.sin_addr.s_addr = htonl(++hosts);
        fds[i] = open_end(0);
        if (i > 2)
            continue;
        hears(fds[i], "echo", 1, "ok");
    }
    for (int i = 0; i < 3 && front.from == FROM_TCP; i++)
        CHECK(is_open(fds[i]));
    CHECK(is_open(fds[8]));
    CHECK_INT(connections_count(all), 5);
}

/* Who asks and doesn't read fills all that there is: his connections go for others', those first
 * that ask nothing. */
TEST_BOTH(unread_room)
{
    int fds[6];
    front.most = 3;
    for (int i = 0; i < 6; i++) {
        uid = i < 3 ? USER + i : TCCLD;
        fds[i] = open_end(4096);
        ask(fds[i], i == 1 || i > 2 ? "echo" : "page", i);
        if (i == 1 || i > 2)
            CHECK_STR(next(fds[i], NULL), "ok");
        settle();
        CHECK_INT(connections_count(all), i < 3 ? i + 1 : 3);
        CHECK_INT(i > 0 && is_open(fds[1]), i == 1 || i == 2);
    }
    for (int i = 3; i < 6; i++)
        CHECK(is_open(fds[i]));
}

/* Who may only ask does not close a connection of root's. */
TEST_BOTH(trusted_room)
{
    int fds[4];
    front.most = 3;
    for (int i = 0; i < 4; i++) {
        uid = i == 0 ? TCCLD : USER;
        fds[i] = open_end(0);
        hears(fds[i], "echo", 1, "ok");
    }
    CHECK(is_open(fds[0]) && !is_open(fds[1]) && is_open(fds[2]) && is_open(fds[3]));
}

/* Of one user, or over TCP of one address: its own oldest goes. */
TEST_BOTH(each)
{
    int fds[4];
    front.each = front.each_address = 2;
    for (int i = 0; i < 4; i++) {
        uid = i == 3 ? USER + 1 : USER;
        address.sin_addr.s_addr = htonl(hosts + (i == 3));
        fds[i] = open_end(0);
    }
    CHECK(!is_open(fds[0]) && is_open(fds[1]) && is_open(fds[2]) && is_open(fds[3]));
    uid = TCCLD;
    if (front.from == FROM_TCP) /* its address is trusted from now on */
        hears(fds[3], "echo", 1, "ok");
    hosts++;
    for (int i = 0; i < 4; i++) {
        hang_up(fds[i]);
        fds[i] = open_end(0);
        CHECK(is_open(fds[i]));
    }
}

/* Whose credential it was counts, over TCP: another user at the same address has room. */
TEST_BOTH(one_address)
{
    int fds[4];
    front.each = front.each_address = 2;
    for (int i = 0; i < 4; i++) {
        uid = USER + i / 2;
        fds[i] = open_end(0);
        hears(fds[i], "echo", 1, "ok");
    }
    for (int i = 0; i < 4; i++)
        CHECK(is_open(fds[i]));
    uid = USER;
    int fd = open_end(0);
    hears(fd, "echo", 1, "ok");
    CHECK(!is_open(fds[0]) && is_open(fds[1]) && is_open(fds[2]) && is_open(fds[3]));
    if (front.from == FROM_TCP) { /* of two credentials, one after the other, the last one counts */
        uid = USER + 1;
        hears(fd, "echo", 2, "ok");
        CHECK(is_open(fds[1]) && !is_open(fds[2]) && is_open(fds[3]));
    }
}

/* Users whose questions wait in line fill all that there is: one of who has the most goes, for
 * another user and for root, but nobody whose question is under way. */
TEST_BOTH(line)
{
    int fds[8];
    limit(&daemon_.questions, new_turns(1, 1, 0, true));
    front.most = 6;
    for (int i = 0; i < 6; i++) {
        uid = i < 4 ? USER : USER + 1;
        fds[i] = asks(0, "work", i);
    }
    CHECK_INT(n_under_way, 2); /* one of each */
    for (int i = 6; i < 8; i++) {
        uid = i == 6 ? TCCLD : USER + 2;
        fds[i] = asks(0, "work", i);
        CHECK_INT(n_under_way, i - 3);
    }
    CHECK(is_open(fds[0]) && !is_open(fds[1]) && !is_open(fds[2]) && is_open(fds[3]));
    CHECK(is_open(fds[4]) && is_open(fds[5]) && is_open(fds[6]) && is_open(fds[7]));
}

/* TccldUser's number says nothing of who has made a credential: there it is MungeUser's. */
TEST_BOTH(trusted_users)
{
    struct daemon daemon = {.users = {.tccld = 7, .munge = 8, .slurm = 9, .n_admins = 1}};
    const struct daemon no_slurm = {.users = {.tccld = 7, .slurm = (uid_t)-1}};
    daemon.users.admins[0] = 10;
    for (uid_t uid = 1; uid < 12; uid++) {
        CHECK_INT(daemon_trusts(&daemon, uid), uid == 7 || uid == 9);
        CHECK_INT(daemon_trusts_maker(&daemon, uid), uid == 8 || uid == 9);
        CHECK_INT(daemon_is_admin(&daemon, uid), uid == 10);
    }
    CHECK(daemon_trusts(&daemon, 0) && daemon_trusts_maker(&daemon, 0));
    CHECK(!daemon_trusts(&no_slurm, (uid_t)-1) && !daemon_trusts_maker(&no_slurm, (uid_t)-1));
}

/* Trusted addresses that say nothing fill all that there is: another one has room all the same. */
TEST_TCP(trusted_addresses)
{
    int fds[10];
    front.most = 8;
    front.each_address = 1;
    hosts++;
    for (int i = 0; i < 9; i++) {
        address.sin_addr.s_addr = htonl(hosts + (uint32_t)i / 4);
        shares_trust(daemon_.shares, (struct sockaddr *)&address);
        fds[i] = open_end(0);
    }
    CHECK(is_open(fds[8]) && !is_open(fds[0]) && is_open(fds[1]));
    hears(fds[8], "echo", 1, "ok");
    hosts += 3; /* a stranger */
    address.sin_addr.s_addr = htonl(hosts);
    fds[9] = open_end(0);
    CHECK(is_open(fds[9]));
}

/* Two questions of a user are under way, three of all who may only ask; one that has been answered
 * is so until the answer has been read, and one whose asker has gone until it is answered. */
TEST_BOTH(turns)
{
    int fds[8];
    limit(&daemon_.questions, new_turns(2, 3, 1, false));
    for (int i = 0; i < 8; i++) {
        uid = i < 4 ? USER : i < 6 ? USER + 1 : TCCLD;
        fds[i] = asks(0, "work", i);
    }
    CHECK_INT(n_under_way, 5); /* two, one, and both of who is trusted */
    hang_up(fds[0]);           /* one that is under way */
    hang_up(fds[2]);           /* one that waits */
    settle();
    CHECK_INT(n_under_way, 5);
    CHECK_INT(connections_count(all), 6);
    while (n_under_way > 0) {
        finish_one();
        settle();
    }
    for (int i = 1; i < 8; i++)
        if (i != 2)
            CHECK_STR(next(fds[i], NULL), "ok");
    settle();
    uid = USER; /* as many as before: none is lost */
    for (int i = 0; i < 8; i++) {
        if (i == 0 || i == 2)
            fds[i] = open_end(0);
        ask(fds[i], i < 4 || front.from == FROM_TCP ? "work" : "drop", i);
        settle();
    }
    CHECK_INT(n_under_way, 2);
}

/* Who doesn't read has no other question answered in the meantime, whichever connection it is on.
 */
TEST_BOTH(unread_turns)
{
    int fds[3];
    limit(&daemon_.questions, new_turns(2, 8, 8, false));
    for (int i = 0; i < 3; i++)
        fds[i] = asks(4096, "page", i);
    CHECK_INT(heard, 2);
    CHECK_STR(next(fds[0], NULL), "page");
    CHECK_STR(next(fds[2], NULL), "page");
    CHECK_INT(heard, 3);
}

/* One address waits for itself alone: for munge, and for room. */
TEST_TCP(addresses)
{
    int fds[8];
    limit(&daemon_.decoding, new_turns(2, 3, 8, false));
    front.each_address = 3;
    hosts++;
    for (int i = 0; i < 8; i++) {
        address.sin_addr.s_addr = htonl(hosts + (i == 0));
        fds[i] = open_end(0);
    }
    CHECK(is_open(fds[0]) && !is_open(fds[1]) && !is_open(fds[4]) && is_open(fds[5]));
    for (int i = 5; i < 8; i++) {
        size_t size;
        cleanup_free char *frame = frame_of("echo", i, &size);
        CHECK_INT(send(fds[i], frame, size, 0), size);
    }
    for (int i = 0; i < 4; i++) {
        turn();
        CHECK(tasks <= 2);
    }
    for (int i = 5; i < 8; i++)
        CHECK_STR(next(fds[i], NULL), "ok");
    hears(fds[0], "echo", 0, "ok");
}

/* What munge decodes: of an address, of all of them, trusted ones too. Who has the fewest is next.
 */
TEST_BOTH(turn_limits)
{
    struct turns *turns = new_turns(3, 4, 5, false);
    struct share *shares[4];
    struct turn all_turns[4][3];
    bool called = false;
    for (int i = 0; i < 4; i++) {
        struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(++hosts)};
        if (i < 2)
            shares_trust(daemon_.shares, (struct sockaddr *)&from);
        shares[i] = share_of_address(daemon_.shares, (struct sockaddr *)&from);
        CHECK_INT(shares[i]->trusted, i < 2);
    }
    static const int taken[] = {3, 2, 3, 1}; /* 5 and 4 of all */
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            CHECK_INT(turn_take(turns, &all_turns[i][k], shares[i], 1, note, &called),
                      k < taken[i]);
    CHECK(!called);
    turn_end(&all_turns[2][0]); /* 2 has two left, and 3 one: it is 3's turn */
    settle();
    CHECK(called && all_turns[3][1].state == TURN_TAKEN);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            turn_end(&all_turns[i][k]);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(shares[i]->turns, 0);
        share_drop(shares[i]);
    }
    turns_free(turns);
}

/* The first of a user is never behind those of others, whatever they have. */
TEST_BOTH(first_turn)
{
    struct turns *turns = new_turns(2, 2, 0, true);
    struct share *one = share_of_user(daemon_.shares, 1, false);
    struct share *other = share_of_user(daemon_.shares, 2, false);
    struct turn all_turns[4];
    CHECK(turn_take(turns, &all_turns[0], one, 1, note, NULL));
    CHECK(turn_take(turns, &all_turns[1], one, 1, note, NULL));
    CHECK(turn_take(turns, &all_turns[2], other, 1, note, NULL));
    CHECK(!turn_take(turns, &all_turns[3], other, 1, note, NULL));
    for (int i = 0; i < 4; i++)
        turn_end(&all_turns[i]);
    share_drop(one);
    share_drop(other);
    turns_free(turns);
}

static struct sockaddr_in6 address6(const char *text)
{
    struct sockaddr_in6 found = {.sin6_family = AF_INET6};
    CHECK_INT(inet_pton(AF_INET6, text, &found.sin6_addr), 1);
    return found;
}

/* Strangers of an IPv6 network are one share, but trust is an address's own. */
TEST_BOTH(networks)
{
    struct sockaddr_in6 ends[] = {address6("fd00::1"), address6("fd00::2"), address6("fd00::3"),
                                  address6("fd00:0:0:1::1")};
    struct share *shares[4];
    shares_trust(daemon_.shares, (struct sockaddr *)&ends[0]);
    for (int i = 0; i < 4; i++)
        shares[i] = share_of_address(daemon_.shares, (struct sockaddr *)&ends[i]);
    CHECK(shares[0]->trusted && !shares[1]->trusted && !shares[3]->trusted);
    CHECK(shares[1] == shares[2] && shares[2] != shares[3] && shares[0] != shares[1]);
    for (int i = 0; i < 4; i++)
        share_drop(shares[i]);
}

static bool is_trusted(const char *text)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    inet_pton(AF_INET, text, &from.sin_addr);
    struct share *share = share_of_address(daemon_.shares, (struct sockaddr *)&from);
    bool trusted = share->trusted;
    share_drop(share);
    return trusted;
}

/* Those of [peers] are trusted: numbers at once, names when they are found. */
TEST_TCP(peers)
{
    static struct tccl_peer peers[] = {{.node = "n5", .host = "198.51.100.5"},
                                       {.node = "n6", .host = "no-such-host.invalid"},
                                       {.node = "n7", .host = "localhost"}};
    conf.peers = peers;
    conf.n_peers = COUNT(peers);
    daemon_.names = threads_new(daemon_.base, 1, 4, ERR);
    CHECK(!is_trusted("198.51.100.5") && !is_trusted("127.0.0.1"));
    struct peer_trust *trust = peer_trust_new(&daemon_);
    CHECK(is_trusted("198.51.100.5") && !is_trusted("198.51.100.6"));
    for (int64_t until = tccl_now_ms() + PATIENCE_MS;
         !is_trusted("127.0.0.1") && tccl_now_ms() < until; turn())
        poll(NULL, 0, 1);
    CHECK(is_trusted("127.0.0.1"));
    peer_trust_reloaded(trust); /* with a lookup under way */
    settle();
    peer_trust_free(trust);
    threads_free(daemon_.names, PATIENCE_MS);
    conf.n_peers = 0;
}

static int admitted(struct shares *shares, int64_t now_ms, uint32_t host, int tries)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    int count = 0;
    for (int i = 0; i < tries; i++)
        count += shares_admit(shares, (struct sockaddr *)&from, now_ms);
    return count;
}

/* What an address may connect in a second, and save up; more of it where it is trusted, and that
 * whatever strangers do, whose rates are kept together. */
TEST_BOTH(rate)
{
    enum { HOST = 0x0b000001 };
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(HOST)};
    struct shares *shares = shares_new();
    int most = admitted(shares, 1000, HOST, 100000);
    CHECK(most > 100 && most < 10000);
    CHECK_INT(admitted(shares, 1500, HOST, 100000), most / 2);
    CHECK_INT(admitted(shares, 60000, HOST, 100000), most);
    shares_trust(shares, (struct sockaddr *)&from);
    for (uint32_t i = 1; i <= 20000; i++)
        admitted(shares, 120000, HOST + i, most + 1);
    CHECK(admitted(shares, 120000, HOST, 100000) > 4 * most);
    shares_free(shares);
}

/* A message of a user with more values than any has is refused before it takes memory. */
TEST_BOTH(values)
{
    static char text[32768];
    if (front.from != FROM_UNIX)
        return;
    for (int many = 0; many < 2; many++) { /* else the commas are within a text */
        unsigned char header[TCCL_FRAME_HEADER];
        int fd = open_end(0);
        int size = sprintf(text, "{\"v\":1,\"type\":\"echo\",\"n\":%s", many ? "[1" : "\"\\\"");
        for (int i = 0; i < 5000; i++)
            size += sprintf(text + size, ",1");
        size += sprintf(text + size, many ? "]}" : "\"}");
        tccl_frame_header((size_t)size, header);
        send_bytes(fd, header, sizeof(header));
        send_bytes(fd, text, (size_t)size);
        CHECK_STR(next(fd, NULL), many ? "error" : "ok");
    }
}

/* TCP only: an envelope makes a message good for one node, once. */
TEST_TCP(envelope)
{
    size_t size;
    cleanup_free char *frame = frame_of("echo", 1, &size);
    for (int i = 0; i < 2; i++) {
        int fd = open_end(0);
        send_bytes(fd, frame, size);
        CHECK_STR(next(fd, NULL), i == 0 ? "ok" : "closed");
    }
    strcpy(conf.node, "n3");
    int fd = open_end(0);
    hears(fd, "echo", 1, "closed");
    hang_up(fd);
    strcpy(conf.node, "n1");
}

/* A node that is trusted hears whether this one is busy, whatever waits for munge, and goes on;
 * strangers hear nothing. */
TEST_TCP(busy)
{
    char said[TCCL_FRAME_HEADER + 4];
    for (int trusted = 0; trusted < 2; trusted++) {
        if (trusted)
            shares_trust(daemon_.shares, (struct sockaddr *)&address);
        for (busy = false;; busy = true) {
            int fd = open_end(0), fd_work = open_end(0);
            ask(fd_work, "echo", 1); /* is with munge */
            send_bytes(fd, "\0\0\0\5busy?", TCCL_FRAME_HEADER + 5);
            CHECK_INT(read_bytes(fd, said, sizeof(said)), trusted ? 0 : -1);
            CHECK(!trusted || memcmp(said, busy ? "\0\0\0\4busy" : "\0\0\0\4idle", 8) == 0);
            if (trusted) {
                hears(fd, "echo", 2, "ok");
                send_bytes(fd, "\0\0\0\5busy?", TCCL_FRAME_HEADER + 5); /* it was told */
                CHECK_STR(next(fd, NULL), "closed");
            }
            CHECK_STR(next(fd_work, NULL), "ok");
            hang_up(fd);
            hang_up(fd_work);
            settle();
            if (busy)
                break;
        }
    }
}

SETUP
{
    signal(SIGPIPE, SIG_IGN); /* as tccld does */
    daemon_.base = event_base_new();
    CHECK_INT(event_base_priority_init(daemon_.base, DAEMON_PRIORITIES), 0);
    daemon_.replay = replay_new();
    daemon_.shares = shares_new();
    daemon_.decoding = new_turns(8, 16, 16, false);
    daemon_.questions = new_turns(8, 16, 16, true);
}

TEARDOWN
{
    replay_free(daemon_.replay);
    turns_free(daemon_.decoding);
    turns_free(daemon_.questions);
    shares_free(daemon_.shares);
    event_base_free(daemon_.base);
}
