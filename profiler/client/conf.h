/* conf.h: tccl.conf: its keys, its policies, and what it says of this node. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "client/key.h"

/* ---- conf-value: keys of tccl.conf, and the setters that keys of several sections share. */

struct tccl_conf;
struct tccl_key;

/* Sets a field to a value; conf: for paths, may be NULL. Returns 0; 1: it is not what the key's
 * give says; -1 with err. Then the field is as it was. */
#define TCCL_SETTER(name)                                                                          \
    int name(const struct tccl_key *key UNUSED, void *field, const struct tccl_conf *conf UNUSED,  \
             const char *value, struct tccl_error *err UNUSED)
typedef TCCL_SETTER(tccl_setter);

/* A key, what holds without it, as it would be written, how its value is set, and what may be
 * given. field: offset bytes into the struct of the key's table. */
struct tccl_key {
    const char *name, *normal; /* normal: NULL: nothing is set */
    tccl_setter *set;
    int min, max;     /* of numbers (durations: ms); of paths: bytes */
    const char *give; /* for "KEY=VALUE: give GIVE"; NULL: the setter says it */
    size_t offset;
};
/* KEY lines of the tables in this header (type, member, dimension of the member, then
 * name to give of struct tccl_key), as members of a struct, and as rows of its table. */
#define TCCL_KEY_MEMBER(type, member, dimension, ...) type member dimension;
#define TCCL_KEY_ROW(type, member, dimension, ...) {__VA_ARGS__, FIELD(member)},

/* The key of that name (case-insensitive) in a table; NULL: none. */
const struct tccl_key *tccl_key_find(const struct tccl_key *keys, int count, const char *name);
/* Sets the key's field of the struct at base. Returns 0, or -1 with err, which says what is
 * allowed. */
int tccl_key_set(const struct tccl_key *key, void *base, const struct tccl_conf *conf,
                 const char *value, struct tccl_error *err);

/* A whole number without sign, of at most 9 digits; moves *text behind it. -1: there is none. */
long tccl_value_number(const char **text);

/* A name that stands alone in a list: letters, digits and . _ - @ + $ \, no '-' in front. */
bool tccl_value_word(const char *text, size_t length);

/* Setters. Fields: char * (names with commas between them, allocated; NULL for an empty value),
 * int, int (milliseconds), int (an enum tccl_mode), int (yes: 1, no: 0). */
tccl_setter tccl_set_list, tccl_set_count, tccl_set_duration, tccl_set_mode, tccl_set_yes;

/* ---- policy-conf: the policies of tccl.conf: [policy], and the rules [policy NAME]. What they
 * mean for a step: client/policy.h. */

enum tccl_mode { TCCL_MODE_OFF, TCCL_MODE_AUTO, TCCL_MODE_ON, TCCL_MODE_REQUIRE };

/* "on" -> TCCL_MODE_ON, in any case of letters; -1 with err that lists what is allowed. */
int tccl_mode_parse(const char *text, struct tccl_error *err);
const char *tccl_mode_name(enum tccl_mode mode);
extern const char *const tccl_mode_names[]; /* in the order of the modes, NULL behind the last */

enum {
    TCCL_POLICY_NAME = 32,        /* bytes of a policy's name */
    TCCL_POLICIES_MAX = 256,      /* in one file */
    TCCL_POLICY_ENVIRONMENT = 16, /* variables of one policy */
    TCCL_TRAFFIC_CLASS = 15,      /* bytes of "106/3", and room */
    TCCL_NOT_SET = -1,
};

/* max 0: not given. "4-" has max INT_MAX. */
struct tccl_range {
    int min, max;
};

/* Of a job's packets on the network; TCCL_NOT_SET: not given. */
struct tccl_traffic_class {
    int tc; /* 0 to 255, of RoCE: NCCL_IB_TC */
    int sl; /* 0 to 15, the service level of InfiniBand: NCCL_IB_SL */
};

