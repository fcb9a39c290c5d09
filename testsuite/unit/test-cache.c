/* The profile cache: what is written is read; what is bad is named, and stops nothing else. */
#include "profile/cache.h"
#include "profile/verdict.h"

#include "base/fileio.h"
#include "machines.h"
#include "owned.h"
#include "sample.h"
#include "search/setlog.h"

OWNED(profile, struct tccl_profile, tccl_profile_close)

static const char *cache;
static struct tccl_machine machine;

static const char *in_folder(const struct tccl_profile *profile, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", tccl_profile_folder(profile), name);
    return path;
}

/* source "model" without a model's JSON is refused when opened; these tests measure with "host". */
static struct tccl_profile *create(void)
{
    struct tccl_profile *profile;
    MUST(tccl_profile_create(cache, &machine, "host", NULL, &profile, ERR));
    return profile;
}

static void put(struct tccl_profile *profile, uint32_t gpus)
{
    owned(table) struct tccl_table *table = sample_table(&machine, gpus);
    strcpy(table->source, "host");
    CHECK_OK(tccl_profile_put(profile, table, ERR));
}

static int count(void *context, const struct tccl_set *set, const struct tccl_measurement *measured)
{
    ++*(int *)context;
    return 0;
}

static void append(struct tccl_profile *profile, const char *text, double gbps)
{
    struct tccl_set set = parse_set(text);
    CHECK_INT(tccl_profile_append(profile, &set, &(struct tccl_measurement){.gbps = gbps}, ERR), 0);
}

TEST(round)
{
    owned(profile) struct tccl_profile *profile = create(), *reader = NULL;
    cleanup_free uint32_t *masks = NULL;
    int sets = 0;
    put(profile, 0xf);
    put(profile, 0x3);
    append(profile, "g0>g1 g1>g0", 10);
    append(profile, "g0>m1", 11);
    CHECK_OK(tccl_profile_sync(profile, ERR));
    CHECK_OK(tccl_profile_open(cache, tccl_profile_id(profile), &reader, ERR));
    CHECK_STR(tccl_profile_source(reader), "host");
    CHECK_INT(tccl_profile_machine(reader)->n_gpus, 4);
    CHECK(tccl_profile_model(reader, ERR) == NULL);
    CHECK_STR(check_err.text, "");
    CHECK_INT(tccl_profile_sets(reader, count, &sets, NULL, ERR), 2);
    CHECK_INT(sets, 2);
    CHECK_INT(tccl_profile_tables(reader, &masks, ERR), 2);
    CHECK_INT(masks[0], 0x3);
    CHECK_INT(masks[1], 0xf);
    const struct tccl_table *table = tccl_profile_table(reader, 0xf, ERR);
    CHECK(table && table->gpus == 0xf);
    CHECK(table == tccl_profile_table(reader, 0xf, ERR));
    CHECK(time(NULL) - tccl_profile_time(reader) < 3600);
}

TEST(missing)
{
    struct tccl_profile *profile = create();
    CHECK(tccl_profile_table(profile, 0x7, ERR) == NULL);
    CHECK_INT(errno, ENOENT);
    CHECK_STR(check_err.text, "no chains for GPUs 0-2: run tccl-profile run --gpus 0-2");
    CHECK(tccl_profile_table(profile, 0x31, ERR) == NULL);
    CHECK_STR(check_err.text, "the machine has 4 GPUs, and no GPU 4-5");
    tccl_profile_close(profile);
    CHECK_INT(tccl_profile_open(cache, "0123456789abcdef0123456789abcdef", &profile, ERR), -1);
    CHECK_INT(errno, ENOENT);
    CHECK_HOLDS(check_err.text, "no profile of this machine in");
    CHECK_SAYS(tccl_profile_open(cache, "../../etc", &profile, ERR) == -1, "is not a machine id");
}

