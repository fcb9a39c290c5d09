/* conf.h: tccl.conf (INI, read with libinih) and what it says of this node. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "client/conf-value.h"
#include "client/key.h"
#include "client/policy-conf.h"

enum { TCCL_CONF_NAME = 256 };

/* [peers]: where the tccld of a node listens, if not at its own name; and nodes without rings. */
struct tccl_peer {
    char node[TCCL_CONF_NAME];
    char host[TCCL_CONF_NAME];
    uint16_t port;
    int line; /* of the file */
    int down; /* the line that excludes it from rings (n7=down); 0: none does */
};

/* The keys of [tccl]: KEY(type, member, dimension, name, what holds without it, setter, least and
 * most, what may be given). To add a key, add its line, and say in tccl.conf(5) when one sets it.
 */
/* clang-format off */
#define TCCL_CONF_KEYS(KEY) \
    KEY(char, socket, [PATH_MAX], "Socket", TCCL_RUNSTATEDIR "/tccl/tccld.sock", set_path, 1, SOCKET_MAX, PATH) \
    KEY(char, run_dir, [PATH_MAX], "RunDir", TCCL_RUNSTATEDIR "/tccl", set_path, 1, PATH_LONGEST, PATH) \
    KEY(char, cache_dir, [PATH_MAX], "CacheDir", TCCL_LOCALSTATEDIR "/cache/tccl", set_path, 1, PATH_LONGEST, PATH) \
    KEY(char, state_dir, [PATH_MAX], "StateDir", TCCL_LOCALSTATEDIR "/lib/tccl", set_path, 1, PATH_LONGEST, PATH) \
    KEY(char, machine, [PATH_MAX], "Machine", NULL, set_path, 1, PATH_LONGEST, PATH) /* NULL: in StateDir */ \
    KEY(char, shim, [PATH_MAX], "Shim", TCCL_SHIM, set_path, 1, PATH_LONGEST, PATH) \
    KEY(char, container_shim, [PATH_MAX], "ContainerShim", NULL, set_path, 0, PATH_LONGEST, PATH) \
    KEY(char, munge_socket, [PATH_MAX], "MungeSocket", NULL, set_path, 0, SOCKET_MAX, PATH) \
    KEY(char, bind_addr, [TCCL_CONF_NAME], "BindAddr", NULL, set_address, 0, 0, "an address or a host name of this node, or nothing") \
    KEY(uint16_t, port, , "Port", "8517", set_port, 1, 65535, NULL) \
    KEY(char, cluster, [TCCL_KEY_CLUSTER + 1], "Cluster", NULL, set_cluster, 0, 0, "the name of a cluster, of at most 63 bytes") \
    KEY(char, accounting_host, [TCCL_CONF_NAME], "AccountingHost", NULL, set_node, 0, 0, "the name of one node") \
    KEY(char, tccld_user, [TCCL_CONF_NAME], "TccldUser", "tccl", set_user, 0, 0, USER) \
    KEY(char, munge_user, [TCCL_CONF_NAME], "MungeUser", "root", set_user, 0, 0, USER) \
    KEY(char, slurm_user, [TCCL_CONF_NAME], "SlurmUser", "slurm", set_user, 0, 0, USER) \
    KEY(char *, admins, , "Admins", NULL, tccl_set_list, 0, 0, "names with commas between them, no spaces") \
    KEY(int, keep_days, [2], "KeepRecords", "forever", set_keep, 1, 36500, NULL) /* all records, misdated ones; 0: forever */ \
    KEY(char, squeue, [PATH_MAX], "Squeue", "squeue", set_program, 0, PATH_LONGEST, "the name of a program, its whole path, or none") \
    KEY(char, metrics_file, [PATH_MAX], "MetricsFile", NULL, set_path, 0, PATH_LONGEST, PATH) \
    KEY(int, timeout_ms, , "Timeout", "30s", tccl_set_duration, 10, 300000, NULL) \
    KEY(int, auto_timeout_ms, , "AutoTimeout", "2s", tccl_set_duration, 10, 300000, NULL) \
    KEY(int, require_timeout_ms, , "RequireTimeout", "60s", tccl_set_duration, 10, 300000, NULL) \
    KEY(int, max_rings, , "MaxRings", "8", tccl_set_count, 1, 8, NULL) \
    KEY(int, alive_timeout_ms, , "AliveTimeout", "3s", tccl_set_duration, 10, 60000, NULL) \
    KEY(bool, evidence, , "Evidence", "on", set_on, 0, 0, "on or off") \
    KEY(int, evidence_users, , "EvidenceUsers", "3", tccl_set_count, 1, 32, NULL) \
    KEY(bool, achieved, , "Achieved", "on", set_on, 0, 0, "on or off")
