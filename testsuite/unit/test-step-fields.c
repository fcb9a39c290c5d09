/* The table of a step's members (client/step-fields.c): a value of each goes from Slurm's
 * environment through JOIN, PLAN, record and store to tcclacct's output, and a filter finds it
 * where the table says so. profiler/client/members.md shows the table. Usage: test-step-fields
 * [--show COLUMN]   COLUMN: prints what tcclacct shows there last, and leaves README and manual out
 */
#include <sys/types.h>

#include "acct/acct.h"
#include "base/fileio.h"
#include "client/hostlist.h"
#include "client/step-fields.h"
#include "plugin/plugin.h"
#include "stores.h"

enum { ROUNDS = 40, TEXT = 40, NODES = 5, JOB = 1000 };

static char path[64];
static struct tccl_records *records;

/* Random values */

static long long random_in(long long min, long long max)
{
    unsigned long long bits = 0;
    for (int i = 0; i < 4; i++)
        bits = bits << 16 | (unsigned long long)(rand() & 0xffff);
    return min + (long long)(bits % (unsigned long long)(max - min + 1));
}

static void random_text(char *text, long long most)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.0123456789";
    long long length = random_in(8, most < TEXT ? most : TEXT);
    for (long long i = 0; i < length; i++)
        text[i] = letters[rand() % (int)(sizeof(letters) - 1)];
    text[0] = 'x'; /* no blank, which a shell or an eye could lose */
    text[length - 1] = 'y';
    text[length] = '\0';
}

static int count_words(const struct tccl_field *field)
{
    int count = 0;
    while (field->words[count])
        count++;
    return count;
}

static void set_number(void *member, const struct tccl_field *field, long long value)
{
    uint32_t small = (uint32_t)value;
    if (field->size == sizeof(small))
        memcpy(member, &small, sizeof(small));
    else
        memcpy(member, &value, sizeof(value));
}

static void fill_member(const struct tccl_field *field, void *member)
{
    char text[TEXT + 1];
    double real = (double)random_in(1, 100000) / 64;
    switch (field->type) {
    case TCCL_FIELD_TEXT:
        random_text(member, field->max);
        break;
    case TCCL_FIELD_LONG:
        random_text(text, field->max);
        *(char **)member = strdup(text);
        break;
    case TCCL_FIELD_WORD:
        set_number(member, field, random_in(0, count_words(field) - 1));
        break;
    case TCCL_FIELD_BOOL:
        *(bool *)member = rand() % 2;
        break;
    case TCCL_FIELD_REAL:
        memcpy(member, &real, sizeof(real));
        break;
    case TCCL_FIELD_NODES:
    case TCCL_FIELD_NUMBERS:
        break; /* fill_nodes */
    default:
        set_number(member, field, random_in(field->min > 1 ? field->min : 1, field->max));
    }
}

static void fill(enum tccl_owner owner, void *object)
{
    for (int i = 0; i < tccl_n_step_fields; i++)
        if (tccl_step_fields[i].owner == owner && !tccl_step_fields[i].variable)
            fill_member(&tccl_step_fields[i], (char *)object + tccl_step_fields[i].at);
}

static void fill_nodes(struct tccl_step *step)
{
    char names[NODES][16], *list[NODES];
    int count = (int)random_in(1, NODES);
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", (int)random_in(10, 99) * 10 + i);
        list[i] = names[i];
    }
    CHECK_INT(tccl_step_set_nodes(step, (const char *const *)list, (size_t)count), 0);
    step->node = (int)random_in(0, count - 1);
    step->n_gres = (int)random_in(0, 8);
    for (int i = 0; i < step->n_gres; i++)
        step->gres[i] = (int)random_in(0, 4095);
}

