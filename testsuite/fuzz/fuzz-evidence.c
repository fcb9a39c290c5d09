/* What steps have achieved, as StateDir keeps it (evidence.json), and steps that come after it: a
 * JSON list of the file's contents and of steps, each a list of subject, user, NCCL, MiB, with the
 * ring or without, and what was promised and achieved. What is accepted says nothing that can't be,
 * and stays what it is when it is written and read again. */
#include "fuzz.h"
#include "tccld/join/evidence.h"
#include "tccld/join/running.h"

enum { USERS = 3 };

static struct evidence_table table, again;

static void check_view(uint64_t subject, uint32_t uid)
{
    struct evidence_view view = evidence_look(&table, subject, USERS);
    double steps = view.steps[EVIDENCE_RING] + view.steps[EVIDENCE_OWN];
    FUZZ_CHECK(steps >= 0 && steps <= 2.0 * EVIDENCE_MOST * table.n);
    FUZZ_CHECK(view.row && view.slower >= 0 && view.good >= 0 &&
               view.slower + view.good <= table.n);
    FUZZ_CHECK(!view.off || view.slower >= USERS);
    FUZZ_CHECK(isfinite(view.ratio) && view.ratio >= 0 && view.ratio <= 512 * (1 + 1e-9));
    FUZZ_CHECK(isfinite(view.reached) && view.reached >= 0 && view.reached <= 8 * (1 + 1e-9));
    evidence_leaves(&table, subject, uid, USERS);
}

static void check_table(void)
{
    FUZZ_CHECK(table.n >= 0 && table.n <= EVIDENCE_ROWS);
    for (int i = 0; i < table.n; i++) {
        const struct evidence_row *row = &table.rows[i];
        FUZZ_CHECK(evidence_is_mean(&row->arms[EVIDENCE_RING]) &&
                   evidence_is_mean(&row->arms[EVIDENCE_OWN]) && evidence_is_mean(&row->large));
        FUZZ_CHECK(row->order <= table.order && row->first <= row->order);
        FUZZ_CHECK(strlen(row->what) <= EVIDENCE_WHAT);
        if (i < 8)
            check_view(table.subjects[i], row->uid);
    }
}

static void write_and_read(void)
{
    cleanup_json json_t *json = evidence_to_json(&table), *other = NULL;
    memset(&again, 0, sizeof(again));
    FUZZ_CHECK(json);
    /* So many steps there can't be: a file that begins there has no more of them. */
    if (table.order > INT64_MAX / 2)
        return;
    FUZZ_CHECK(evidence_from_json(json, &again, ERR) == 0);
    FUZZ_CHECK(again.n == table.n);
    other = evidence_to_json(&again);
    FUZZ_CHECK(json_equal(json, other));
}

static void add(const json_t *json)
{
    json_int_t subject = 0, uid = 0, nccl = 0, from = 0;
    int ring = 0;
    struct running_step step = {.what = "9f3c01aa:0-3", .n_nodes = 2};
    double achieved = 0;
    if (json_unpack((json_t *)json, "[I, I, I, I, b, F, F]", &subject, &uid, &nccl, &from, &ring,
                    &step.promised, &achieved) != 0 ||
        subject < 0 || nccl < 0 || nccl > 999999 || from < 0 || from > 1 << 20 ||
        !(step.promised < 1e9))
        return;
    step.subject = subject;
    step.uid = (uid_t)uid;
    step.nccl = (int)nccl;
    int64_t before = table.order;
    bool counts =
        evidence_add(&table, &step, ring ? EVIDENCE_RING : EVIDENCE_OWN, from << 20, achieved);
    FUZZ_CHECK(table.order == before + counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *json = fuzz_json(data, size);
    memset(&table, 0, sizeof(table));
    if (evidence_from_json(json_array_get(json, 0), &table, ERR) != 0) {
        FUZZ_CHECK(*check_err.text);
        return 0;
    }
    check_table();
    write_and_read();
    for (size_t i = 1; i < json_array_size(json); i++)
        add(json_array_get(json, i));
    check_table();
    write_and_read();
    return 0;
}

/* Users of a ring that is slower, or good. */
void fuzz_seeds(fuzz_add *add_seed, void *context)
{
    for (int slower = 0; slower < 2; slower++) {
        memset(&table, 0, sizeof(table));
        for (int i = 0; i < 60; i++) {
            struct running_step step = {.subject = 7,
                                        .what = "9f3c01aa:0-3",
                                        .n_nodes = 2,
                                        .uid = 1000 + (uid_t)i % 2,
                                        .nccl = 22907,
                                        .promised = 10};
            evidence_add(&table, &step, i % 4 < 2 ? EVIDENCE_RING : EVIDENCE_OWN, 64 << 20,
                         i % 4 < 2 && slower ? 6 : 9);
        }
        fuzz_add_json(add_seed, context,
                      json_pack("[o, [i, i, i, i, b, f, f], [i, i, i, i, b, f, f]]",
                                evidence_to_json(&table), 7, 1000, 22907, 64, 1, 10.0, 6.5, 8, 1002,
                                22907, 16, 0, 10.0, 9.5));
    }
}
