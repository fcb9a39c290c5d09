/* cache-write.c: making a profile and adding to it. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "profile/cache-internal.h"

/* "0000000f.chains.AbCdEf": what a killed writer left of a table. */
static int is_left_over(const struct dirent *entry)
{
    const char *dot = strstr(entry->d_name, ".chains.");
    return dot && strlen(dot) == strlen(".chains.XXXXXX");
}

static void sweep(const char *folder)
{
    cleanup_leave struct tccl_folder chains;
    struct dirent **names = NULL;
    char path[PATH_MAX], inside[PATH_MAX + 4];
    tccl_profile_path(folder, CHAINS, path);
    snprintf(inside, sizeof(inside), "%s/.", path);
    if (tccl_folder_enter(&chains, inside, "can't be cleaned up", NULL) != 0)
        return;
    int count = scandirat(chains.fd, ".", &names, is_left_over, NULL);
    for (int i = 0; i < count; i++) {
        unlinkat(chains.fd, names[i]->d_name, 0);
        free(names[i]);
    }
    free(names);
}

/* Is the profile in the folder one of this source and model? 0: yes; 1: there is none yet. */
static int check_provenance(const char *folder, const struct tccl_provenance *wanted,
                            struct tccl_error *err)
{
    struct tccl_provenance found;
    if (tccl_provenance_read(folder, NULL, &found, err) != 0) {
        if (errno != ENOENT)
            return -1;
        *err = (struct tccl_error){0};
        return 1;
    }
    if (strcmp(found.machine, wanted->machine) != 0)
        return tccl_fail(err, "%s: is of another machine: %s", folder, found.machine);
    if (strcmp(found.source, wanted->source) != 0)
        return tccl_fail(err,
                         "%s: comes from \"%s\", and is not mixed with \"%s\": remove it first",
                         folder, found.source, wanted->source);
    if (strcmp(found.model, wanted->model) != 0)
        return tccl_fail(err, "%s: was made from another model of this machine: remove it first",
                         folder);
    return 0;
}

static int write_missing(const char *folder, enum tccl_profile_file file, const json_t *json,
                         struct tccl_error *err)
{
    struct tccl_stamp stamp = tccl_profile_stamp(folder, file);
    char path[PATH_MAX];
    tccl_profile_path(folder, file, path);
    return tccl_stamp_exists(&stamp) ? 0 : tccl_write_json(path, 0644, json, err);
}

/* machine.json comes last: until it is there, nobody takes the folder for a profile. */
static int describe(const char *folder, const struct tccl_provenance *from,
                    const struct tccl_machine *machine, const json_t *model, struct tccl_error *err)
{
    int fresh = check_provenance(folder, from, err);
    if (fresh < 0)
        return -1;
    if (fresh && tccl_profile_stamp(folder, SETS).size > 0)
        return tccl_fail(err, "%s: has measurements but no profile.json: remove it first", folder);
    if (fresh && tccl_provenance_write(folder, from, err) != 0)
        return -1;
    if (model && write_missing(folder, MODEL, model, err) != 0)
        return -1;
    cleanup_json json_t *json = tccl_machine_to_json(machine);
    return json ? write_missing(folder, MACHINE, json, err) : tccl_fail(err, "out of memory");
}

static int provenance(const struct tccl_machine *machine, const char *source, const json_t *model,
                      struct tccl_provenance *from, struct tccl_error *err)
{
    *from = (struct tccl_provenance){0};
    if (strlen(source) >= sizeof(from->source))
        return tccl_fail(err, "\"%.40s…\" is too long for a source", source);
    strcpy(from->source, source);
    tccl_machine_id(machine, from->machine);
    if (model && tccl_json_hash(model, from->model) != 0)
        return tccl_fail(err, "out of memory");
    if (strcmp(source, "model") != 0)
        tccl_system_read(NULL, &from->system);
    return 0;
}

int tccl_profile_create(const char *cache_dir, const struct tccl_machine *machine,
                        const char *source, const json_t *model, struct tccl_profile **profile,
                        struct tccl_error *err)
{
    struct tccl_error ignored = {0};
    struct tccl_provenance from;
    char folder[PATH_MAX], path[PATH_MAX];
    *profile = NULL;
    if (!err)
        err = &ignored;
    if (provenance(machine, source, model, &from, err) != 0)
        return -1;
    if (snprintf(folder, sizeof(folder), "%s/%s", cache_dir, from.machine) >= FOLDER_MAX)
        return tccl_fail(err, "%.40s…: the path of the cache is too long", cache_dir);
    tccl_profile_path(folder, CHAINS, path);
    if (tccl_make_folder(path, 0755, err) != 0)
        return -1;
    tccl_profile_path(folder, SETS, path);
    struct tccl_setlog *log = tccl_setlog_open(path, source, err);
    if (!log)
        return -1;
    sweep(folder);
    if (describe(folder, &from, machine, model, err) != 0 ||
        tccl_profile_open_folder(folder, profile, err) != 0) {
        tccl_setlog_close(log);
        return -1;
    }
    (*profile)->log = log;
    return 0;
}

