/* planfile.h: the file of a step, RunDir/STEP/plan: the lines that a node's tasks read of the ring
 * or of their groups, if the step has a plan, and behind them its record (running.h). */
#pragma once

#include <limits.h>

#include <jansson.h>

#include "base/lines.h"
#include "client/client.h"
#include "tccld/rights/monitor.h"

#define PLANFILE_NAME "tccl-plan"
enum { PLANFILE_VERSION = 1 };

/* Begins the lines of a plan. */
void planfile_begin(struct tccl_line_writer *plan, char text[static TCCL_LINES_SIZE]);
/* Ends them, and writes them with the record of the step: mode 0600 with an ACL for the job's user,
 * or, without ACLs, 0640 root:gid as root. path gets the file's name. By the monitor, or as root,
 * the runtime shim's file is made, too (rights/shared-file.h). Returns 0, or -1 with err: nothing
 * is then left of the plan. */
int planfile_write(const char *run_dir, const struct tccl_step_key *key, gid_t gid,
                   const char *record, struct tccl_line_writer *plan, struct monitor *monitor,
                   char path[static PATH_MAX], struct tccl_error *err);
/* Removes the file, the link to it, and the shim's file: the record is to be written anew. */
void planfile_take_back(const char *run_dir, const struct tccl_step_key *key,
                        struct monitor *monitor);

/* Writes the record of the step with that folder (tccl_key_folder) anew, behind the plan that is
 * there, or alone: mode 0600. Returns 0, or -1 with err. */
int planfile_record(const char *run_dir, const char *name, const char *record,
                    struct tccl_error *err);
/* A new reference; NULL: there is none, or no whole one. */
json_t *planfile_read_record(const char *run_dir, const char *name);

/* RunDir/<job>.launcher leads to the folder of the step that an MPI launcher of this job has
 * started last. Ranks that have the job script's environment find their plan by it. */
#define PLANFILE_LAUNCHER ".launcher"
void planfile_link(const char *run_dir, const struct tccl_step_key *key);

/* Removes a step's file and its folder, if they are there, the link to it, and, by the monitor, or
 * as root, the runtime shim's file. */
void planfile_remove(const char *run_dir, const struct tccl_step_key *key, struct monitor *monitor);

/* The same by the folder's name, for the sweeping of RunDir. Does the name look like one? */
bool planfile_is_folder(const char *name);
/* Is it a folder of ours without a plan? If there is no record, either, a tccld was killed while it
 * made or removed it. */
bool planfile_lacks_plan(const char *run_dir, const char *name);
/* Returns 0, or -1: it is not there, or no folder of ours. */
int planfile_remove_folder(const char *run_dir, const char *name, struct monitor *monitor);
