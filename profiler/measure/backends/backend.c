/* backend.c: the list of back ends, and what they all do alike. */
#include <stdlib.h>
#include <string.h>

#include "measure/backends/backend-ops.h"

static const struct tccl_backend_ops *const backends[] = {
    &tccl_backend_of_model,
    &tccl_backend_of_noisy,
    &tccl_backend_of_host,
#ifdef TCCL_CUDA
    &tccl_backend_of_cuda,
#endif
};
enum { BACKENDS = sizeof(backends) / sizeof(*backends) };

int tccl_backend_open_as(const struct tccl_backend_ops *ops,
                         const struct tccl_backend_options *options, struct tccl_backend **backend,
                         struct tccl_error *err)
{
    *backend = NULL;
    struct tccl_backend *opened = calloc(1, sizeof(*opened));
    if (!opened)
        return tccl_fail(err, "out of memory");
    *opened =
        (struct tccl_backend){.ops = ops, .name = ops->name, .conditions = "", .noise = ops->noise};
    if (ops->open(options, opened, err) < 0) {
        free(opened);
        return -1;
    }
    *backend = opened;
    return 0;
}

int tccl_backend_open(const char *name, const struct tccl_backend_options *options,
                      struct tccl_backend **backend, struct tccl_error *err)
{
    *backend = NULL;
    for (int i = 0; i < BACKENDS; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return tccl_backend_open_as(backends[i], options, backend, err);
    char names[128] = "";
    size_t used = 0;
    if (strcmp(name, "cuda") == 0)
        return tccl_fail(err, "this build has no CUDA: build it where NVIDIA's toolkit is, or "
                              "measure with --backend host");
    for (int i = 0; i < BACKENDS && used + strlen(backends[i]->name) + 3 < sizeof(names); i++) {
        if (i > 0)
            used = (size_t)(stpcpy(names + used, ", ") - names);
        used = (size_t)(stpcpy(names + used, backends[i]->name) - names);
    }
    return tccl_fail(err, "no back end \"%.40s\" in this build: it has %s", name, names);
}

void tccl_backend_close(struct tccl_backend *backend)
{
    if (!backend)
        return;
    backend->ops->close(backend->state);
    free(backend);
}

void tccl_backend_set_others(struct tccl_backend *backend, const struct tccl_side *others)
{
    static const struct tccl_side none;
    backend->ops->others(backend->state, others ? others : &none);
}

int tccl_backend_can(const struct tccl_backend *backend, const struct tccl_set *set,
                     struct tccl_error *err)
{
    const struct tccl_backend_ops *ops = backend->ops;
    int rc = 0;
    for (int i = 0; rc == 0 && i < set->count; i++)
        rc = ops->can ? ops->can(backend->state, set->transfers[i], err)
                      : tccl_machine_allows(backend->machine, set->transfers[i], err);
    return rc;
}

int tccl_backend_measure(struct tccl_backend *backend, const struct tccl_set *set,
                         struct tccl_measurement *out, struct tccl_error *err)
{
    if (tccl_backend_can(backend, set, err) < 0)
        return 1;
    return backend->ops->measure(backend->state, set, out, err);
}
