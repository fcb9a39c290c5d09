#include "base/json.h"

#include <string.h>

/* A place in a text that is being checked. */
struct scan {
    const char *at, *end;
    int depth;
    struct shim_why *why;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads the four digits of \uXXXX. Returns the number, or -1. */
static long read_hex4(const char *at, const char *end)
{
    long number = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        number = number << 4 | digit;
    }
    return number;
}

/* Writes a character in UTF-8. Returns how many bytes. */
static int put_utf8(long c, char bytes[static 4])
{
    if (c < 0x80) {
        bytes[0] = (char)c;
        return 1;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    for (int i = more; i > 0; i--, c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(lead[more] | c);
    return more + 1;
}

/* \uXXXX, with its second half where there is one; at is behind the u. Returns where it ends, or
 * NULL. */
static const char *read_unicode(const char *at, const char *end, char bytes[static 4], int *n)
{
    long c = read_hex4(at, end);
    if (c <= 0 || (c >= 0xdc00 && c < 0xe000)) /* a zero byte would end a text early */
        return NULL;
    at += 4;
    if (c >= 0xd800 && c < 0xdc00) {
        if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
            return NULL;
        long low = read_hex4(at + 2, end);
        if (low < 0xdc00 || low >= 0xe000)
            return NULL;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    *n = put_utf8(c, bytes);
    return at;
}

/* One character of a string, escaped or not. Returns where it ends, or NULL: wrong. */
static const char *read_character(const char *at, const char *end, char bytes[static 4], int *n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if ((unsigned char)*at < 0x20)
        return NULL;
    *n = 1;
    *bytes = *at;
    if (*at != '\\')
        return at + 1;
    if (++at >= end)
        return NULL;
    if (*at == 'u')
        return read_unicode(at + 1, end, bytes, n);
    const char *escape = memchr(from, *at, sizeof(from) - 1);
    if (!escape)
        return NULL;
    *bytes = to[escape - from];
    return at + 1;
}

/* The end of a string that begins at at, behind its quote; NULL: wrong. hash may be NULL. */
static const char *check_string(const char *at, const char *end, uint64_t *hash)
{
    char bytes[4];
    int n;
    if (at >= end || *at != '"')
        return NULL;
    at++;
    while (at < end && *at != '"') {
        at = read_character(at, end, bytes, &n);
        if (!at)
            return NULL;
        if (hash)
            *hash = shim_hash(*hash, bytes, (size_t)n);
    }
    return at < end ? at + 1 : NULL;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

static const char *check_number(const char *at, const char *end)
{
    if (at < end && *at == '-')
        at++;
    const char *digits = at;
    at = skip_digits(at, end);
    if (at == digits || (*digits == '0' && at - digits > 1))
        return NULL;
    if (at < end && *at == '.') {
        digits = ++at;
        at = skip_digits(at, end);
        if (at == digits)
            return NULL;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        digits = at;
        at = skip_digits(at, end);
        if (at == digits)
            return NULL;
    }
    return at;
}

static const char *check_word(const char *at, const char *end)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(end - at) >= length && memcmp(at, words[i], length) == 0)
            return at + length;
    }
    return NULL;
}

static int check_value(struct scan *scan);

static int wrong(struct scan *scan, const char *what)
{
    return shim_fail(scan->why, "not JSON: %s", what);
}

static bool take(struct scan *scan, char c)
{
    scan->at = skip_space(scan->at, scan->end);
    if (scan->at >= scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

static int check_list(struct scan *scan)
{
    if (take(scan, ']'))
        return 0;
    do {
        if (check_value(scan) != 0)
            return -1;
    } while (take(scan, ','));
    return take(scan, ']') ? 0 : wrong(scan, "a list without its end");
}

/* Members are told apart by the hashes of their names. */
static int check_name(struct scan *scan, uint64_t *hashes, int n)
{
    if (n == SHIM_JSON_MEMBERS)
        return wrong(scan, "an object with too many members");
    scan->at = skip_space(scan->at, scan->end);
    hashes[n] = SHIM_HASH_START;
    const char *end = check_string(scan->at, scan->end, &hashes[n]);
    if (!end)
        return wrong(scan, "an object without a member's name");
    scan->at = end;
    for (int i = 0; i < n; i++)
        if (hashes[i] == hashes[n])
            return wrong(scan, "a member is there twice");
    return take(scan, ':') ? 0 : wrong(scan, "a member without a value");
}

static int check_object(struct scan *scan)
{
    uint64_t hashes[SHIM_JSON_MEMBERS];
    int n = 0;
    if (take(scan, '}'))
        return 0;
    do {
        if (check_name(scan, hashes, n) != 0 || check_value(scan) != 0)
            return -1;
        n++;
    } while (take(scan, ','));
    return take(scan, '}') ? 0 : wrong(scan, "an object without its end");
}

static int check_nested(struct scan *scan, char open)
{
    if (scan->depth == SHIM_JSON_DEPTH)
        return wrong(scan, "too deep");
    scan->at++;
    scan->depth++;
    int failed = open == '{' ? check_object(scan) : check_list(scan);
    scan->depth--;
    return failed;
}

static int check_value(struct scan *scan)
{
    scan->at = skip_space(scan->at, scan->end);
    char c = scan->at < scan->end ? *scan->at : '\0';
    if (c == '{' || c == '[')
        return check_nested(scan, c);
    const char *end = c == '"'                  ? check_string(scan->at, scan->end, NULL)
                      : c == '-' || is_digit(c) ? check_number(scan->at, scan->end)
                                                : check_word(scan->at, scan->end);
    if (!end)
        return wrong(scan, scan->at == scan->end ? "a value is missing" : "a wrong value");
    scan->at = end;
    return 0;
}

int shim_json_parse(const char *text, size_t size, struct shim_json *value, struct shim_why *why)
{
    struct scan scan = {.at = text, .end = text + size, .why = why};
    if (size > SHIM_JSON_SIZE)
        return wrong(&scan, "too long");
    scan.at = skip_space(scan.at, scan.end);
    const char *start = scan.at;
    if (check_value(&scan) != 0)
        return -1;
    *value = (struct shim_json){start, (size_t)(scan.at - start)};
    if (skip_space(scan.at, scan.end) != scan.end)
        return wrong(&scan, "something behind its end");
    return 0;
}

/* From here on the text has been checked. */

static const char *end_of(struct shim_json value)
{
    return value.text + value.size;
}

static bool begins(struct shim_json value, char c)
{
    return value.size > 0 && *value.text == c;
}

bool shim_json_is_object(struct shim_json value)
{
    return begins(value, '{');
}

bool shim_json_is_list(struct shim_json value)
{
    return begins(value, '[');
}

/* The value that begins at at, which is within outer. */
static struct shim_json value_at(const char *at, struct shim_json outer)
{
    const char *end = end_of(outer), *start = at = skip_space(at, end);
    int depth = 0;
    do {
        if (*at == '"') {
            at = check_string(at, end, NULL);
            if (!at)
                return (struct shim_json){0};
            continue;
        }
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        at++;
        /* a number or a word ends before what can't be part of it */
    } while (at < end && (depth > 0 || !(is_space(*at) || strchr(",:]}", *at))));
    return (struct shim_json){start, (size_t)(at - start)};
}

struct shim_json shim_json_member(struct shim_json object, const char *name)
{
    size_t length = strlen(name);
    if (!shim_json_is_object(object))
        return (struct shim_json){0};
    const char *at = skip_space(object.text + 1, end_of(object));
    while (*at == '"') {
        struct shim_json key = value_at(at, object);
        at = skip_space(end_of(key), end_of(object)) + 1; /* behind ':' */
        struct shim_json value = value_at(at, object);
        if (key.size == length + 2 && memcmp(key.text + 1, name, length) == 0)
            return value;
        at = skip_space(end_of(value), end_of(object)) + 1; /* behind ',' or '}' */
        if (at >= end_of(object))
            break;
        at = skip_space(at, end_of(object));
    }
    return (struct shim_json){0};
}

struct shim_json shim_json_next(struct shim_json list, struct shim_json previous)
{
    if (!shim_json_is_list(list))
        return (struct shim_json){0};
    const char *at = previous.text ? skip_space(end_of(previous), end_of(list)) : list.text;
    if (*at == ']')
        return (struct shim_json){0};
    at = skip_space(at + 1, end_of(list)); /* behind '[' or ',' */
    return *at == ']' ? (struct shim_json){0} : value_at(at, list);
}

long shim_json_text(struct shim_json value, char *text, size_t size)
{
    size_t length = 0;
    *text = '\0';
    if (!begins(value, '"'))
        return -1;
    const char *end = end_of(value) - 1;
    for (const char *at = value.text + 1; at && at < end;) {
        char bytes[4];
        int n;
        at = read_character(at, end, bytes, &n);
        if (!at || length + (size_t)n >= size) {
            *text = '\0';
            return -1;
        }
        memcpy(text + length, bytes, (size_t)n);
        length += (size_t)n;
    }
    text[length] = '\0';
    return (long)length;
}

int shim_json_integer(struct shim_json value, int64_t min, int64_t max, int64_t *number)
{
    bool negative = begins(value, '-');
    int64_t read = 0;
    if (value.size <= (size_t)negative)
        return -1;
    for (size_t i = negative; i < value.size; i++) {
        if (!is_digit(value.text[i]) || read > (INT64_MAX - 9) / 10)
            return -1;
        read = read * 10 + (value.text[i] - '0');
    }
    *number = negative ? -read : read;
    return *number >= min && *number <= max ? 0 : -1;
}

int shim_json_number(struct shim_json value, double min, double max, double *number)
{
    bool negative = begins(value, '-'), fraction = false;
    double read = 0, scale = 1;
    if (value.size <= (size_t)negative || value.size > 40)
        return -1;
    for (size_t i = negative; i < value.size; i++) {
        if (value.text[i] == '.') {
            fraction = true;
        } else if (is_digit(value.text[i])) {
            read = read * 10 + (value.text[i] - '0');
            scale *= fraction ? 10 : 1;
        } else {
            return -1;
        }
    }
    *number = negative ? -(read / scale) : read / scale;
    return *number >= min && *number <= max ? 0 : -1;
}

int shim_json_bool(struct shim_json value, bool *truth)
{
    if (!begins(value, 't') && !begins(value, 'f'))
        return -1;
    *truth = *value.text == 't';
    return 0;
}
