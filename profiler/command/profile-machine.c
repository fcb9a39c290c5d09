/* profile-machine.c: finds the machine that the options of tccl-profile name, and opens the back
 * end that they ask for; tccl-profile init: writes what this node is. */
#include <libgen.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "command/profile-command.h"
#include "discover/discover.h"

void profile_machine_only(const struct tccl_machine *machine, struct tccl_found *found)
{
    memset(found, 0, sizeof(*found));
    found->site.machine = *machine;
    found->recorded = true;
    for (int i = 0; i < machine->n_gpus; i++)
        found->gpu_index[i] = -1;
    for (int i = 0; i < machine->n_nics; i++)
        found->nic_up[i] = true;
    for (int i = 0; i < machine->n_memories; i++)
        found->package_of[i] = -1;
    snprintf(found->p2p_source, sizeof(found->p2p_source), "description");
}

static bool is_backend(const struct profile_options *options, const char *name)
{
    return options->backend && strcmp(options->backend, name) == 0;
}

int profile_machine(const struct profile_options *options, struct tccl_found *found,
                    struct tccl_error *err)
{
    const struct tccl_discover_options what = {
        .xml = options->topology, .host = is_backend(options, "host"), .devices = options->devices};
    if (options->model &&
        (options->topology || is_backend(options, "host") || is_backend(options, "cuda")))
        return tccl_fail(err, "--model names another machine than --topology or --backend: give "
                              "one of them");
    if (options->model) {
        struct tccl_model *model = NULL;
        if (tccl_model_read(options->model, &model, err) != 0)
            return -1;
        profile_machine_only(tccl_model_machine(model), found);
        tccl_model_free(model);
        return 0;
    }
    if (is_backend(options, "model"))
        return tccl_fail(err, "--backend model: --model FILE is needed");
    if (options->backend && !is_backend(options, "host") && !is_backend(options, "cuda"))
        return tccl_fail(err, "no back end \"%.32s\": wanted cuda, host or model",
                         options->backend);
    return tccl_discover(&what, found, err);
}

/* ---- back ends ---- */

int profile_trust(const struct profile_options *options, struct tccl_trust *trust,
                  struct tccl_error *err)
{
    if (tccl_trust_fill(trust, options->munge, options->munge_user, err) != 0)
        return -1;
    trust->anybody = options->no_munge;
    return 0;
}

/* What nobody named: what fits. */
static const char *choose_backend(const struct profile_options *options, const char *usual)
{
    if (options->noise > 0 && options->model &&
        (!options->backend || strcmp(options->backend, "model") == 0))
        return "noisy";
    if (options->backend)
        return options->backend;
    return usual ? usual : options->model ? "model" : "cuda";
}

int profile_open_backend(const struct profile_options *options, const char *usual,
                         struct tccl_backend **backend, struct tccl_error *err)
{
    const char *name = choose_backend(options, usual);
    struct tccl_backend_options what = {.model = options->model,
                                        .noise = options->noise,
                                        .seed = options->seed,
                                        .peer = options->peer,
                                        .devices = options->devices,
                                        .engine = options->engine,
                                        .force = options->force,
                                        .window = options->window_ms / 1e3,
                                        .repeats = options->repeats};
    struct tccl_error why = {0};
    *backend = NULL;
    if (options->peer && profile_trust(options, &what.trust, err) != 0)
        return -1;
    bool model = strcmp(name, "model") == 0 || strcmp(name, "noisy") == 0;
    if (options->model && !model)
        return tccl_fail(err, "--model goes with --backend model, not with %.40s", name);
    if (options->noise > 0 && !options->model)
        return tccl_fail(err, "--noise goes with --model: real measurements have their own");
    if (tccl_backend_open(name, &what, backend, &why) == 0)
        return 0;
    return tccl_fail(err, "%s", why.text);
}

/* ---- tccl-profile init ---- */

int profile_init(const struct profile_options *options, struct tccl_error *err)
{
    const char *path = options->machine ? options->machine : options->node;
    struct tccl_found found;
    if (profile_machine(options, &found, err) < 0)
        return -1;
    cleanup_json json_t *described = tccl_machine_to_json(&found.site.machine);
    cleanup_free char *copy = strdup(path);
    if (!described || !copy)
        return tccl_fail(err, "out of memory");
    if (tccl_make_folder(dirname(copy), 0755, err) != 0 ||
        tccl_write_json(path, 0644, described, err) != 0)
        return -1;
    /* Profiles may be copied there before a measurement or tccld makes it. */
    if (!options->machine)
        tccl_make_folder(options->cache, 0755, NULL);
    char id[TCCL_HASH_HEX];
    if (options->json) {
        json_t *json = tccl_found_to_json(&found);
        json_object_set_new(json, "machine", json_string(path));
        return profile_print(json);
    }
    if (options->quiet)
        return 0;
    for (int i = 0; i < found.n_notes; i++)
        fprintf(stderr, "tccl: note: %s\n", found.notes[i]);
    tccl_machine_id(&found.site.machine, id);
    fprintf(stderr, "tccl: %s: this node is a machine %s\n", path, id);
    return 0;
}
