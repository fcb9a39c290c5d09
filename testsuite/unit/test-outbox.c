/* test-outbox.c: undelivered records: kept, handed out, and never for ever when they are no good.
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "base/fileio.h"
#include "records/outbox.h"
#include "stores.h"

static int too_long;
static const char no_database[] =
    "this is not a database, whatever its name says, and it is longer than the header of one would "
    "be, too: so nobody takes it for one that is empty";

static json_t *record(int job)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:s, s:i, s:i}", "cluster", "c", "job", job, "step", 0,
                     "uid", 1, "state", "planned", "start", 5, "reporter", 0);
}

/* Of so many jobs, from one on. */
static json_t *batch(int job, int count)
{
    json_t *records = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(records, record(job + i));
    return records;
}

static struct tccl_outbox *open_lost(int64_t expected)
{
    struct tccl_outbox *outbox;
    int64_t lost;
    MUST(tccl_outbox_open(check_at("outbox.db"), &outbox, &lost, ERR));
    CHECK_INT(lost, expected);
    CHECK((expected > 0) == (check_err.text[0] != '\0'));
    return outbox;
}

static struct tccl_outbox *open_outbox(void)
{
    return open_lost(0);
}

static void put(struct tccl_outbox *outbox, int job, int count)
{
    cleanup_json json_t *records = batch(job, count);
    CHECK_OK(tccl_outbox_put(outbox, records, &too_long, ERR));
}

/* Takes up to so many: those of count jobs, from one on; removes them if told so. */
static void take(struct tccl_outbox *outbox, int most, size_t bytes, int job, int count,
                 bool remove)
{
    cleanup_json json_t *ids = NULL;
    int lost = 0;
    cleanup_json json_t *records = tccl_outbox_take(outbox, 0, most, bytes, &ids, &lost, ERR);
    cleanup_json json_t *expected = batch(job, count);
    CHECK_STR(check_err.text, "");
    CHECK_INT(lost, 0);
    CHECK(json_equal(records, expected));
    CHECK_INT((long long)json_array_size(ids), count);
    if (remove)
        CHECK_OK(tccl_outbox_remove(outbox, ids, NULL, ERR));
}

static int sql(const char *text)
{
    return (int)store_sql(check_at("outbox.db"), text);
}

BEFORE
{
    check_remove(check_folder());
}

/* The oldest come first, and stay until they are removed, across starts. */
TEST(order)
{
    struct tccl_outbox *outbox = open_outbox();
    struct stat status;
    put(outbox, 1, 10);
    put(outbox, 11, 10);
    CHECK_INT(tccl_outbox_count(outbox), 20);
    take(outbox, 8, 1 << 20, 1, 8, false);
    take(outbox, 8, 1 << 20, 1, 8, true);
    tccl_outbox_close(outbox);
    CHECK(stat(check_at("outbox.db"), &status) == 0 && (status.st_mode & 0777) == 0600);
    outbox = open_outbox();
    CHECK_INT(tccl_outbox_count(outbox), 12);
    take(outbox, 100, 1 << 20, 9, 12, false);
    take(outbox, 100, 1, 9, 1, false); /* one at least */
    take(outbox, 100,
         2 * strlen("{\"cluster\":\"c\",\"job\":10,\"step\":0,\"uid\":1,"
                    "\"state\":\"planned\",\"start\":5,\"reporter\":0}"),
         9, 2, true);
    take(outbox, 100, 1 << 20, 11, 10, true);
    take(outbox, 100, 1 << 20, 1, 0, false);
    CHECK_INT(tccl_outbox_count(outbox), 0);
    tccl_outbox_close(outbox);
}

/* What comes out is what went in; what is too long is not kept. */
TEST(content)
{
    struct tccl_outbox *outbox = open_outbox();
    cleanup_json json_t *given = batch(4, 200), *ids = NULL;
    int lost = 0;
    json_t *first = json_array_get(given, 0);
    json_object_set_new(first, "job_name", json_string("a\nb\x1b[31m \"é\""));
    json_object_set_new(first, "gbps", json_real(1.0 / 3));
    CHECK_OK(tccl_outbox_put(outbox, given, &too_long, ERR));
    cleanup_json json_t *got = tccl_outbox_take(outbox, 0, 200, 1 << 20, &ids, &lost, ERR);
    CHECK(json_equal(got, given));
    json_object_set_new(json_array_get(given, 7), "ring",
                        json_sprintf("%0*d", TCCL_OUTBOX_RECORD, 0));
    too_long = 0;
    CHECK_OK(tccl_outbox_put(outbox, given, &too_long, ERR));
    CHECK_INT(too_long, 1);
    CHECK_INT(tccl_outbox_count(outbox), 399);
    tccl_outbox_close(outbox);
    CHECK_INT(sql("SELECT count(*) FROM waiting"), 399);
}