/* A set without a file has the chains of the one that stands for it, moved. */
TEST(alike)
{
    struct tccl_profile *profile = create(), *reader;
    struct tccl_alike alike = {.noise = 0.04, .n = 2};
    struct tccl_exchange none = tccl_exchange_none();
    for (int i = 0; i < 2; i++) { /* 0 and 1, 2 and 3 */
        alike.exchanges[i] = none;
        alike.exchanges[i].image[TCCL_GPU][2 * i] = (uint8_t)(2 * i + 1);
        alike.exchanges[i].image[TCCL_GPU][2 * i + 1] = (uint8_t)(2 * i);
    }
    put(profile, 0x5);
    CHECK_OK(tccl_profile_set_alike(profile, &alike, ERR));
    CHECK(tccl_profile_table(profile, 0xa, NULL) == NULL); /* who writes has to make it */
    MUST(tccl_profile_open(cache, tccl_profile_id(profile), &reader, ERR));
    CHECK_INT(tccl_profile_first(reader, 0xa), 0x5);
    const struct tccl_table *table = tccl_profile_table(reader, 0xa, ERR);
    CHECK(table && table->gpus == 0xa);
    CHECK_INT(tccl_table_ring(table)->chain.gpus[0], tccl_table_ring(table)->chain.gpus[0] | 1);
    CHECK(table->noise >= 0.04 && table->moved);
    CHECK(table == tccl_profile_table(reader, 0xa, ERR));
    CHECK(!tccl_profile_table_changed(reader, 0xa));
    CHECK(tccl_profile_table(reader, 0x3, ERR) == NULL);
    CHECK_INT(errno, ENOENT);
    put(profile, 0xa); /* its own from now on */
    CHECK(tccl_profile_table_changed(reader, 0xa));
    table = tccl_profile_table(reader, 0xa, ERR);
    CHECK(table && table->noise < 0.04 && !table->moved);
    tccl_profile_close(reader);
    alike.n = 0;
    CHECK_OK(tccl_profile_set_alike(profile, &alike, ERR));
    MUST(tccl_profile_open(cache, tccl_profile_id(profile), &reader, ERR));
    CHECK_INT(tccl_profile_first(reader, 0x6), 0x6);
    CHECK(tccl_profile_table(reader, 0x6, ERR) == NULL);
    tccl_profile_close(reader);
    tccl_profile_close(profile);
}

/* Changes, or cuts off, what is at a place of a file. */
static void damage(const char *path, long at, bool cut)
{
    cleanup_close int fd = open(path, O_RDWR);
    unsigned char byte;
    CHECK(fd >= 0);
    if (cut) {
        CHECK_INT(ftruncate(fd, at), 0);
    } else {
        CHECK_INT(pread(fd, &byte, 1, at), 1);
        byte ^= (unsigned char)(1 << rand() % 8);
        CHECK_INT(pwrite(fd, &byte, 1, at), 1);
    }
}

TEST(damaged_tables)
{
    owned(profile) struct tccl_profile *profile = create();
    char path[PATH_MAX];
    put(profile, 0x3);
    strcpy(path, in_folder(profile, "chains/00000005.chains"));
    for (int i = 0; i < 200; i++) {
        struct stat st;
        put(profile, 0x5);
        CHECK(tccl_profile_table(profile, 0x5, ERR) != NULL);
        CHECK(stat(path, &st) == 0);
        damage(path, rand() % st.st_size, i % 4 == 0);
        CHECK(tccl_profile_table(profile, 0x5, ERR) == NULL);
        CHECK(strstr(check_err.text, "00000005.chains"));
        CHECK(tccl_profile_table(profile, 0x3, ERR) != NULL);
    }
}

TEST(foreign_tables)
{
    owned(profile) struct tccl_profile *profile = create();
    char from[PATH_MAX], to[PATH_MAX];
    put(profile, 0x3);
    strcpy(from, in_folder(profile, "chains/00000003.chains"));
    strcpy(to, in_folder(profile, "chains/00000006.chains"));
    CHECK_INT(rename(from, to), 0);
    CHECK_SAYS(tccl_profile_table(profile, 0x6, ERR) == NULL, "00000006.chains");
    CHECK_HOLDS(check_err.text, "another GPU set");
    owned(table) struct tccl_table *table = sample_table(&machine, 0xf);
    strcpy(table->source, "cuda");
    CHECK_SAYS(tccl_profile_put(profile, table, ERR) == -1, "takes no chains");
    CHECK(access(in_folder(profile, "chains/0000000f.chains"), F_OK) != 0);
    CHECK_INT(tccl_table_write(table, in_folder(profile, "chains/0000000f.chains"), NULL), 0);
    CHECK_SAYS(tccl_profile_table(profile, 0xf, ERR) == NULL, "comes from \"cuda\"");
}

