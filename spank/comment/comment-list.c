#include "comment/comment-list.h"

#include <stdlib.h>
#include <string.h>

void comment_list_init(struct comment_list *list)
{
    TAILQ_INIT(&list->jobs);
    list->count = 0;
}

void comment_list_clear(struct comment_list *list)
{
    while (!TAILQ_EMPTY(&list->jobs))
        comment_list_remove(list, TAILQ_FIRST(&list->jobs));
}

static struct comment_todo *find(struct comment_list *list, const struct comment_job *job)
{
    struct comment_todo *todo;
    TAILQ_FOREACH(todo, &list->jobs, link)
    if (todo->job.job == job->job && strcmp(todo->job.cluster, job->cluster) == 0)
        return todo;
    return NULL;
}

int comment_list_add(struct comment_list *list, const struct comment_job *job, int64_t due_ms)
{
    struct comment_todo *todo = find(list, job);
    if (todo) {
        todo->tries = 0;
        if (todo->job.started < job->started)
            todo->job.started = job->started;
        return 0;
    }
    if (!(todo = calloc(1, sizeof(*todo))))
        return -1;
    todo->job = *job;
    todo->due_ms = due_ms;
    TAILQ_INSERT_TAIL(&list->jobs, todo, link);
    if (++list->count <= COMMENT_LIST_MOST)
        return 0;
    comment_list_remove(list, TAILQ_FIRST(&list->jobs));
    return 1;
}

struct comment_todo *comment_list_due(struct comment_list *list, int64_t now_ms, int64_t *next_ms)
{
    struct comment_todo *todo;
    *next_ms = -1;
    TAILQ_FOREACH(todo, &list->jobs, link)
    {
        if (todo->due_ms <= now_ms)
            return todo;
        if (*next_ms < 0 || todo->due_ms < *next_ms)
            *next_ms = todo->due_ms;
    }
    return NULL;
}

void comment_list_later(struct comment_list *list, struct comment_todo *todo, int64_t due_ms)
{
    TAILQ_REMOVE(&list->jobs, todo, link);
    TAILQ_INSERT_TAIL(&list->jobs, todo, link);
    todo->due_ms = due_ms;
}

void comment_list_remove(struct comment_list *list, struct comment_todo *todo)
{
    TAILQ_REMOVE(&list->jobs, todo, link);
    list->count--;
    free(todo);
}
