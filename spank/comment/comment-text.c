#include "comment/comment-text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"

#define SEPARATOR "; "

/* How much a step tells of a job. */
enum rank {
    RANK_NOTHING,
    RANK_NO_GAIN,  /* NCCL's own choice is as good */
    RANK_NOT_USED, /* a ring, but the step built no communicator with it */
    RANK_FALLBACK,
    RANK_DIFFERS, /* or partial */
    RANK_RING,
    RANK_BUILT
};

static bool is(const json_t *record, const char *name, const char *word)
{
    return strcmp(tccl_text_of(record, name), word) == 0;
}

bool comment_job_of(const json_t *record, struct comment_job *job)
{
    json_int_t number = tccl_number_of(record, "job");
    if (number < 1 || number > UINT32_MAX)
        return false;
    *job =
        (struct comment_job){.job = (uint32_t)number, .started = tccl_number_of(record, "start")};
    snprintf(job->cluster, sizeof(job->cluster), "%s", tccl_text_of(record, "cluster"));
    return true;
}

static enum rank rank_of(const json_t *record)
{
    if (is(record, "state", "applied"))
        return is(record, "built", "applied")    ? RANK_BUILT
               : is(record, "built", "not used") ? RANK_NOT_USED
                                                 : RANK_RING;
    if (is(record, "state", "partial") || is(record, "state", "differs"))
        return RANK_DIFFERS;
    if (is(record, "state", "fallback"))
        return RANK_FALLBACK;
    return is(record, "state", "nothing-to-do") && *tccl_text_of(record, "reason") ? RANK_NO_GAIN
                                                                                   : RANK_NOTHING;
}

bool comment_tells(const json_t *record)
{
    return rank_of(record) != RANK_NOTHING;
}

/* Of equal ranks: more GPUs, then the faster ring, then the later step. */
static bool tells_more(const json_t *a, const json_t *b)
{
    if (!b || rank_of(a) != rank_of(b))
        return !b || rank_of(a) > rank_of(b);
    if (tccl_number_of(a, "gpus") != tccl_number_of(b, "gpus"))
        return tccl_number_of(a, "gpus") > tccl_number_of(b, "gpus");
    double fast_a = json_number_value(json_object_get(a, "gbps"));
    double fast_b = json_number_value(json_object_get(b, "gbps"));
    if (fast_a < fast_b || fast_a > fast_b)
        return fast_a > fast_b;
    return tccl_number_of(a, "start") >= tccl_number_of(b, "start");
}

static bool belongs(const json_t *record, const struct comment_job *job)
{
    struct comment_job of;
    return comment_job_of(record, &of) && of.job == job->job &&
           strcmp(of.cluster, job->cluster) == 0 && comment_tells(record);
}

static json_int_t latest(const json_t *records, const struct comment_job *job, const char *field)
{
    json_int_t most = 0;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        if (belongs(record, job) && tccl_number_of(record, field) > most)
            most = tccl_number_of(record, field);
    }
    return most;
}

/* What is told of a job: the step that tells most, and how many there are. */
struct told {
    const json_t *best;
    int steps, without; /* without a ring */
};

static struct told look_through(const json_t *records, const struct comment_job *job)
{
    struct told told = {0};
    /* Of the latest run of the job; a batch step has the time of its start in place of a count. */
    json_int_t restart = latest(records, job, "restart"), run = latest(records, job, "run");
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        bool batch = tccl_number_of(record, "run") > 0;
        if (!belongs(record, job) || (batch ? tccl_number_of(record, "run") < run
                                            : tccl_number_of(record, "restart") < restart))
            continue;
        told.steps++;
        told.without += rank_of(record) == RANK_FALLBACK;
        if (tells_more(record, told.best))
            told.best = record;
    }
    return told;
}

static void print_ring(FILE *out, const json_t *record)
{
    json_int_t nodes = tccl_number_of(record, "n_nodes"), gpus = tccl_number_of(record, "gpus");
    double ratio = json_number_value(json_object_get(record, "ratio"));
    fputs("tccl: ring", out);
    if (nodes > 1)
        fprintf(out, " %" JSON_INTEGER_FORMAT " nodes", nodes);
    if (gpus > 0)
        fprintf(out, " %" JSON_INTEGER_FORMAT " GPUs", gpus);
    fprintf(out, " %.1f GB/s", json_number_value(json_object_get(record, "gbps")));
    if (ratio > 0)
        fprintf(out, " %.2fx", ratio);
    if (is(record, "state", "applied") && is(record, "built", "not used"))
        fputs(", not used", out);
    if (!is(record, "state", "applied"))
        fprintf(out, ", %s", tccl_text_of(record, "state"));
    if (!is(record, "state", "applied") && *tccl_text_of(record, "reason"))
        fprintf(out, ": %s", tccl_text_of(record, "reason"));
}

/* Length of the UTF-8 character at text; 0 if it is none, or one of more than three bytes, which
 * not every database takes, or a control character. */
