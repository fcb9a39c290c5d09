/* check-site.h: what all items of tccl-check need: the configuration files, and this node's role.
 */
#ifndef TCCL_CHECK_SITE_H
#define TCCL_CHECK_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "client/policy.h"
#include "gres/plugstack.h"
#include "gres/slurm-conf.h"
#include "gres/slurmd.h"

enum { CHECK_NODES_MAX = 65536 };

/* The command line of all commands. */
struct check_options {
    const char *config; /* --config, NULL */
    const char *node;   /* --node, NULL */
    const char *peers;  /* --peers, NULL: all */
    const char *only;   /* items; NULL: all */
    const char *bundle; /* its file; NULL: none */
    int seconds;
    bool json, quiet, no_peers;
    /* tccl-check policy */
    struct policy_facts facts; /* those of the nodes and the model come with: */
    const char *nodes;         /* a hostlist; NULL: not given */
    const char *model;
    int mode; /* asked for, or POLICY_NOT_GIVEN */
    bool explain;
    /* tccl-check step */
    unsigned long job, step;
    int since; /* seconds */
};

struct check_site {
    struct check_options options;
    int64_t deadline; /* tccl_now_ms: items finish before */

    struct tccl_conf conf; /* defaults if it cannot be read */
    bool conf_good;
    bool conf_closed; /* this user may not read it */
    bool conf_unread; /* no configuration at all: the named file is missing or closed */
    struct tccl_error conf_error;

    struct tccl_slurm_conf slurm;
    const char *slurm_from; /* how slurm.conf was found */
    bool slurm_good;
    struct tccl_error slurm_error;

    struct tccl_plugstack plugstack;
    bool plugstack_good;
    struct tccl_error plugstack_error;

    bool configless;    /* slurmctld hands out the configuration */
    char hostname[256]; /* short */
    int nodes_here;     /* nodes of slurm.conf that are on this host */
    bool known;         /* conf.node is in slurm.conf */
    bool compute;       /* this is a compute node, or may be one */
    bool accounting;    /* this is AccountingHost */
    int gpus;           /* of this node in slurm.conf; -1 unknown */
};

/* Reads all of it. Errors are kept in site for the items. */
void check_site_read(const struct check_options *options, int64_t deadline,
                     struct check_site *site);

/* Asks this node's tccld what it knows: NODE of profiler/client/README.md. Returns a new reference,
 * or NULL with err: it doesn't answer within ms. */
json_t *check_site_ask(const struct check_site *site, int ms, struct tccl_error *err);

/* The slurmd of this node as its tccld sees it, or, without one, as this user does; pid 0: none. */
void check_site_slurmd(const struct check_site *site, struct tccl_slurmd *slurmd);

/* A value of slurm.conf; if this node has no such file, from scontrol. Copied to text. Returns
 * false if it is unknown. */
bool check_site_value(const struct check_site *site, const char *key, char *text, size_t size);

/* Has this node no slurm.conf, but Slurm's programs work, because slurmctld sends them the
 * configuration each time? */
bool check_site_fetched(const struct check_site *site);

/* Does this node do without the plugin? It is AccountingHost, no compute node, and neither
 * plugstack.conf nor PluginDir has it. */
bool check_site_bare(const struct check_site *site);

/* The version that one of Slurm's programs reports: 0x160500 is 22.05; 0: unknown. text: as
 * printed.
 */
enum { CHECK_VERSION = 64 };
unsigned check_site_version(const struct check_site *site, const char *program,
                            char text[static CHECK_VERSION]);

#endif
