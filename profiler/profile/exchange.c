/* A whole profile as one JSON document: writing it, and reading its text. */
#include "profile/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "profile/cache-internal.h"
#include "profile/exchange-text.h"

/* Writing. */

/* The members that are single values. */
static int write_head(struct tccl_profile *profile, FILE *out, struct tccl_error *err)
{
    const char *folder = tccl_profile_folder(profile);
    char path[PATH_MAX];

    tccl_profile_path(folder, ABOUT, path);
    cleanup_json json_t *about = tccl_read_json(path, PROFILE_BYTES, err);
    cleanup_json json_t *machine = tccl_machine_to_json(tccl_profile_machine(profile));
    cleanup_json json_t *model = NULL;
    if (!about || !machine)
        return about ? tccl_fail(err, "out of memory") : -1;
    fputs("{\"format\":\"tccl-profile\",\"version\":1,\n\"profile\":", out);
    if (tccl_exact_dump(about, out) < 0 || fputs(",\n\"machine\":", out) < 0 ||
        tccl_exact_dump(machine, out) < 0)
        return tccl_fail(err, "out of memory");
    if (!tccl_profile_model(profile, err))
        return err->text[0] ? -1 : 0;
    tccl_profile_path(folder, MODEL, path);
    model = tccl_read_json(path, MODEL_BYTES, err);
    if (!model)
        return -1;
    fputs(",\n\"model\":", out);
    return tccl_exact_dump(model, out) < 0 ? tccl_fail(err, "out of memory") : 0;
}

static int pass(void *context, const struct tccl_set *set, const struct tccl_measurement *value)
{
    (void)context, (void)set, (void)value;
    return 0;
}

/* The lines without their checksums. They were read before: all but the last are good. */
static int write_lines(const char *text, FILE *out)
{
    const char *comma = "\n";

    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        long length = (long)(end - text) - TCCL_LINE_SUM;
        struct tccl_span span = {text, length > 0 ? (size_t)length : 0};
        cleanup_json json_t *json = tccl_span_parse(span, NULL);
        fputs(comma, out);
        if (!json || tccl_exact_dump(json, out) < 0)
            return -1;
        comma = ",\n";
    }
    return 0;
}

static int write_sets(struct tccl_profile *profile, FILE *out, int *dropped, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    char path[PATH_MAX];
    size_t size;

    if (tccl_profile_sets(profile, pass, NULL, dropped, err) < 0)
        return -1;
    fputs(",\n\"sets\":[", out);
    tccl_profile_path(tccl_profile_folder(profile), SETS, path);
    errno = 0;
    struct tccl_error why = {""};
    if (tccl_read_file(path, TCCL_EXCHANGE_BYTES, &text, &size, &why) < 0)
        return errno == ENOENT ? 0 : tccl_fail(err, "%s", why.text);
    return write_lines(text, out) == 0 ? 0 : tccl_fail(err, "%s: changed meanwhile", path);
}

static int write_tables(struct tccl_profile *profile, FILE *out, struct tccl_error *err)
{
    cleanup_free uint32_t *masks = NULL;
    int count = tccl_profile_tables(profile, &masks, err);

    fputs("\n],\n\"tables\":[", out);
    for (int i = 0; i < count; i++) {
        const struct tccl_table *table = tccl_profile_table(profile, masks[i], err);
        if (!table)
            return -1;
        cleanup_json json_t *json = tccl_table_to_json(table, tccl_profile_machine(profile));
        fputs(i > 0 ? ",\n" : "\n", out);
        if (!json || tccl_exact_dump(json, out) < 0)
            return tccl_fail(err, "out of memory");
    }
    fputs("\n]}\n", out);
    return count < 0 ? -1 : 0;
}

int tccl_exchange_write(struct tccl_profile *profile, FILE *out, int *dropped,
                        struct tccl_error *err)
{
    struct tccl_error ignored = {""};

    if (!err)
        err = &ignored;
    if (write_head(profile, out, err) < 0 || write_sets(profile, out, dropped, err) < 0 ||
        write_tables(profile, out, err) < 0)
        return -1;
    return fflush(out) == 0 && !ferror(out) ? 0 : tccl_fail(err, "export: %s", strerror(errno));
}

/* Unpacking. */

