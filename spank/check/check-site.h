/* check-site.h: what all items of tccl-check start from: the configurations, and what this node is.
 */
#ifndef TCCL_CHECK_SITE_H
#define TCCL_CHECK_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "check/check-plugstack.h"
#include "check/check-slurm-conf.h"
#include "check/check-slurmd.h"
#include "client/conf.h"

struct check_options {
    const char *config; /* --config, NULL */
    const char *node;   /* --node, NULL */
    const char *peers;  /* --peers, NULL: all */
};

struct check_site {
    struct check_options options;
    int64_t deadline; /* tccl_now_ms: by then an item has said what it can */

    struct tccl_conf conf; /* built-in values where it can't be read */
    bool conf_good;
    bool conf_closed; /* this user may not read it */
    bool conf_unread; /* there is none at all to go by: not where it was named, or closed */
    struct tccl_error conf_error;

    struct check_slurm_conf slurm;
    const char *slurm_from; /* how slurm.conf was found */
    bool slurm_good;
    struct tccl_error slurm_error;

    struct check_plugstack plugstack;
    bool plugstack_good;
    struct tccl_error plugstack_error;

    struct check_slurmd slurmd;
    bool configless;    /* slurmctld hands out the configuration */
    char hostname[256]; /* short */
    int nodes_here;     /* nodes of slurm.conf that are on this host */
    bool known;         /* conf.node is in slurm.conf */
    bool compute;       /* this is a compute node, or may be one */
    bool accounting;    /* this is AccountingHost */
    int gpus;           /* of this node in slurm.conf; -1 unknown */
};

/* Reads all of it; what can't be read is noted. */
void check_site_read(const struct check_options *options, int64_t deadline,
                     struct check_site *site);

/* A value of slurm.conf; where there is no file of this node's own, as slurmctld tells it. Copied
 * to text. Returns false if it is not known. */
bool check_site_value(const struct check_site *site, const char *key, char *text, size_t size);

/* Is there no file of this node's own, and do Slurm's programs work all the same, because slurmctld
 * sends them the configuration each time? */
bool check_site_fetched(const struct check_site *site);

/* Slurm's version, by its programs on this node: 0x160500 is 22.05; 0 unknown. text: as it is
 * written. */
enum { CHECK_VERSION = 64 };
unsigned check_site_version(const struct check_site *site, const char *program,
                            char text[static CHECK_VERSION]);

#endif
