/* owners.c: the array, or het leader, of a job comes from the step's environment and can be forged;
 * its own id and uid come from Slurm. If the job of that id belongs to another user, at about the
 * same time (ids start over when a cluster is set up again), the step is not found under it.
 *
 * A question has as many such steps as there are tasks in an array, and the job of that id may have
 * as many steps again. So what is on record of an id is read once, into spans of time, of which
 * there are few. */
#include "records/store.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "records/summary.h"

enum { ABOUT = 30 * 86400 /* seconds: ids don't start over within that time */ };

/* A user's steps of a job: none is further than twice ABOUT from the next one. */
struct span {
    int64_t uid, first, last;
};

struct job {
    struct span *spans;
    int n_spans;
    size_t room;
};

struct tccl_owners {
    sqlite3 *db;
    sqlite3_stmt *look;
    struct tccl_texts names; /* clusters, under the ids of jobs: their numbers in jobs */
    struct job *jobs;
    int n_jobs;
    size_t room;
};

struct tccl_owners *tccl_owners_new(sqlite3 *db)
{
    struct tccl_owners *owners = calloc(1, sizeof(*owners));
    if (owners)
        owners->db = db;
    return owners;
}

void tccl_owners_forget(struct tccl_owners *owners)
{
    for (int i = 0; i < owners->n_jobs; i++)
        free(owners->jobs[i].spans);
    free(owners->jobs);
    owners->jobs = NULL;
    owners->n_jobs = 0;
    owners->room = 0;
    tccl_texts_clear(&owners->names);
}

void tccl_owners_free(struct tccl_owners *owners)
{
    if (!owners)
        return;
    tccl_owners_forget(owners);
    sqlite3_finalize(owners->look);
    free(owners);
}

/* Steps come by uid and time. Returns SQLite's code. */
static int add_step(struct job *job, int64_t uid, int64_t start)
{
    struct span *last = job->n_spans ? &job->spans[job->n_spans - 1] : NULL;
    if (last && last->uid == uid && start - last->last <= 2 * ABOUT) {
        last->last = start;
        return SQLITE_OK;
    }
    if (TCCL_GROW(job->spans, job->n_spans, job->room) != 0)
        return SQLITE_NOMEM;
    job->spans[job->n_spans++] = (struct span){.uid = uid, .first = start, .last = start};
    return SQLITE_OK;
}

static int look_up(struct tccl_owners *owners, int64_t id, const char *cluster, struct job *job)
{
    static const char sql[] = "SELECT uid, start FROM records INDEXED BY records_by_owner"
                              " WHERE job = ?1 AND cluster = ?2 ORDER BY uid, start";
    int rc = owners->look ? sqlite3_reset(owners->look)
                          : sqlite3_prepare_v2(owners->db, sql, -1, &owners->look, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(owners->look, 1, id);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(owners->look, 2, cluster, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && (rc = sqlite3_step(owners->look)) == SQLITE_ROW)
        rc = add_step(job, sqlite3_column_int64(owners->look, 0),
                      sqlite3_column_int64(owners->look, 1));
    if (owners->look) {
        sqlite3_reset(owners->look);
        sqlite3_clear_bindings(owners->look);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* What is on record of a job. NULL with SQLite's code. */
static const struct job *find_job(struct tccl_owners *owners, int64_t id, const char *cluster,
                                  int *rc)
{
    int number = tccl_texts_number(&owners->names, cluster, strlen(cluster), (uint64_t)id);
    *rc = SQLITE_NOMEM;
    if (number < 0)
        return NULL;
    if (number < owners->n_jobs)
        return &owners->jobs[number];
    if (TCCL_GROW(owners->jobs, owners->n_jobs, owners->room) != 0)
        return NULL;
    owners->jobs[number] = (struct job){0};
    owners->n_jobs = number + 1;
    *rc = look_up(owners, id, cluster, &owners->jobs[number]);
    return *rc == SQLITE_OK ? &owners->jobs[number] : NULL;
}

static void is_anothers(sqlite3_context *context, int count UNUSED, sqlite3_value **values)
{
    struct tccl_owners *owners = sqlite3_user_data(context);
    const char *cluster = (const char *)sqlite3_value_text(values[1]);
    int64_t uid = sqlite3_value_int64(values[2]), start = sqlite3_value_int64(values[3]);
    int rc, anothers = 0;
    const struct job *job =
        find_job(owners, sqlite3_value_int64(values[0]), cluster ? cluster : "", &rc);
    if (!job) {
        sqlite3_result_error_code(context, rc);
        return;
    }
    for (int i = 0; i < job->n_spans && !anothers; i++) {
        const struct span *span = &job->spans[i];
        anothers = span->uid != uid && start >= span->first - ABOUT && start <= span->last + ABOUT;
    }
    sqlite3_result_int(context, anothers);
}

int tccl_owners_function(struct tccl_owners *owners)
{
    return sqlite3_create_function(owners->db, "tccl_anothers", 4, SQLITE_UTF8, owners, is_anothers,
                                   NULL, NULL);
}
