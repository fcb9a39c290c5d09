/* hostlist.c: node names in Slurm's bracket form. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/hostlist.h"
#include "client/step-fields.h"

/* The longest number in a bracket, so that it fits an unsigned long long with room to count. */
enum { DIGITS = 18, BRACKETS = 4 /* in one name */ };

/* One part of a bracket: "7", "08" or "08-11". */
struct range {
    unsigned long long low, high;
    int width; /* digits of low: numbers are padded to it */
};

/* Reads the number at *at and moves behind it. Returns how many digits it has, 0 if too many. */
static int read_number(const char **at, unsigned long long *number)
{
    int width = 0;
    for (*number = 0; **at >= '0' && **at <= '9' && width <= DIGITS; width++)
        *number = 10 * *number + (unsigned long long)(*(*at)++ - '0');
    return width <= DIGITS ? width : 0;
}

/* Reads the range at *at and moves behind it. Returns 0, or -1. */
static int read_range(const char **at, struct range *range)
{
    range->width = read_number(at, &range->low);
    range->high = range->low;
    if (range->width == 0 || **at != '-')
        return range->width == 0 ? -1 : 0;
    ++*at;
    return read_number(at, &range->high) > 0 && range->high >= range->low ? 0 : -1;
}

/* Goes to the next range of a bracket: 1 if there is one, 0 behind ']', -1 if neither follows. */
static int next_range(const char **at)
{
    char mark = **at;
    if (mark != ',' && mark != ']')
        return -1;
    ++*at;
    return mark == ',';
}

/* The numbers in the bracket at *at (behind '['), no more than max + 1; moves behind ']'. */
static int count_bracket(const char **at, size_t max, size_t *count)
{
    int more;
    *count = 0;
    do {
        struct range range;
        if (read_range(at, &range) != 0)
            return -1;
        unsigned long long span = range.high - range.low;
        *count = span >= max || *count + span >= max ? max + 1 : *count + (size_t)span + 1;
    } while ((more = next_range(at)) == 1);
    return more;
}

/* The names in the item at *at, no more than max + 1; moves to the ',' or NUL behind it. */
static int count_item(const char **at, size_t max, size_t *count)
{
    const char *begin = *at;
    int brackets = 0;
    *count = 1;
    while (**at && **at != ',') {
        size_t numbers = 1;
        if ((unsigned char)**at > ' ' && **at != 0x7f && !strchr(",[]/=;", **at)) {
            ++*at;
        } else if (**at != '[' || brackets++ == BRACKETS ||
                   (++*at, count_bracket(at, max, &numbers)) != 0) {
            return -1;
        }
        *count = numbers > max || *count > max / numbers ? max + 1 : *count * numbers;
    }
    return *at == begin ? -1 : 0;
}

static int expand_item(struct tccl_hosts *hosts, char *name, size_t used, const char *rest,
                       struct tccl_error *err);

/* Expands the bracket at rest for each of its numbers, with what follows it. */
static int expand_bracket(struct tccl_hosts *hosts, char *name, size_t used, const char *rest,
                          struct tccl_error *err)
{
    const char *behind = strchr(rest, ']') + 1;
    do {
        struct range range = {0};
        read_range(&rest, &range);
        for (unsigned long long number = range.low; number <= range.high; number++) {
            unsigned long long digits = number;
            size_t length = 0, end = used;
            do
                length++;
            while ((digits /= 10) > 0 || length < (size_t)range.width);
            if ((end += length) > TCCL_HOST_NAME)
                return tccl_fail(err, "a name is longer than %d characters", TCCL_HOST_NAME);
            for (digits = number; length > 0; digits /= 10)
                name[used + --length] = (char)('0' + digits % 10);
            if (expand_item(hosts, name, end, behind, err) != 0)
                return -1;
        }
    } while (next_range(&rest) == 1);
    return 0;
}

/* name holds used characters of a name; rest is what the item still says. */
static int expand_item(struct tccl_hosts *hosts, char *name, size_t used, const char *rest,
                       struct tccl_error *err)
{
    while (*rest && *rest != ',' && *rest != '[') {
        if (used >= TCCL_HOST_NAME)
            return tccl_fail(err, "a name is longer than %d characters", TCCL_HOST_NAME);
        name[used++] = *rest++;
    }
    if (*rest == '[')
        return expand_bracket(hosts, name, used, rest + 1, err);
    name[used] = '\0';
    char *copy = strdup(name);
    if (!copy)
        return tccl_fail(err, "out of memory for a node list");
    hosts->names[hosts->count++] = copy;
    return 0;
}

int tccl_hosts_count(const char *text, size_t max, size_t *total, struct tccl_error *err)
{
    *total = 0;
    for (const char *at = text; *text; at++) {
        size_t count;
        if (count_item(&at, max, &count) != 0)
            return tccl_fail(err,
                             "'%.80s' is not a node list such as n[1-4,07],login: see column %td",
                             text, at - text + 1);
        *total += count;
        if (*total > max)
            return tccl_fail(err, "'%.80s' names more than %zu nodes", text, max);
        if (!*at)
            break;
    }
    return 0;
}