/* A record that is not what was put in is kept aside, and the others come. */
TEST(damaged_record)
{
    struct tccl_outbox *outbox = open_outbox();
    put(outbox, 1, 5);
    tccl_outbox_close(outbox);
    sql("UPDATE waiting SET record = replace(record, '\"job\":3', '\"job\":7') WHERE id = 3");
    sql("UPDATE waiting SET record = x'00ff' WHERE id = 4");
    outbox = open_outbox();
    cleanup_json json_t *ids = NULL;
    int lost = 0;
    cleanup_json json_t *records = tccl_outbox_take(outbox, 0, 10, 1 << 20, &ids, &lost, ERR);
    CHECK_INT(lost, 2);
    CHECK_INT((long long)json_array_size(records), 3);
    CHECK_OK(tccl_outbox_remove(outbox, ids, NULL, ERR));
    CHECK_INT(tccl_outbox_count(outbox), 0);
    tccl_outbox_close(outbox);
    CHECK_INT(sql("SELECT count(*) FROM aside WHERE reason = 'it is damaged'"), 2);
}

/* Refused ones are kept aside, each with its reason; at most so many. */
TEST(refused)
{
    struct tccl_outbox *outbox = open_outbox();
    cleanup_json json_t *refused = json_pack("[[o, s]]", record(7), "record: refused");
    for (int i = 0; i < TCCL_OUTBOX_ASIDE + 3; i++)
        CHECK_OK(tccl_outbox_remove(outbox, NULL, refused, ERR));
    take(outbox, 10, 1 << 20, 1, 0, false);
    tccl_outbox_close(outbox);
    CHECK_INT(sql("SELECT count(*) FROM aside WHERE reason = 'record: refused'"),
              TCCL_OUTBOX_ASIDE);
    CHECK_INT(sql("SELECT count(*) FROM aside WHERE record LIKE '%\"job\":7%'"), TCCL_OUTBOX_ASIDE);
}

/* A file that is none is moved aside, and a new one is made; the loss is said. */
TEST(damaged_file)
{
    check_write_file(check_at("outbox.db"), no_database);
    struct tccl_outbox *outbox = open_lost(1);
    CHECK_HOLDS(check_read_file(check_at("outbox.db.bad")), "not a database");
    put(outbox, 1, 300);
    tccl_outbox_close(outbox);
    FILE *file = fopen(check_at("outbox.db"), "r+");
    for (long at = 2048; at < 40000; at += 512) {
        fseek(file, at, SEEK_SET);
        fputs("noise noise noise noise noise noise noise noise", file);
    }
    fclose(file);
    int64_t lost;
    json_t *ids = NULL, *records;
    int n_bad = 0;
    int rc = tccl_outbox_open(check_at("outbox.db"), &outbox, &lost, ERR);
    CHECK_INT(rc, 0);
    if (lost == 0) { /* found when it is read */
        while ((records = tccl_outbox_take(outbox, 0, 10, 1 << 20, &ids, &n_bad, ERR)) != NULL) {
            bool end = json_array_size(records) == 0 && n_bad == 0;
            json_decref(records);
            int removed = tccl_outbox_remove(outbox, ids, NULL, ERR);
            json_decref(ids);
            if (end || removed != 0)
                break;
        }
        CHECK(tccl_outbox_damaged(outbox) || n_bad > 0);
        CHECK(tccl_outbox_close(outbox) > 0 || n_bad > 0);
        outbox = open_lost(0);
    }
    put(outbox, 1, 1);
    tccl_outbox_close(outbox);
}

/* A page of noise, or one whose rows alone can't be found: what is on the other pages is kept, in
 * order, and the rest is counted. */
