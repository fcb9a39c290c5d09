/* cache-provenance.c: profile.json: which machine was profiled, and where the numbers come from. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/fileio.h"
#include "profile/cache-internal.h"

/* Copies a hash, which has size - 1 characters. */
static int take_hash(const json_t *json, const char *key, char *out, size_t size,
                     struct tccl_error *err)
{
    if (tccl_field_text(json, key, 1, out, size, err) < 0)
        return -1;
    return strlen(out) == size - 1 ? 0
                                   : tccl_fail(err, "\"%s\" is not as long as it should be", key);
}

static int parse(const json_t *json, const struct tccl_machine *machine,
                 struct tccl_provenance *from, struct tccl_error *err)
{
    const json_t *format = json_object_get(json, "format");
    *from = (struct tccl_provenance){0};
    if (!json_is_integer(format))
        return tccl_fail(err, "is not the description of a profile");
    if (json_integer_value(format) != PROFILE_FORMAT)
        return tccl_fail(err, "has format %lld, this program knows %d: profile again, or update",
                         (long long)json_integer_value(format), PROFILE_FORMAT);
    if (take_hash(json, "machine", from->machine, sizeof(from->machine), err) != 0 ||
        tccl_field_text(json, "source", 1, from->source, sizeof(from->source), err) < 0 ||
        tccl_field_text(json, "conditions", 0, from->conditions, sizeof(from->conditions), err) < 0)
        return -1;
    tccl_system_from_json(json_object_get(json, "system"), &from->system);
    tccl_trained_from_json(json_object_get(json, "links"), &from->links);
    if (machine &&
        tccl_alike_from_json(json_object_get(json, "alike"), machine, &from->alike, err) != 0)
        return -1;
    if (strcmp(from->source, "model") != 0)
        return 0;
    return take_hash(json, "model", from->model, sizeof(from->model), err);
}

int tccl_provenance_read(const char *folder, const struct tccl_machine *machine,
                         struct tccl_provenance *from, struct tccl_error *err)
{
    char path[PATH_MAX];
    tccl_profile_path(folder, ABOUT, path);
    errno = 0;
    cleanup_json json_t *json = tccl_read_json(path, PROFILE_BYTES, err);
    if (!json)
        return -1;
    if (parse(json, machine, from, err) != 0) {
        errno = EINVAL;
        return tccl_fail_in(err, "%s", path);
    }
    return 0;
}

int tccl_provenance_write(const char *folder, const struct tccl_provenance *from,
                          struct tccl_error *err)
{
    char path[PATH_MAX];
    bool measured = strcmp(from->source, "model") != 0;
    cleanup_json json_t *json =
        json_pack("{s:i, s:s, s:s, s:s*, s:s*, s:o*, s:o*, s:o*, s:I, s:s}", "format",
                  PROFILE_FORMAT, "machine", from->machine, "source", from->source, "model",
                  from->model[0] ? from->model : NULL, "conditions",
                  from->conditions[0] ? from->conditions : NULL, "system",
                  measured ? tccl_system_to_json(&from->system) : NULL, "links",
                  from->links.n > 0 ? tccl_trained_to_json(&from->links) : NULL, "alike",
                  from->alike.n > 0 ? tccl_alike_to_json(&from->alike) : NULL, "created",
                  (json_int_t)time(NULL), "by", "slurm-tccl " TCCL_VERSION);
    if (!json)
        return tccl_fail(err, "out of memory");
    tccl_profile_path(folder, ABOUT, path);
    return tccl_write_json(path, 0644, json, err);
}
