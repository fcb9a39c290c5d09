/* check-items.h: the items of tccl-check, and what they share. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "client/conf.h"
#include "client/policy.h"
#include "gres/gres.h"
#include "gres/slurm-conf.h"

/* ---- check-result: what one item of tccl-check found out, and how that is shown. */

enum check_level { CHECK_OK, CHECK_WARN, CHECK_FAIL, CHECK_LEVELS };
enum { CHECK_TEXT = 1200 };

/* Zero-initialise. What counts is the worst level that something was said at: the texts of the
 * others are not shown. */
struct check_result {
    enum check_level level;
    char text[CHECK_LEVELS][CHECK_TEXT];
};

/* Adds a remark, "what is so: what to do", behind those of the same level. Names in it may hold
 * anything: what is not printable becomes '?'. A remark that has no room is cut. */
void check_say(struct check_result *result, enum check_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *check_level_name(enum check_level level); /* "ok" "warn" "fail" */
/* The remarks that count. */
const char *check_text(const struct check_result *result);

/* One line "LEVEL  ITEM  TEXT". */
void check_print(FILE *out, const char *item, const struct check_result *result, bool colour);
/* {"item","level","text"}; NULL only without memory. */
json_t *check_to_json(const char *item, const struct check_result *result);

/* The end of a wait (tccl_now_ms) that normally takes ms at most. If the overall deadline is later
 * than by default, the wait is longer in proportion; it never ends after deadline. */
int64_t check_run_until(int64_t deadline, int ms);

/* ---- check-site: what all items of tccl-check need: the configuration files, and this node's
 * role.
 */

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

/* What this node's tccld knows: NODE of profiler/client/README.md, asked once for all items that
 * are started from now on (check_site_share). gpus: also of its GPUs and its profile, for which it
 * may have to run slurmd -G. Returns a new reference, or NULL with err: it doesn't answer within
 * ms. */
void check_site_share(void);
json_t *check_site_ask(const struct check_site *site, bool gpus, int ms, struct tccl_error *err);

/* The slurmd of this node as its tccld sees it, or, without one, as this user does; pid 0: none. */
void check_site_slurmd(const struct check_site *site, struct tccl_slurmd *slurmd);

/* What a program prints; it is killed after its share of the time. Allocated; NULL: it isn't there,
 * or fails. */
char *check_site_run(const struct check_site *site, int ms, const char *const *words);

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

/* Are the file, and all directories of its path (links followed), accessible to all users? Looks at
 * mode bits only, because access() always succeeds for root. Returns true, also if there is no such
 * file; or false, with the first directory or file that is closed. */
bool check_open_to_all(const char *path, char closed[static PATH_MAX]);

/* ---- check-peers: can the tccld of another node be reached, and does it accept our credential? */

/* Asks the tccld of a node, also of this one, over TCP with a munge credential. Returns its answer
 * (NODE in profiler/client/README.md), a new reference, or NULL with err. */
json_t *check_peer(const struct tccl_conf *conf, const char *node, int64_t deadline,
                   struct tccl_error *err);

/* What to do about an error of check_peer: a static text. Equal advice has equal pointers. */
const char *check_peer_advice(const char *text);

/* ---- check-items: the items of tccl-check. Each reports its findings in result, changes nothing,
 * and is killed by the parent process if it takes too long. */

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

/* check-machine.c */
check_item check_item_machine; /* what of the machine slows transfers down */

/* check-item-shim.c */
check_item check_item_shim; /* the library for LD_PRELOAD exists and is readable for all */
check_item check_item_nccl; /* which NCCL this environment has: is it known? */

/* check-peers.c */
check_item check_item_peers;

/* ---- check-commands: the commands of tccl-check. Each prints its answer, or an error, and returns
 * the exit status. */

/* "tccl-check policy": which site policy applies to a job step, and why. */
int check_policy(const struct check_options *options);

/* "tccl-check step": has the plugin spoken for a job step on a node? */
int check_step(const struct check_options *options);
/* Reads JOB.STEP, the operand of that. Returns 0; -1: it is no step, or --node is missing. */
int check_step_named(const char *text, struct check_options *options);

/* "tccl-check machine": what of this machine slows transfers down, what mends it. */
int check_machine(const struct check_options *options);

/* "tccl-check --bundle": writes options->bundle, a tar.gz (mode 0600) of what somebody elsewhere
 * needs to see what is wrong: what tccl-check finds, configuration, versions, devices, log and
 * summary of the records, as far as the calling user may see them. What can't be had is in it with
 * the reason. Runs tar and the programs that are asked; changes nothing else. Says on standard
 * error what it waits for where that is a terminal. */
int check_bundle(const struct check_options *options);
