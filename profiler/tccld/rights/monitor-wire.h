/* monitor-wire.h: what tccld and its monitor say to each other. Both are one program, forked, so
 * these are plain structs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tccld/rights/monitor.h"

enum {
    MONITOR_CHANNELS = 4,            /* credentials under way at a time: as many as munge threads */
    MONITOR_FRAME = 2 * 1024 * 1024, /* bytes; munge itself takes 1 MiB */
};

enum monitor_act { MONITOR_ENCODE = 1, MONITOR_DECODE, MONITOR_MAKE, MONITOR_REMOVE };

/* On a channel: a frame (client/frame.h) of this and the message or credential, */
struct monitor_question {
    int32_t act; /* MONITOR_ENCODE, MONITOR_DECODE */
    uint32_t reader;
    int64_t deadline; /* tccl_now_ms */
};

/* and a frame of this and the credential, the message, or the text of an error. */
struct monitor_answer {
    int32_t failed; /* 0 or -1 */
    uint32_t uid;   /* who has made the credential */
};

/* One packet; the answer is its number. */
struct monitor_file {
    int32_t act; /* MONITOR_MAKE, MONITOR_REMOVE */
    uint32_t number;
    struct shared_file file;
};

/* Is it a message of tccl's, which can't be taken for anything that other programs put into munge's
 * credentials? Slurm's own are packed numbers, and would be a job's far beyond its largest. */
bool monitor_is_message(const char *data, size_t size);

/* monitor-serve.c: the monitor's process. */

/* What it is given: the other ends of tccld's sockets. */
struct monitor_service {
    const char *munge_socket;
    int channels[MONITOR_CHANNELS]; /* SOCK_STREAM */
    int files;                      /* SOCK_SEQPACKET; once it is closed, the monitor ends */
};

/* Gives up what it doesn't need, and serves until tccld ends. For a process that has just been
 * forked and has one thread. */
_Noreturn void monitor_serve(const struct monitor_service *service);
