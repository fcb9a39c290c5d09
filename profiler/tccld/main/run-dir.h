/* run-dir.h: what is done to files in RunDir. It is in memory as a rule, and nobody waits for that.
 * Where a site has it on a disk, that may hang: a thread of its own does it, one after the other,
 * and only this thread hangs then. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <event2/event.h>

#include "base/error.h"

/* So long does the event loop wait for it, once for each time that it hangs. The monitor's time
 * fits in. */
enum { RUN_DIR_MS = 1000 /* whole seconds */ };

struct run_dir;

/* Before anything else is done there: returns once RunDir takes writes; the log says so where it
 * does not within RUN_DIR_MS. A child tries it, so that this process can be ended meanwhile. */
void run_dir_await(const char *path);
/* Writes, as a sweep would, and changes nothing: a file system that takes that goes on. */
void run_dir_try(void *path);

/* Whether it needs no thread, which a JOIN would wait for twice. */
bool run_dir_in_memory(const char *path);

/* NULL with err. */
struct run_dir *run_dir_new(struct event_base *base, struct tccl_error *err);
/* Waits for what is under way, RUN_DIR_MS at most. NULL is fine. Returns 0; 1: it hangs, and is
 * left to the end of the process with all that its tasks use. */
int run_dir_free(struct run_dir *run_dir);

/* Has act called with a copy of the task's size bytes, and waits for it. Returns 0: the copy is
 * back in task. -1, with err: RunDir does not answer. The copy is given to late (unless that is
 * NULL) then, in the thread once act has ended after all (ran), or here, as act has not been
 * called. For the event loop alone; run_dir NULL: act is called here and now. */
int run_dir_do(struct run_dir *run_dir, void (*act)(void *task), void (*late)(void *task, int ran),
               void *task, size_t size, struct tccl_error *err);
