/* monitor.h: what tccld does as root, where it runs as another user. A small process that stays
 * root, forked at the start, makes and opens munge's credentials, so that those between nodes are
 * root's whatever the user's number is on each of them, and keeps the job's file in /dev/shm. */
#ifndef TCCL_MONITOR_H
#define TCCL_MONITOR_H

#include <event2/event.h>

#include "base/error.h"
#include "tccld/rights/shared-file.h"

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

#endif
