/* plugin.h: the parts of the plugin that need no SPANK around them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "client/client.h"
#include "client/conf.h"
#include "client/hostlist.h"
#include "client/key.h"
#include "client/policy.h"
#include "client/step-fields.h"
#include "machine/machine.h"

/* ---- child-word: what a child finds out by calls that may hang, and have no deadline of their
 * own. It is no thread, since this process may be left, or unload the plugin, while a thread still
 * waits.
 */

/* Runs find in a child, which fills in its copy of word; size: at most PIPE_BUF. The child is
 * killed after ms. Returns 0 with word; 1: it said nothing in time; -1 with err. */
int child_word(void (*find)(const void *what, void *word), const void *what, void *word,
               size_t size, int ms, struct tccl_error *err);
/* Waits on the pipe fd for a word of so many bytes, written at once, until the deadline, as
 * tccl_now_ms has it. Returns 0 with word, or 1: there is none. */
int child_hear(int fd, int64_t deadline, void *word, size_t size);

/* ---- hung-stamp: RunDir/hung, a note that the tccld of this node did not answer a step: those
 * that start within a minute don't wait for it. */

enum { HUNG_MS = 60000 };

/* As root. As far as the disk allows; now: tccl_now_ms. */
void hung_stamp_put(const char *run_dir, int64_t now);
void hung_stamp_remove(const char *run_dir);
/* How long ago that was, milliseconds, less than HUNG_MS. -1: it wasn't, or somebody else says so.
 */
int64_t hung_stamp_age(const char *run_dir, int64_t now);

/* ---- nccl-look: which NCCL a program will load, as far as its environment says it. */

enum { NCCL_LOOK_PATH = 1024, NCCL_LOOK_MOST = 8 };

struct nccl_found {
    unsigned version; /* as ncclGetVersion counts; 0: it can't be told */
    char path[NCCL_LOOK_PATH];
};

/* What may be loaded, the likeliest first. */
struct nccl_look {
    int n;
    struct nccl_found found[NCCL_LOOK_MOST];
};

/* program: as it is started, by its path or a name for PATH; NULL: the Python of that environment.
 * Looks at files as the effective user: some 20 calls, none of them lists a folder, no allocation.
 * What LD_PRELOAD names is loaded for certain. Else only of Python (the interpreter, or a script
 * with its name in the first line) is it known where it looks: its packages, the lib of its prefix,
 * VLLM_NCCL_SO_PATH, LD_LIBRARY_PATH, the loader's own folders. Of other programs, which may be
 * containers or scripts that change the environment, nothing is known. */
void nccl_look(const char *program, char *const *env, struct nccl_look *look);

/* Whichever is loaded, it is one that isn't known: the first; else NULL. */
const struct nccl_found *nccl_look_unknown(const struct nccl_look *look);

/* ---- nccl-foresee: will the tasks of a step load an NCCL that isn't known? Looked at in
 * slurmstepd, before anything is promised. */

/* A program of a step, its environment and its user. */
struct nccl_task {
    const char *program; /* argv[0] */
    char *const *env;
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    int n_groups;
};

/* Which NCCL it is, where, and what to do; "": none is foreseen, or it can't be told. A child looks
 * (nccl-look.h), which becomes the user first, and is given up after ms. */
void nccl_foresee(const struct nccl_task *task, int ms, char *text, size_t size);

/* ---- notice: the one-line message to the user, with the prefix "tccl: ", without newline. */

enum { NOTICE_SIZE = 1024 };

/* The outcome of a step of n_nodes nodes in this mode. plan->reason is set where it failed, where
 * there is nothing to do, and if a planned ring will not be built. Returns false if there is no
 * message: in modes off and auto, and in state off. */
bool notice_of_plan(enum tccl_mode mode, const struct tccl_outcome *plan, int n_nodes,
                    char line[static NOTICE_SIZE]);

/* Replaces control characters by blanks, so that external text stays one line. */
void notice_clean(char *text);

/* ---- plugin-conf: the plugin's configuration: tccl.conf and the arguments in plugstack.conf. */

/* The file that the arguments in plugstack.conf give as config=PATH, the last one; NULL: none. */
const char *plugin_conf_path(int argc, char **argv);

/* Reads the file given as config=PATH (default: /etc/slurm/tccl.conf, which may be missing), then
 * the arguments Key=Value. node: this node's Slurm name, or NULL. Returns 0, or -1 with err that
 * names file and line, or the argument. On 0 tccl_conf_clear frees. */
