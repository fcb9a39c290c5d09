/* profile-command.h: the commands of tccl-profile. Each returns the program's exit status, or -1
 * with err, which is still to be said. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "measure/backends/backend.h"
#include "profile/cache.h"

struct profile_options {
    const char *cache;      /* --cache, or CacheDir of tccl.conf */
    const char *node;       /* Machine of tccl.conf: this node's description */
    const char *node_name;  /* this node's name in Slurm */
    const char *munge;      /* MungeSocket of tccl.conf */
    const char *munge_user; /* MungeUser of tccl.conf */
    const char *model;      /* --model */
    const char *machine;    /* --machine */
    const char *gpus;       /* --gpus */
    const char *splits;     /* --splits; NULL: halves and quarters */
    const char *backend;    /* --backend; NULL: what fits */
    const char *topology;   /* --topology: recorded by lstopo */
    const char *peer;       /* --peer */
    const char *listen;     /* --listen; NULL: the addresses of the NICs, the usual port */
    const char *html;       /* --html */
    const char *slurm;      /* --slurm: a version */
    const char *profile;    /* the operand: folder, machine id or name */
    double gap;
    double noise;       /* --noise: of the back end "noisy" */
    unsigned long seed; /* --seed: of its errors */
    long budget;        /* sets; -1: the command's own */
    double seconds;     /* the budget, where it is a time; 0: none */
    int window_ms;      /* of each run; 0: the back end's own */
    int repeats;        /* 0: the back end's own */
    int pairs;
    int devices;
    bool no_munge; /* --no-munge: nobody has to prove who they are */
    bool neighbours, engine, force, check, quick, json, quiet;
};

int profile_run(const struct profile_options *options, struct tccl_error *err);
int profile_init(const struct profile_options *options, struct tccl_error *err);
int profile_show(const struct profile_options *options, struct tccl_error *err);
int profile_list(const struct profile_options *options, struct tccl_error *err);
int profile_verify(const struct profile_options *options, struct tccl_error *err);
int profile_peer(const struct profile_options *options, struct tccl_error *err);

/* Writes down for tccld what this node found out about its profile, "measured" or a verdict of the
 * check; worst: see verdict.h. Where that can't be written, a line says so. */
void profile_note_verdict(const struct profile_options *options, const struct tccl_profile *profile,
                          const char *found, double worst);

/* The same, of a profile. check: run --check. */
typedef int profile_act(const struct profile_options *options, struct tccl_profile *profile,
                        struct tccl_error *err);
profile_act profile_report, profile_gres, profile_check;

/* profile-odd.c: looks at the links of GPUs and NICs, once a second at most, while something is
 * measured (root: in front of /sys, for tests; NULL: none); says at the end which GPUs' were slow
 * all the time, and which figures of the profile are off among equals: lines "tccl: note: …". */
void profile_watch_links(const char *root);
/* What was seen goes to the profile, which is open for writing. */
void profile_keep_links(struct tccl_profile *profile);
void profile_say_links(const struct tccl_machine *machine, FILE *out);
void profile_say_odd(struct tccl_profile *profile, FILE *out);

/* Lets act have the profile that is meant. Returns what it does, or -1 with err. */
int profile_with(const struct profile_options *options, profile_act *act, struct tccl_error *err);

/* Prints "tccl: text" to stderr. Returns 1, the exit status. */
int profile_complain(const struct tccl_error *err);
/* Number of measured sets, or of what was measured together; -1 with err: the log is bad. Says that
 * its last line is torn, unless quiet; as the next one does for it alone. */
long profile_count(const struct tccl_profile *profile, bool together, bool quiet,
                   struct tccl_error *err);
void profile_say_torn(const struct tccl_profile *profile, const char *log);
/* Prints JSON and a newline to stdout; drops the reference. Returns 0, or 1 with a message. */
int profile_print(json_t *json);

/* Has there been a SIGINT, SIGTERM or SIGHUP since run began? A second one ends the program. */
bool profile_interrupted(void);

/* Opens the back end that is meant: --backend; else usual, where it isn't NULL; else what fits.
 * Returns 0, or -1 with err. */
int profile_open_backend(const struct profile_options *options, const char *usual,
                         struct tccl_backend **backend, struct tccl_error *err);

/* Whom a peer serves, and who may run the one that run measures against. Returns 0, or -1 with err.
 */
int profile_trust(const struct profile_options *options, struct tccl_trust *trust,
                  struct tccl_error *err);

/* Opens the profile that is meant: by operand; else this node's; else the only one there is.
 * Returns 0, or -1 with err. */
int profile_choose(const struct profile_options *options, struct tccl_profile **profile,
                   struct tccl_error *err);

/* The machine of --model, of --topology, cores with --backend host; else this machine. Of a model
 * only the machine is filled in. Returns 0, or -1 with err. */
struct tccl_found; /* discover/discover.h */
int profile_machine(const struct profile_options *options, struct tccl_found *found,
                    struct tccl_error *err);

/* As if only the description were known. */
void profile_machine_only(const struct tccl_machine *machine, struct tccl_found *found);