struct unpacking {
    const char *folder;
    struct tccl_provenance from;
    struct tccl_machine machine;
    FILE *log;
    json_int_t last; /* when the last set was measured */
    struct tccl_exchanged *made;
};

static int write_member(const struct unpacking *work, enum tccl_profile_file file,
                        const json_t *json, struct tccl_error *err)
{
    char path[PATH_MAX];

    tccl_profile_path(work->folder, file, path);
    return tccl_write_json(path, 0644, json, err);
}

static int unpack_about(struct unpacking *work, const struct tccl_document *document,
                        struct tccl_error *err)
{
    cleanup_json json_t *json = tccl_span_parse(document->profile, err);

    if (!json)
        return tccl_fail_in(err, "\"profile\"");
    if (write_member(work, ABOUT, json, err) < 0)
        return -1;
    return tccl_provenance_read(work->folder, &work->from, err);
}

static int unpack_machine(struct unpacking *work, const struct tccl_document *document,
                          struct tccl_error *err)
{
    char id[TCCL_HASH_HEX];
    cleanup_json json_t *json = tccl_span_parse(document->machine, err);

    if (!json || tccl_machine_from_json(json, &work->machine, err) < 0)
        return tccl_fail_in(err, "\"machine\"");
    tccl_machine_id(&work->machine, id);
    if (strcmp(id, work->from.machine) != 0)
        return tccl_fail(err, "\"profile\" is of machine %s, but \"machine\" is %s",
                         work->from.machine, id);
    cleanup_json json_t *ours = tccl_machine_to_json(&work->machine);
    return ours ? write_member(work, MACHINE, ours, err) : tccl_fail(err, "out of memory");
}

static int unpack_model(struct unpacking *work, const struct tccl_document *document,
                        struct tccl_error *err)
{
    if (!work->from.model[0])
        return document->model.size == 0
                   ? 0
                   : tccl_fail(err, "has a \"model\", but comes from \"%s\"", work->from.source);
    if (document->model.size == 0)
        return tccl_fail(err, "\"model\" is missing");
    cleanup_json json_t *json = tccl_span_parse(document->model, err);
    return json ? write_member(work, MODEL, json, err) : tccl_fail_in(err, "\"model\"");
}

/* One line of the log. What is in it is checked when the log is read. */
static int unpack_set(void *context, long index, struct tccl_span span, struct tccl_error *err)
{
    struct unpacking *work = context;
    cleanup_json json_t *json = tccl_span_parse(span, err);
    const json_t *when = json_object_get(json, "time");
    const char *source = json_string_value(json_object_get(json, "source"));

    (void)index;
    if (!json)
        return -1;
    if (!source || strcmp(source, work->from.source) != 0)
        return tccl_fail(err, "comes from \"%.40s\", the profile from \"%s\"", source ? source : "",
                         work->from.source);
    if (!json_is_integer(when) || json_integer_value(when) < 0)
        return tccl_fail(err, "\"time\" is missing or no time");
    if (json_integer_value(when) > work->last)
        work->last = json_integer_value(when);
    if (tccl_exact_line(json, work->log) < 0)
        return tccl_fail(err, "can't be written: %s", strerror(errno));
    return 0;
}

struct checking {
    const struct tccl_machine *machine;
    struct tccl_error why; /* what is wrong with the set at which reading stopped */
};

static int check_set(void *context, const struct tccl_set *set,
                     const struct tccl_measurement *value)
{
    struct checking *checking = context;

    (void)value;
    for (int i = 0; i < set->count; i++)
        if (tccl_machine_allows(checking->machine, set->transfers[i], &checking->why) < 0)
            return 1;
    if (set->count == 0)
        tccl_fail(&checking->why, "the set is empty");
    return set->count == 0;
}

/* Reads the log that was made, as any other; what it finds is told by the place in the document. */
static int check_sets(struct unpacking *work, const char *path, struct tccl_error *err)
{
    struct checking checking = {.machine = &work->machine};
    struct tccl_error why = {""};

    work->made->sets = tccl_setlog_read(path, check_set, &checking, NULL, &why);
    if (work->made->sets >= 0)
        return 0;
    size_t prefix = strlen(path) + 1;
    char *text = why.text;
    long line = strlen(text) > prefix ? strtol(text + prefix, &text, 10) : 0;
    if (line <= 0)
        return tccl_fail(err, "%s", why.text);
    text[strcspn(text, ";")] = '\0';
    return tccl_fail(err, "\"sets\"[%ld]%s%s", line - 1, checking.why.text[0] ? ": " : text,
                     checking.why.text);
}

