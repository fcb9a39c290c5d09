/* path-source.c: a source of bandwidths: a machine model, or a profile directory. */
#include "command/path-source.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "machine/model.h"
#include "search/setlog.h"

/* A name in a profile folder. */
static int path_in(const struct source *source, const char *name, char path[static PATH_MAX],
                   struct tccl_error *err)
{
    if (snprintf(path, PATH_MAX, "%s/%s", source->path, name) >= PATH_MAX)
        return tccl_fail(err, "%s: name too long", source->path);
    return 0;
}

/* A file of a profile's folder that need not be there. Returns 1 with path, 0 if it isn't, -1. */
static int find_in(const struct source *source, const char *name, char path[static PATH_MAX],
                   struct tccl_error *err)
{
    if (!source->profile)
        return 0;
    if (path_in(source, name, path, err) != 0)
        return -1;
    return access(path, F_OK) == 0 || errno != ENOENT;
}

static int know(void *context, const struct tccl_set *set,
                const struct tccl_measurement *measurement)
{
    struct source *source = context;
    return tccl_setmap_note(&source->sets, set, measurement) ? 0 : -1;
}

/* What the search asks for a set that it doesn't know. */
static int measure_unknown(void *context, const struct tccl_set *set, struct tccl_measurement *out,
                           struct tccl_error *err)
{
    struct source *source = context;
    if (source->model) {
        *out = (struct tccl_measurement){0};
        if (tccl_model_measure(source->model, set, &out->gbps, NULL, NULL, err) != 0)
            return -1;
        return know(source, set, out) != 0 ? tccl_fail(err, "out of memory") : 0;
    }
    char text[TCCL_SET_TEXT];
    tccl_set_format(set, text);
    return tccl_fail(err,
                     "the load \"%s\" was not measured, and there is no model.json to ask; "
                     "measure it with tccl-profile run --gpus",
                     text);
}

static int open_model(struct source *source, const char *path, struct tccl_error *err)
{
    if (tccl_model_read(path, &source->model, err) != 0)
        return -1;
    source->symmetry = tccl_symmetry_of_model(source->model);
    return source->symmetry ? 0 : tccl_fail(err, "%s: out of memory", path);
}

/* The model of a profile is there only where the profile was made from one. */
static int open_profile_model(struct source *source, struct tccl_error *err)
{
    char path[PATH_MAX], here[TCCL_HASH_HEX], there[TCCL_HASH_HEX];
    int found = find_in(source, "model.json", path, err);
    if (found <= 0 || open_model(source, path, err) != 0)
        return found == 0 ? 0 : -1;
    tccl_machine_id(&source->machine, here);
    tccl_machine_id(tccl_model_machine(source->model), there);
    return strcmp(here, there) == 0
               ? 0
               : tccl_fail(err, "%s: a model of another machine than machine.json", path);
}

/* The machine id that a folder is named after; NULL if it has another name. */
static const char *id_in_name(const char *path, char id[static TCCL_HASH_HEX])
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (length - start != TCCL_HASH_HEX - 1 ||
        strspn(path + start, "0123456789abcdef") < TCCL_HASH_HEX - 1)
        return NULL;
    snprintf(id, TCCL_HASH_HEX, "%s", path + start);
    return id;
}

/* A machine id, if given, must be that of machine.json. Returns 0, or -1 with err. */
static int check_machine(const struct source *source, const char *path, const char *named,
                         struct tccl_error *err)
{
    char id[TCCL_HASH_HEX];
    tccl_machine_id(&source->machine, id);
    if (!named || strcmp(named, id) == 0)
        return 0;
    return tccl_fail(err, "%s: is of another machine: %s, but machine.json is %s", path, named, id);
}

/* The copy of the model must be the one that was profiled, where profile.json says which. */
static int check_model(const struct source *source, const char *wanted, struct tccl_error *err)
{
    char path[PATH_MAX], hash[TCCL_JSON_HASH];
    if (!source->model || !wanted)
        return 0;
    if (path_in(source, "model.json", path, err) != 0)
        return -1;
    cleanup_json json_t *json = tccl_read_json(path, 4 << 20, err);
    if (!json)
        return -1;
    if (tccl_json_hash(json, hash) != 0)
        return tccl_fail(err, "out of memory");
    if (strcmp(hash, wanted) == 0)
        return 0;
    return tccl_fail(err, "%s: altered: it is not the model that the profile was made from", path);
}

/* profile.json names the machine and the back end; without it, the latter follows from the model
 * being there. */
static int read_provenance(struct source *source, struct tccl_error *err)
{
    char path[PATH_MAX], id[TCCL_HASH_HEX];
    strcpy(source->name, source->model ? "model" : "measured");
    if (check_machine(source, source->path, id_in_name(source->path, id), err) != 0)
        return -1;
    int found = find_in(source, "profile.json", path, err);
    if (found <= 0)
        return found;
    cleanup_json json_t *json = tccl_read_json(path, 1 << 20, err);
    if (!json)
        return -1;
    const char *name = json_string_value(json_object_get(json, "source"));
    if (name && strlen(name) < sizeof(source->name))
        strcpy(source->name, name);
    if (check_machine(source, path, json_string_value(json_object_get(json, "machine")), err) != 0)
        return -1;
    if (tccl_alike_from_json(json_object_get(json, "alike"), &source->machine, &source->alike,
                             err) != 0)
        return tccl_fail_in(err, "%s", path);
    return check_model(source, json_string_value(json_object_get(json, "model")), err);
}