static void lose_page(int page, bool noise, int *kept, int64_t *lost)
{
    unsigned char bytes[4096], *at = bytes;
    struct tccl_outbox *outbox = open_outbox();
    json_t *ids = NULL;
    int n_bad = 0, before = 0;
    put(outbox, 1, 300);
    tccl_outbox_close(outbox);
    FILE *file = fopen(check_at("outbox.db"), "r+");
    fseek(file, page * 4096L, SEEK_SET);
    CHECK_INT((long long)fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    memset(noise ? at : at + 8, 0xa5, noise ? sizeof(bytes) : 100);
    fseek(file, page * 4096L, SEEK_SET);
    fwrite(bytes, 1, sizeof(bytes), file);
    fclose(file);
    MUST(tccl_outbox_open(check_at("outbox.db"), &outbox, lost, ERR));
    json_t *taken = tccl_outbox_take(outbox, 0, 1000, 1 << 20, &ids, &n_bad, ERR);
    if (!taken) { /* it is found only now */
        CHECK(tccl_outbox_damaged(outbox) && *lost == 0);
        *lost = tccl_outbox_close(outbox);
        outbox = open_outbox();
        taken = tccl_outbox_take(outbox, 0, 1000, 1 << 20, &ids, &n_bad, ERR);
    }
    *kept = (int)json_array_size(taken);
    CHECK_INT(tccl_outbox_count(outbox), *kept);
    *lost += n_bad;
    for (int i = 0; i < *kept; i++) {
        int job = (int)json_integer_value(json_object_get(json_array_get(taken, (size_t)i), "job"));
        CHECK(job > before && job <= 300);
        before = job;
    }
    json_decref(taken);
    json_decref(ids);
    tccl_outbox_close(outbox);
    CHECK_INT(access(check_at("outbox.db.new"), F_OK), -1);
    check_remove(check_folder());
}

TEST(damaged_page)
{
    struct stat status;
    struct tccl_outbox *made = open_outbox();
    put(made, 1, 300);
    tccl_outbox_close(made);
    CHECK_INT(stat(check_at("outbox.db"), &status), 0);
    check_remove(check_folder());
    int pages = (int)(status.st_size / 4096), kept, part = 0;
    int64_t lost;
    CHECK(pages >= 8);
    for (int page = 3; page < pages; page++) /* behind the schema's and the two roots */
        for (int noise = 0; noise < 2; noise++) {
            lose_page(page, noise, &kept, &lost);
            CHECK(kept >= 240 && kept < 300);
            /* Nobody knows what was behind the last row, or before the first one. */
            CHECK(lost == 300 - kept || (noise && lost == 1));
            part += lost == 300 - kept;
        }
    CHECK(part >= 2 * (pages - 3) - 2);
}

/* Rows that are in no order on their page: what is found twice is no way forward. */
TEST(disordered_page)
{
    unsigned char bytes[4096];
    int64_t lost;
    for (int from = 2; from <= 60; from += 29)
        for (int to = 8; to <= 68; to += 12) {
            struct tccl_outbox *outbox = open_outbox();
            put(outbox, 1, 300);
            tccl_outbox_close(outbox);
            FILE *file = fopen(check_at("outbox.db"), "r+");
            for (int page = 3, first = 0; fseek(file, page * 4096L, SEEK_SET) == 0 &&
                                          fread(bytes, 1, sizeof(bytes), file) == sizeof(bytes);
                 page++) {
                int cells = bytes[3] << 8 | bytes[4];
                if (bytes[0] != 13 || cells <= from || cells <= to || first++ > 1)
                    continue;
                unsigned char moved[2] = {bytes[8 + 2 * from], bytes[9 + 2 * from]};
                memmove(bytes + 8 + 2 * from, bytes + 10 + 2 * from,
                        2 * (size_t)(cells - 1 - from));
                memmove(bytes + 10 + 2 * to, bytes + 8 + 2 * to, 2 * (size_t)(cells - 1 - to));
                memcpy(bytes + 8 + 2 * to, moved, 2);
                if (first == 2)
                    memset(bytes, 0xa5, sizeof(bytes));
                fseek(file, page * 4096L, SEEK_SET);
                fwrite(bytes, 1, sizeof(bytes), file);
            }
            fclose(file);
            outbox = NULL;
            MUST(tccl_outbox_open(check_at("outbox.db"), &outbox, &lost, ERR));
            CHECK(tccl_outbox_count(outbox) <= 300);
            tccl_outbox_close(outbox);
            check_remove(check_folder());
        }
}

/* Rows that are read, and that no DELETE finds: they are not handed out for ever. */
TEST(unfound_rows)
{
    unsigned char page[4096];
    struct tccl_outbox *outbox = open_outbox();
    int rounds = 0, taken = 0;
    put(outbox, 1, 5);
    tccl_outbox_close(outbox);
    FILE *file = fopen(check_at("outbox.db"), "r+");
    for (long at = 4096; fseek(file, at, SEEK_SET) == 0 && fread(page, 1, 4096, file) == 4096;
         at += 4096) {
        if (page[0] != 13 || page[4] != 5) /* the leaf with five rows */
            continue;
        unsigned char first[2] = {page[8], page[9]};
        memcpy(page + 8, page + 16, 2);
        memcpy(page + 16, first, 2);
        fseek(file, at, SEEK_SET);
        fwrite(page, 1, 4096, file);
    }
    fclose(file);
    outbox = open_outbox();
    for (; rounds < 10 && !tccl_outbox_damaged(outbox); rounds++) {
        cleanup_json json_t *ids = NULL;
        int lost = 0;
        cleanup_json json_t *records = tccl_outbox_take(outbox, 0, 10, 1 << 20, &ids, &lost, NULL);
        taken += (int)json_array_size(records);
        if (ids)
            CHECK_OK(tccl_outbox_remove(outbox, ids, NULL, ERR));
    }
    CHECK(rounds < 10 && taken == 5);
    tccl_outbox_close(outbox);
}

/* Killed while a damaged file was moved away and the saved one was not in its place yet. */
TEST(killed_while_saving)
{
    int64_t lost;
    struct tccl_outbox *outbox = open_outbox();
    put(outbox, 1, 5);
    tccl_outbox_close(outbox);
    CHECK_INT(rename(check_at("outbox.db"), check_at("outbox.db.new")), 0);
    CHECK_INT(tccl_write_file(check_at("outbox.db.bad"), 0600, "bad", 3, ERR), 0);
    MUST(tccl_outbox_open(check_at("outbox.db"), &outbox, &lost, ERR));
    CHECK_INT(tccl_outbox_count(outbox), 5);
    CHECK_INT(lost, 0);
    tccl_outbox_close(outbox);
    check_remove(check_folder());
}

TEST(full_disk)
{
    struct rlimit limit, none;
    struct tccl_outbox *outbox = open_outbox();
    put(outbox, 8, 1);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    none = limit;
    none.rlim_cur = 10;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    for (int job = 8; job < 10; job++) {
        cleanup_json json_t *json = batch(job, 1);
        CHECK_SAYS(tccl_outbox_put(outbox, json, &too_long, ERR) == -1, check_folder());
    }
    take(outbox, 10, 1 << 20, 8, 1, false);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0 && !tccl_outbox_damaged(outbox));
    CHECK_INT(tccl_outbox_count(outbox), 1);
    take(outbox, 10, 1 << 20, 8, 1, true);
    CHECK_INT(tccl_outbox_close(outbox), 0);
}