/* A step whose texts of Slurm's come out of an environment. */
static void make_step(struct tccl_step *step, int job)
{
    char texts[TCCL_MOST_FIELDS][96], *env[TCCL_MOST_FIELDS + 2];
    int count = 0;
    struct step_place place;
    const struct step_items items = {.job = (uint32_t)job, .n_nodes = 1};
    for (int i = 0; i < tccl_n_step_fields; i++)
        if (tccl_step_fields[i].variable) {
            int length = snprintf(texts[i], sizeof(texts[i]), "%s=", tccl_step_fields[i].variable);
            random_text(texts[i] + length, TEXT);
            env[count++] = texts[i];
        }
    env[count++] = (char *)"SLURM_STEP_NODELIST=n1";
    env[count] = NULL;
    CHECK_INT(step_info_read(&items, env, step, &place, NULL), 0);
    for (int i = 0; i < tccl_n_step_fields; i++)
        if (tccl_step_fields[i].variable)
            CHECK_STR((char *)step + tccl_step_fields[i].at, strchr(texts[i], '=') + 1);
    fill(TCCL_OF_STEP, step);
    step->key.job = (uint32_t)job;
    fill_nodes(step);
}

/* What is expected */

static long long number_of(const struct tccl_field *field, const void *object)
{
    const char *member = (const char *)object + field->at;
    long long large;
    uint32_t small;
    if (field->type == TCCL_FIELD_BOOL)
        return *(const bool *)member;
    if (field->size == sizeof(small)) {
        memcpy(&small, member, sizeof(small));
        return small;
    }
    memcpy(&large, member, sizeof(large));
    return large;
}

static const char *text_of(const struct tccl_field *field, const void *object)
{
    const char *member = (const char *)object + field->at;
    const char *text = field->type == TCCL_FIELD_LONG   ? *(char *const *)member
                       : field->type == TCCL_FIELD_WORD ? field->words[number_of(field, object)]
                                                        : member;
    return text ? text : "";
}

static double real_of(const struct tccl_field *field, const void *object)
{
    double real;
    memcpy(&real, (const char *)object + field->at, sizeof(real));
    return real;
}

static void check_nodes(const struct tccl_step *a, const struct tccl_step *b)
{
    CHECK_INT(a->n_nodes, b->n_nodes);
    for (int i = 0; i < a->n_nodes && i < b->n_nodes; i++)
        CHECK_STR(a->nodes[i], b->nodes[i]);
}

/* Are the members equal that are used there? */
static void check_same(unsigned use, enum tccl_owner owner, const void *a, const void *b)
{
    const struct tccl_step *x = a, *y = b;
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        if (!(field->use & use) || field->owner != owner)
            continue;
        if (field->type == TCCL_FIELD_NODES)
            check_nodes(x, y);
        else if (field->type == TCCL_FIELD_NUMBERS)
            CHECK(x->n_gres == y->n_gres && memcmp(x->gres, y->gres, sizeof(x->gres)) == 0);
        else if (field->type == TCCL_FIELD_REAL)
            CHECK(real_of(field, a) == real_of(field, b));
        else if (tccl_field_is_text(field))
            CHECK_STR(text_of(field, a), text_of(field, b));
        else
            CHECK_INT(number_of(field, a), number_of(field, b));
    }
}

static void check_value(const struct tccl_field *field, const json_t *value, const void *object)
{
    if (field->type == TCCL_FIELD_NODES) {
        const struct tccl_step *step = object;
        cleanup_free char *list =
            tccl_hosts_fold((const char *const *)step->nodes, (size_t)step->n_nodes);
        CHECK_STR(json_string_value(value), list);
    } else if (field->type == TCCL_FIELD_REAL) {
        CHECK(json_real_value(value) == real_of(field, object));
    } else if (tccl_field_is_text(field)) {
        CHECK_STR(json_string_value(value), text_of(field, object));
    } else {
        CHECK(json_is_integer(value));
        CHECK_INT(json_integer_value(value), number_of(field, object));
    }
}

static void check_record(const json_t *record, const struct tccl_step *step,
                         const struct tccl_outcome *outcome)
{
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        if (field->use & TCCL_IN_RECORD && field->owner != TCCL_OF_RECORD)
            check_value(field, json_object_get(record, field->name),
                        field->owner == TCCL_OF_STEP ? (const void *)step : outcome);
    }
}

/* The way */

static json_t *sent(json_t *message)
{
    cleanup_free char *text = json_dumps(message, JSON_COMPACT);
    json_decref(message);
    return json_loads(text ? text : "", 0, NULL);
}

