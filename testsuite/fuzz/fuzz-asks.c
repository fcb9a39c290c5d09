/* CHAIN, CONFIRM, ACHIEVED and AGREE, as any user of the node can send them: each is answered once,
 * and what comes from it on record is within its bounds; and AGREE of a node below. The first byte:
 * may this user ask about the step? */
#include "client/key.h"
#include "fuzz.h"
#include "records/record.h"
#include "tccld/jobs/jobs.h"
#include "tccld/join/alongside.h"
#include "tccld/join/own.h"
#include "tccld/join/running.h"
#include "tccld/net/link.h"

enum { UID = 4001, RANKS = 4 };

static const struct tccl_step_key key = {.cluster = "c", .job = 7, .step = 1};
static const struct tccl_step_key wide = {.cluster = "c", .job = 8, .step = 1}; /* of three nodes */
static struct tccl_conf conf;
static struct daemon daemon_ = {.conf = &conf, .users = {.tccld = UID + 1, .slurm = (uid_t)-1}};
static uid_t asking;
static int answers, records, held;

/* In place of connection.c, journal.c and link.c. */
uid_t connection_uid(const struct connection *connection)
{
    return asking;
}

void connection_answer_lines(struct connection *connection, struct tccl_line_writer *writer)
{
    struct tccl_lines lines;
    FUZZ_CHECK(tccl_lines_end(writer) == 0);
    FUZZ_CHECK(tccl_lines_open(writer->text, writer->length, &lines, NULL) == 0);
    answers++;
}

struct connection *connection_hold(struct connection *connection)
{
    held++;
    return connection;
}

void connection_drop(struct connection *connection)
{
    FUZZ_CHECK(held-- > 0);
}

void connection_answer(struct connection *connection, json_t *message)
{
    FUZZ_CHECK(json_object_get(message, "rings"));
    answers++;
}

int alongside_choose(struct running *running, const struct tccl_step_key *step,
                     const uint32_t *groups, int n, bool closed, enum tccl_view view,
                     struct tccl_group_choice *choices)
{
    return -1;
}

struct shared_class *alongside_see(struct running *running, const struct tccl_step_key *step,
                                   struct shared_class *class, bool closed, enum tccl_view view)
{
    return class;
}

/* Nobody runs beside it. */
void alongside_read_ahead(struct running *running)
{
}

void alongside_on_place(evutil_socket_t fd, short what, void *running)
{
}

void alongside_began(struct running *running, const struct running_step *step)
{
}

void alongside_on_look(evutil_socket_t fd, short what, void *running)
{
}

/* This is the first node: none of these is called. */
struct link *link_ask(struct daemon *daemon, const char *node, json_t *message, int64_t deadline,
                      void (*done)(void *context, json_t *answer, const struct tccl_error *err),
                      void *context)
{
    abort();
}

void link_cancel(struct link *link)
{
    abort();
}

void connection_answer_ok(struct connection *connection)
{
    answers++;
}

void connection_refuse(struct connection *connection, const char *text)
{
    FUZZ_CHECK(text[0]);
    answers++;
}

void confirmation_put_checked(struct daemon *daemon, json_t *record,
                              const struct tccl_step_key *key)
{
    const char *reason = json_string_value(json_object_get(record, "built_reason"));
    FUZZ_CHECK(asking == UID && tccl_record_confirms(record));
    FUZZ_CHECK(reason && strlen(reason) <= TCCL_OUTCOME_REASON);
    records++;
    json_decref(record);
}

static void end(void)
{
    running_free(daemon_.running);
    FUZZ_CHECK(held == 0);
    event_base_free(daemon_.base);
    own_free(daemon_.own);
    check_clear();
}

static void begin_step(const struct tccl_step_key *of, int n_nodes)
{
    static char *names[] = {"n1", "n2", "n3"};
    struct tccl_step join = {.key = *of, .uid = UID, .n_nodes = n_nodes, .nodes = names};
    struct running_step *step = running_begin(daemon_.running, &join, "");
    if (!step)
        abort();
    step->plan = step->ring = true;
    step->start = 1700000000;
    step->n_gpus = 2;
    tccl_bus_parse("0000:01:00.0", &step->gpus[0]);
    tccl_bus_parse("0000:41:00.0", &step->gpus[1]);
}

