/* {"announce": an ANNOUNCE, "terms": what a CALL says of its step}. */
#include <string.h>

#include "client/step-json.h"
#include "fuzz.h"
#include "tccld/join/announce.h"

static const struct tccl_step_key key = {.cluster = "c", .job = 7, .step = 3};

/* What stands in for a JOIN fits the announcement, and has the terms that it was made with. */
static void check_stand_in(struct announces *announces, const json_t *terms)
{
    struct tccl_step *join = announces_join(announces, &key, 1, 2, 500, terms);
    if (!join)
        return;
    FUZZ_CHECK(tccl_key_equal(&join->key, &key));
    FUZZ_CHECK(join->node == 1 && join->n_nodes == 2 && join->timeout_ms == 500);
    FUZZ_CHECK(announce_differs(join, join) == NULL || join->reason[0]);
    json_t *again = announces_terms(announces, join);
    FUZZ_CHECK(again || join->reason[0]);
    if (again)
        FUZZ_CHECK(strcmp(json_string_value(json_object_get(again, "mode")),
                          tccl_mode_name(join->mode)) == 0);
    json_decref(again);
    tccl_step_free(join);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct announces *announces = announces_new();
    struct tccl_step_key read;
    struct tccl_error err = {0};
    json_t *input = json_loadb((const char *)data, size, 0, NULL);
    json_t *message = json_object_get(input, "announce");
    if (message && announces_put(announces, message, &read, &err) == 0)
        check_stand_in(announces, json_object_get(input, "terms"));
    else
        FUZZ_CHECK(!message || err.text[0]);
    json_decref(input);
    announces_free(announces);
    return 0;
}

void fuzz_seeds(fuzz_add *add, void *context)
{
    static char *nodes[] = {"n1", "n2"};
    struct announces *announces = announces_new();
    struct tccl_step_key read;
    struct tccl_step join = {.key = key,
                             .node = 1,
                             .n_nodes = 2,
                             .nodes = nodes,
                             .gres = {0, 1, 3},
                             .n_gres = 3,
                             .mode = TCCL_MODE_AUTO,
                             .uid = 1000,
                             .gid = 1000,
                             .timeout_ms = 500,
                             .min_gpus = 2,
                             .account = "u",
                             .partition = "p"};
    json_t *announce = tccl_join_to_json(&join, NULL);
    if (!announce || announces_put(announces, announce, &read, NULL) != 0)
        abort();
    struct tccl_step *message = tccl_join_from_json(announce, NULL);
    json_t *input =
        json_pack("{s:o,s:o}", "announce", announce, "terms", announces_terms(announces, message));
    char *text = json_dumps(input, JSON_COMPACT);
    if (!text)
        abort();
    add(context, text, strlen(text));
    free(text);
    tccl_step_free(message);
    json_decref(input);
    announces_free(announces);
}