static int check_writable(const struct tccl_profile *profile, struct tccl_error *err)
{
    return profile->log ? 0 : tccl_fail(err, "%s: is not open for writing", profile->folder);
}

/* Words to which others were added, behind a comma. */
static bool begins_with(const char *text, const char *words)
{
    size_t length = strlen(words);
    return strncmp(text, words, length) == 0 && (text[length] == '\0' || text[length] == ',');
}

bool tccl_conditions_agree(const char *a, const char *b)
{
    return begins_with(a, b) || begins_with(b, a);
}

/* Takes note of what the machine runs now. Returns whether that is something else than before. */
static bool update_system(struct tccl_provenance *from)
{
    struct tccl_system before = from->system;
    if (strcmp(from->source, "model") == 0)
        return false;
    tccl_system_read(NULL, &from->system);
    return strcmp(before.kernel, from->system.kernel) != 0 ||
           strcmp(before.driver, from->system.driver) != 0 ||
           strcmp(before.firmware, from->system.firmware) != 0;
}

int tccl_profile_claim(struct tccl_profile *profile, const char *conditions, struct tccl_error *err)
{
    struct tccl_provenance *from = &profile->from;
    if (check_writable(profile, err) != 0)
        return -1;
    bool empty = tccl_profile_stamp(profile->folder, SETS).size == 0; /* nothing is measured */
    bool updated = update_system(from);
    if (begins_with(from->conditions, conditions) &&
        (!empty || !from->conditions[strlen(conditions)]))
        return updated ? tccl_provenance_write(profile->folder, from, err) : 0;
    if (!empty && !begins_with(conditions, from->conditions))
        return tccl_fail(err,
                         "%s: was measured under \"%s\", and is not mixed with \"%s\": measure as "
                         "then, or move the folder away",
                         profile->folder, from->conditions, conditions);
    if (strlen(conditions) >= sizeof(from->conditions))
        return tccl_fail(err, "\"%.40s…\" is too long for conditions", conditions);
    strcpy(from->conditions, conditions);
    return tccl_provenance_write(profile->folder, from, err);
}

int tccl_profile_set_alike(struct tccl_profile *profile, const struct tccl_alike *alike,
                           struct tccl_error *err)
{
    if (check_writable(profile, err) != 0)
        return -1;
    profile->from.alike = *alike;
    return tccl_provenance_write(profile->folder, &profile->from, err);
}

int tccl_profile_set_links(struct tccl_profile *profile, const struct tccl_trained_links *links,
                           struct tccl_error *err)
{
    if (check_writable(profile, err) != 0)
        return -1;
    profile->from.links = *links;
    return tccl_provenance_write(profile->folder, &profile->from, err);
}

int tccl_profile_append(struct tccl_profile *profile, const struct tccl_set *set,
                        const struct tccl_measurement *measurement, struct tccl_error *err)
{
    if (check_writable(profile, err) != 0)
        return -1;
    return tccl_setlog_append(profile->log, set, measurement, err);
}

int tccl_profile_append_joint(struct tccl_profile *profile, const struct tccl_joint *joint,
                              struct tccl_error *err)
{
    char path[PATH_MAX];
    if (check_writable(profile, err) != 0)
        return -1;
    tccl_profile_path(profile->folder, TOGETHER, path);
    if (!profile->joints)
        profile->joints = tccl_setlog_open(path, profile->from.source, err);
    return profile->joints ? tccl_setlog_append_joint(profile->joints, joint, err) : -1;
}

int tccl_profile_sync(struct tccl_profile *profile, struct tccl_error *err)
{
    int rc = profile->log ? tccl_setlog_sync(profile->log, err) : 0;
    return profile->joints && tccl_setlog_sync(profile->joints, err) != 0 ? -1 : rc;
}

int tccl_profile_put(struct tccl_profile *profile, const struct tccl_table *table,
                     struct tccl_error *err)
{
    char path[PATH_MAX];
    if (check_writable(profile, err) != 0)
        return -1;
    if (strcmp(table->machine, profile->from.machine) != 0 ||
        strcmp(table->source, profile->from.source) != 0)
        return tccl_fail(err, "%s: takes no chains of machine %s from \"%s\"", profile->folder,
                         table->machine, table->source);
    tccl_table_path(profile->folder, table->gpus, path);
    return tccl_table_write(table, path, err);
}
