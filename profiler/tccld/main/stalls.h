/* stalls.h: a system call that holds the event loop up is interrupted. A user can pass a TCP socket
 * over the unix socket that waits for him when it is closed (SO_LINGER), and what is passed ends
 * with us, in a recv(2) or close(2) of the loop. Kernels from 6.16 on refuse such messages; on
 * others each of them costs some hundredths of a second in place of minutes. */
#ifndef TCCL_STALLS_H
#define TCCL_STALLS_H

#include <event2/event.h>

struct stalls;

/* For the loop of the thread that calls this. NULL without memory. Nothing runs yet. */
struct stalls *stalls_new(struct event_base *base);
/* More (1) or less (-1) connections over which something may be passed. As long as there are any,
 * and for a second after that, a thread looks whether the loop goes on. NULL is fine. */
void stalls_watch(struct stalls *stalls, int change);
void stalls_free(struct stalls *stalls); /* NULL is fine */

#endif
