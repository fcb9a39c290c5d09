/* check-items.h: the items of tccl-check. Each says what it finds in result, changes nothing, and
 * is ended from outside if it takes too long. */
#ifndef TCCL_CHECK_ITEMS_H
#define TCCL_CHECK_ITEMS_H

#include "check/check-result.h"
#include "check/check-site.h"

typedef void check_item(const struct check_site *site, struct check_result *result);

/* check-item-conf.c */
check_item check_item_config; /* tccl.conf is good, and the one that the plugin reads */
check_item check_item_policy; /* what a step gets without being asked */

/* check-item-slurm.c */
check_item check_item_slurm;      /* Slurm's version, and its slurm.conf */
check_item check_item_node;       /* this node's name */
check_item check_item_plugstack;  /* a line for the plugin, that Slurm reads */
check_item check_item_configless; /* plugstack.conf.d where slurmctld hands out files */
check_item check_item_isolation;  /* tasks that see one GPU each */

/* check-item-plugin.c */
check_item check_item_plugin; /* the file is there, and built for this Slurm */
check_item check_item_loaded; /* Slurm has loaded it */

/* check-item-daemon.c */
check_item check_item_munge;
check_item check_item_daemon;
check_item check_item_accounting;

/* check-item-profile.c */
check_item check_item_profile; /* this machine's, whole, and not old */
check_item check_item_gpus;    /* Slurm's GPUs are the machine's */

/* check-item-shim.c */
check_item check_item_shim; /* the library for LD_PRELOAD is there, and open to all */

/* check-peers.c */
check_item check_item_peers;

#endif