static void check_refused(const char *folder, const char *text)
{
    struct tccl_profile *profile;
    CHECK_INT(tccl_profile_open_folder(folder, &profile, ERR), -1);
    CHECK(profile == NULL);
    CHECK_HOLDS(check_err.text, text);
}

TEST(other_machine)
{
    owned(profile) struct tccl_profile *profile = create();
    struct tccl_machine other = machine;
    char folder[PATH_MAX], renamed[PATH_MAX];
    strcpy(folder, tccl_profile_folder(profile));
    strcpy(renamed, folder);
    memset(strrchr(renamed, '/') + 1, 'a', 32);
    CHECK_INT(rename(folder, renamed), 0);
    check_refused(renamed, "is of another machine");
    CHECK_INT(rename(renamed, folder), 0);
    strcpy(other.gpus[2].model, "P100");
    cleanup_json json_t *json = tccl_machine_to_json(&other);
    CHECK_INT(tccl_write_json(in_folder(profile, "machine.json"), 0644, json, NULL), 0);
    check_refused(folder, "is of another machine");
}

TEST(bad_descriptions)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"format\": \"1\"}",
        "{\"format\": 1}",
        "{\"format\": 2, \"machine\": \"x\"}",
        "{\"format\": 1, \"machine\": \"x\", \"source\": \"host\"}"};
    owned(profile) struct tccl_profile *profile = create();
    const char *folder = tccl_profile_folder(profile);
    for (size_t i = 0; i < COUNT(texts); i++) {
        CHECK_INT(tccl_write_file(in_folder(profile, "profile.json"), 0644, texts[i],
                                  strlen(texts[i]), NULL),
                  0);
        check_refused(folder, "profile.json");
    }
    char raw[256];
    snprintf(raw, sizeof(raw),
             "{\"format\": 1, \"machine\": \"%s\", \"source\": \"ho\\u001b[31mst\"}",
             tccl_profile_id(profile));
    CHECK_INT(tccl_write_file(in_folder(profile, "profile.json"), 0644, raw, strlen(raw), NULL), 0);
    check_refused(folder, "\"source\" has characters");
    unlink(in_folder(profile, "profile.json"));
    check_refused(folder, "profile.json");
    unlink(in_folder(profile, "machine.json"));
    check_refused(folder, "machine.json");
}

TEST(model)
{
    cleanup_json json_t *json = tccl_read_json(machine_file("amd-4gpu"), 1 << 20, NULL);
    owned(model) struct tccl_model *model = NULL;
    struct tccl_profile *profile, *second;
    CHECK(json && tccl_model_from_json(json, &model, ERR) == 0);
    if (!model)
        return;
    const struct tccl_machine *its = tccl_model_machine(model);
    CHECK_OK(tccl_profile_create(cache, its, "model", json, &profile, ERR));
    CHECK(tccl_profile_model(profile, ERR) != NULL);
    CHECK_INT(tccl_profile_create(cache, its, "model", json, &second, ERR), -1);
    tccl_profile_close(profile);
    CHECK_SAYS(tccl_profile_create(cache, its, "host", NULL, &second, ERR) == -1,
               "is not mixed with");
    json_object_set_new(json, "about", json_string("other"));
    CHECK_SAYS(tccl_profile_create(cache, its, "model", json, &second, ERR) == -1, "another model");
}