static void check_join(const struct tccl_step *step)
{
    cleanup_json json_t *json = sent(tccl_join_to_json(step, ERR));
    struct tccl_step *read = tccl_join_from_json(json, ERR);
    CHECK_STR(check_err.text, "");
    if (read)
        check_same(TCCL_IN_KEY | TCCL_IN_JOIN, TCCL_OF_STEP, step, read);
    tccl_step_free(read);
}

static void check_plan(const struct tccl_step *step, const struct tccl_outcome *outcome)
{
    cleared_by(tccl_outcome_clear) struct tccl_outcome read = {0};
    cleanup_json json_t *json = sent(tccl_plan_to_json(outcome, &step->key, 0, 0));
    CHECK_OK(tccl_plan_from_json(json, &step->key, 0, 0, &read, ERR));
    check_same(TCCL_IN_PLAN, TCCL_OF_OUTCOME, outcome, &read);
}

/* The only record that a filter finds; NULL if it finds none or several. */
static json_t *find(json_t *filter)
{
    cleanup_json json_t *next = NULL;
    cleanup_json json_t *page = tccl_records_query(records, filter, -1, 1 << 20, &next, ERR);
    CHECK_STR(check_err.text, "");
    json_decref(filter);
    return json_array_size(page) == 1 ? json_incref(json_array_get(page, 0)) : NULL;
}

static json_t *find_job(int job)
{
    return find(json_pack("{s:[{s:i}]}", "jobs", "job", job));
}

static char *shown(const char *column, const json_t *record)
{
    const struct acct_clock clock = {.now = 1764000000};
    const struct acct_field *field = acct_field_find(column);
    CHECK(field && strcmp(field->name, column) == 0);
    return field ? acct_field_text(field, record, &clock) : NULL;
}

/* Numbers in other forms (times) are looked at in test-acct. */
static void check_columns(const json_t *record)
{
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        const json_t *value = json_object_get(record, field->name);
        char expected[32];
        if (!field->column || !field->use) /* the user's name: of uid, where it is shown */
            continue;
        cleanup_free char *text = shown(field->column, record);
        CHECK_INT(acct_field_find(field->column)->width, field->width);
        snprintf(expected, sizeof(expected), "%lld", (long long)json_integer_value(value));
        if (tccl_field_is_text(field))
            CHECK_STR(text, json_string_value(value));
        else if (field->type == TCCL_FIELD_INT || field->type == TCCL_FIELD_COUNT)
            CHECK_STR(text, expected);
        else if (field->use)
            CHECK(text && *text);
        else
            CHECK_STR(text, ""); /* the store sets it where something is wrong */
    }
}

static json_t *confirmation(const struct tccl_step *step, const struct tccl_outcome *outcome)
{
    json_t *json = tccl_key_to_json(&step->key);
    json_object_set_new(json, "start", json_integer(outcome->start));
    json_object_set_new(json, "built", json_string("unknown"));
    json_object_set_new(json, "built_reason", json_string("nobody can see it"));
    json_object_set_new(json, "nccl", json_string("2.29.7"));
    json_object_set_new(json, "nccl_gbps", json_real(7.25));
    json_object_set_new(json, "achieved_gbps", json_real(11.5));
    json_object_set_new(json, "achieved_median", json_real(10.5));
    json_object_set_new(json, "achieved_from", json_integer(1 << 26));
    json_object_set_new(json, "samples", json_integer(32));
    json_object_set_new(json, "sent_bytes", json_integer(INT64_MAX));
    json_object_set_new(json, "captured", json_integer(UINT32_MAX));
    json_object_set_new(json, "later", json_integer(3));
    json_object_set_new(json, "sent_share", json_real(0.5));
    return json;
}