static int open_profile(struct source *source, struct tccl_error *err)
{
    char path[PATH_MAX];
    source->profile = true;
    return path_in(source, "machine.json", path, err) != 0 ||
                   tccl_machine_read(path, &source->machine, err) != 0 ||
                   open_profile_model(source, err) != 0
               ? -1
               : read_provenance(source, err);
}

static int open_plain_model(struct source *source, struct tccl_error *err)
{
    char path[PATH_MAX];
    if (tccl_model_file(source->path, path, err) != 0 || open_model(source, path, err) != 0)
        return -1;
    source->machine = *tccl_model_machine(source->model);
    strcpy(source->name, "model");
    return 0;
}

int source_know(struct source *source, struct tccl_error *err)
{
    char path[PATH_MAX];
    if (!source->profile || source->knows)
        return 0;
    if (path_in(source, "sets.jsonl", path, err) != 0 ||
        tccl_setlog_read(path, know, source, NULL, err) < 0)
        return -1;
    source->knows = true;
    return 0;
}

int source_together(const struct source *source, struct tccl_together **together,
                    struct tccl_error *err)
{
    char path[PATH_MAX];
    *together = NULL;
    int found = find_in(source, "together.jsonl", path, err);
    if (found <= 0)
        return found;
    *together = tccl_setlog_read_together(path, err);
    return *together ? 0 : -1;
}

int source_check(const char *path, bool profile, struct tccl_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISDIR(st.st_mode) == profile)
        return 0;
    return tccl_fail(err, "%s: %s", path,
                     profile ? "not a folder; a model is given with --model"
                             : "a folder; a profile is given with --profile");
}

int source_of_machine(char path[static PATH_MAX], struct tccl_error *err)
{
    static const char cache[] = TCCL_LOCALSTATEDIR "/cache/tccl";
    struct tccl_error why = {""};
    struct tccl_machine machine;
    char id[TCCL_HASH_HEX];
    if (tccl_machine_read(TCCL_LOCALSTATEDIR "/lib/tccl/machine.json", &machine, &why) != 0)
        return tccl_fail(err,
                         "--model or --profile is missing, and this machine is not known: %s "
                         "(tccl-profile init)",
                         why.text);
    tccl_machine_id(&machine, id);
    snprintf(path, PATH_MAX, "%s/%s", cache, id);
    if (access(path, F_OK) == 0)
        return 0;
    return tccl_fail(err,
                     "--model or --profile is missing, and this machine has no profile in %s: "
                     "see tccl-profile list",
                     path);
}

struct source *source_open(const char *path, struct tccl_error *err)
{
    struct stat st;
    struct source *source = calloc(1, sizeof(*source));
    if (!source || !(source->path = strdup(path))) {
        free(source);
        return tccl_fail_null(err, "out of memory");
    }
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if ((folder ? open_profile(source, err) : open_plain_model(source, err)) == 0) {
        struct tccl_meter meter = {
            .measure = measure_unknown, .context = source, .sets = &source->sets};
        source->search = tccl_search_new(&source->machine, meter, source->symmetry);
        if (source->search)
            return source;
        tccl_fail(err, "%s: out of memory", source->path);
    }
    source_free(source);
    return NULL;
}

void source_free(struct source *source)
{
    if (!source)
        return;
    tccl_search_free(source->search);
    tccl_setmap_clear(&source->sets);
    tccl_symmetry_free(source->symmetry);
    tccl_model_free(source->model);
    free(source->path);
    free(source);
}

int source_measure(struct source *source, const struct tccl_set *set, double *gbps,
                   struct tccl_error *err)
{
    struct tccl_error why = {""};
    if (source_know(source, err) != 0)
        return -1;
    if (tccl_search_measure(source->search, set, gbps, &why) < 0)
        return tccl_fail(err, "%s: %s", source->path, why.text);
    return 0;
}

/* As source_table, of its own file alone. */
static int own_table(const struct source *source, uint32_t gpus, struct tccl_table **table,
                     struct tccl_error *err)
{
    char name[32], path[PATH_MAX];
    *table = NULL;
    snprintf(name, sizeof(name), "chains/%08x.chains", gpus);
    int found = find_in(source, name, path, err);
    if (found <= 0)
        return found;
    if (tccl_table_read(path, &source->machine, table, err) != 0)
        return -1;
    if ((*table)->gpus == gpus)
        return 0;
    tccl_fail(err, "%s: is of another GPU set (mask %08x)", path, (*table)->gpus);
    tccl_table_free(*table);
    *table = NULL;
    return -1;
}

int source_table(const struct source *source, uint32_t gpus, struct tccl_table **table,
                 struct tccl_error *err)
{
    struct tccl_exchange move;
    struct tccl_table *first = NULL;
    if (own_table(source, gpus, table, err) != 0)
        return -1;
    uint32_t from = *table ? gpus : tccl_alike_first(&source->alike, gpus, &move);
    if (from == gpus)
        return 0;
    if (own_table(source, from, &first, err) != 0)
        return -1;
    if (!first)
        return 0;
    *table = tccl_alike_table(first, &source->machine, &move, err);
    if (*table)
        (*table)->noise = fmax((*table)->noise, source->alike.noise);
    tccl_table_free(first);
    return *table ? 0 : -1;
}
