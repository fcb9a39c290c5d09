/* client-ask.c: QUERY, SUMMARY and NODE, over the unix socket or over munge and TCP, page by page.
 */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/client.h"
#include "client/conf.h"
#include "client/credential.h"
#include "client/frame.h"
#include "client/message.h"
#include "client/users.h"

enum { QUERY_MOST = 1000000 /* records that a tool keeps in memory */ };

/* The tccld that keeps the records. */
struct home {
    const struct tccl_conf *conf;
    const char *node; /* NULL: this node's tccld, over its socket */
    uid_t munge;      /* MungeUser, who makes answers and reads questions */
    int fd;
    int64_t deadline;
    json_t *lost; /* what it has said of lost records */
};

/* Connects, if it has not been done yet. */
static int home_open(struct home *home, struct tccl_error *err)
{
    const struct tccl_conf *conf = home->conf;
    const char *host;
    uint16_t port;
    if (home->fd >= 0)
        return 0;
    if (!home->node)
        home->fd = tccl_frame_connect(conf->socket, home->deadline, err);
    else {
        tccl_peer_find(conf, home->node, &host, &port);
        home->fd = tccl_dial(host, port, home->deadline, err);
    }
    return home->fd < 0 ? -1 : 0;
}

static void home_close(struct home *home)
{
    tccl_cleanup_close(&home->fd);
    json_decref(home->lost);
}
#define cleanup_home __attribute__((cleanup(home_close)))

/* Puts the question in a credential and takes the answer out of one. A new connection must bring
 * its first credential soon, and munged may be slow: so that comes before the connection. */
static int ask_sealed(struct home *home, json_t *question, char **text, size_t *size,
                      struct tccl_envelope *envelope, struct tccl_error *err)
{
    const char *socket = home->conf->munge_socket;
    cleanup_free char *data = NULL, *cred = NULL, *answer = NULL;
    uid_t uid;
    *envelope = (struct tccl_envelope){.to = home->node, .from = home->conf->node};
    if ((home->fd < 0 &&
         tccl_user_find("MungeUser", home->conf->munge_user, &home->munge, err) != 0) ||
        tccl_envelope_put(question, envelope, err) != 0)
        return -1;
    if (!(data = tccl_message_text(question)))
        return tccl_fail(err, "out of memory");
    if (tccl_cred_encode(socket, home->munge, data, strlen(data), home->deadline, &cred, err) !=
            0 ||
        home_open(home, err) != 0)
        return -1;
    struct tccl_error why = {""};
    int late = tccl_frame_write(home->fd, cred, strlen(cred), TCCL_FRAME_TCP, home->deadline, &why);
    if (!late)
        late = tccl_frame_read(home->fd, TCCL_FRAME_TCP, home->deadline, &answer, size, &why);
    if (late < 0) /* a tccld that can't read the question hangs up */
        return tccl_fail(err, "%s%s", why.text,
                         why.reason == TCCL_REASON_NO_DAEMON
                             ? ": ask your administrator to check its clock and munge key"
                             : "");
    if (late > 0)
        return tccl_fail(err, "no answer in time");
    if (tccl_cred_decode(socket, answer, home->deadline, &uid, text, size, err) != 0)
        return -1;
    if (uid != 0 && uid != home->munge)
        return tccl_fail(err, "the answer is not from MungeUser: it was made by uid %u", uid);
    return 0;
}

/* The answer to a question, of the type that is expected: a new reference, or NULL with err. */
static json_t *ask(struct home *home, json_t *question, const char *type, struct tccl_error *err)
{
    cleanup_json json_t *answer = NULL;
    const char *re = "", *reason;
    if (!home->node) {
        int late = home_open(home, err) != 0
                       ? -1
                       : tccl_client_exchange(home->fd, question, home->deadline, &answer, err);
        if (late > 0)
            tccl_fail(err, "no answer in time");
        if (late)
            return NULL;
    } else {
        cleanup_free char *text = NULL;
        struct tccl_envelope envelope;
        size_t size = 0;
        if (ask_sealed(home, question, &text, &size, &envelope, err) != 0 ||
            !(answer = tccl_message_parse(text, size, err)))
            return NULL;
        if (tccl_get_text(answer, "re", TCCL_NONCE, &re, err) != 0 ||
            strcmp(re, envelope.nonce) != 0)
            return tccl_fail_null(err, "the answer belongs to another question");
    }
    if (strcmp(tccl_message_type(answer), type) != 0) {
        if (tccl_get_text(answer, "text", sizeof(err->text) - 1, &reason, err) == 0)
            tccl_fail(err, "%s", reason);
        return NULL;
    }
    return tccl_steal(answer);
}

