/* plugin-conf.h: tccl.conf as the plugin's line in plugstack.conf names and overrides it. */
#ifndef TCCL_PLUGIN_CONF_H
#define TCCL_PLUGIN_CONF_H

#include "client/conf.h"

/* Reads the file of the argument config=PATH (otherwise /etc/slurm/tccl.conf, which may be missing)
 * and then the arguments Key=Value. node: this node's Slurm name, or NULL. Returns 0, or -1 with
 * err that names file and line, or the argument. On 0 tccl_conf_clear frees. */
int plugin_conf_read(int argc, char **argv, const char *node, struct tccl_conf *conf,
                     struct tccl_error *err);

#endif
