/* plugin-conf.h: the plugin's configuration: tccl.conf and the arguments in plugstack.conf. */
#ifndef TCCL_PLUGIN_CONF_H
#define TCCL_PLUGIN_CONF_H

#include "client/conf.h"

/* The file that the arguments in plugstack.conf give as config=PATH, the last one; NULL: none. */
const char *plugin_conf_path(int argc, char **argv);

/* Reads the file given as config=PATH (default: /etc/slurm/tccl.conf, which may be missing), then
 * the arguments Key=Value. node: this node's Slurm name, or NULL. Returns 0, or -1 with err that
 * names file and line, or the argument. On 0 tccl_conf_clear frees. */
int plugin_conf_read(int argc, char **argv, const char *node, struct tccl_conf *conf,
                     struct tccl_error *err);

/* The cluster of this job: Cluster= of conf, else ClusterName as slurmd has read it; "" where
 * neither is known. Never what the environment says, which is the user's. */
const char *plugin_conf_cluster(const struct tccl_conf *conf);

#endif