int plugin_conf_read(int argc, char **argv, const char *node, struct tccl_conf *conf,
                     struct tccl_error *err);

/* ---- job-env: the environment variables of a step with a ring. Pure functions over an environment
 * array: they compute edits, which spank-remote.c applies. */

enum { JOB_ENV_EDITS = 16 };

/* One change: set name to value, or unset it where value is NULL. */
struct job_env_edit {
    const char *name; /* static */
    char *value;      /* allocated */
};

struct job_env_edits {
    struct job_env_edit list[JOB_ENV_EDITS];
    int count;
    bool failed; /* out of memory: some are missing */
};

void job_env_edits_clear(struct job_env_edits *edits);

/* The value of name, or NULL; borrowed from env. env ends with NULL and may be NULL itself. */
const char *job_env_get(char *const *env, const char *name);

/* The value of a variable as an unsigned integer; fallback if it is unset, not a number, or exceeds
 * 32 bits. */
uint32_t job_env_number(char *const *env, const char *name, uint32_t fallback);

/* The list LD_PRELOAD (separated by colons and blanks) without the elements equal to a or b (NULL
 * or
 * "": none). The others keep their order and separators. Allocated; NULL if out of memory. */
char *job_env_preload_without(const char *list, const char *a, const char *b);

/* Removes what was set for an outer step: TCCL_STATE, TCCL_REASON, TCCL_GBPS, TCCL_ALONE_GBPS,
 * TCCL_NEIGHBOURS_BY, TCCL_BASELINE_GBPS, TCCL_PLAN, TCCL_RING, TCCL_SHIM, from LD_PRELOAD the
 * elements shim (may be NULL) and $TCCL_SHIM, with TCCL_SHIM also JOB_ENV_ASAN from the front of
 * ASAN_OPTIONS, and what job_env_contain set. Options (TCCL=) and the user's own entries are kept.
 * Adds to edits. Returns 0, or -1 if out of memory. */
int job_env_forget(char *const *env, const char *shim, struct job_env_edits *edits);

/* Removes only the preload of this or an outer step: TCCL_SHIM and what was set with it. */
int job_env_unload(char *const *env, struct job_env_edits *edits);

/* A program built with AddressSanitizer's shared runtime exits at startup if another library is
 * loaded before the runtime, unless ASAN_OPTIONS contains this. */
#define JOB_ENV_ASAN "verify_asan_link_order=0"

/* Sets the variables for plan. If it has a ring, or a path (for groups alone), and shim is not
 * NULL, also puts shim first in LD_PRELOAD (as in env after job_env_forget) and JOB_ENV_ASAN first
 * in ASAN_OPTIONS, and sets TCCL_SHIM. Returns 0, or -1 if out of memory. */
int job_env_announce(char *const *env, const struct tccl_outcome *plan, const char *shim,
                     struct job_env_edits *edits);

/* For a job script without a ring of its own whose mpirun may start a step with one: TCCL_PLAN, and
 * shim as above. Returns 0, or -1 if out of memory. */
int job_env_prepare(char *const *env, const char *path, const char *shim,
                    struct job_env_edits *edits);

/* Apptainer passes LD_PRELOAD on to the programs in its containers. The shim's path does not exist
 * there, and ld.so prints an error for each program. APPTAINERENV_LD_PRELOAD (and SINGULARITYENV_…)
 * takes precedence (Apptainer's manual, "Environment and Metadata"). Sets it, unless the user did,
 * to the LD_PRELOAD from before job_env_announce, preceded by inside, the shim's path in containers
 * ("": not available there). The value begins with ':', by which nested steps recognise it.
 * Apptainer evaluates it like a shell, so nothing is set if inside or the user's own list contains
 * a '$'. Returns 0, or -1 if out of memory. */
int job_env_contain(char *const *env, const char *inside, struct job_env_edits *edits);

/* ---- step-info: the properties of a step on this node, from SPANK items and the job's
 * environment.
 */

enum { STEP_MAX_GPUS = 32 };

/* The SPANK items in slurmstepd; 0 if SPANK has none (S_JOB_NNODES of a batch step). */
struct step_items {
    uint32_t job, step, n_nodes, node, restart;
    uint32_t array_job,
        array_task; /* array_task is above the maximum if the job is not of an array */
    uint64_t now;   /* not SPANK's: unix time, milliseconds */
    uid_t uid;
    gid_t gid;
    const char *program; /* argv[0] of the tasks; NULL: not known */
};