TEST(altered_model)
{
    cleanup_json json_t *json = tccl_read_json(machine_file("amd-4gpu"), 1 << 20, NULL);
    cleanup_json json_t *other = tccl_read_json(machine_file("intel-4gpu"), 1 << 20, NULL);
    owned(model) struct tccl_model *model = NULL;
    owned(profile) struct tccl_profile *profile = NULL;
    CHECK(json && tccl_model_from_json(json, &model, ERR) == 0);
    if (!model)
        return;
    check_remove(cache);
    CHECK_INT(tccl_profile_create(cache, tccl_model_machine(model), "model", json, &profile, ERR),
              0);
    CHECK_INT(tccl_write_json(in_folder(profile, "model.json"), 0644, other, NULL), 0);
    CHECK_SAYS(tccl_profile_model(profile, ERR) == NULL, "model.json");
    CHECK_HOLDS(check_err.text, "altered");
    unlink(in_folder(profile, "model.json"));
    CHECK_SAYS(tccl_profile_model(profile, ERR) == NULL, "model.json");
}

TEST(changed)
{
    owned(profile) struct tccl_profile *profile = create();
    struct tccl_profile *reader;
    char folder[PATH_MAX];
    put(profile, 0x3);
    strcpy(folder, tccl_profile_folder(profile));
    CHECK_INT(tccl_profile_open_folder(folder, &reader, ERR), 0);
    CHECK(tccl_profile_table(reader, 0x3, ERR) != NULL);
    CHECK(!tccl_profile_changed(reader));
    usleep(20000); /* the clock of file times has steps of some milliseconds */
    CHECK(!tccl_profile_table_changed(reader, 0x3));
    damage(in_folder(profile, "chains/00000003.chains"), 40, false);
    CHECK(tccl_profile_table_changed(reader, 0x3));
    CHECK(!tccl_profile_table_changed(reader, 0x5)); /* not in memory */
    CHECK(tccl_profile_table(reader, 0x3, ERR) == NULL);
    tccl_profile_close(reader);
    CHECK_INT(tccl_profile_open_folder(folder, &reader, ERR), 0);
    usleep(20000);
    put(profile, 0x3);
    CHECK(tccl_profile_changed(reader));
    tccl_profile_close(reader);
    CHECK_INT(tccl_profile_open_folder(folder, &reader, ERR), 0);
    CHECK(!tccl_profile_changed(reader));
    check_remove(cache);
    CHECK(tccl_profile_changed(reader));
    tccl_profile_close(reader);
}

/* Large tables: all are served, few are kept. */
TEST(bound)
{
    struct tccl_machine small = machine;
    machine.n_nics = 8;
    machine.n_memories = 8;
    for (int i = 0; i < 8; i++) {
        machine.nics[i] = small.nics[0];
        snprintf(machine.nics[i].name, TCCL_NAME, "mlx5_%d", i);
        snprintf(machine.nics[i].busid, TCCL_BUSID, "0000:%02x:00.0", 0xa1 + i);
        for (int j = 0; j < 4; j++)
            machine.gpudirect[i][j] = true;
    }
    struct tccl_profile *profile = create();
    for (uint32_t gpus = 1; gpus < 16; gpus++)
        put(profile, gpus);
    for (int i = 0; i < 100; i++) {
        uint32_t gpus = 1 + (uint32_t)rand() % 15;
        const struct tccl_table *table = tccl_profile_table(profile, gpus, ERR);
        CHECK(table && table->gpus == gpus && tccl_profile_memory(profile) <= 4 << 20);
        CHECK(tccl_profile_memory(profile) > 0);
    }
    tccl_profile_close(profile);
    machine = small;
}

/* A writer that never ends by itself. */
static void write_for_ever(void)
{
    struct tccl_profile *profile = create();
    for (uint32_t i = 0;; i++) {
        append(profile, i % 2 ? "g0>m1" : "g1>m0", i);
        if (i % 8 == 0)
            put(profile, 1 + i / 8 % 15);
    }
}

static void check_all_good(const char *id)
{
    cleanup_free uint32_t *masks = NULL;
    owned(profile) struct tccl_profile *profile = NULL;
    int sets = 0;
    CHECK_OK(tccl_profile_open(cache, id, &profile, ERR));
    if (!profile)
        return;
    CHECK(tccl_profile_sets(profile, count, &sets, NULL, ERR) >= 0);
    int tables = tccl_profile_tables(profile, &masks, ERR);
    for (int i = 0; i < tables; i++)
        CHECK(tccl_profile_table(profile, masks[i], ERR) != NULL);
    CHECK_STR(check_err.text, "");
}

