/* env.c: getenv in front of libc's, and NCCL's plugin for its environment (from 2.28.7 on;
 * NCCL_ENV_PLUGIN=libtccl-nccl.so), for sites that can't have the former. */
#include "base/early.h"
#include "hook/question.h"

/* Of libc's header: another attribute on the same function. */
char *getenv(const char *name);

__attribute__((visibility("default"))) char *getenv(const char *name)
{
    if (!shim_relocated())
        return NULL; /* as from libc, which has no environment yet either */
    return shim_question(name, __builtin_return_address(0));
}

static int plugin_init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    (void)major, (void)minor, (void)patch, (void)suffix;
    return 0;
}

static int plugin_finalize(void)
{
    return 0;
}

static const char *plugin_getenv(const char *name)
{
    return shim_question(name, __builtin_return_address(0));
}

struct env_plugin {
    const char *name;
    int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
    int (*finalize)(void);
    const char *(*get)(const char *name);
};
extern const struct env_plugin ncclEnvPlugin_v1;
__attribute__((visibility("default")))
const struct env_plugin ncclEnvPlugin_v1 = {"tccl", plugin_init, plugin_finalize, plugin_getenv};
