/* Questions to tccld, against servers that answer, lie, are slow or silent. */
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"
#include "hook/hook.h"

enum { PATIENCE_US = 400000 };

static struct shim_plan plan;
static const tccl_bus gpus[] = {0x4100, 0x6100};

/* ---- a server for one question ---- */

struct server {
    int listening;
    const void *answer; /* bytes as they go out */
    size_t size, piece; /* piece: so many at once, with pauses; 0: all */
    bool keep_open;     /* for longer than anybody waits */
    bool deaf;          /* never reads, and stays until the other side closes */
    char question[8192];
    size_t question_size;
    pthread_t thread;
};

static void read_question(struct server *server, int fd)
{
    unsigned char head[4];
    ssize_t n;
    if (recv(fd, head, 4, MSG_WAITALL) != 4)
        return;
    server->question_size = (size_t)head[2] << 8 | head[3];
    n = recv(fd, server->question, server->question_size, MSG_WAITALL);
    server->question[n > 0 ? n : 0] = '\0';
}

static void *serve(void *context)
{
    struct server *server = context;
    cleanup_close int fd = accept(server->listening, NULL, NULL);
    const char *at = server->answer;
    size_t left = server->size;
    if (fd < 0)
        return NULL;
    if (!server->deaf)
        read_question(server, fd);
    while (left > 0) {
        size_t size = server->piece && server->piece < left ? server->piece : left;
        if (send(fd, at, size, MSG_NOSIGNAL) != (ssize_t)size)
            break;
        at += size;
        left -= size;
        if (server->piece)
            usleep(1000);
    }
    if (server->deaf)
        poll(&(struct pollfd){.fd = fd, .events = POLLRDHUP}, 1, 20000);
    else if (server->keep_open)
        recv(fd, server->question, 1, 0); /* until the other side closes */
    return NULL;
}

static int listen_at(const char *path, int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, path);
    unlink(path);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(fd, backlog), 0);
    return fd;
}