/* Which daemon of an MPI launcher a step starts, by its argv[0] (may be NULL). */
enum step_daemon {
    STEP_DAEMON_NONE,
    STEP_DAEMON_BELOW, /* on all nodes that take part but the launcher's own, where ranks are its
                          children */
    STEP_DAEMON_ALL    /* on all nodes that take part */
};

enum step_kind {
    STEP_TASKS,     /* of srun */
    STEP_BATCH,     /* the job script: its own step on one node */
    STEP_SHELL,     /* salloc's interactive step: gets no ring of its own */
    STEP_CONTAINER, /* Slurm's extern step: no program of the user in it */
};

/* The place of this node in the step. */
struct step_place {
    char name[TCCL_HOST_NAME + 1]; /* this node's Slurm name; "" if unknown */
    bool first;                    /* the first node of the step, which prints its messages */
    bool placed;   /* nodes and node are valid: other nodes can be told about this one */
    bool spans;    /* one of several heterogeneous components that srun started together */
    bool speaks;   /* if spans: this node is the first of its component, and records it */
    int job_nodes; /* of the job; 0: not known */
    bool has_gpus; /* set even if they cannot be read, and n_gres is 0 */
};

/* A job submitted from within an array task inherits SLURM_ARRAY_JOB_ID and the like, and
 * slurmstepd uses them for its steps. In the script's own step slurmctld's data are used, so there
 * it is known that the job is not an array task: this variable is set to the job's id, and its
 * steps inherit it.
 */
#define STEP_NO_ARRAY "TCCL_NO_ARRAY"
/* In a batch step: must STEP_NO_ARRAY be set? */
bool step_info_needs_no_array(const struct step_items *items, char *const *env);

/* By the step id (S_JOB_STEPID). */
enum step_kind step_kind(uint32_t step);

/* Reads a step of any kind but STEP_CONTAINER, except mode, timeouts and minimums. Borrows
 * nothing from env. Returns 0, or -1 with err, the reason why this step cannot have a ring; name
 * and first are set as far as known. A step without GPUs is no error. tccl_step_clear frees. */
int step_info_read(const struct step_items *items, char *const *env, struct tccl_step *step,
                   struct step_place *place, struct tccl_error *err);

/* ---- policy-env: Environment= and TrafficClass= of policies in a step's environment. Pure
 * functions over an environment array; spank-remote.c applies what they compute. Steps of a job
 * script inherit what was set for the script; POLICY_ENV_LIST records it, so that it can be
 * removed. */

#define POLICY_ENV_LIST "TCCL_ENVIRONMENT" /* "NAME=value;NAME=value": what a policy has set */

/* The variables of a rule that are to be set: those that are not in env. network: NCCL's of
 * TrafficClass=; ring: those of Environment=. *list is allocated, in the form of POLICY_ENV_LIST,
 * or NULL: none. Returns 0, or -1 if out of memory. */
int policy_env_choose(char *const *env, const struct policy_rule *rule, bool network, bool ring,
                      char **list);

/* The class that the packets of a step have: what env says, else what the rule (NULL: none) sets.
 * "106/3", "106", "/3", or "": the default, or something that is not understood. */
void policy_env_class(char *const *env, const struct policy_rule *rule,
                      char text[static TCCL_TRAFFIC_CLASS + 1]);

/* The variables that a policy has set and that are unchanged since. *names is allocated, separated
 * by
 * ';', or NULL: none. Returns 0, or -1 if out of memory. */
int policy_env_inherited(char *const *env, char **names);

/* ---- policy-facts: the facts about a step that conditions of policies refer to. */

struct step_facts {
    struct policy_facts facts;
    char user[TCCL_STEP_TEXT + 1];
    struct tccl_machine *machine; /* NULL: not needed, or not readable */
    const char *models[STEP_MAX_GPUS];
};

/* Looks up the name of the step's uid (the number if it has none) and the models of its GPUs in
 * Machine=, each only if a policy of conf needs it, because a look-up of users may hang. facts
 * borrows from step and conf, and must not be moved. Returns 0, or -1 with err if the models are
 * unknown; the other facts are valid. step_facts_clear frees. */
int step_facts_read(const struct tccl_conf *conf, const struct tccl_step *step,
                    struct step_facts *facts, struct tccl_error *err);
void step_facts_clear(struct step_facts *facts);

/* ---- preload: the path that is put first in LD_PRELOAD of a step with a plan, if any. */

