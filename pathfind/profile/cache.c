/* cache.c: opening profiles and checking that they are of the machine that they claim to be of. */
#include "profile/cache.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "profile/cache-internal.h"

void tccl_profile_path(const char *folder, enum tccl_profile_file file, char path[static PATH_MAX])
{
    static const char *const names[] = {
        [ABOUT] = "profile.json", [MACHINE] = "machine.json", [MODEL] = "model.json",
        [SETS] = "sets.jsonl",    [CHAINS] = "chains",        [TOGETHER] = "together.jsonl"};
    snprintf(path, PATH_MAX, "%.*s/%s", FOLDER_MAX, folder, names[file]);
}

struct tccl_stamp tccl_profile_stamp(const char *folder, enum tccl_profile_file file)
{
    char path[PATH_MAX];
    tccl_profile_path(folder, file, path);
    return tccl_stamp_take(path);
}

static bool looks_like_id(const char *name)
{
    return strlen(name) == TCCL_HASH_HEX - 1 &&
           strspn(name, "0123456789abcdef") == TCCL_HASH_HEX - 1;
}

/* Stamps first: what changes while it is read is then seen by tccl_profile_changed. */
static int load(struct tccl_profile *profile, struct tccl_error *err)
{
    char path[PATH_MAX];
    profile->chains = tccl_profile_stamp(profile->folder, CHAINS);
    profile->about = tccl_profile_stamp(profile->folder, ABOUT);
    profile->description = tccl_profile_stamp(profile->folder, MACHINE);
    tccl_profile_path(profile->folder, MACHINE, path);
    errno = 0;
    if (tccl_machine_read(path, &profile->machine, err) != 0 ||
        tccl_provenance_read(profile->folder, &profile->machine, &profile->from, err) != 0)
        return -1;
    errno = EINVAL;
    const char *slash = strrchr(profile->folder, '/');
    const char *named = slash ? slash + 1 : profile->folder;
    char id[TCCL_HASH_HEX];
    tccl_machine_id(&profile->machine, id);
    if (looks_like_id(named) && strcmp(named, id) != 0)
        return tccl_fail(err, "%s/machine.json: is of another machine: %s", profile->folder, id);
    if (strcmp(profile->from.machine, id) != 0)
        return tccl_fail(err, "%s: is of another machine: %s was profiled, machine.json is %s",
                         profile->folder, profile->from.machine, id);
    return 0;
}

int tccl_profile_open_folder(const char *folder, struct tccl_profile **out, struct tccl_error *err)
{
    size_t length = strlen(folder);
    *out = NULL;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    if (length == 0 || length >= FOLDER_MAX) {
        errno = ENAMETOOLONG;
        return tccl_fail(err, "no profile in \"%.40s\": the path is empty or too long", folder);
    }
    struct tccl_profile *profile = calloc(1, sizeof(*profile));
    if (!profile)
        return tccl_fail(err, "out of memory");
    memcpy(profile->folder, folder, length);
    if (load(profile, err) != 0) {
        int saved = errno;
        tccl_profile_close(profile);
        errno = saved;
        return -1;
    }
    *out = profile;
    return 0;
}

int tccl_profile_open(const char *cache_dir, const char *id, struct tccl_profile **profile,
                      struct tccl_error *err)
{
    char folder[PATH_MAX];
    *profile = NULL;
    if (!looks_like_id(id)) {
        errno = EINVAL;
        return tccl_fail(err, "\"%.40s\" is not a machine id (32 hexadecimal digits)", id);
    }
    if (snprintf(folder, sizeof(folder), "%s/%s", cache_dir, id) >= FOLDER_MAX) {
        errno = ENAMETOOLONG;
        return tccl_fail(err, "%.40s…: the path of the cache is too long", cache_dir);
    }
    struct tccl_stamp stamp = tccl_stamp_take(folder);
    if (!tccl_stamp_exists(&stamp)) {
        errno = ENOENT;
        return tccl_fail_as(
            err, TCCL_REASON_NO_PROFILE,
            "no profile of this machine in %s (id %s): run tccl-profile, or copy the "
            "folder from a node of its kind",
            cache_dir, id);
    }
    return tccl_profile_open_folder(folder, profile, err);
}

void tccl_profile_close(struct tccl_profile *profile)
{
    if (!profile)
        return;
    if (profile->log)
        tccl_setlog_close(profile->log);
    tccl_setlog_close(profile->joints);
    tccl_together_free(profile->together);
    tccl_profile_drop_tables(profile);
    tccl_model_free(profile->model);
    free(profile);
}

const char *tccl_profile_folder(const struct tccl_profile *profile)
{
    return profile->folder;
}

const char *tccl_profile_id(const struct tccl_profile *profile)
{
    return profile->from.machine;
}

