/* test-filter.c: records by their nodes, few and many of them, against each list's own words. */
#include "check.h"
#include "client/hostlist.h"
#include "records/records.h"

OWNED(records, struct tccl_records, tccl_records_close)

enum { RECORDS = 80, ROUNDS = 60, NAMES = 40, LISTS = 300 };

static char lists[RECORDS][LISTS];

static json_t *draw_nodes(int most)
{
    json_t *names = json_array();
    int count = 1 + (int)(lrand48() % most);
    for (int i = 0; i < count; i++)
        json_array_append_new(names,
                              json_sprintf("%c%0*d", lrand48() % 2 ? 'n' : 'm',
                                           1 + (int)(lrand48() % 2), (int)(lrand48() % NAMES)));
    return names;
}

static bool ran_on(int record, const json_t *nodes)
{
    for (size_t i = 0; i < json_array_size(nodes); i++)
        if (tccl_hosts_contain(lists[record], json_string_value(json_array_get(nodes, i))))
            return true;
    return false;
}

static void check_found(const json_t *nodes, const json_t *found)
{
    size_t at = 0;
    for (int i = 0; i < RECORDS; i++) {
        if (!ran_on(i, nodes))
            continue;
        CHECK_INT(json_integer_value(json_object_get(json_array_get(found, at), "job")), i + 1);
        at++;
    }
    CHECK_INT(json_array_size(found), at);
}

static json_t *ask(struct tccl_records *records, json_t *nodes)
{
    cleanup_json json_t *filter = json_pack("{s:O}", "nodes", nodes), *found = json_array();
    while (filter) {
        json_t *next = NULL;
        cleanup_json json_t *page = tccl_records_query(records, filter, -1, 1 << 20, &next, NULL);
        json_array_extend(found, page);
        json_decref(filter);
        filter = next;
    }
    return json_incref(found);
}

TEST(filter)
{
    owned(records) struct tccl_records *records = NULL;
    CHECK_INT(tccl_records_open(check_at("records.db"), NULL, &records, NULL), 0);
    for (int i = 0; i < RECORDS; i++) {
        const char *names[NAMES];
        cleanup_json json_t *nodes = draw_nodes(6);
        for (size_t j = 0; j < json_array_size(nodes); j++)
            names[j] = json_string_value(json_array_get(nodes, j));
        cleanup_free char *text = tccl_hosts_fold(names, json_array_size(nodes));
        snprintf(lists[i], sizeof(lists[i]), "%s", text);
        cleanup_json json_t *record =
            json_pack("{s:i, s:i, s:i, s:s, s:i, s:i, s:s}", "job", i + 1, "step", 0, "uid", 7,
                      "state", "planned", "start", 1000 + i, "reporter", 0, "nodes", text);
        CHECK_INT(tccl_records_put(records, record, NULL), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        cleanup_json json_t *nodes = draw_nodes(NAMES - 1), *found = ask(records, nodes);
        check_found(nodes, found);
    }
}
