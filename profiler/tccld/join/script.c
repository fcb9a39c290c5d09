/* Job scripts. Open MPI's mpirun, started by a job script, starts its daemons by a step on all
 * nodes but its own: the ranks there are its children, and so the script's. No plugin is called for
 * that step here. This node takes part in it all the same, by what the script's JOIN has said. */
#include "tccld/join/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "client/message.h"
#include "client/step-json.h"
#include "tccld/join/leave.h"
#include "tccld/main/run-dir.h"

enum { SCRIPT_MOST = 4 << 20 /* bytes of a JOIN */ };

/* Slurm's numbers (slurm.h: SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP). */
bool script_is(const struct tccl_step_key *key)
{
    return key->step == 0xfffffffb || key->step == 0xfffffffa;
}

static void name_file(const struct daemon *daemon, uint32_t job, char path[static PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s/%u" SCRIPT_ENDING, daemon->conf->run_dir, job) >= PATH_MAX)
        *path = '\0';
}

void script_keep(struct daemon *daemon, const struct connection *connection,
                 const struct tccl_step *join)
{
    struct tccl_error err = {""};
    char path[PATH_MAX], stepd[STEPD_TEXT];
    cleanup_json json_t *json = tccl_join_to_json(join, &err);
    name_file(daemon, join->key.job, path);
    stepd_name(connection_pid(connection), stepd);
    if (!json || json_object_set_new(json, "stepd", json_string(stepd)) != 0 ||
        run_dir_write_json(daemon->run_dir, path, json, &err) != 0)
        log_limited(&daemon->steps->trouble, "job %u: steps of mpirun get no ring: %s",
                    join->key.job, err.text);
}

void script_answer(struct connection *connection)
{
    cleanup_json json_t *answer = tccl_message_new("ok");
    connection_answer(connection, answer);
}

/* The file of a job, which is read or removed. */
struct file {
    char path[PATH_MAX];
    json_t *json; /* NULL: there is none of ours */
    int rc;
};

static void read_json(void *task)
{
    struct file *file = task;
    struct stat stat;
    if (lstat(file->path, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == geteuid())
        file->json = tccl_read_json(file->path, SCRIPT_MOST, NULL);
}

static void free_json(void *task, int ran)
{
    struct file *file = task;
    (void)ran;
    json_decref(file->json);
}

static void remove_file(void *task)
{
    struct file *file = task;
    file->rc = unlink(file->path);
}

/* The file of a job, and its slurmstepd. NULL: there is none. */
static struct tccl_step *read_file(struct daemon *daemon, uint32_t job,
                                   char stepd[static STEPD_TEXT])
{
    struct file file = {.json = NULL};
    name_file(daemon, job, file.path);
    if (run_dir_do(daemon->run_dir, read_json, free_json, &file, sizeof(file), NULL) != 0)
        return NULL;
    cleanup_json json_t *json = file.json;
    struct tccl_step *script = json ? tccl_join_from_json(json, NULL) : NULL;
    const char *text = json_string_value(json_object_get(json, "stepd"));
    snprintf(stepd, STEPD_TEXT, "%s", text ? text : "");
    if (script && script->key.job == job)
        return script;
    tccl_step_free(script);
    return NULL;
}

/* The script of a step's job. NULL: there is none. */
static struct tccl_step *read_script(struct daemon *daemon, const struct tccl_step_key *key,
                                     char stepd[static STEPD_TEXT])
{
    struct tccl_step *script = read_file(daemon, key->job, stepd);
    if (script && strcmp(script->key.cluster, key->cluster) == 0)
        return script;
    tccl_step_free(script);
    stepd[0] = '\0';
    return NULL;
}

void script_stepd(struct daemon *daemon, const struct tccl_step_key *key,
                  char text[static STEPD_TEXT])
{
    tccl_step_free(read_script(daemon, key, text));
}

enum stepd_state script_look(struct daemon *daemon, uint32_t job, struct tccl_step_key *key)
{
    char stepd[STEPD_TEXT];
    struct tccl_step *script = read_file(daemon, job, stepd);
    if (!script)
        return STEPD_UNKNOWN;
    *key = script->key;
    tccl_step_free(script);
    return stepd_look(stepd);
}

/* end: what comes of the steps that it has taken part in. */
static void remove_script(struct steps *steps, const struct tccl_step_key *key,
                          void (*end)(struct steps *, const struct tccl_step_key *))
{
    struct tccl_step_key below;
    struct file file = {.rc = -1};
    name_file(steps->daemon, key->job, file.path);
    if (run_dir_do(steps->daemon->run_dir, remove_file, NULL, &file, sizeof(file), NULL) != 0 ||
        file.rc != 0)
        return;
    while (planlist_next_of_script(steps->plans, key, &below))
        end(steps, &below);
}

void script_end(struct steps *steps, const struct tccl_step_key *key)
{
    remove_script(steps, key, step_end_here);
}

void script_gone(struct steps *steps, const struct tccl_step_key *key)
{
    remove_script(steps, key, step_gone_here);
}

/* Takes the place of this node in a step that begins below. */
static void take_place(struct tccl_step *join, const struct tccl_step *script)
{
    join->node = 0;
    if (!script) {
        snprintf(join->reason, sizeof(join->reason),
                 "this tccld knows of no job script that wants a ring, so the ranks that mpirun "
                 "starts on that node could not have it (sbatch --tccl)");
        join->cause = TCCL_REASON_JOB_SCRIPT;
        return;
    }
    memcpy(join->gres, script->gres, sizeof(join->gres));
    join->n_gres = script->n_gres;
    join->reason[0] = '\0';
}

struct tccl_step *script_join(struct daemon *daemon, const struct tccl_step_key *key,
                              const json_t *below, struct tccl_error *err)
{
    struct tccl_step *join = tccl_join_from_json(below, err);
    char stepd[STEPD_TEXT];
    struct tccl_step *script = join ? read_script(daemon, key, stepd) : NULL;
    if (join && (!tccl_key_equal(&join->key, key) || join->launch != TCCL_LAUNCH_BELOW ||
                 (script && script->uid != join->uid))) {
        tccl_step_free(tccl_steal(join));
        tccl_fail(err, "its JOIN is of another step");
    }
    if (join)
        take_place(join, script);
    tccl_step_free(script);
    return join;
}
