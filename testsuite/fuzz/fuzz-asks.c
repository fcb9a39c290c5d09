/* CHAIN and CONFIRM, as any user of the node can send them: each is answered once, and what comes
 * from it on record is within its bounds. The first byte: may this user ask about the step? */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/key.h"
#include "client/message.h"
#include "fuzz.h"
#include "records/record.h"
#include "tccld/join/confirm.h"
#include "tccld/join/node-profile.h"
#include "tccld/join/planfile.h"
#include "tccld/join/subset.h"
#include "tccld/journal/journal.h"
#include "tccld/net/liveness.h"

enum { UID = 4001, RANKS = 4 };

static const struct tccl_step_key key = {.cluster = "c", .job = 7, .step = 1};
static char folder[] = "/tmp/tccl-fuzz-XXXXXX";
static struct tccl_conf conf;
static struct daemon daemon_ = {.conf = &conf, .users = {.tccld = UID + 1, .slurm = (uid_t)-1}};
static uid_t asking;
static int answers, records;

/* In place of connection.c and journal.c. */
uid_t connection_uid(const struct connection *connection)
{
    (void)connection;
    return asking;
}

void connection_answer(struct connection *connection, json_t *message)
{
    cleanup_free char *text = tccl_message_text(message);
    (void)connection;
    FUZZ_CHECK(text && strlen(text) < 16384);
    answers++;
}

void connection_refuse(struct connection *connection, const char *text)
{
    (void)connection;
    FUZZ_CHECK(text[0]);
    answers++;
}

void journal_put_at(struct journal *journal, json_t *record, const char *node)
{
    const char *reason = json_string_value(json_object_get(record, "built_reason"));
    (void)journal;
    (void)node;
    FUZZ_CHECK(asking == UID && tccl_record_confirms(record));
    FUZZ_CHECK(reason && strlen(reason) <= TCCL_OUTCOME_REASON);
    records++;
    json_decref(record);
}

static void end(void)
{
    planfile_remove(folder, &key);
    alives_free(daemon_.alives);
    own_free(daemon_.own);
    rmdir(folder);
}

static void begin(void)
{
    char path[PATH_MAX];
    struct tccl_error err = {0};
    if (daemon_.alives)
        return;
    if (!mkdtemp(folder))
        abort();
    strcpy(conf.run_dir, folder);
    strcpy(conf.node, "n1");
    snprintf(conf.machine, sizeof(conf.machine), "%s/none", folder);
    daemon_.alives = alives_new();
    daemon_.own = own_new();
    cleanup_json json_t *plan = json_pack(
        "{s:o,s:i,s:i,s:i,s:s,s:[s,s]}", "key", tccl_key_to_json(&key), "uid", UID, "index", 0,
        "start", 1700000000, "root", "n1", "gpus", "0000:01:00.0", "0000:41:00.0");
    if (planfile_write(folder, &key, getgid(), plan, path, &err) != 0)
        abort();
    atexit(end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    if (size == 0)
        return 0;
    asking = data[0] & 1 ? UID : UID + 2;
    cleanup_json json_t *message = tccl_message_parse((const char *)data + 1, size - 1, NULL);
    const char *type = message ? tccl_message_type(message) : "";
    bool chain = strcmp(type, "chain") == 0;
    if (!chain && strcmp(type, "confirm") != 0)
        return 0;
    answers = records = 0;
    alives_forget(&daemon_, &key); /* or the questions of a second are used up soon */
    (chain ? subset_ask : confirm_hear)(&daemon_, NULL, message);
    FUZZ_CHECK(answers == 1 && records <= 1);
    for (int i = 0; i < RANKS && !chain; i++)
        confirm_hear(&daemon_, NULL, message);
    FUZZ_CHECK(records <= 1); /* the same word is put on record once */
    return 0;
}

#define KEY                                                                                        \
    "\"key\":{\"cluster\":\"c\",\"job\":7,\"het_job\":0,\"het_offset\":0,\"step\":1,"              \
    "\"restart\":0,\"run\":0}"

void fuzz_seeds(fuzz_add *add, void *context)
{
    static const char *const seeds[] = {
        "1{\"v\":1,\"type\":\"chain\"," KEY ",\"closed\":true,\"gpus\":[\"0000:41:00.0\","
        "\"0000:01:00.0\"]}",
        "0{\"v\":1,\"type\":\"chain\"," KEY ",\"closed\":false,\"gpus\":[\"0000:01:00.0\"]}",
        "1{\"v\":1,\"type\":\"confirm\"," KEY ",\"verdict\":\"applied\",\"text\":\"\",\"ranks\":8,"
        "\"whole\":true,\"gpus\":2}",
        "1{\"v\":1,\"type\":\"confirm\"," KEY ",\"verdict\":\"differs\",\"text\":\"order \\u00e9"
        "\\u0007\",\"ranks\":-1,\"whole\":true,\"gpus\":-1}",
        "0{\"v\":1,\"type\":\"confirm\"," KEY ",\"verdict\":\"unknown\",\"text\":\"x\",\"ranks\":8,"
        "\"whole\":false,\"gpus\":2}",
    };
    for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
        add(context, seeds[i], strlen(seeds[i]));
}
