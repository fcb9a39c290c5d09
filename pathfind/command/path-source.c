/* path-source.c: a source of bandwidths: a machine model, or a profile directory. */
#include "command/path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/model.h"

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

static int open_profile(struct source *source, struct tccl_error *err)
{
    struct tccl_error why = {""};
    char path[PATH_MAX];
    if (tccl_profile_open_folder(source->path, &source->profile, err) != 0)
        return -1;
    source->machine = *tccl_profile_machine(source->profile);
    snprintf(source->name, sizeof(source->name), "%s", tccl_profile_source(source->profile));
    source->model = tccl_profile_model(source->profile, &why);
    if (source->model || !*why.text)
        return 0;
    /* Where the model is gone, what was measured is known. */
    snprintf(path, sizeof(path), "%.4000s/model.json", source->path);
    return access(path, F_OK) != 0 && errno == ENOENT ? 0 : tccl_fail(err, "%s", why.text);
}

static int open_model(struct source *source, struct tccl_error *err)
{
    char path[PATH_MAX];
    if (tccl_model_file(source->path, path, err) != 0 ||
        tccl_model_read(path, &source->own_model, err) != 0)
        return -1;
    source->model = source->own_model;
    source->machine = *tccl_model_machine(source->model);
    strcpy(source->name, "model");
    return 0;
}

int source_know(struct source *source, struct tccl_error *err)
{
    if (!source->profile || source->knows)
        return 0;
    if (tccl_profile_sets(source->profile, know, source, NULL, err) < 0)
        return -1;
    source->knows = true;
    return 0;
}

int source_together(const struct source *source, const struct tccl_together **together,
                    struct tccl_error *err)
{
    struct tccl_error why = {""};
    *together = source->profile ? tccl_profile_together(source->profile, &why) : NULL;
    return *why.text ? tccl_fail(err, "%s", why.text) : 0;
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
    if ((folder ? open_profile(source, err) : open_model(source, err)) == 0) {
        struct tccl_meter meter = {
            .measure = measure_unknown, .context = source, .sets = &source->sets};
        source->symmetry = source->model ? tccl_symmetry_of_model(source->model) : NULL;
        source->search = tccl_search_new(&source->machine, meter, source->symmetry);
        if (source->search && (source->symmetry || !source->model))
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
    tccl_model_free(source->own_model);
    tccl_profile_close(source->profile);
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

int source_table(const struct source *source, uint32_t gpus, struct tccl_table **table,
                 struct tccl_error *err)
{
    struct tccl_error why = {""};
    *table = source->profile ? tccl_profile_read_table(source->profile, gpus, &why) : NULL;
    return *table || !source->profile || errno == ENOENT ? 0 : tccl_fail(err, "%s", why.text);
}
