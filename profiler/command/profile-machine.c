/* profile-machine.c: finds the machine that the options of tccl-profile name. */
#include "command/profile-command.h"
#include "discover/discover.h"

#include <string.h>

void profile_machine_only(const struct tccl_machine *machine, struct tccl_found *found)
{
    memset(found, 0, sizeof(*found));
    found->site.machine = *machine;
    found->recorded = true;
    for (int i = 0; i < machine->n_gpus; i++) {
        found->gpu_index[i] = -1;
        found->gpu_gres[i] = i;
    }
    for (int i = 0; i < machine->n_nics; i++)
        found->nic_up[i] = true;
    for (int i = 0; i < machine->n_memories; i++)
        found->package_of[i] = -1;
    snprintf(found->p2p_source, sizeof(found->p2p_source), "description");
}

static int from_model(const char *path, struct tccl_found *found, struct tccl_error *err)
{
    struct tccl_model *model = NULL;

    if (tccl_model_read(path, &model, err) != 0)
        return -1;
    profile_machine_only(tccl_model_machine(model), found);
    tccl_model_free(model);
    return 0;
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
    if (options->model)
        return from_model(options->model, found, err);
    if (is_backend(options, "model"))
        return tccl_fail(err, "--backend model: --model FILE is needed");
    if (options->backend && !is_backend(options, "host") && !is_backend(options, "cuda"))
        return tccl_fail(err, "no back end \"%.32s\": wanted cuda, host or model",
                         options->backend);
    return tccl_discover(&what, found, err);
}