/* Asks for one page and appends it. *filter becomes that of the next page, NULL after the last. */
static int ask_page(struct home *home, json_t **filter, json_t *records, struct tccl_error *err)
{
    cleanup_json json_t *question = tccl_message_new("query");
    if (json_object_set(question, "filter", *filter) != 0)
        return tccl_fail(err, "out of memory");
    cleanup_json json_t *answer = ask(home, question, "records", err);
    if (!answer)
        return -1;
    json_t *page = json_object_get(answer, "records"), *next = json_object_get(answer, "next");
    if (!json_is_array(page) || json_array_extend(records, page) != 0)
        return tccl_fail(err, "records: a list is expected");
    json_decref(home->lost);
    home->lost = json_incref(json_object_get(answer, "lost"));
    json_decref(*filter);
    *filter = json_is_object(next) ? json_incref(next) : NULL;
    return 0;
}

static struct home find_home(const struct tccl_conf *conf, int timeout_ms, int *complete)
{
    struct home home = {.conf = conf, .fd = -1, .deadline = tccl_now_ms() + timeout_ms};
    if (*conf->accounting_host && strcmp(conf->accounting_host, conf->node) != 0)
        home.node = conf->accounting_host;
    *complete = *conf->accounting_host != '\0';
    return home;
}

json_t *tccl_client_summary(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                            int *complete, struct tccl_error *err)
{
    cleanup_home struct home home = find_home(conf, timeout_ms, complete);
    cleanup_json json_t *question = tccl_message_new("summary");
    if (filter && json_object_set(question, "filter", (json_t *)filter) != 0)
        return tccl_fail_null(err, "out of memory");
    cleanup_json json_t *answer = ask(&home, question, "summary", err);
    json_t *summary = json_object_get(answer, "summary");
    if (json_is_object(summary))
        return json_incref(summary);
    return tccl_fail_null(err, "summary: an object is expected");
}

json_t *tccl_client_node(const struct tccl_conf *conf, const char *node, const json_t *question,
                         int timeout_ms, struct tccl_error *err)
{
    cleanup_home struct home home = {
        .conf = conf, .node = node, .fd = -1, .deadline = tccl_now_ms() + timeout_ms};
    cleanup_json json_t *message = tccl_message_new("node");
    if (question)
        json_object_update_missing(message, (json_t *)question);
    return ask(&home, message, "node", err);
}

json_t *tccl_client_query(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                          bool each, int *complete, json_t **lost, struct tccl_error *err)
{
    cleanup_home struct home home = find_home(conf, timeout_ms, complete);
    cleanup_json json_t *records = json_array();
    cleanup_json json_t *page = filter ? json_deep_copy(filter) : json_object();
    /* The limit over all pages. */
    json_int_t limit = json_integer_value(json_object_get(page, "limit"));
    size_t most = limit > 0 && limit < QUERY_MOST ? (size_t)limit : QUERY_MOST;
    if (lost)
        *lost = NULL;
    while (page && json_array_size(records) < most) {
        if (each)
            home.deadline = tccl_now_ms() + timeout_ms;
        if (ask_page(&home, &page, records, err) != 0)
            return NULL;
    }
    while (json_array_size(records) > most)
        json_array_remove(records, json_array_size(records) - 1);
    if (lost)
        *lost = json_is_object(home.lost) ? json_incref(home.lost) : NULL;
    return tccl_steal(records);
}