/* The path as ld.so expands it for programs of the same architecture as this plugin: $LIB and
 * ${LIB} are replaced by the system's library directory ("lib64", "lib/x86_64-linux-gnu").
 * Allocated; NULL if out of memory. */
char *preload_native(const char *path);

/* ld.so.2 and its like, NULL at the end: what programs of 32 bits are loaded by. */
#define PRELOAD_LOADERS                                                                            \
    (const char *const[])                                                                          \
    {                                                                                              \
        "/lib/ld-linux.so.2", "/libx32/ld-linux-x32.so.2", "/lib/ld-linux-armhf.so.3", NULL        \
    }

/* For a path with a $ in it ld.so asks /proc for the program's own, which takes as long as to load
 * the shim. Where the node has none of these loaders no program needs another folder, so Shim= of
 * conf becomes the path that it stands for. */
void preload_simplify(struct tccl_conf *conf, const char *const *loaders);

/* Can the effective user read the file, in this process's mount namespace? */
bool preload_readable(const char *path);
/* Has it a space or a colon, which LD_PRELOAD takes for the path's end? */
bool preload_cut(const char *path);

/* Does the environment have a container option of pyxis, as SPANK passes options to slurmstepd?
 * They are removed after slurm_spank_init. env may be NULL. */
bool preload_pyxis(char *const *env);

/* The path to put first in LD_PRELOAD, borrowed from conf; NULL with *why (static): none. pyxis:
 * the result of preload_pyxis. */
const char *preload_choose(const struct tccl_conf *conf, char *const *env, bool pyxis,
                           const char **why);

/* ---- printed: RunDir/printed, which messages the steps of a job have printed on this node, so
 * that a job of many steps prints each of them once. */

/* As root; makes the file if need be. Returns a descriptor for printed_before, which the caller
 * closes, or -1: nothing is known. */
int printed_open(const char *run_dir);

/* Has another step of this run of the job printed the same line on this node? Remembers it. False
 * also if that can't be told (fd -1, a full disk), and for the job script: there is one in each
 * run, and it isn't told which run that is. As any user. */
bool printed_before(int fd, const struct tccl_step_key *key, const char *line);

/* ---- step-end: a step is ended on all of its nodes. */

enum { STEP_END_MS = 10000 };

/* Has slurmctld send the step SIGKILL, as the effective user. Returns 0, or -1 with err: it
 * refused, or did not answer within STEP_END_MS. */
int step_end(const struct tccl_step_key *key, struct tccl_error *err);

/* ---- step-signal: is this step about to be cancelled, while its tasks have not started? */

enum { SIGNAL_PEERS = 16, SIGNAL_HELD_MS = 300 };

struct signal_watch {
    char socket[320];             /* its last component, "/n1_7.0" */
    int64_t since;                /* when `held` was looked up, tccl_now_ms */
    int n_first, n_held;          /* connections by their inodes: */
    uint64_t first[SIGNAL_PEERS]; /* that were there at the beginning, */
    uint64_t held[SIGNAL_PEERS];  /* and SIGNAL_HELD_MS ago at least */
};

/* The step of this slurmstepd, on that node. */
void signal_watch_begin(struct signal_watch *watch, const char *node, uint32_t job, uint32_t step);
/* Has somebody waited for SIGNAL_HELD_MS for slurmstepd to answer? To be called now and then. */
bool signal_watch_look(struct signal_watch *watch, int64_t now);

/* ---- task-gpus: do the tasks of a step see all of its GPUs on the node, or only their own? */

/* What srun hands on to slurmstepd, as it was typed. Slurm keeps SLURM_* for --export=NONE. */
#define TASK_GPUS_OPTION "SLURM_TCCL_GPU_OPTION"

/* In srun: remembers in the environment which option gives tasks GPUs of their own. words: the
 * command line up to the program. */
void task_gpus_note(char *const *words, int count);

/* In slurmstepd: has the step parts of GPUs, by its environment? Others compute on the rest of
 * them. Returns 0: no; -1 with err, which says so. */
int task_gpus_check(char *const *env, struct tccl_error *err);

/* In slurmstepd: do tasks see only some of the step's n_gpus here, by its environment and
 * slurm_conf (its path; NULL: not known)? Then option is which option makes it so. */
enum { TASK_GPUS_TEXT = 200 };
bool task_gpus_hidden(char *const *env, int n_gpus, const char *slurm_conf,
                      char option[static TASK_GPUS_TEXT]);

/* How many GPUs each task sees with this option, as it was typed; n_gpus: all of them. */
int task_gpus_seen(const char *option, int n_gpus);
