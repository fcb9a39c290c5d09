/* Frames and messages: the first byte says whether the rest is a stream of frames or one message.
 */
#include <sys/socket.h>

#include "base/clock.h"
#include "client/frame.h"
#include "client/key.h"
#include "client/message.h"
#include "client/outcome.h"
#include "client/step-fields.h"
#include "fuzz.h"

enum { STREAM_BYTES = 60000 };

static void read_message(const char *data, size_t size)
{
    struct tccl_envelope envelope;
    struct tccl_step_key key;
    struct tccl_outcome plan = {0};
    cleanup_json json_t *message = tccl_message_parse(data, size, ERR);
    if (!message) {
        FUZZ_CHECK(check_err.text[0]);
        return;
    }
    FUZZ_CHECK(tccl_message_type(message) != NULL);
    tccl_envelope_get(message, &envelope, NULL);
    tccl_key_from_json(json_object_get(message, "key"), &key, NULL);
    if (tccl_plan_from_json(message, NULL, 0, 0, &plan, NULL) == 0)
        tccl_outcome_clear(&plan);
    struct tccl_step *join = tccl_join_from_json(message, ERR);
    if (join) {
        FUZZ_CHECK(join->n_nodes <= TCCL_MAX_NODES && join->n_gres <= TCCL_MAX_GRES);
        FUZZ_CHECK(join->node >= 0 && join->node < join->n_nodes);
    }
    tccl_step_free(join);
}

/* How many whole frames of allowed length the stream begins with. */
static int count_frames(const uint8_t *data, size_t size)
{
    int count = 0;
    for (; size > TCCL_FRAME_HEADER; count++) {
        size_t length = tccl_frame_size(data);
        if (length == 0 || length > STREAM_BYTES || length > size - TCCL_FRAME_HEADER)
            break;
        data += TCCL_FRAME_HEADER + length;
        size -= TCCL_FRAME_HEADER + length;
    }
    return count;
}

/* A socket, as frames are read by recv(2). */
static void read_frames(const uint8_t *data, size_t size)
{
    int ends[2], count = 0;
    char *frame;
    size_t length;
    if (size > STREAM_BYTES || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    if (write(ends[1], data, size) != (ssize_t)size)
        abort();
    close(ends[1]);
    while (tccl_frame_read(ends[0], STREAM_BYTES, tccl_now_ms() + 1000, &frame, &length, NULL) ==
           0) {
        FUZZ_CHECK(length > 0 && length <= STREAM_BYTES && frame[length] == '\0');
        read_message(frame, length);
        free(frame);
        count++;
    }
    close(ends[0]);
    FUZZ_CHECK(count == count_frames(data, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] & 1)
        read_frames(data + 1, size - 1);
    else if (size > 0)
        read_message((const char *)data + 1, size - 1);
    return 0;
}

static void add_both(fuzz_add *add, void *context, json_t *message)
{
    cleanup_free char *text = tccl_message_text(message);
    size_t size = strlen(text);
    uint8_t input[4096] = "2";
    if (size + 5 > sizeof(input))
        abort();
    memcpy(input + 1, text, size);
    add(context, input, size + 1);
    input[0] = '1';
    tccl_frame_header(size, input + 1);
    memcpy(input + 5, text, size);
    add(context, input, size + 5);
    json_decref(message);
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static char *nodes[] = {"n1", "n2"};
    const struct tccl_step join = {.key = {.cluster = "c", .job = 7, .step = 1},
                                   .n_nodes = 2,
                                   .nodes = nodes,
                                   .gres = {0, 1, 3},
                                   .n_gres = 3,
                                   .mode = TCCL_MODE_ON,
                                   .uid = 1000,
                                   .gid = 1000,
                                   .timeout_ms = 500,
                                   .min_nodes = 1,
                                   .min_gpus = 2,
                                   .account = "u",
                                   .partition = "p"};
    char ring[] = "n1[0 -w> 1 -w> 0]";
    const struct tccl_outcome plan = {
        .state = TCCL_STATE_PLANNED, .gbps = 10, .path = (char *)"/run/tccl/x", .ring = ring};
    struct tccl_envelope envelope = {.to = "n1", .from = "n2", .epoch = 5};
    json_t *message = tccl_join_to_json(&join, NULL);
    if (!message || tccl_envelope_put(message, &envelope, NULL) < 0)
        abort();
    add_both(add, context, message);
    add_both(add, context, tccl_plan_to_json(&plan, &join.key, 0, 0));
}
