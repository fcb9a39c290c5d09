/* {"records": what tccl-comment reads, "existing": an AdminComment, "state": its file}. */
#include <string.h>

#include "base/cleanup.h"
#include "comment/comment-state.h"
#include "comment/comment-text.h"
#include "fuzz.h"

/* As the contract has it: one printable line, of characters of at most three bytes. */
static void check_text(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    FUZZ_CHECK(strlen(text) < COMMENT_SIZE);
    FUZZ_CHECK(strncmp(text, "tccl: ring ", 11) == 0 || strncmp(text, "tccl: no ring", 13) == 0);
    for (; *at; at++) {
        FUZZ_CHECK(*at >= ' ' && *at != 0x7f && *at != ';' && *at != '|' && *at < 0xf0);
        FUZZ_CHECK(*at != ',' || at[1] == ' ');
    }
    cleanup_json json_t *utf8 = json_string(text);
    FUZZ_CHECK(utf8);
}

/* Others' text stays, ours stands there once, and a second time changes nothing. */
static void check_merge(const char *existing, const char *own)
{
    cleanup_free char *merged = NULL, *again = NULL;
    int change = comment_merge(existing, own, &merged);
    FUZZ_CHECK((change == 1) == (merged != NULL));
    if (change < 0)
        FUZZ_CHECK(strlen(existing) + strlen(own) + 2 > COMMENT_WHOLE);
    const char *now = merged ? merged : existing;
    const char *at = change < 0 ? NULL : strstr(now, own);
    FUZZ_CHECK(change < 0 || at);
    if (!at)
        return;
    FUZZ_CHECK(comment_merge(now, own, &again) <= 0);
    if (!strstr(existing, "tccl: "))
        FUZZ_CHECK(strncmp(now, existing, strlen(existing)) == 0 &&
                   strcmp(now + strlen(now) - strlen(own), own) == 0);
}

static void check_records(const json_t *records, const char *existing)
{
    char text[COMMENT_SIZE];
    struct comment_job job;
    for (size_t i = 0; i < json_array_size(records); i++) {
        if (!comment_job_of(json_array_get(records, i), &job) ||
            !comment_of_job(records, &job, text))
            continue;
        check_text(text);
        check_merge(existing, text);
        check_merge(text, text);
    }
}

/* A state that was read and written is the same state. */
static void check_state(const json_t *json)
{
    char path[FUZZ_PATH];
    struct comment_state state;
    struct tccl_error err = {0};
    cleanup_free char *text = json_dumps(json, 0);
    if (!text)
        return;
    int fd = fuzz_file(text, strlen(text), path);
    comment_state_init(&state);
    if (comment_state_read(&state, path, &err) != 0)
        FUZZ_CHECK(err.text[0]);
    cleanup_json json_t *seen = comment_seen_to_json(&state.seen);
    FUZZ_CHECK(json_array_size(seen) == state.seen.count);
    FUZZ_CHECK(state.list.count <= COMMENT_LIST_MOST);
    comment_state_clear(&state);
    struct comment_seen again = {0};
    FUZZ_CHECK(comment_seen_from_json(&again, seen, NULL) == 0);
    FUZZ_CHECK(again.count == json_array_size(seen));
    comment_seen_clear(&again);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *input = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    const char *existing = json_string_value(json_object_get(input, "existing"));
    if (!input)
        return 0;
    check_records(json_object_get(input, "records"), existing ? existing : "");
    check_state(json_object_get(input, "state"));
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char *const seeds[] = {
        "{\"records\":[{\"job\":7,\"step\":0,\"start\":9,\"state\":\"applied\",\"built\":"
        "\"applied\",\"gbps\":9.81,\"ratio\":1.93,\"n_nodes\":4,\"gpus\":16},{\"job\":7,\"step\":1,"
        "\"state\":\"fallback\",\"reason\":\"n2; no\"}],\"existing\":\"mine; tccl: ring 2 "
        "GPUs,x\"}",
        "{\"records\":[{\"job\":7,\"cluster\":\"c\",\"state\":\"fallback\",\"reason\":\"n2: "
        "\xc3\xa4,b|c\"}],\"existing\":\"tccl: no ring: x; other\"}",
        "{\"records\":[{\"job\":8,\"run\":3,\"state\":\"partial\",\"gpus\":4,\"reason\":\"n1,\"}],"
        "\"existing\":\"\"}",
        "{\"state\":{\"version\":1,\"cursor\":9,\"jobs\":[{\"cluster\":\"c\",\"job\":7,\"start\":3}"
        "],\"seen\":[\"00000000000000ff 0000000000000001 1700000000\"]}}",
    };
    for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
        add(context, seeds[i], strlen(seeds[i]));
}