static void start(struct server *server)
{
    server->listening = listen_at(plan.socket, 5);
    CHECK_INT(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct server *server)
{
    shutdown(server->listening, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listening);
}

static size_t frame(const char *text, char *bytes)
{
    size_t size = strlen(text);
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(size >> 8 * (3 - i));
    memcpy(bytes + 4, text, size);
    return size + 4;
}

/* ---- answers ---- */

static const char chain_answer[] =
    "tccl-chain 1\nstate planned\ngbps 21.5000\nbaseline_gbps 10.0000\nsource model\n"
    "chain 0000:61:00.0 -w> 0000:41:00.0 -m0> 0000:61:00.0\nnodes 1\nend\n";
#define KEY "cluster c\njob 0\nhet_job 0\nhet_offset 0\nstep 0\nrestart 0\nrun 0\n"

static int ask_chain(struct server *server, struct shim_chain *chain, struct tccl_error *why)
{
    start(server);
    memset(why, 0, sizeof(*why));
    int status = shim_ask_chain(&plan, gpus, 2, true, shim_now_us() + PATIENCE_US, chain, why);
    stop(server);
    return status;
}

TEST(chain)
{
    static const size_t pieces[] = {0, 1, 7};
    struct shim_chain chain;
    struct tccl_error why;
    char bytes[1024];
    for (size_t i = 0; i < COUNT(pieces); i++) {
        struct server server = {.answer = bytes, .piece = pieces[i]};
        server.size = frame(chain_answer, bytes);
        start(&server);
        memset(&why, 0, sizeof(why));
        CHECK_INT(shim_ask_chain(&plan, gpus, 2, true, shim_now_us() + 20000000, &chain, &why), 0);
        stop(&server);
        const struct tccl_named_chain *path = &chain.rings.chains[0];
        CHECK(path->n_gpus == 2 && path->closed && path->gpus[0] == 0x6100 &&
              path->gpus[1] == 0x4100);
        CHECK(path->edges[0].kind == TCCL_P2P_WRITE && path->edges[1].kind == TCCL_BOUNCE);
        CHECK_STR(server.question,
                  "tccl-chain 1\n" KEY "closed yes\ngpus 0000:41:00.0 0000:61:00.0\nend\n");
    }
}

static void expect_chain(const char *answer, int status, const char *reason)
{
    struct shim_chain chain;
    char bytes[4096];
    struct server server = {.answer = bytes};
    server.size = frame(answer, bytes);
    CHECK_INT(ask_chain(&server, &chain, ERR), status);
    CHECK_HOLDS(check_err.text, reason);
}

/* Its tccld is started again: it is asked until it is there; who only tells does not wait. */
TEST(started_again)
{
    struct shim_chain chain;
    struct tccl_error why = {""};
    char bytes[1024];
    struct server server = {.answer = bytes};
    server.size = frame(chain_answer, bytes);
    unlink(plan.socket);
    CHECK_INT(shim_ask_chain(&plan, gpus, 2, true, shim_now_us() + 120000, &chain, &why), -1);
    CHECK(strstr(why.text, "no tccld at"));
    int64_t begun = shim_now_us();
    CHECK_INT(shim_ask_confirm(&plan, SHIM_APPLIED, "", 22907, 2, true, 2, -1,
                               begun + SHIM_CONFIRM_US, NULL),
              -1);
    pid_t starter = fork();
    if (starter == 0) {
        struct server closes = {.answer = ""}; /* killed with a question, then started again */
        usleep(100000);
        start(&closes);
        pthread_join(closes.thread, NULL);
        close(closes.listening);
        usleep(100000);
        start(&server);
        pthread_join(server.thread, NULL);
        _exit(0);
    }
    CHECK_INT(shim_ask_chain(&plan, gpus, 2, true, shim_now_us() + 20000000, &chain, &why), 0);
    CHECK_INT(check_exit(starter), 0);
}

TEST(no_chain)
{
    expect_chain("tccl-chain 1\nstate failed\nreason no such chain\nend\n", -1, "no such chain");
    expect_chain("tccl-chain 1\nstate left\nreason as good\nend\n", 1, "as good");
    expect_chain("tccl-error 1\ntext not yours\nend\n", -1, "refused");
    expect_chain("tccl-chain 1\nend\n", -1, "");
    expect_chain("nonsense", -1, "");
}

static void expect_bytes(struct server *server, const char *reason)
{
    struct shim_chain chain;
    CHECK_FAILS(ask_chain(server, &chain, ERR), reason);
}

static void test_bad_frames(void)
{
    struct server nothing = {.answer = ""};
    struct server head = {.answer = "\0\0\1", .size = 3};
    struct server empty = {.answer = "\0\0\0\0", .size = 4};
    struct server huge = {.answer = "\377\377\377\377x", .size = 5, .keep_open = true};
    struct server long_one = {.answer = "\0\0\100\1x", .size = 5, .keep_open = true};
    struct server cut = {.answer = "\0\0\0\11{}", .size = 6};
    expect_bytes(&nothing, "tccld: the connection was closed without an answer");
    expect_bytes(&head, "tccld: the connection was closed without an answer");
    expect_bytes(&empty, "tccld: a message of 0 bytes is beyond the limit of 16384");
    expect_bytes(&huge, "tccld: a message of 4294967295 bytes is beyond the limit of 16384");
    expect_bytes(&long_one, "tccld: a message of 16385 bytes is beyond the limit of 16384");
    expect_bytes(&cut, "tccld: the connection was closed without an answer");
}

TEST(frames)
{
    test_bad_frames();
}

TEST(deadline)
{
    char bytes[1024];
    struct server silent = {.answer = "", .keep_open = true};
    struct server deaf = {.answer = "", .deaf = true};
    struct server slow = {.answer = bytes, .piece = 1};
    struct shim_chain chain;
    expect_bytes(&silent, "tccld did not answer in time");
    expect_bytes(&deaf, "tccld did not answer in time");
    slow.size = frame(chain_answer, bytes);
    start(&slow);
    CHECK_INT(shim_ask_chain(&plan, gpus, 2, true, shim_now_us() + 20000, &chain, ERR), -1);
    stop(&slow);
    CHECK(check_err.text[0]);
    /* It is waited for until then, not to the millisecond before: decide.c looks at the clock. */
    for (int i = 0; i < 20; i++) {
        const int64_t until = shim_now_us() + 5500;
        start(&silent);
        CHECK_INT(shim_ask_chain(&plan, gpus, 2, true, until, &chain, NULL), -1);
        CHECK(shim_now_us() >= until);
        stop(&silent);
    }
}

/* ---- nobody there ---- */

static void expect_no_server(const char *reason)
{
    struct shim_chain chain;
    CHECK_SAYS(shim_ask_chain(&plan, gpus, 2, true, shim_now_us() + PATIENCE_US, &chain, ERR) == -1,
               reason);
}

TEST(nobody)
{
    struct server full = {.listening = -1};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fds[8], status;
    unlink(plan.socket);
    expect_no_server(strerror(ENOENT));
    full.listening = listen_at(plan.socket, 0);
    close(full.listening);
    expect_no_server(strerror(ECONNREFUSED));
    /* Its queue is full, and it takes nobody. */
    full.listening = listen_at(plan.socket, 0);
    strcpy(address.sun_path, plan.socket);
    for (int i = 0; i < 8; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        status = connect(fds[i], (struct sockaddr *)&address, sizeof(address));
    }
    CHECK_INT(status, -1);
    expect_no_server(strerror(ETIMEDOUT));
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    close(full.listening);
}

/* ---- confirmations ---- */

static int confirm(const char *answer, enum shim_verdict verdict, const char *text,
                   struct server *server, struct tccl_error *why)
{
    static char bytes[1024];
    server->answer = bytes;
    server->size = frame(answer, bytes);
    start(server);
    memset(why, 0, sizeof(*why));
    int status = shim_ask_confirm(&plan, verdict, text, 22907, 16, true, 2, 8,
                                  shim_now_us() + 20000000, why);
    stop(server);
    return status;
}

TEST(confirm)
{
    static const char *const words[] = {"applied", "unknown", "fewer", "differs", "not used"};
    for (int i = 0; i < 5; i++) {
        struct server server = {0};
        CHECK_INT(confirm("tccl-ok 1\nend\n", (enum shim_verdict)i, "edge 41 -> 61", &server, ERR),
                  0);
        CHECK_STR(server.question,
                  check_printf("tccl-confirm 1\n" KEY
                               "verdict %s\ntext edge 41 -> 61\nnccl 22907\nranks 16\n"
                               "gpus 2\nlowest 8\nwhole yes\nend\n",
                               words[i]));
    }
    struct server server = {0};
    CHECK_OK(confirm("tccl-ok 1\nend\n", SHIM_UNKNOWN_NCCL, "x", &server, ERR));
    CHECK(strstr(server.question, "\nverdict not used\ntext x\nknown no\n"));
    CHECK_INT(confirm("tccl-error 1\ntext not yours\nend\n", SHIM_APPLIED, "a \"b\" \\ \n \377",
                      &server, ERR),
              -1);
    CHECK_STR(check_err.text, "tccld refused it: not yours");
    CHECK(strstr(server.question, "\ntext a \"b\" \\ ? ?\n"));
}

/* A text is never longer than tccld takes, and never ends its line. */
TEST(long_text)
{
    struct server server = {0};
    char text[1000];
    memset(text, '\n', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK_OK(confirm("tccl-ok 1\nend\n", SHIM_DIFFERS, text, &server, ERR));
    const char *start_of = strstr(server.question, "\ntext ") + 6;
    CHECK_INT(strstr(start_of, "\nnccl") - start_of, 255);
}

/* ---- whether all nodes build several rings ---- */

TEST(agree)
{
    static const struct {
        const char *answer;
        int agreed;
        const char *why;
    } cases[] = {
        {"tccl-agreed 1\nrings all\nwhy \nend\n", 1, ""},
        {"tccl-agreed 1\nrings not\nwhy n2 uses NCCL's own choice\nend\n", 0,
         "n2 uses NCCL's own choice"},
        {"tccl-agreed 1\nrings late\nwhy n2 is silent\nend\n", -1, "n2 is silent"},
        {"tccl-agreed 1\nrings allofthem\nwhy x\nend\n", -1, "x"},
        {"tccl-agreed 1\nend\n", -1, ""},
        {"tccl-error 1\ntext type: unknown\nend\n", -1, "tccld refused it: type: unknown"},
        {"tccl-ok 1\nend\n", -1, "tccld refused it"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char bytes[1024];
        struct server server = {.answer = bytes, .size = frame(cases[i].answer, bytes)};
        struct tccl_error why = {""};
        start(&server);
        CHECK_INT(shim_ask_agree(&plan, 0xabc, i % 2, shim_now_us() + 20000000, &why),
                  cases[i].agreed);
        stop(&server);
        CHECK_STR(why.text, cases[i].why);
        CHECK_HOLDS(server.question, i % 2 ? "comm 0000000000000abc\nwill yes\nend\n"
                                           : "comm 0000000000000abc\nwill no\nend\n");
    }
}

/* Its own descriptors are closed, and a server that goes away raises no signal. */
TEST(descriptors)
{
    int before = dup(0), after;
    close(before);
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 5; i++) /* in each, of three frames, eight connections */
        test_bad_frames();
    after = dup(0);
    close(after);
    CHECK_INT(after, before);
}

SETUP
{
    snprintf(plan.socket, sizeof(plan.socket), "%s", check_at("sock"));
    strcpy(plan.cluster, "c");
}