int tccl_hosts_expand(const char *text, size_t max, struct tccl_hosts *hosts,
                      struct tccl_error *err)
{
    char name[TCCL_HOST_NAME + 1];
    size_t total;
    *hosts = (struct tccl_hosts){0};
    if (tccl_hosts_count(text, max, &total, err) != 0)
        return -1;
    hosts->names = calloc(total + 1, sizeof(*hosts->names));
    if (!hosts->names)
        return tccl_fail(err, "out of memory for a node list");
    while (hosts->count < total) {
        if (expand_item(hosts, name, 0, text, err) != 0) {
            tccl_hosts_clear(hosts);
            return -1;
        }
        const char *at = text;
        size_t count;
        count_item(&at, max, &count);
        text = at + 1;
    }
    return 0;
}

void tccl_hosts_clear(struct tccl_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        free(hosts->names[i]);
    free(hosts->names);
    *hosts = (struct tccl_hosts){0};
}

/* A name cut at its last number: head, digits, tail. digits = 0: it has none. */
struct cut {
    const char *name;
    size_t head, digits;
    unsigned long long number;
};

static struct cut cut_name(const char *name)
{
    struct cut cut = {.name = name};
    size_t end = strlen(name);
    while (end > 0 && !isdigit((unsigned char)name[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && isdigit((unsigned char)name[begin - 1]))
        begin--;
    cut.head = begin;
    cut.digits = end - begin <= DIGITS ? end - begin : 0;
    cut.number = cut.digits ? strtoull(name + begin, NULL, 10) : 0;
    return cut;
}

static bool same_family(const struct cut *a, const struct cut *b)
{
    return a->digits && b->digits && a->head == b->head && !memcmp(a->name, b->name, a->head) &&
           !strcmp(a->name + a->head + a->digits, b->name + b->head + b->digits);
}

/* Would the range that began at first go on with next, written as next is: as wide as first, or
 * wider without zeros in front? */
static bool continues(const struct cut *first, const struct cut *last, const struct cut *next)
{
    return next->number == last->number + 1 &&
           (next->digits == first->digits ||
            (next->digits > first->digits && next->name[next->head] != '0'));
}

static void print_family(FILE *out, const struct cut *cuts, size_t count)
{
    const struct cut *cut = &cuts[0];
    if (count == 1) {
        fputs(cut->name, out);
        return;
    }
    fprintf(out, "%.*s[", (int)cut->head, cut->name);
    for (size_t i = 0; i < count;) {
        size_t last = i;
        while (last + 1 < count && continues(&cuts[i], &cuts[last], &cuts[last + 1]))
            last++;
        fprintf(out, "%s%.*s", i ? "," : "", (int)cuts[i].digits, cuts[i].name + cuts[i].head);
        if (last > i)
            fprintf(out, "-%.*s", (int)cuts[last].digits, cuts[last].name + cuts[last].head);
        i = last + 1;
    }
    fprintf(out, "]%s", cut->name + cut->head + cut->digits);
}

char *tccl_hosts_fold(const char *const *names, size_t count)
{
    char *text = NULL;
    size_t size;
    cleanup_free struct cut *cuts = calloc(count + 1, sizeof(*cuts));
    FILE *out = cuts ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    for (size_t i = 0; i < count; i++)
        cuts[i] = cut_name(names[i]);
    for (size_t i = 0; i < count;) {
        size_t next = i + 1;
        while (next < count && same_family(&cuts[i], &cuts[next]))
            next++;
        if (i)
            fputc(',', out);
        print_family(out, cuts + i, next - i);
        i = next;
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* Are the first length digits of text a number of the range, as that writes it? */
static bool in_range(const struct range *range, const char *text, size_t length)
{
    size_t width = (size_t)range->width;
    unsigned long long value = 0;
    if (length > DIGITS || length < width || (length > width && *text == '0'))
        return false;
    for (size_t i = 0; i < length; i++)
        value = 10 * value + (unsigned long long)(text[i] - '0');
    return value >= range->low && value <= range->high;
}

static bool match_item(const char *item, const char *name);

/* Does the bracket at item (behind '['), with what follows it, stand for name? */
static bool match_bracket(const char *item, const char *name)
{
    const char *behind = strchr(item, ']') + 1;
    size_t most = strspn(name, "0123456789");
    do {
        struct range range = {0};
        read_range(&item, &range);
        for (size_t length = 1; length <= most; length++)
            if (in_range(&range, name, length) && match_item(behind, name + length))
                return true;
    } while (next_range(&item) == 1);
    return false;
}

static bool match_item(const char *item, const char *name)
{
    while (*item && *item != ',' && *item != '[') {
        if (*item++ != *name++)
            return false;
    }
    return *item == '[' ? match_bracket(item + 1, name) : *name == '\0';
}

bool tccl_hosts_contain(const char *text, const char *name)
{
    while (*text) {
        const char *at = text;
        size_t count;
        if (count_item(&at, SIZE_MAX / 2, &count) != 0)
            return false;
        if (match_item(text, name))
            return true;
        text = *at ? at + 1 : at;
    }
    return false;
}

void tccl_hosts_name(const char *list, int index, char name[static TCCL_HOST_NAME + 1])
{
    struct tccl_hosts hosts;
    snprintf(name, TCCL_HOST_NAME + 1, "node %d (the first is 0)", index);
    if (tccl_hosts_expand(list, TCCL_MAX_NODES, &hosts, NULL) != 0)
        return;
    if ((size_t)index < hosts.count)
        snprintf(name, TCCL_HOST_NAME + 1, "%s", hosts.names[index]);
    tccl_hosts_clear(&hosts);
}

bool tccl_host_valid(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > TCCL_HOST_NAME || !isalnum((unsigned char)name[0]))
        return false;
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
            return false;
    return true;
}