/* What was delivered is removed although there is no room at all: its journal has some from the
 * start. In a mount namespace of its own. */
static void fill_tmpfs(void)
{
    if (unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", check_folder(), "tmpfs", 0, "size=2m,mode=700") != 0) {
        fprintf(stderr, "no mounts here: a full tmpfs is not tried\n");
        return;
    }
    struct tccl_outbox *outbox = open_outbox();
    cleanup_json json_t *given = batch(1, 100), *more = batch(1, 2000), *ids = NULL;
    char noise[4096];
    EACH_OF(each, given)
        json_object_set_new(each, "ring", json_sprintf("%03000d", 0)); /* a page each */
    CHECK_OK(tccl_outbox_put(outbox, given, &too_long, ERR));
    int fd = open(check_at("ballast"), O_WRONLY | O_CREAT, 0600), lost = 0;
    while (write(fd, noise, sizeof(noise)) > 0)
        continue;
    CHECK(errno == ENOSPC);
    close(fd);
    CHECK_INT(tccl_outbox_put(outbox, more, &too_long, ERR), -1);
    cleanup_json json_t *taken = tccl_outbox_take(outbox, 0, 100, 1 << 20, &ids, &lost, ERR);
    CHECK(json_equal(taken, given));
    CHECK_OK(tccl_outbox_remove(outbox, ids, NULL, ERR));
    CHECK_INT(tccl_outbox_count(outbox), 0);
    tccl_outbox_close(outbox);
}

TEST(full_tmpfs)
{
    check_folder();
    check_in_child(fill_tmpfs);
}

/* At its bound it takes no more, and loses nothing; one that is damaged blocks no other, although
 * there is no room to keep it aside. */
