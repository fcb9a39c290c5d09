/* profile-backend.c: opens the back end that the options ask for. */
#include <string.h>

#include "command/profile-command.h"

int profile_trust(const struct profile_options *options, struct tccl_trust *trust,
                  struct tccl_error *err)
{
    if (tccl_trust_fill(trust, options->munge, options->munge_user, err) != 0)
        return -1;
    trust->anybody = options->no_munge;
    return 0;
}

/* What nobody named: what fits. */
static const char *choose(const struct profile_options *options, const char *usual)
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
    const char *name = choose(options, usual);
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
