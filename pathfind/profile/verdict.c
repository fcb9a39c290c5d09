/* verdict.c: what a node found out about the profile that it has. */
#include "profile/verdict.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/fileio.h"

enum { FORMAT = 1, BYTES = 4096 };

bool tccl_verdict_refuses(const struct tccl_verdict *verdict)
{
    return strcmp(verdict->found, "drifted") == 0 && verdict->worst < TCCL_VERDICT_LEAST;
}

void tccl_verdict_path(const char *cache_dir, const char *node, char path[static TCCL_VERDICT_PATH])
{
    snprintf(path, TCCL_VERDICT_PATH, "%.3800s/checked/%.255s.json", cache_dir, node);
}

int tccl_verdict_write(const char *cache_dir, const char *node, const struct tccl_verdict *verdict,
                       struct tccl_error *err)
{
    char path[TCCL_VERDICT_PATH];
    cleanup_json json_t *json = json_pack("{s:i, s:s, s:s, s:f, s:I}", "format", FORMAT, "profile",
                                          verdict->profile, "found", verdict->found, "worst",
                                          verdict->worst, "when", (json_int_t)verdict->when);
    if (!json)
        return tccl_fail(err, "out of memory");
    snprintf(path, sizeof(path), "%.3800s/checked", cache_dir);
    mode_t mask = umask(022); /* tccld, another user, reads it, whatever root's is */
    int made = tccl_make_folder(path, 0755, err);
    umask(mask);
    if (made != 0)
        return -1;
    tccl_verdict_path(cache_dir, node, path);
    return tccl_write_json(path, 0644, json, err);
}

int tccl_verdict_read(const char *cache_dir, const char *node, const char *profile,
                      struct tccl_verdict *verdict)
{
    char path[TCCL_VERDICT_PATH];
    int format = 0;
    *verdict = (struct tccl_verdict){.worst = 1};
    tccl_verdict_path(cache_dir, node, path);
    cleanup_json json_t *json = tccl_read_json(path, BYTES, NULL);
    if (!json || tccl_field_int(json, "format", 1, FORMAT, FORMAT, &format, NULL) != 0 ||
        tccl_field_text(json, "profile", 1, verdict->profile, sizeof(verdict->profile), NULL) !=
            0 ||
        tccl_field_text(json, "found", 1, verdict->found, sizeof(verdict->found), NULL) != 0 ||
        tccl_field_number(json, "worst", 1, 0, 1000, &verdict->worst, NULL) != 0)
        return 1;
    verdict->when = json_integer_value(json_object_get(json, "when"));
    return strcmp(verdict->profile, profile) == 0 ? 0 : 1;
}