TEST(bound)
{
    struct tccl_outbox *outbox = open_outbox();
    cleanup_json json_t *large = batch(1, 1), *many = json_array();
    json_object_set_new(json_array_get(large, 0), "ring", json_sprintf("%0*d", 600000, 0));
    for (int i = 0; i < 50; i++)
        json_array_extend(many, large);
    int64_t put_in = 0;
    while (put_in < 1000 && tccl_outbox_put(outbox, many, &too_long, ERR) == 0)
        put_in += 50;
    CHECK(put_in >= 700 && put_in < 1000);
    CHECK_HOLDS(check_err.text, "full");
    CHECK_INT(tccl_outbox_count(outbox), put_in);
    tccl_outbox_close(outbox);
    outbox = open_outbox();
    CHECK_INT(tccl_outbox_count(outbox), put_in);
    while (tccl_outbox_put(outbox, large, &too_long, ERR) == 0)
        continue;
    tccl_outbox_close(outbox);
    CHECK_INT(sql("UPDATE waiting SET sum = sum + 1 WHERE id = 1"), 0);
    outbox = open_outbox();
    cleanup_json json_t *ids = NULL;
    int lost = 0;
    cleanup_json json_t *records = tccl_outbox_take(outbox, 0, 2, 1 << 21, &ids, &lost, ERR);
    CHECK_INT(lost, 1);
    CHECK_INT((long long)json_array_size(records), 1);
    tccl_outbox_close(outbox);
}

/* Put, restart, deliver, die before the removal, deliver again: one record in the store. */
TEST(delivered_once)
{
    owned(records) struct tccl_records *records = NULL;
    CHECK_OK(tccl_records_open(check_at("records.db"), NULL, &records, ERR));
    struct tccl_outbox *outbox = open_outbox();
    put(outbox, 1, 2);
    for (int round = 0; round < 2; round++) {
        cleanup_json json_t *ids = NULL;
        int lost = 0;
        cleanup_json json_t *taken = tccl_outbox_take(outbox, 0, 10, 1 << 20, &ids, &lost, ERR);
        for (size_t i = 0; i < json_array_size(taken); i++)
            CHECK_OK(tccl_records_put(records, json_array_get(taken, i), ERR));
        tccl_outbox_close(outbox);
        outbox = open_outbox();
    }
    json_t *next;
    cleanup_json json_t *all = tccl_records_query(records, NULL, -1, 1 << 20, &next, ERR);
    CHECK_INT((long long)json_array_size(all), 2);
    take(outbox, 10, 1 << 20, 1, 2, true);
    tccl_outbox_close(outbox);
}

/* What was taken of one file removes nothing of the next one, whose numbers begin anew. */
TEST(another_file)
{
    struct tccl_outbox *outbox = open_outbox();
    cleanup_json json_t *ids = NULL;
    int lost = 0;
    put(outbox, 1, 5);
    json_decref(tccl_outbox_take(outbox, 0, 10, 1 << 20, &ids, &lost, ERR));
    tccl_outbox_close(outbox);
    check_remove(check_folder());
    outbox = open_outbox();
    put(outbox, 11, 5);
    CHECK_OK(tccl_outbox_remove(outbox, ids, NULL, ERR));
    CHECK_INT(tccl_outbox_count(outbox), 5);
    take(outbox, 10, 1 << 20, 11, 5, true);
    tccl_outbox_close(outbox);
}

/* A file that was moved away meanwhile: whoever has it open learns that, and opens a new one. */
TEST(moved)
{
    struct tccl_outbox *outbox = open_outbox();
    cleanup_json json_t *given = batch(2, 1);
    put(outbox, 1, 1);
    CHECK_INT(rename(check_at("outbox.db"), check_printf("%s", check_at("away.db"))), 0);
    CHECK_INT(tccl_outbox_put(outbox, given, &too_long, ERR), -1);
    CHECK(tccl_outbox_broken(outbox) && !tccl_outbox_damaged(outbox));
    CHECK_INT(tccl_outbox_close(outbox), 0);
    outbox = open_outbox();
    put(outbox, 2, 1);
    take(outbox, 10, 1 << 20, 2, 1, true);
    tccl_outbox_close(outbox);
}

/* Where a damaged file can't be moved, its records are not counted as lost with each try. */
TEST(not_moved)
{
    struct tccl_outbox *outbox;
    int64_t lost;
    check_write_file(check_at("outbox.db"), no_database);
    CHECK_INT(mkdir(check_at("outbox.db.bad"), 0700), 0);
    for (int try = 0; try < 2; try++) {
        CHECK_INT(tccl_outbox_open(check_at("outbox.db"), &outbox, &lost, ERR), -1);
        CHECK_INT(lost, 0);
    }
}
