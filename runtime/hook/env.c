/* env.c: getenv in front of libc's, fopen for NCCL's log, and NCCL's plugin for its environment,
 * which question.c has it load. NCCL has read nccl.conf before, and asks getenv as well. */
#include <errno.h>
#include <stdio.h>

#include "base/loaded.h"
#include "hook/hook.h"
#include "verify/verify.h"

/* Of libc's header: another attribute on the same function. */
char *getenv(const char *name);

__attribute__((visibility("default"))) char *getenv(const char *name)
{
    if (!shim_relocated())
        return NULL; /* as from libc, which has no environment yet either */
    return shim_question(name, __builtin_return_address(0));
}

/* By its own name: headers may make another one of it. */
__attribute__((visibility("default"))) FILE *shim_fopen(const char *path,
                                                        const char *mode) __asm__("fopen");

FILE *shim_fopen(const char *path, const char *mode)
{
    static void *known;
    void *next = shim_next(&known, "fopen");
    if (!next) {
        errno = ENOSYS;
        return NULL;
    }
    FILE *opened = ((FILE * (*)(const char *, const char *)) next)(path, mode);
    if (!path || !shim_relocated() || !shim_nccl_at(__builtin_return_address(0)))
        return opened;
    int before = errno;
    opened = shim_nccllog_opened(path, opened);
    errno = before;
    return opened;
}

/* The log function that the second interface hands over is not used. */
static int plugin_init(uint8_t major UNUSED, uint8_t minor UNUSED, uint8_t patch UNUSED,
                       const char *suffix UNUSED)
{
    return 0;
}

static int plugin_init_v2(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                          void *log UNUSED)
{
    return plugin_init(major, minor, patch, suffix);
}

static int plugin_finalize(void)
{
    return 0;
}

static const char *plugin_getenv(const char *name)
{
    return shim_question(name, __builtin_return_address(0));
}

/* Of either version. */
struct env_plugin {
    const char *name;
    void *init;
    int (*finalize)(void);
    const char *(*get)(const char *name);
};
extern const struct env_plugin ncclEnvPlugin_v1;
extern const struct env_plugin ncclEnvPlugin_v2;
__attribute__((visibility("default"))) const struct env_plugin ncclEnvPlugin_v1 = {
    "tccl", (void *)plugin_init, plugin_finalize, plugin_getenv};
__attribute__((visibility("default"))) const struct env_plugin ncclEnvPlugin_v2 = {
    "tccl", (void *)plugin_init_v2, plugin_finalize, plugin_getenv};
