/* client.c: the plugin's side of the unix socket: JOIN, PLAN, LEAVE, each with a deadline. */
#include "client/client.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/frame.h"
#include "client/message.h"
#include "client/step-fields.h"

/* Sends a message on the unix socket. Returns 0; 1 when the time is over; -1 with err. */
static int send_message(int fd, const json_t *message, int64_t deadline, struct tccl_error *err)
{
    cleanup_free char *text = tccl_message_text(message);
    if (!text)
        return tccl_fail(err, "out of memory");
    return tccl_frame_write(fd, text, strlen(text), TCCL_FRAME_UNIX, deadline, err);
}

/* Waits for a message; an error message of tccld becomes err. Returns 0; 1 when the time is over;
 * -1. */
static int receive_message(int fd, int64_t deadline, json_t **message, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size;
    int late = tccl_frame_read(fd, TCCL_FRAME_UNIX, deadline, &text, &size, err);
    if (late)
        return late;
    cleanup_json json_t *answer = tccl_message_parse(text, size, err);
    if (!answer)
        return -1;
    if (strcmp(tccl_message_type(answer), "error") == 0) {
        const char *reason;
        if (tccl_get_text(answer, "text", sizeof(err->text) - 1, &reason, err) == 0)
            tccl_fail_as(err, tccl_message_reason(answer), "%s", reason);
        return -1;
    }
    *message = tccl_steal(answer);
    return 0;
}

int tccl_client_exchange(int fd, const json_t *message, int64_t deadline, json_t **answer,
                         struct tccl_error *err)
{
    int late = send_message(fd, message, deadline, err);
    return late ? late : receive_message(fd, deadline, answer, err);
}

int tccl_client_alive(int fd, int timeout_ms, struct tccl_error *err)
{
    cleanup_json json_t *message = tccl_message_new("alive");
    cleanup_json json_t *answer = NULL;
    return tccl_client_exchange(fd, message, tccl_now_ms() + timeout_ms, &answer, err);
}

int tccl_client_join(int fd, const struct tccl_step *join, int timeout_ms, struct tccl_error *err)
{
    int64_t deadline = tccl_now_ms() + timeout_ms;
    cleanup_json json_t *message = tccl_join_to_json(join, err);
    if (!message)
        return -1;
    int late = send_message(fd, message, deadline, err);
    if (late > 0)
        tccl_fail_as(err, TCCL_REASON_NO_ANSWER,
                     "tccld has not read the step's request within %d ms: does it hang?",
                     timeout_ms);
    return late > 0 ? -1 : late;
}

int tccl_client_wait_plan(int fd, int timeout_ms, struct tccl_outcome *plan, struct tccl_error *err)
{
    cleanup_json json_t *message = NULL;
    memset(plan, 0, sizeof(*plan));
    int late = receive_message(fd, tccl_now_ms() + timeout_ms, &message, err);
    if (late)
        return late;
    if (strcmp(tccl_message_type(message), "plan") != 0)
        return tccl_fail_as(err, TCCL_REASON_MESSAGE, "tccld answered \"%s\" instead of a plan",
                            tccl_message_type(message));
    if (tccl_plan_from_json(message, NULL, 0, 0, plan, err) == 0)
        return 0;
    tccl_fail_because(err, TCCL_REASON_MESSAGE);
    return tccl_fail_in(err, "PLAN");
}

int tccl_client_leave(int fd, const struct tccl_step_key *key, int timeout_ms,
                      struct tccl_error *err)
{
    cleanup_json json_t *message = tccl_message_new("leave");
    cleanup_json json_t *answer = NULL;
    if (json_object_set_new(message, "key", tccl_key_to_json(key)) != 0)
        return tccl_fail(err, "out of memory");
    int late = tccl_client_exchange(fd, message, tccl_now_ms() + timeout_ms, &answer, err);
    if (late > 0)
        return tccl_fail(err, "tccld has not answered the step's end within %d ms", timeout_ms);
    return late;
}