static size_t printable(const unsigned char *text)
{
    if (*text < 0x80)
        return *text >= ' ' && *text != 0x7f && *text != ';' && *text != '|';
    size_t length = *text >= 0xc2 && *text < 0xe0 ? 2 : *text >= 0xe0 && *text < 0xf0 ? 3 : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    unsigned point = length == 2 ? (text[0] & 0x1fu) << 6 | (text[1] & 0x3fu)
                     : length == 3
                         ? (text[0] & 0xfu) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu)
                         : 0;
    bool surrogate = point >= 0xd800 && point < 0xe000;
    bool control = point < 0xa0 || (length == 3 && point < 0x800);
    bool turns = (point >= 0x200b && point < 0x2010) || (point >= 0x2028 && point < 0x202f) ||
                 (point >= 0x2060 && point < 0x2070) || point == 0xfeff;
    return surrogate || control || turns ? 0 : length;
}

/* What stands for a byte that is not printable: ';' and '|' separate our part from others. */
static char instead_of(unsigned char byte)
{
    return byte == ';' ? ',' : byte == '|' ? '/' : '?';
}

/* Copies text as one printable line of at most size - 1 bytes, cut at a character and then ended by
 * "…". Behind a comma comes a blank, and none is the last, so that text that others add with a
 * comma is known. */
static void copy_line(char *to, size_t size, const char *text)
{
    static const char more[] = "…";
    const unsigned char *from = (const unsigned char *)text;
    size_t used = 0, room = 0; /* room: where "…" still fits */
    while (*from) {
        size_t length = printable(from), step = length ? length : 1;
        char one = length ? (char)*from : instead_of(*from);
        bool blank = step == 1 && one == ',' && from[1] && from[1] != ' ';
        if (used + step + blank >= size) {
            memcpy(to + room, more, sizeof(more));
            return;
        }
        memcpy(to + used, step > 1 ? (const char *)from : &one, step);
        used += step;
        if (blank)
            to[used++] = ' ';
        from += step;
        if (used + sizeof(more) <= size && to[used - 1] != ',')
            room = used;
    }
    while (used > 0 && to[used - 1] == ',')
        used--;
    to[used] = '\0';
}

/* Behind the text, of a job of several steps: "(3 steps, 1 without a ring)". */
static void print_steps(const struct told *told, char *text, size_t size)
{
    *text = '\0';
    if (told->steps < 2)
        return;
    bool some = told->without > 0 && told->without < told->steps;
    size_t used = (size_t)snprintf(text, size, " (%d steps", told->steps);
    if (some)
        used += (size_t)snprintf(text + used, size - used, ", %d without a ring", told->without);
    snprintf(text + used, size - used, ")");
}

bool comment_of_job(const json_t *records, const struct comment_job *job,
                    char text[static COMMENT_SIZE])
{
    struct told told = look_through(records, job);
    cleanup_free char *line = NULL;
    char steps[64];
    size_t size;
    if (!told.best)
        return false;
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return false;
    if (rank_of(told.best) == RANK_FALLBACK || rank_of(told.best) == RANK_NO_GAIN)
        fprintf(out, "tccl: no ring: %s", tccl_text_of(told.best, "reason"));
    else
        print_ring(out, told.best);
    if (fclose(out) != 0)
        return false;
    print_steps(&told, steps, sizeof(steps));
    copy_line(text, COMMENT_SIZE - strlen(steps), line);
    strcat(text, steps);
    return true;
}

/* Our part of a comment, at its beginning or behind "; ", or NULL. */
static const char *find_own(const char *existing)
{
    static const char *const begins[] = {"tccl: ring ", "tccl: no ring"};
    for (const char *at = existing; at;) {
        for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
            if (strncmp(at, begins[i], strlen(begins[i])) == 0)
                return at;
        at = strstr(at, SEPARATOR);
        at = at ? at + strlen(SEPARATOR) : NULL;
    }
    return NULL;
}

/* The end of our part: at what our text never holds. */
static const char *end_of_own(const char *own)
{
    for (; *own; own++)
        if (*own == ';' || *own == '|' || (unsigned char)*own < ' ' ||
            (*own == ',' && own[1] && own[1] != ' '))
            break;
    return own;
}

int comment_merge(const char *existing, const char *own, char **merged)
{
    *merged = NULL;
    if (!existing)
        existing = "";
    size_t length = strlen(existing);
    if (length + strlen(own) + strlen(SEPARATOR) > COMMENT_WHOLE)
        return -1;
    const char *at = find_own(existing), *rest = "", *between = "";
    if (at) {
        rest = end_of_own(at);
    } else {
        at = existing + length;
        between = length ? SEPARATOR : "";
    }
    if (asprintf(merged, "%.*s%s%s%s", (int)(at - existing), existing, between, own, rest) < 0) {
        *merged = NULL;
        return -1;
    }
    if (strcmp(*merged, existing) != 0)
        return 1;
    free(*merged);
    *merged = NULL;
    return 0;
}
