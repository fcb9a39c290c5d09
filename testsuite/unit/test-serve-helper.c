/* test-serve-helper.c: answers made by processes of their own: also by those that crash, say
 * nothing, or say too much; who asks the same gets the same; who has gone is not told. */
#include <signal.h>
#include <sys/resource.h>

#include "acct/serve-helper.h"
#include "check.h"

enum { ASKERS = 3 * SERVE_HELPERS };

static struct event_base *base;

/* What was told. */
struct asker {
    int times, status;
    char body[64];
    size_t size;
};

/* In the helper. The answer to "/pid" tells which process made it. */
static int work(void *context, const struct serve_request *request, FILE *out)
{
    CHECK_STR(context, "context");
    if (strcmp(request->path, "/crash") == 0)
        abort();
    if (strcmp(request->path, "/nothing") == 0)
        _exit(0);
    if (strcmp(request->path, "/odd") == 0)
        return 7;
    if (strcmp(request->path, "/large") == 0)
        for (size_t i = 0; i <= SERVE_ANSWER_MOST / 64; i++)
            fprintf(out, "%064d", 0);
    else
        fprintf(out, "%d", (int)getpid());
    return strcmp(request->path, "/missing") == 0 ? 404 : 200;
}

static void told(void *who, int status, const char *body, size_t size)
{
    struct asker *asker = who;
    asker->times++;
    asker->status = status;
    asker->size = size;
    snprintf(asker->body, sizeof(asker->body), "%.*s", (int)(size < 60 ? size : 60), body);
}

static void ask(struct serve_helpers *helpers, const char *path, int keep_ms, struct asker *asker)
{
    struct serve_request request = {0};
    snprintf(request.path, sizeof(request.path), "%s", path);
    CHECK_INT(serve_helpers_ask(helpers, &request, keep_ms, told, asker), 0);
}

static void wait_for(const struct asker *asker)
{
    while (asker->times == 0 && event_base_loop(base, EVLOOP_ONCE) == 0)
        serve_helpers_reap();
}

static void test_answers(struct serve_helpers *helpers)
{
    static const struct {
        const char *path;
        int status;
    } cases[] = {{"/pid", 200},     {"/missing", 404}, {"/crash", 500},
                 {"/nothing", 500}, {"/odd", 500},     {"/large", 500}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct asker asker = {0};
        ask(helpers, cases[i].path, 0, &asker);
        wait_for(&asker);
        CHECK_INT(asker.times, 1);
        CHECK_INT(asker.status, cases[i].status);
        CHECK((asker.status == 500) == (strstr(asker.body, "\"error\"") != NULL));
    }
}

static void test_same(struct serve_helpers *helpers)
{
    struct asker askers[4] = {{0}};
    ask(helpers, "/pid", 60000, &askers[0]);
    ask(helpers, "/pid", 60000, &askers[1]);
    ask(helpers, "/other", 60000, &askers[2]);
    wait_for(&askers[0]);
    wait_for(&askers[2]);
    CHECK_STR(askers[1].body, askers[0].body);
    CHECK(strcmp(askers[2].body, askers[0].body) != 0);
    ask(helpers, "/pid", 60000, &askers[3]);
    CHECK_INT(askers[3].times, 1); /* at once */
    CHECK_STR(askers[3].body, askers[0].body);
    askers[3] = (struct asker){0};
    ask(helpers, "/pid", 0, &askers[3]); /* nothing old, please */
    CHECK_INT(askers[3].times, 0);
    wait_for(&askers[3]);
    CHECK(strcmp(askers[3].body, askers[0].body) != 0);
}

static void test_many(struct serve_helpers *helpers)
{
    struct asker askers[ASKERS] = {{0}};
    char path[32];
    for (int i = 0; i < ASKERS; i++) {
        snprintf(path, sizeof(path), "/%d", i);
        ask(helpers, path, 0, &askers[i]);
    }
    serve_helpers_forget(helpers, &askers[0]);
    serve_helpers_forget(helpers, &askers[ASKERS - 2]);
    for (int i = 1; i < ASKERS; i++)
        if (i != ASKERS - 2)
            wait_for(&askers[i]);
    for (int i = 0; i < ASKERS; i++)
        CHECK_INT(askers[i].times, i != 0 && i != ASKERS - 2);
}

/* As many different questions as are remembered, and more. */
static void test_forgetting(struct serve_helpers *helpers)
{
    char path[32];
    for (int i = 0; i < 100; i++) {
        struct asker asker = {0};
        snprintf(path, sizeof(path), "/forget/%d", i);
        ask(helpers, path, 60000, &asker);
        wait_for(&asker);
        CHECK_INT(asker.status, 200);
    }
}

int main(void)
{
    const struct rlimit none = {0, 0};
    struct asker left = {0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGPIPE, SIG_IGN);
    base = event_base_new();
    struct serve_helpers *helpers = serve_helpers_new(base, work, "context");
    test_answers(helpers);
    test_same(helpers);
    test_many(helpers);
    test_forgetting(helpers);
    ask(helpers, "/left", 0, &left); /* nobody waits for the answer any more */
    serve_helpers_free(helpers);
    CHECK_INT(left.times, 0);
    event_base_free(base);
    return check_result();
}
