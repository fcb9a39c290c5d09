/* The text of an exported profile. */
#include "profile/exchange-text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/hash.h"

/* What is left of the text. */
struct scan {
    const char *at, *end;
};

static char next(struct scan *scan)
{
    while (scan->at < scan->end && strchr(" \t\r\n", *scan->at) && *scan->at)
        scan->at++;
    return scan->at < scan->end ? *scan->at : '\0';
}

/* Moves behind a character, if it comes next. */
static bool take(struct scan *scan, char c)
{
    if (next(scan) != c)
        return false;
    scan->at++;
    return true;
}

/* Moves behind a string; at its end quote, or at the end of the text. */
static void skip_string(struct scan *scan)
{
    for (scan->at++; scan->at < scan->end && *scan->at != '"'; scan->at++)
        if (*scan->at == '\\' && scan->at + 1 < scan->end)
            scan->at++;
    if (scan->at < scan->end)
        scan->at++;
}

/* Moves behind a value: to the comma or bracket that ends it. Whether it is good JSON is seen when
 * it is parsed. */
static struct tccl_span skip_value(struct scan *scan)
{
    long depth = 0;
    char c = next(scan);
    const char *begin = scan->at;

    while (c && !(depth == 0 && strchr(",]}", c))) {
        if (c == '"') {
            skip_string(scan);
        } else {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
            scan->at++;
        }
        c = next(scan);
    }
    return (struct tccl_span){begin, (size_t)(scan->at - begin)};
}

static int fail_at(const char *text, const struct scan *scan, const char *what,
                   struct tccl_error *err)
{
    return tccl_fail(err, "not an exported profile: %s at byte %zu", what,
                     (size_t)(scan->at - text));
}

/* The member of that name, which stands in quotes. NULL: there is none. */
static struct tccl_span *member(struct tccl_document *document, struct tccl_span name)
{
    const struct {
        const char *name;
        struct tccl_span *span;
    } members[] = {{"\"format\"", &document->format},   {"\"version\"", &document->version},
                   {"\"profile\"", &document->profile}, {"\"machine\"", &document->machine},
                   {"\"model\"", &document->model},     {"\"sets\"", &document->sets},
                   {"\"tables\"", &document->tables}};

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        if (strlen(members[i].name) == name.size &&
            memcmp(members[i].name, name.at, name.size) == 0)
            return members[i].span;
    return NULL;
}

static int find_member(struct scan *scan, struct tccl_document *document, struct tccl_error *err)
{
    if (next(scan) != '"')
        return tccl_fail(err, "not an exported profile: a member's name was expected");
    struct tccl_span name = {scan->at, 0};
    skip_string(scan);
    name.size = (size_t)(scan->at - name.at);
    int length = name.size < 40 ? (int)name.size : 40;
    struct tccl_span *span = member(document, name);
    if (!span)
        return tccl_fail(err, "unknown member %.*s", length, name.at);
    if (span->size > 0)
        return tccl_fail(err, "%.*s stands there twice", length, name.at);
    if (!take(scan, ':'))
        return tccl_fail(err, "%.*s has no value", length, name.at);
    *span = skip_value(scan);
    return span->size > 0 ? 0 : tccl_fail(err, "%.*s has no value", length, name.at);
}

static bool is(struct tccl_span span, const char *text)
{
    while (span.size > 0 && strchr(" \t\r\n", span.at[span.size - 1]))
        span.size--;
    return span.size == strlen(text) && memcmp(span.at, text, span.size) == 0;
}

static int check_members(struct tccl_document *document, struct tccl_error *err)
{
    if (!is(document->format, "\"tccl-profile\""))
        return tccl_fail(err, "not an exported profile: \"format\" is not \"tccl-profile\"");
    if (!is(document->version, "1"))
        return tccl_fail(err, "its version is %.*s, this program reads version 1",
                         (int)(document->version.size < 20 ? document->version.size : 20),
                         document->version.size ? document->version.at : "");
    if (is(document->model, "null"))
        document->model = (struct tccl_span){NULL, 0};
    if (document->profile.size == 0 || document->machine.size == 0)
        return tccl_fail(err, "\"profile\" or \"machine\" is missing");
    if (document->sets.size == 0 || document->tables.size == 0)
        return tccl_fail(err, "\"sets\" or \"tables\" is missing");
    return 0;
}

int tccl_document_find(const char *text, size_t size, struct tccl_document *document,
                       struct tccl_error *err)
{
    struct scan scan = {text, text + size};

    *document = (struct tccl_document){.format = {NULL, 0}};
    if (!take(&scan, '{'))
        return fail_at(text, &scan, "no object", err);
    bool more = next(&scan) != '}';
    while (more) {
        if (find_member(&scan, document, err) < 0)
            return -1;
        more = take(&scan, ',');
    }
    if (!take(&scan, '}'))
        return fail_at(text, &scan, "truncated, or not JSON", err);
    if (next(&scan) || scan.at < scan.end)
        return fail_at(text, &scan, "something stands behind it", err);
    return check_members(document, err);
}

json_t *tccl_span_parse(struct tccl_span span, struct tccl_error *err)
{
    json_error_t why;
    json_t *json = json_loadb(span.at, span.size, JSON_REJECT_DUPLICATES, &why);

    if (!json)
        tccl_fail(err, "not JSON: %s", why.text);
    return json;
}

static int one(long index, struct tccl_span entry,
               int (*each)(void *, long, struct tccl_span, struct tccl_error *), void *context,
               struct tccl_error *err)
{
    struct tccl_error why = {""};

    if (each(context, index, entry, &why) < 0)
        return tccl_fail(err, "[%ld]: %s", index, why.text);
    return 0;
}

long tccl_span_each(struct tccl_span span,
                    int (*each)(void *context, long index, struct tccl_span entry,
                                struct tccl_error *err),
                    void *context, struct tccl_error *err)
{
    struct scan scan = {span.at, span.at + span.size};
    long count = 0;

    if (!take(&scan, '['))
        return tccl_fail(err, "is not a list");
    if (take(&scan, ']'))
        return next(&scan) ? tccl_fail(err, "is not a list") : 0;
    do {
        if (one(count, skip_value(&scan), each, context, err) < 0)
            return -1;
        count++;
    } while (take(&scan, ','));
    if (!take(&scan, ']') || next(&scan))
        return tccl_fail(err, "[%ld]: not JSON", count);
    return count;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* The digits that the numbers in a value need. */
static int digits_in(const json_t *json)
{
    int digits = 12;
    const char *name;
    json_t *value;
    size_t i;

    if (json_is_real(json))
        return tccl_digits(json_real_value(json));
    json_object_foreach((json_t *)json, name, value) digits = larger(digits, digits_in(value));
    json_array_foreach(json, i, value) digits = larger(digits, digits_in(value));
    return digits;
}

static char *exact_text(const json_t *json)
{
    return json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(digits_in(json)));
}

int tccl_exact_dump(const json_t *json, FILE *out)
{
    cleanup_free char *text = exact_text(json);

    return text && fputs(text, out) >= 0 ? 0 : -1;
}

int tccl_exact_line(const json_t *json, FILE *out)
{
    cleanup_free char *text = exact_text(json);

    return text && fprintf(out, "%s %016" PRIx64 "\n", text, tccl_hash64(text, strlen(text))) > 0
               ? 0
               : -1;
}