static int count_left_over(const char *id)
{
    FILE *pipe = popen(check_printf("ls '%s/%s/chains' | grep -c 'chains[.]'", cache, id), "r");
    int number = -1;
    CHECK_INT(fscanf(pipe, "%d", &number), 1);
    pclose(pipe);
    return number;
}

TEST(killed)
{
    char id[TCCL_HASH_HEX];
    tccl_profile_close(create());
    tccl_machine_id(&machine, id);
    for (int i = 0; i < 15; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            write_for_ever();
        usleep((useconds_t)(rand() % 30000));
        kill(child, SIGKILL);
        CHECK_INT(waitpid(child, NULL, 0), child);
        check_all_good(id);
    }
    tccl_profile_close(create());
    CHECK_INT(count_left_over(id), 0);
}

static int see(void *context, const char *id)
{
    CHECK(strlen(id) == 32);
    ++*(int *)context;
    return 0;
}

TEST(list)
{
    int seen = 0;
    CHECK_INT(tccl_cache_list("/nonexistent/cache", see, &seen, ERR), 0);
    tccl_profile_close(create());
    CHECK_INT(mkdir(check_printf("%s/lost+found", cache), 0755), 0);
    CHECK_INT(tccl_cache_list(cache, see, &seen, ERR), 1);
    CHECK_INT(seen, 1);
}

/* Measured under other conditions: not mixed, unless there is nothing to mix. */
TEST(conditions)
{
    struct tccl_profile *profile = create();
    CHECK_STR(tccl_profile_conditions(profile), "");
    CHECK_OK(tccl_profile_claim(profile, "engine copies", ERR));
    CHECK_OK(tccl_profile_claim(profile, "kernel copies", ERR));
    append(profile, "g0>m1", 11);
    tccl_profile_close(profile);
    profile = create();
    CHECK_STR(tccl_profile_conditions(profile), "kernel copies");
    CHECK_OK(tccl_profile_claim(profile, "kernel copies", ERR));
    CHECK_INT(tccl_profile_claim(profile, "engine copies", ERR), -1);
    CHECK(strstr(check_err.text, "\"kernel copies\"") &&
          strstr(check_err.text, "\"engine copies\""));
    CHECK_STR(tccl_profile_conditions(profile), "kernel copies");
    tccl_profile_close(profile);
}

SETUP
{
    cache = check_at("cache");
    machine = sample_machine();
}

BEFORE
{
    check_remove(cache);
    CHECK_INT(mkdir(cache, 0755), 0);
}

TEARDOWN
{
    check_remove(cache);
    check_nothing_left();
}

