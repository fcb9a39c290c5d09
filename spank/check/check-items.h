/* check-items.h: the items of tccl-check. Each reports its findings in result, changes nothing, and
 * is killed by the parent process if it takes too long. */
#ifndef TCCL_CHECK_ITEMS_H
#define TCCL_CHECK_ITEMS_H

#include "check/check-result.h"
#include "check/check-site.h"

typedef void check_item(const struct check_site *site, struct check_result *result);

/* check-item-conf.c */
check_item check_item_config; /* tccl.conf is good, and the one that the plugin reads */
check_item check_item_policy; /* the mode of steps that request none */

/* check-item-slurm.c */
check_item check_item_slurm;      /* Slurm's version, and its slurm.conf */
check_item check_item_node;       /* this node's name */
check_item check_item_plugstack;  /* a line for the plugin that Slurm reads */
check_item check_item_configless; /* in configless mode, the line is in plugstack.conf itself */
check_item check_item_isolation;  /* tasks that do not see all GPUs of the step */

/* check-item-plugin.c */
check_item check_item_plugin; /* the file is there, and built for this Slurm */
check_item check_item_loaded; /* Slurm has loaded it */

/* check-item-daemon.c */
check_item check_item_munge;
check_item check_item_daemon;
check_item check_item_accounting;

/* check-item-profile.c */
check_item check_item_profile; /* of this machine, complete and recent */
check_item check_item_gpus;    /* Slurm has the GPUs of the machine, in a known order */

/* check-item-shim.c */
check_item check_item_shim; /* the library for LD_PRELOAD exists and is readable for all */

/* check-item-nccl.c */
check_item check_item_nccl; /* which NCCL this environment has: is it known? */

/* check-peers.c */
check_item check_item_peers;

#endif
