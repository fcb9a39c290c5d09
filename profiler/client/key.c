/* key.c: the key of a step for people, as lines, and as the name of a folder. Its members in JSON
 * are in the table of step-fields.c. */
#include "client/key.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/lines.h"

bool tccl_key_equal(const struct tccl_step_key *a, const struct tccl_step_key *b)
{
    return a->job == b->job && a->step == b->step && a->het_job == b->het_job &&
           a->het_offset == b->het_offset && a->restart == b->restart && a->run == b->run &&
           strcmp(a->cluster, b->cluster) == 0;
}

void tccl_key_format(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT])
{
    char step[16], offset[16] = "", restart[24] = "";
    size_t size = sizeof(step);
    switch (key->step) {
    case TCCL_STEP_BATCH:
        snprintf(step, size, "batch");
        break;
    case TCCL_STEP_EXTERN:
        snprintf(step, size, "extern");
        break;
    case TCCL_STEP_INTERACTIVE:
        snprintf(step, size, "interactive");
        break;
    default:
        snprintf(step, size, "%u", key->step);
    }
    if (key->het_job)
        snprintf(offset, sizeof(offset), "+%u", key->het_offset);
    if (key->restart)
        snprintf(restart, sizeof(restart), " restart %u", key->restart);
    snprintf(text, TCCL_KEY_TEXT, "%.24s%s%u%s.%s%s", key->cluster, *key->cluster ? ":" : "",
             key->het_job ? key->het_job : key->job, offset, step, restart);
}

void tccl_key_folder(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT])
{
    char all[256];
    int size =
        snprintf(all, sizeof(all), "%s/%u/%u/%u/%u/%u/%llu", key->cluster, key->job, key->het_job,
                 key->het_offset, key->step, key->restart, (unsigned long long)key->run);
    snprintf(text, TCCL_KEY_TEXT, "%u.%u.%u-%016llx", key->job, key->step, key->restart,
             (unsigned long long)tccl_hash64(all, (size_t)size));
}

void tccl_key_put_lines(const struct tccl_step_key *key, struct tccl_line_writer *writer)
{
    tccl_line_put(writer, "cluster", "%s", key->cluster);
#define PUT(name) tccl_line_put(writer, #name, "%u", key->name);
    TCCL_KEY_NUMBERS(PUT)
    tccl_line_put(writer, "run", "%llu", (unsigned long long)key->run);
}

int tccl_key_from_lines(const struct tccl_lines *lines, struct tccl_step_key *key,
                        struct tccl_error *err)
{
    int64_t number;
    memset(key, 0, sizeof(*key));
    if (tccl_line_text(lines, "cluster", key->cluster, sizeof(key->cluster)) < 0)
        return tccl_fail(err, "cluster: a text of at most %zu bytes is expected",
                         sizeof(key->cluster) - 1);
#define GET(name)                                                                                  \
    if (tccl_line_integer(lines, #name, 0, UINT32_MAX, &number) != 0)                              \
        return tccl_fail(err, "%s: a number from 0 to %u is expected", #name, UINT32_MAX);         \
    key->name = (uint32_t)number;
    TCCL_KEY_NUMBERS(GET)
    if (tccl_line_integer(lines, "run", 0, TCCL_MAX_RUN, &number) != 0)
        return tccl_fail(err, "run: a number from 0 to %lld is expected", (long long)TCCL_MAX_RUN);
    key->run = (uint64_t)number;
    return 0;
}