/* Links are kept, until others are; what can't be one is left out. */
TEST(links)
{
    struct tccl_profile *profile;
    struct tccl_trained_links links = {0}, many = {0};
    const char *folder = check_at("links");
    tccl_trained_add(&links, "0000:15:00.0", 16, 32);
    tccl_trained_add(&links, "0000:73:00.0", 8, 2.5);
    tccl_trained_add(&links, "0000:15:00.0", 8,
                     32); /* a later run, at half of it: the best counts */
    tccl_trained_add(&links, "0000:73:00.0", 4, 2.5);
    tccl_trained_add(&links, "0000:74:00.0", 0, 32);
    tccl_trained_add(&links, "0000:75:00.0", 16, NAN);
    tccl_trained_add(&links, "0000:76:00.0 and more", 16, 32);
    CHECK_INT(links.n, 2);
    for (int i = 0; i < 2 * TCCL_TRAINED_LINKS; i++)
        tccl_trained_add(&many, check_printf("ffff:%02x:%02x.7", i % 256, i / 256), 16, 128);
    CHECK_INT(many.n, TCCL_TRAINED_LINKS);
    CHECK_OK(tccl_profile_create(folder, machine_of("amd-4gpu"), "cuda", NULL, &profile, ERR));
    CHECK_INT(tccl_profile_links(profile)->n, 0);
    CHECK_OK(tccl_profile_set_links(profile, &many, ERR));
    CHECK_OK(tccl_profile_set_links(profile, &links, ERR));
    const char *id = check_intern(tccl_profile_id(profile));
    tccl_profile_close(profile);
    CHECK_OK(tccl_profile_open(folder, id, &profile, ERR));
    const struct tccl_trained_links *read = tccl_profile_links(profile);
    const struct tccl_trained_link *link = tccl_trained_find(read, "0000:73:00.0");
    CHECK_INT(read->n, 2);
    CHECK(link && link->lanes == 8 && link->gts == 2.5 && !tccl_trained_find(read, "0000:74:00.0"));
    CHECK(tccl_profile_set_links(profile, &links, ERR) == -1); /* not open for writing */
    tccl_profile_close(profile);
    check_remove(folder);
    static const char *const odd[] = {"7",
                                      "[[1, 2.5]]",
                                      "{\"0000:15:00.0\": 7}",
                                      "{\"0000:15:00.0\": []}",
                                      "{\"0000:15:00.0\": [\"16\", 32]}",
                                      "{\"0000:15:00.0\": [4294967312, 32]}",
                                      "{\"0000:15:00.0\": [16, 1e300]}",
                                      "{\"0000:15:00.0/../../..\": [16, 32]}"};
    for (size_t i = 0; i < COUNT(odd); i++) {
        cleanup_json json_t *json = json_loads(odd[i], JSON_DECODE_ANY, NULL);
        struct tccl_trained_links found;
        CHECK(json != NULL);
        tccl_trained_from_json(json, &found);
        CHECK_INT(found.n, 0);
    }
}

/* What a node found out about its profile: of this one alone, whatever stands in the file. */
TEST(verdicts)
{
    static const char id[] = "0123456789abcdef0123456789abcdef",
                      other[] = "f123456789abcdef0123456789abcdef";
    struct tccl_verdict verdict = {.found = "drifted", .worst = 0.61, .when = 4711}, read;
    const char *folder = check_at("verdicts");
    char path[TCCL_VERDICT_PATH];
    CHECK_INT(mkdir(folder, 0755), 0);
    strcpy(verdict.profile, id);
    CHECK_INT(tccl_verdict_read(folder, "n1", id, &read), 1);
    mode_t mask = umask(077); /* as in the unit: tccld reads it all the same */
    CHECK_OK(tccl_verdict_write(folder, "n1", &verdict, ERR));
    umask(mask);
    struct stat made;
    CHECK_INT(stat(check_at("verdicts/checked"), &made), 0);
    CHECK_INT(made.st_mode & 0777, 0755);
    CHECK_INT(stat(check_at("verdicts/checked/n1.json"), &made), 0);
    CHECK_INT(made.st_mode & 0777, 0644);
    CHECK_OK(tccl_verdict_write(folder, "n1", &verdict, ERR));
    CHECK_INT(tccl_verdict_read(folder, "n1", id, &read), 0);
    CHECK_STR(read.found, "drifted");
    CHECK(read.worst == 0.61 && read.when == 4711 && tccl_verdict_refuses(&read));
    read.worst = TCCL_VERDICT_LEAST;
    CHECK(!tccl_verdict_refuses(&read));
    strcpy(read.found, "unclear");
    read.worst = 0.1;
    CHECK(!tccl_verdict_refuses(&read));
    CHECK_INT(tccl_verdict_read(folder, "n1", other, &read), 1);
    CHECK_INT(tccl_verdict_read(folder, "n2", id, &read), 1);
    tccl_verdict_path(folder, "n1", path);
    static const char *const wrong[] = {"", "{}", "[1]", "{\"format\": 1, \"profile\": 7}",
                                        "{\"format\": 2}"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        check_write_file(path, wrong[i]);
        CHECK_INT(tccl_verdict_read(folder, "n1", id, &read), 1);
    }
    cleanup_free char *large = malloc(10001);
    memset(large, ' ', 10000);
    large[10000] = '\0';
    check_write_file(path, large);
    CHECK_INT(tccl_verdict_read(folder, "n1", id, &read), 1);
    check_remove(folder);
    rmdir(folder);
}