static void check_way(int job, const char *show)
{
    cleared_by(tccl_step_clear) struct tccl_step step = {0};
    cleared_by(tccl_outcome_clear) struct tccl_outcome outcome = {.first = 0};
    make_step(&step, job);
    fill(TCCL_OF_OUTCOME, &outcome);
    outcome.cause = (enum tccl_reason)random_in(TCCL_REASON_HET_STEP, TCCL_REASON_OTHER);
    outcome.state = TCCL_STATE_PLANNED; /* of others nothing is built */
    check_join(&step);
    check_plan(&step, &outcome);
    cleanup_json json_t *record = sent(tccl_record_to_json(&step, &outcome));
    cleanup_json json_t *normal = tccl_record_normal(record, ERR);
    CHECK_STR(check_err.text, "");
    check_record(normal, &step, &outcome);
    CHECK_INT(tccl_records_put(records, record, ERR), 0);
    cleanup_json json_t *built = confirmation(&step, &outcome);
    CHECK_INT(tccl_records_put(records, built, ERR), 0);
    cleanup_json json_t *stored = find_job(job);
    check_record(stored, &step, &outcome);
    CHECK_STR(json_string_value(json_object_get(stored, "built_reason")), "nobody can see it");
    CHECK_STR(json_string_value(json_object_get(stored, "nccl")), "2.29.7");
    json_t *value;
    const char *name;
    json_object_foreach(built, name, value) CHECK(json_equal(json_object_get(stored, name), value));
    CHECK(json_real_value(json_object_get(stored, "ratio")) ==
          outcome.gbps / outcome.baseline_gbps);
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        const char *value = json_string_value(json_object_get(stored, field->name));
        if (!field->filter)
            continue;
        cleanup_json json_t *found = find(json_pack("{s:[s, s]}", field->filter, "other", value));
        CHECK(found && json_equal(found, stored));
        cleanup_json json_t *none = find(json_pack("{s:[s]}", field->filter, "other"));
        CHECK(none == NULL);
    }
    check_columns(stored);
    if (show) {
        cleanup_free char *text = shown(show, stored);
        printf("%s=%s\n", show, text ? text : "");
    }
}

/* What is "" or 0 is left out of messages, and comes back as that. */
static void test_empty(void)
{
    cleared_by(tccl_step_clear) struct tccl_step step = {.key.job = 7, .timeout_ms = 1};
    const struct tccl_outcome outcome = {.state = TCCL_STATE_LEFT};
    const char *node = "n1";
    CHECK_INT(tccl_step_set_nodes(&step, &node, 1), 0);
    check_join(&step);
    check_plan(&step, &outcome);
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        cleanup_json json_t *json = tccl_join_to_json(&step, NULL);
        bool there = json_object_get(json, field->name);
        if (field->owner == TCCL_OF_STEP && field->use & TCCL_IN_JOIN)
            CHECK(there == ((field->use & TCCL_MUST_JOIN) != 0));
    }
}

/* The table in the README */

static const char *presence(unsigned use, unsigned in, unsigned must)
{
    return !(use & in) ? "" : use & must ? "must" : "may";
}

/* All but its last column, what the member means. */
static void write_row(const struct tccl_field *field, FILE *out)
{
    static const char *const types[] = {
        [TCCL_FIELD_TEXT] = "text",      [TCCL_FIELD_WORD] = "word",
        [TCCL_FIELD_NODES] = "hostlist", [TCCL_FIELD_NUMBERS] = "numbers",
        [TCCL_FIELD_LONG] = "text",      [TCCL_FIELD_BOOL] = "true or false",
        [TCCL_FIELD_INT] = "number",     [TCCL_FIELD_COUNT] = "count",
        [TCCL_FIELD_TIME] = "unix time", [TCCL_FIELD_MICROSECONDS] = "µs",
        [TCCL_FIELD_REAL] = "real",
    };
    fprintf(out, "| `%s` | %s | ", field->name, types[field->type]);
    if (field->type == TCCL_FIELD_WORD)
        for (int i = !*field->words[0]; field->words[i]; i++)
            fprintf(out, "%s`%s`", i > !*field->words[0] ? " " : "", field->words[i]);
    else if (field->type == TCCL_FIELD_TEXT || field->type == TCCL_FIELD_LONG)
        fprintf(out, "%lld bytes", field->max);
    else if (field->type == TCCL_FIELD_NODES)
        fprintf(out, "1 to %d, %lld bytes", TCCL_MAX_NODES, field->max);
    else if (field->type == TCCL_FIELD_NUMBERS)
        fprintf(out, "at most %lld", field->max);
    else if (field->type != TCCL_FIELD_BOOL)
        fprintf(out, "%lld to %lld", field->min, field->max);
    fprintf(out, " | %s | %s | %s%s | %s | %s |",
            field->use & TCCL_IN_KEY ? "in `key`"
                                     : presence(field->use, TCCL_IN_JOIN, TCCL_MUST_JOIN),
            presence(field->use, TCCL_IN_PLAN, TCCL_MUST_PLAN),
            presence(field->use, TCCL_IN_RECORD, TCCL_MUST_RECORD),
            field->use & TCCL_IN_CONFIRMATION
                ? field->use & TCCL_IN_RECORD ? ", confirmed" : "confirmed"
                : "",
            field->filter ? field->filter : "", field->column ? field->column : "");
}

