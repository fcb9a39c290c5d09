/* Filters of QUERY and SUMMARY, as any user of the node can send them: nobody is shown what is
 * another's, pages come to an end, and the summary counts what the pages show. The same bytes as a
 * reason. */
#include "fuzz.h"
#include "records/records.h"

enum { UID = 4001, RECORDS = 24, PAGES = 100 };

static struct tccl_records *records;

static void end(void)
{
    tccl_records_close(records);
    check_clear();
}

static void begin(void)
{
    static const char *const reasons[] = {"", "policy: no", "n2: no GPU in this step"};
    if (records)
        return;
    MUST(tccl_records_open(check_at("records.db"), NULL, &records, ERR));
    atexit(end);
    for (int i = 0; i < RECORDS; i++) {
        cleanup_json json_t *record = json_pack(
            "{s:i, s:i, s:i, s:s, s:i, s:i, s:s, s:s, s:s, s:f, s:f}", "job", 1 + i / 2, "step",
            i % 2, "uid", UID + i % 2, "state", i % 3 ? "failed" : "planned", "start", 1000 + i,
            "reporter", 0, "nodes", "n[1-4]", "partition", i % 4 ? "gpu" : "", "reason",
            reasons[i % 3], "gbps", 2.0, "baseline_gbps", 1.0);
        MUST(tccl_records_put(records, record, ERR));
    }
}

/* Goes through all pages. Returns how many records there are, -1 if the filter is refused. */
static int count_pages(const json_t *given)
{
    int count = 0, pages = 0;
    json_t *filter = json_deep_copy(given);
    while (filter) {
        json_t *next = NULL;
        cleanup_json json_t *page = tccl_records_query(records, filter, UID, 4000, &next, NULL);
        FUZZ_CHECK(page || (pages == 0 && !next));
        FUZZ_CHECK(++pages < PAGES);
        for (size_t i = 0; i < json_array_size(page); i++) {
            const json_t *record = json_array_get(page, i);
            FUZZ_CHECK(json_integer_value(json_object_get(record, "uid")) == UID);
        }
        count = page ? count + (int)json_array_size(page) : -1;
        json_decref(filter);
        filter = next;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    cleanup_free char *text = fuzz_text(data, size);
    FUZZ_CHECK((tccl_reason_named(text) == TCCL_REASON_NONE) == (*text == '\0'));
    cleanup_json json_t *filter = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    if (!filter)
        return 0;
    int count = count_pages(filter);
    cleanup_json json_t *summary = tccl_records_summary(records, filter, UID, NULL);
    const json_t *steps = json_object_get(summary, "steps"),
                 *after = json_object_get(filter, "after");
    FUZZ_CHECK((count < 0) == (summary == NULL));
    if (summary && (!after || json_is_null(after)))
        FUZZ_CHECK(json_integer_value(steps) == count);
    return 0;
}

FUZZ_SEEDS("{}", "{\"jobs\":[{\"job\":3,\"step\":1,\"het_offset\":0},{\"job\":4}],\"limit\":2}",
           "{\"users\":[4001,4002],\"start\":1003,\"end\":1020,\"order\":\"newest\"}",
           "{\"nodes\":[\"n2\"],\"states\":[\"failed\"],\"classes\":[\"no GPU\",\"policy\"]}",
           "{\"partitions\":[\"gpu\"],\"accounts\":[\"\"],\"policies\":[\"\"],\"after\":[1004,4]}",
           "n2: no plan came from n1: no answer within 300 ms")