/* What holds for a step: own, of [policy], of [tccl], in this order. */
/* clang-format off */
#define TCCL_POLICY_SETTINGS(KEY) \
    KEY(int, mode, , "Default", "off", tccl_set_mode, 0, 0, "off, auto, on or require") /* enum tccl_mode */ \
    KEY(int, min_nodes, , "MinNodes", "1", tccl_set_count, 1, NODES_MAX, NULL) \
    KEY(int, min_gpus, , "MinGpus", "2", tccl_set_count, 1, GPUS_MAX, NULL) \
    KEY(int, min_gain, , "MinGain", "1x", set_gain, 1000, 100000, GAIN) /* thousandths: 1100 for 1.1x */ \
    KEY(int, trial, , "Trial", "0%", set_trial, 0, 50000, SHARE) /* thousandths of a percent */ \
    KEY(int, max_rings, , "MaxRings", NULL, tccl_set_count, 1, 8, NULL) \
    KEY(int, forbid, , "Forbid", "no", tccl_set_yes, 0, 0, "yes or no") \
    KEY(int, timeout_ms, , "Timeout", NULL, tccl_set_duration, 10, 300000, NULL) \
    KEY(int, auto_timeout_ms, , "AutoTimeout", NULL, tccl_set_duration, 10, 300000, NULL) \
    KEY(int, require_timeout_ms, , "RequireTimeout", NULL, tccl_set_duration, 10, 300000, NULL) \
    KEY(struct tccl_traffic_class, traffic_class, , "TrafficClass", NULL, set_traffic_class, 0, 255, CLASS)
/* What must all hold; NULL or max 0: not given. Lists have commas between their items, which are
 * shell patterns but for node_list (all nodes of the step are in it) and gpu_types (lower case,
 * blanks as '_'). [policy] has partitions only. */
#define TCCL_POLICY_CONDITIONS(KEY) \
    KEY(char *, partitions, , "Partitions", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, accounts, , "Accounts", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, qos, , "Qos", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, users, , "Users", NULL, set_patterns, 0, 0, PATTERNS) \
    KEY(char *, job_names, , "JobNames", NULL, set_patterns, 1, 0, PATTERNS) \
    KEY(char *, node_list, , "NodeList", NULL, set_node_list, 0, 0, "node names, such as n[1-4],m2") \
    KEY(struct tccl_range, nodes, , "Nodes", NULL, set_range, 1, NODES_MAX, NULL) \
    KEY(struct tccl_range, gpus, , "Gpus", NULL, set_range, 1, GPUS_MAX, NULL) \
    KEY(char *, gpu_types, , "GpuTypes", NULL, set_gpu_types, 1, 0, PATTERNS)
/* clang-format on */

/* TCCL_NOT_SET: not said here. */
#define TCCL_SETTING_SIZE(type, ...) +sizeof(type) / sizeof(int)
enum { TCCL_SETTINGS = 0 TCCL_POLICY_SETTINGS(TCCL_SETTING_SIZE) };
#define TCCL_SETTINGS_MEMBERS                                                                      \
    union {                                                                                        \
        struct {                                                                                   \
            TCCL_POLICY_SETTINGS(TCCL_KEY_MEMBER)                                                  \
        };                                                                                         \
        int settings[TCCL_SETTINGS];                                                               \
    }

struct tccl_policy {
    char name[TCCL_POLICY_NAME + 1]; /* "" of [policy] */
    TCCL_POLICY_CONDITIONS(TCCL_KEY_MEMBER)
    TCCL_SETTINGS_MEMBERS;
    char **environment; /* "NAME=value" */
    int n_environment;
    bool never; /* it matches nothing: see tccl_conf_read_as */
};

/* A policy that says nothing; "": [policy], with its built-in values. */
struct tccl_policy tccl_policy_new(const char *name);
void tccl_policy_clear(struct tccl_policy *policy);

/* Is this a name for a policy: 1 to TCCL_POLICY_NAME letters, digits, '.', '_' and '-'? */
bool tccl_policy_name_valid(const char *name);

/* Sets one key. A list that is given again goes on (not so in [policy]), so does Environment; of
 * other keys the last value holds. Returns 0; 1 if there is no such key; -1 with err. */
int tccl_policy_set(struct tccl_policy *policy, const char *key, const char *value,
                    struct tccl_error *err);

/* Key i of [policy] (named: of [policy NAME]), NULL behind the last. */
const char *tccl_policy_key(bool named, int i);

/* The name part of "NAME=value" in bytes. */
int tccl_policy_variable(const char *assignment);

/* ---- conf: tccl.conf (INI, read with libinih) and what it says of this node. */

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
    bool own;                /* read for the plugin */
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
 * right; the caller clears it in any case. And for the plugin, which asks this node's tccld alone:
 * without [peers], mistakes there included, and unknown keys are passed over. A [policy NAME] with
 * one never matches. */
enum tccl_conf_reader { TCCL_CONF_TOOL, TCCL_CONF_CHECK, TCCL_CONF_PLUGIN };
int tccl_conf_read_as(enum tccl_conf_reader who, const char *path, const char *node,
                      struct tccl_conf *conf, struct tccl_error *err);
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
