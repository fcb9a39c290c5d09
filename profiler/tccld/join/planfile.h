/* planfile.h: RunDir/<step>/plan, what a node's tasks read of the ring. */
#ifndef TCCL_PLANFILE_H
#define TCCL_PLANFILE_H

#include <limits.h>

#include "base/lines.h"
#include "client/client.h"
#include "tccld/rights/monitor.h"

#define PLANFILE_NAME "tccl-plan"
enum { PLANFILE_VERSION = 1 };

/* Begins the lines of a plan. */
void planfile_begin(struct tccl_line_writer *plan, char text[static TCCL_LINES_SIZE]);
/* Ends them, and writes the plan of a step: mode 0600, with an ACL for the job's user, or, without
 * ACLs, 0640 root:gid as root. path gets its name. By the monitor, or as root, the runtime shim's
 * file is made, too (rights/shared-file.h). Returns 0, or -1 with err: nothing is then left of the
 * plan. */
int planfile_write(const char *run_dir, const struct tccl_step_key *key, gid_t gid,
                   struct tccl_line_writer *plan, struct monitor *monitor,
                   char path[static PATH_MAX], struct tccl_error *err);

/* RunDir/<job>.launcher leads to the folder of the step that an MPI launcher of this job has
 * started last. Ranks that have the job script's environment find their plan by it. */
#define PLANFILE_LAUNCHER ".launcher"
void planfile_link(const char *run_dir, const struct tccl_step_key *key);
/* Removes it if it leads there. */
void planfile_unlink(const char *run_dir, const struct tccl_step_key *key);

/* Reads a plan that is there, into text. Returns 0, or -1: there is none, or not a whole one. */
int planfile_read(const char *run_dir, const struct tccl_step_key *key,
                  char text[static TCCL_LINES_SIZE], struct tccl_lines *plan);

/* A text kept beside a plan until it is removed or replaced. As far as the disk allows. */
enum { PLANFILE_NOTE = 256 * 1024 /* what is longer is cut when it is read */ };
void planfile_note(const char *run_dir, const struct tccl_step_key *key, const char *text);
/* Allocated (caller frees); NULL: there is none. */
char *planfile_noted(const char *run_dir, const struct tccl_step_key *key);

/* Removes a step's plan and its folder, if they are there, and, by the monitor, or as root, the
 * runtime shim's file. */
void planfile_remove(const char *run_dir, const struct tccl_step_key *key, struct monitor *monitor);

/* The same by the folder's name, for the sweeping of RunDir. Does the name look like one? */
bool planfile_is_folder(const char *name);
int planfile_read_folder(const char *run_dir, const char *name, char text[static TCCL_LINES_SIZE],
                         struct tccl_lines *plan);
/* Is it a folder of ours without a plan? A tccld was killed while it made or removed it. */
bool planfile_lacks_plan(const char *run_dir, const char *name);
/* Returns 0, or -1: it is not there, or no folder of ours. */
int planfile_remove_folder(const char *run_dir, const char *name, struct monitor *monitor);

#endif