static void test_readme(void)
{
    cleanup_free char *text = NULL;
    size_t size;
    CHECK_INT(tccl_read_file(check_printf("%s/profiler/client/members.md", getenv("TCCL_SOURCES")),
                             1 << 20, &text, &size, ERR),
              0);
    const char *at = text ? strstr(text, "| member | type | bounds |") : NULL;
    CHECK(at != NULL);
    for (int i = -2; at && i < tccl_n_step_fields; i++) {
        cleanup_free char *row = NULL;
        FILE *out = open_memstream(&row, &size);
        if (i >= 0)
            write_row(&tccl_step_fields[i], out);
        fclose(out);
        CHECK_NO(strncmp(at, row, strlen(row)) != 0, "members.md has %.*s\nthe table: %s\n",
                 (int)strcspn(at, "\n"), at, row);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    CHECK(at && *at != '|');
}

/* tcclacct.1 names all members of a record that --json shows. */
static void test_manual(void)
{
    char name[64];
    cleanup_free char *text = NULL;
    size_t size;
    CHECK_INT(tccl_read_file(check_printf("%s/spank/acct/tcclacct.1", getenv("TCCL_SOURCES")),
                             1 << 20, &text, &size, ERR),
              0);
    char *list = text ? strstr(text, "Their members:") : NULL,
         *end = list ? strstr(list, "\n.") : NULL;
    CHECK(list && end);
    if (!list || !end)
        return;
    *end = '\0';
    for (char *at = list; *at; at++)
        *at = strchr(" \n,.:;()", *at) ? ' ' : *at;
    for (int i = 0; i < tccl_n_step_fields; i++) {
        const struct tccl_field *field = &tccl_step_fields[i];
        bool shown =
            field->use & (TCCL_IN_RECORD | TCCL_IN_CONFIRMATION) || field->owner == TCCL_OF_RECORD;
        snprintf(name, sizeof(name), " %.60s ", field->name);
        CHECK_NO(shown && !strstr(list, name), "tcclacct.1 does not name the member %s\n",
                 field->name);
    }
}

/* What tccl.conf says of keys that unit/one-line has planted. */
static void show_keys(void)
{
    static const char *const texts[] = {"[tccl]\nSpare=10\n", "[policy]\nExtra=3x\n",
                                        "[tccl]\nNo=1\n", "[policy]\nNo=1\n"};
    const char *file = check_at("tccl.conf");
    struct tccl_conf conf;
    for (size_t i = 0; i < COUNT(texts); i++) {
        CHECK_INT(tccl_write_file(file, 0600, texts[i], strlen(texts[i]), ERR), 0);
        CHECK_INT(tccl_conf_read(file, "n1", &conf, ERR), -1);
        printf("%s\n", strchr(check_err.text, ' ') + 1);
    }
    CHECK_OK(tccl_write_file(file, 0600, "[tccl]\nSpare=9\n[policy]\nExtra=2x\n", 33, ERR));
    CHECK_OK(tccl_conf_read(file, "n1", &conf, ERR));
    tccl_conf_clear(&conf);
}

TEST(fields)
{
    const char *show = check_args[1] && strcmp(check_args[1], "--show") == 0 ? check_args[2] : NULL;
    snprintf(path, sizeof(path), "%s", check_at("records.db"));
    records = open_store_at(path);
    for (int i = 0; i < ROUNDS; i++)
        check_way(JOB + i, i == ROUNDS - 1 ? show : NULL);
    tccl_records_close(records);
    test_empty();
    if (show) {
        show_keys();
    } else {
        test_readme();
        test_manual();
    }
}
