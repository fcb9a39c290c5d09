/* plugin-conf.c: reads tccl.conf, and applies the overrides in plugstack.conf. */
#include "plugin/plugin.h"

#include <stddef.h>
#include <string.h>

static const char *config_path(const char *argument)
{
    static const char key[] = "config=";
    return strncmp(argument, key, sizeof(key) - 1) == 0 ? argument + sizeof(key) - 1 : NULL;
}

const char *plugin_conf_path(int argc, char **argv)
{
    const char *path = NULL;
    for (int i = 0; i < argc; i++)
        if (config_path(argv[i]))
            path = config_path(argv[i]);
    return path;
}

int plugin_conf_read(int argc, char **argv, const char *node, struct tccl_conf *conf,
                     struct tccl_error *err)
{
    if (tccl_conf_read_as(TCCL_CONF_PLUGIN, plugin_conf_path(argc, argv), node, conf, err) != 0)
        return -1;
    for (int i = 0; i < argc; i++)
        if (!config_path(argv[i]) && tccl_conf_override(conf, argv[i], err) != 0) {
            tccl_conf_clear(conf);
            return tccl_fail_in(err, "plugstack.conf");
        }
    return 0;
}