/* The log is as old as what was measured last, see tccl_profile_time. */
static void set_age(FILE *log, json_int_t last)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)last}};

    if (last > 0)
        futimens(fileno(log), times);
}

static int unpack_sets(struct unpacking *work, const struct tccl_document *document,
                       struct tccl_error *err)
{
    char path[PATH_MAX];

    tccl_profile_path(work->folder, SETS, path);
    cleanup_file FILE *log = fopen(path, "wxe");
    if (!log)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    work->log = log;
    if (tccl_span_each(document->sets, unpack_set, work, err) < 0)
        return tccl_fail_in(err, "\"sets\"");
    if (fflush(log) != 0 || fsync(fileno(log)) < 0 || fchmod(fileno(log), 0644) < 0)
        return tccl_fail(err, "%s: %s", path, strerror(errno));
    set_age(log, work->last);
    return check_sets(work, path, err);
}

static int unpack_table(void *context, long index, struct tccl_span span, struct tccl_error *err)
{
    struct unpacking *work = context;
    struct tccl_table *table = NULL;
    char path[PATH_MAX];

    (void)index;
    cleanup_json json_t *json = tccl_span_parse(span, err);
    if (!json || tccl_table_from_json(json, &work->machine, &table, err) < 0)
        return -1;
    tccl_table_path(work->folder, table->gpus, path);
    int rc = 0;
    if (strcmp(table->source, work->from.source) != 0)
        rc = tccl_fail(err, "comes from \"%s\", the profile from \"%s\"", table->source,
                       work->from.source);
    else if (access(path, F_OK) == 0)
        rc = tccl_fail(err, "there is another one of the same GPUs");
    else
        rc = tccl_table_write(table, path, err);
    tccl_table_free(table);
    work->made->tables++;
    return rc;
}

static int unpack_tables(struct unpacking *work, const struct tccl_document *document,
                         struct tccl_error *err)
{
    char path[PATH_MAX];

    tccl_profile_path(work->folder, CHAINS, path);
    if (tccl_make_folder(path, 0755, err) < 0)
        return -1;
    if (tccl_span_each(document->tables, unpack_table, work, err) < 0)
        return tccl_fail_in(err, "\"tables\"");
    return 0;
}

/* The whole as any other program would open it. */
static int check_whole(const struct unpacking *work, struct tccl_error *err)
{
    struct tccl_profile *profile;

    if (tccl_profile_open_folder(work->folder, &profile, err) < 0)
        return -1;
    tccl_profile_model(profile, err);
    memcpy(work->made->id, work->from.machine, sizeof(work->made->id));
    memcpy(work->made->source, work->from.source, sizeof(work->made->source));
    tccl_profile_close(profile);
    return err->text[0] ? -1 : 0;
}

/* The folder is of no interest to those who read the message. */
static void forget_folder(const char *folder, struct tccl_error *err)
{
    size_t length = strlen(folder) + 1;

    for (char *at; (at = strstr(err->text, folder)) && at[length - 1] == '/';)
        memmove(at, at + length, strlen(at + length) + 1);
}

int tccl_exchange_unpack(const char *text, size_t size, const char *folder,
                         struct tccl_exchanged *made, struct tccl_error *err)
{
    struct tccl_document document;
    struct tccl_error why = {""};
    struct unpacking work = {.folder = folder, .made = made};

    *made = (struct tccl_exchanged){.sets = 0};
    if (tccl_document_find(text, size, &document, &why) == 0 &&
        unpack_about(&work, &document, &why) == 0 && unpack_machine(&work, &document, &why) == 0 &&
        unpack_model(&work, &document, &why) == 0 && unpack_sets(&work, &document, &why) == 0 &&
        unpack_tables(&work, &document, &why) == 0 && check_whole(&work, &why) == 0)
        return 0;
    forget_folder(folder, &why);
    return tccl_fail(err, "%s", why.text);
}