const char *tccl_profile_source(const struct tccl_profile *profile)
{
    return profile->from.source;
}

const struct tccl_machine *tccl_profile_machine(const struct tccl_profile *profile)
{
    return &profile->machine;
}

const char *tccl_profile_conditions(const struct tccl_profile *profile)
{
    return profile->from.conditions;
}

const struct tccl_system *tccl_profile_system(const struct tccl_profile *profile)
{
    return &profile->from.system;
}

const struct tccl_trained_links *tccl_profile_links(const struct tccl_profile *profile)
{
    return &profile->from.links;
}

time_t tccl_profile_time(const struct tccl_profile *profile)
{
    return tccl_profile_stamp(profile->folder, SETS).modified.tv_sec;
}

/* The copy must be the model that was profiled, of this machine. */
static int check_model(const struct tccl_profile *profile, const json_t *json,
                       const struct tccl_model *model, struct tccl_error *err)
{
    char hash[TCCL_JSON_HASH], id[TCCL_HASH_HEX];
    if (tccl_json_hash(json, hash) != 0)
        return tccl_fail(err, "out of memory");
    if (strcmp(hash, profile->from.model) != 0)
        return tccl_fail(err, "altered: it is not the model that the profile was made from");
    tccl_machine_id(tccl_model_machine(model), id);
    if (strcmp(id, profile->from.machine) != 0)
        return tccl_fail(err, "is of another machine: %s", id);
    return 0;
}

json_t *tccl_profile_model_json(const struct tccl_profile *profile, struct tccl_error *err)
{
    char path[PATH_MAX];
    if (!profile->from.model[0])
        return NULL;
    tccl_profile_path(profile->folder, MODEL, path);
    return tccl_read_json(path, MODEL_BYTES, err);
}

const struct tccl_model *tccl_profile_model(struct tccl_profile *profile, struct tccl_error *err)
{
    struct tccl_model *model = NULL;
    if (profile->model)
        return profile->model;
    cleanup_json json_t *json = tccl_profile_model_json(profile, err);
    if (!json)
        return NULL;
    if (tccl_model_from_json(json, &model, err) != 0 ||
        check_model(profile, json, model, err) != 0) {
        char path[PATH_MAX];
        tccl_profile_path(profile->folder, MODEL, path);
        tccl_model_free(model);
        tccl_fail_in(err, "%s", path);
        return NULL;
    }
    profile->model = model;
    return model;
}

long tccl_profile_sets(const struct tccl_profile *profile,
                       int (*each)(void *context, const struct tccl_set *set,
                                   const struct tccl_measurement *measurement),
                       void *context, int *dropped, struct tccl_error *err)
{
    char path[PATH_MAX];
    tccl_profile_path(profile->folder, SETS, path);
    return tccl_setlog_read(path, each, context, dropped, err);
}

long tccl_profile_joints(const struct tccl_profile *profile,
                         int (*each)(void *context, const struct tccl_joint *joint), void *context,
                         int *dropped, struct tccl_error *err)
{
    char path[PATH_MAX];
    tccl_profile_path(profile->folder, TOGETHER, path);
    return tccl_setlog_read_joints(path, each, context, dropped, err);
}

const struct tccl_together *tccl_profile_together(struct tccl_profile *profile,
                                                  struct tccl_error *err)
{
    char path[PATH_MAX];
    tccl_profile_path(profile->folder, TOGETHER, path);
    struct tccl_stamp stamp = tccl_stamp_take(path);
    if (tccl_stamp_equal(&stamp, &profile->together_stamp))
        return profile->together;
    tccl_together_free(profile->together);
    profile->together_stamp = stamp;
    profile->together = tccl_stamp_exists(&stamp) ? tccl_setlog_read_together(path, err) : NULL;
    return profile->together;
}

const struct tccl_together *tccl_profile_together_read(struct tccl_profile *profile, bool *stale)
{
    struct tccl_stamp stamp = tccl_profile_stamp(profile->folder, TOGETHER);
    *stale = !tccl_stamp_equal(&stamp, &profile->together_stamp);
    return tccl_stamp_exists(&stamp) ? profile->together : NULL;
}

static int is_id(const struct dirent *entry)
{
    return looks_like_id(entry->d_name);
}

int tccl_cache_list(const char *cache_dir, int (*each)(void *context, const char *id),
                    void *context, struct tccl_error *err)
{
    struct dirent **names = NULL;
    int count = scandir(cache_dir, &names, is_id, alphasort);
    bool going = true;
    if (count < 0)
        return errno == ENOENT ? 0 : tccl_fail(err, "%s: %s", cache_dir, strerror(errno));
    for (int i = 0; i < count; i++) {
        going = going && each(context, names[i]->d_name) == 0;
        free(names[i]);
    }
    free(names);
    return count;
}
