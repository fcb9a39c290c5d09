/* BUILT between the tccld of two nodes: what is accepted adds up to its range, can be judged, and
 * says the same when it is sent on. */
#include "client/message.h"
#include "fuzz.h"
#include "tccld/join/built-sum.h"

enum { FIRST = 16, END = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct built_sum sum, again;
    char reason[TCCL_OUTCOME_REASON + 1];
    int nodes = 0;
    cleanup_json json_t *json = json_loadb((const char *)data, size, 0, NULL);
    if (!json || built_sum_from_json(json, FIRST, END, &sum, NULL) != 0)
        return 0;
    for (int rank = 0; rank < BUILT_RANKS; rank++) {
        FUZZ_CHECK(sum.nodes[rank] >= 0 && (sum.nodes[rank] > 0) == (sum.lowest[rank] >= FIRST));
        FUZZ_CHECK(sum.lowest[rank] < END && strlen(sum.text[rank]) <= BUILT_TEXT);
        nodes += sum.nodes[rank];
    }
    FUZZ_CHECK(sum.first == FIRST && sum.end == END && nodes == END - FIRST);
    int node, judged = built_sum_judge(&sum, "n[1-40]", reason, &node);
    FUZZ_CHECK(node == -1 || (node >= FIRST && node < END));
    FUZZ_CHECK(judged > TCCL_BUILT_NOTHING && strlen(reason) <= TCCL_OUTCOME_REASON);
    FUZZ_CHECK(judged != TCCL_BUILT_YES || sum.nodes[TCCL_BUILT_YES] == END - FIRST);
    cleanup_json json_t *sent = built_sum_to_json(&sum);
    FUZZ_CHECK(sent && built_sum_from_json(sent, FIRST, END, &again, NULL) == 0);
    FUZZ_CHECK(memcmp(again.nodes, sum.nodes, sizeof(sum.nodes)) == 0);
    return 0;
}

#define SILENT(n, at) "{\"nodes\":" #n ",\"lowest\":" #at ",\"text\":\"n17: x\"}"
#define NONE "{\"nodes\":0,\"lowest\":-1,\"text\":\"\"}"

FUZZ_SEEDS("{\"said\":[" NONE "," NONE "," NONE "," SILENT(16, 16) "," NONE "],\"order\":[0,8,1]}",
           "{\"said\":[" SILENT(2, 30) "," NONE
                                       "," SILENT(1, 17) "," SILENT(13, 16) "," NONE
                                                                            "],\"order\":[0,8,1]}",
           "{\"said\":[" NONE "," SILENT(8, 16) "," NONE "," NONE
                                                "," SILENT(8, 18) "],\"order\":[0,8,1]}")