/* clang-format on */
#define TCCL_KEY_COUNT(...) +1
enum { TCCL_N_CONF_KEYS = 0 TCCL_CONF_KEYS(TCCL_KEY_COUNT) };

/* Texts are "" where nothing is set, pointers NULL. */
struct tccl_conf {
    char path[PATH_MAX];
    char node[TCCL_CONF_NAME]; /* this node's Slurm name, %n in paths */
    TCCL_CONF_KEYS(TCCL_KEY_MEMBER)
    struct tccl_policy policy;    /* [policy]: where no other one matches */
    struct tccl_policy *policies; /* [policy NAME], in the order of the file */
    int n_policies;
    bool own;                /* read by tccl_conf_read_own */
    int passed_over;         /* the first line that it has not understood; 0: none */
    struct tccl_peer *peers; /* in the order of their names */
    int n_peers;
    int n_down;                  /* of these */
    int lines[TCCL_N_CONF_KEYS]; /* see tccl_conf_line */
};

/* Built-in values; then the file, if path is not NULL; %n and %h (short host name) are replaced in
 * paths; ' #' and ' ;' begin a comment. node: this node's Slurm name, NULL: the short host name. A
 * missing file at the default path /etc/slurm/tccl.conf (path NULL) is no error. An unknown section
 * or key, or a bad value, is: err names file, line, key, and what is allowed. Returns 0 or -1.
 * tccl_conf_clear frees. */
int tccl_conf_read(const char *path, const char *node, struct tccl_conf *conf,
                   struct tccl_error *err);
/* The same for tccl-check, which reads past mistakes: of -1 err has the first one, and conf what is
 * right. The caller clears it in any case. */
int tccl_conf_read_past(const char *path, const char *node, struct tccl_conf *conf,
                        struct tccl_error *err);
/* The same for the plugin, which asks this node's tccld alone: without [peers], mistakes there
 * included, and unknown keys are passed over. A [policy NAME] with one never matches. */
int tccl_conf_read_own(const char *path, const char *node, struct tccl_conf *conf,
                       struct tccl_error *err);
/* Overrides one key of [tccl] or [policy], as plugstack arguments do: "Timeout=1s"; of a key that
 * both have, that of [tccl]. A Port does not reach peers that were read without one. Returns 0 or
 * -1. */
int tccl_conf_override(struct tccl_conf *conf, const char *assignment, struct tccl_error *err);
void tccl_conf_clear(struct tccl_conf *conf);

/* The line of the file that sets this key of [tccl]; 0: none does, or it was overridden. */
int tccl_conf_line(const struct tccl_conf *conf, const char *key);

/* For tools only, never for the plugin: the file to read: option if it is not NULL, else $TCCL_CONF
 * (which a set-user-id program doesn't look at), else NULL for the default path. */
const char *tccl_conf_tool_path(const char *option);

/* The [peers] entry of a node, or NULL. */
const struct tccl_peer *tccl_conf_peer(const struct tccl_conf *conf, const char *node);

/* ---- peers: where the tccld of a node listens. */

/* Host and port of a node's tccld: its entry in [peers], else its own name and Port=. *host is
 * borrowed from conf or is node itself. */
void tccl_peer_find(const struct tccl_conf *conf, const char *node, const char **host,
                    uint16_t *port);

/* The first of these nodes that [peers] excludes from rings, NULL: none. *more: how many others
 * are.
 */
const struct tccl_peer *tccl_peer_down(const struct tccl_conf *conf, char *const *nodes, int count,
                                       int *more);
