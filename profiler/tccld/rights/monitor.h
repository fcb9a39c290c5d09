/* monitor.h: what tccld does as root, where it runs as another user. A small process that stays
 * root, forked at the start, makes and opens munge's credentials, so that those between nodes are
 * root's whatever the user's number is on each of them, and keeps the job's file in /dev/shm. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <event2/event.h>

#include "base/error.h"
#include "client/conf.h"

/* shared-file.c: the file of a step's processes in /dev/shm, made ahead for the job's user, which
 * takes root, or CAP_CHOWN and CAP_FOWNER. */

/* Where it is, by name: SHARED_FOLDER/tccl-<uid>-<16 digits of the hash>.<index>. */
#define SHARED_FOLDER "/dev/shm"

struct shared_file {
    uid_t uid;     /* the job's user */
    gid_t gid;     /* whose group it gets; not part of its name */
    uint64_t hash; /* of the step's key */
    int32_t index; /* of the node in the step */
};

/* Makes it, empty, mode 0600 and the user's, in place of what others may have put there; one of the
 * user's own stays. As far as it goes: without, a step of several tasks has no ring. */
void shared_file_make(const struct shared_file *file);

/* Removes it, if it is there: whatever has the name. */
void shared_file_remove(const struct shared_file *file);

struct monitor;

/* Forks it. For root, with one thread, before tccld becomes another user. NULL with err. */
struct monitor *monitor_start(const char *munge_socket, struct tccl_error *err);

/* Has lost called on the event loop once the monitor has ended or hangs: no more can be done
 * without. Returns 0, or -1 with err. */
int monitor_watch(struct monitor *monitor, struct event_base *base, void (*lost)(void *context),
                  void *context, struct tccl_error *err);

/* Lets it end. NULL is fine. */
void monitor_free(struct monitor *monitor);

/* As tccl_cred_encode and tccl_cred_decode, from any thread. monitor NULL: these. */
int monitor_encode(struct monitor *monitor, const char *munge_socket, uid_t reader,
                   const char *data, size_t size, int64_t deadline, char **cred,
                   struct tccl_error *err);
int monitor_decode(struct monitor *monitor, const char *munge_socket, const char *cred,
                   int64_t deadline, uid_t *uid, char **data, size_t *size, struct tccl_error *err);

/* As shared_file_make and shared_file_remove, from the event loop or RunDir's thread, which waits
 * for MONITOR_FILE_MS at most. monitor NULL: root does it, and nobody else. */
enum { MONITOR_FILE_MS = 500 };
void monitor_make(struct monitor *monitor, const struct shared_file *file);
void monitor_remove(struct monitor *monitor, const struct shared_file *file);

/* drop.c: rights given up for good. */

/* From root to a user, in his groups, with no capability left and none to be had by a program that
 * is started. Of a process with one thread. Returns 0, or -1 with err: the process must end then.
 */
int drop_to_user(uid_t uid, struct tccl_error *err);

/* Root keeps his uid, CAP_CHOWN and CAP_FOWNER, and can open unix sockets only, and start no
 * program. For this thread and those that it starts. Returns 0, or -1 with err. */
int drop_to_monitor(struct tccl_error *err);

/* hand-over.c: the folders that tccld had as root become the user's that it runs as now. */

/* Makes the folders of tccl.conf that are not there, and gives what root has in them to the user:
 * as far as nobody but root can change them or the folders above. For root. What can't be given is
 * left, and the log says so. */
void hand_over(const struct tccl_conf *conf, uid_t uid);

/* monitor-wire: what tccld and its monitor say to each other. Both are one program, forked, so
 * these are plain structs. */

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
