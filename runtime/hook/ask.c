/* ask.c: one question to this node's tccld, and its answer. */
#include "base/state.h"
#include "hook/hook.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/frame.h"

enum {
    QUESTION = 2048,
    ANSWER = 16 * 1024,
    CONFIRM_TEXT = 255,
    AGAIN_MS = 50, /* between tries at a tccld that is gone */
};

/* A question and its answer. */
struct exchange {
    char question[QUESTION], answer[ANSWER];
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
    tccl_lines_begin(&exchange->lines, exchange->question, QUESTION, name, 1);
    shim_plan_put_key(plan, &exchange->lines);
    return exchange;
}

static int ask_once(const struct shim_plan *plan, struct exchange *exchange, int64_t deadline,
                    struct tccl_error *why)
{
    const struct tccl_line_writer *lines = &exchange->lines;
    int fd = tccl_frame_connect(plan->socket, deadline, why);
    if (fd < 0)
        return -1;
    int late = tccl_frame_write(fd, lines->text, lines->length, QUESTION, deadline, why);
    if (!late)
        late = tccl_frame_take(fd, exchange->answer, ANSWER, deadline, &exchange->size, why);
    close(fd);
    return late > 0   ? tccl_fail(why, "tccld did not answer in time")
           : late < 0 ? tccl_fail_in(why, "tccld")
                      : 0;
}

/* A tccld that is started again, as by an upgrade, is soon there, and is to cost no ring; but who
 * only tells does not wait for it. */
static int ask(const struct shim_plan *plan, struct exchange *exchange, int64_t deadline_us,
               struct tccl_error *why)
{
    /* No sooner: who looks at the clock then knows that tccld was silent. */
    const int64_t deadline = (deadline_us + 999) / 1000;
    int64_t left = deadline - tccl_now_ms();
    const bool waits = left > SHIM_CONFIRM_US / 1000;
    if (tccl_lines_end(&exchange->lines) != 0)
        return tccl_fail(why, "the question to tccld is too long");
    for (struct tccl_error first = {""};;) {
        struct tccl_error now = {""};
        if (ask_once(plan, exchange, deadline, &now) == 0)
            return 0;
        tccl_fail_with(&first, &now);
        left = deadline - tccl_now_ms();
        if (!waits || left <= 0 || now.reason != TCCL_REASON_NO_DAEMON)
            return tccl_fail_with(why, &first);
        poll(NULL, 0, left < AGAIN_MS ? (int)left : AGAIN_MS);
    }
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
    static const enum tccl_built built[] = {
        [SHIM_APPLIED] = TCCL_BUILT_YES,       [SHIM_UNKNOWN] = TCCL_BUILT_UNKNOWN,
        [SHIM_FEWER] = TCCL_BUILT_PARTLY,      [SHIM_DIFFERS] = TCCL_BUILT_DIFFERS,
        [SHIM_NOT_USED] = TCCL_BUILT_NOT_USED, [SHIM_UNKNOWN_NCCL] = TCCL_BUILT_NOT_USED};
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
    if (verdict == SHIM_UNKNOWN_NCCL)
        tccl_line_put_bool(&exchange->lines, "known", false);
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