static void begin(void)
{
    if (daemon_.running)
        return;
    strcpy(conf.run_dir, check_folder());
    strcpy(conf.node, "n1");
    strcpy(conf.machine, check_at("none"));
    daemon_.own = own_new();
    daemon_.base = event_base_new();
    daemon_.running = running_new(&daemon_);
    begin_step(&key, 1);
    begin_step(&wide, 3);
    atexit(end);
}

/* Whoever has asked is answered at once, or later with others: as many as one user may have. */
static void agree(const struct tccl_lines *lines, json_t *message)
{
    struct connection *connection = (struct connection *)&conf; /* looked at by nobody */
    answers = 0;
    running_find(daemon_.running, &wide)->questions = 0;
    if (lines)
        agree_hear(&daemon_, connection, lines);
    else
        agree_receive(&daemon_, connection, message);
    FUZZ_CHECK(answers <= 4 && held <= 3 * AGREE_USER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    if (size == 0)
        return 0;
    asking = data[0] & 1 ? UID : UID + 2;
    struct tccl_lines lines;
    cleanup_json json_t *message = json_loadb((const char *)data + 1, size - 1, 0, NULL);
    if (message)
        agree(NULL, message);
    if (tccl_lines_open((const char *)data + 1, size - 1, &lines, NULL) != 0)
        return 0;
    if (strcmp(lines.name, "tccl-agree") == 0)
        agree(&lines, NULL);
    bool chain = strcmp(lines.name, "tccl-chain") == 0;
    if (strcmp(lines.name, "tccl-achieved") == 0) {
        answers = records = 0;
        running_find(daemon_.running, &key)->questions = 0;
        built_achieved(&daemon_, NULL, &lines);
        FUZZ_CHECK(answers == 1 && records <= 1);
        return 0;
    }
    if (!chain && strcmp(lines.name, "tccl-confirm") != 0)
        return 0;
    answers = records = 0;
    running_find(daemon_.running, &key)->questions =
        0; /* or the questions of a second are used up soon */
    (chain ? subset_ask : built_confirm)(&daemon_, NULL, &lines);
    FUZZ_CHECK(answers == 1 && records <= 1);
    for (int i = 0; i < RANKS && !chain; i++)
        built_confirm(&daemon_, NULL, &lines);
    FUZZ_CHECK(records <= 1); /* the same word is put on record once */
    return 0;
}

#define KEY "cluster c\njob 7\nhet_job 0\nhet_offset 0\nstep 1\nrestart 0\nrun 0\n"
#define WIDE "cluster c\njob 8\nhet_job 0\nhet_offset 0\nstep 1\nrestart 0\nrun 0\n"
#define BELOW                                                                                      \
    "{\"v\":1,\"type\":\"agree\",\"key\":{\"cluster\":\"c\",\"job\":8,\"step\":1},\"start\":"      \
    "1700000000,"                                                                                  \
    "\"n_nodes\":3,"

FUZZ_SEEDS(
    "1tccl-chain 1\n" KEY "closed yes\ngpus 0000:41:00.0 0000:01:00.0\nend\n",
    "0tccl-chain 1\n" KEY "closed no\ngpus 0000:01:00.0\nend\n",
    "1tccl-confirm 1\n" KEY "verdict begun\ntext \nranks 8\nwhole yes\ngpus 2\nend\n",
    "1tccl-confirm 1\n" KEY "verdict applied\ntext \nranks 8\nwhole yes\ngpus 2\nend\n",
    "1tccl-confirm 1\n" KEY
    "verdict differs\ntext order \xc3\xa9\xff\nranks -1\nwhole yes\ngpus -1\nend\n",
    "1tccl-achieved 1\n" KEY
    "steered yes\nrank 0\nfrom 67108864\nsamples 32\nbest 11.5\nmedian 10.25\nbytes 99999999999\n"
    "share 0.5\nend\n",
    "1tccl-agree 1\n" KEY "comm 0123456789abcdef\nwill yes\nend\n",
    "1tccl-agree 1\n" WIDE "comm 0123456789abcdef\nwill yes\nend\n",
    "1tccl-agree 1\n" WIDE "comm 0000000000000001\nwill no\nend\n",
    "1" BELOW "\"node\":1,\"comm\":\"0123456789abcdef\",\"will\":true}",
    "1" BELOW "\"node\":2,\"comm\":\"0123456789abcdef\",\"will\":false,\"why\":\"n3\"}",
    "0tccl-confirm 1\n" KEY "verdict unknown\ntext x\nranks 8\nwhole no\ngpus 2\nend\n")
