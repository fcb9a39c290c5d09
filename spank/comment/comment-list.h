/* comment-list.h: the jobs whose AdminComment is to be written, oldest first. */
#ifndef TCCL_COMMENT_LIST_H
#define TCCL_COMMENT_LIST_H

#include <stddef.h>
#include <sys/queue.h>

#include "comment/comment-text.h"

enum { COMMENT_LIST_MOST = 10000 };

struct comment_todo {
    TAILQ_ENTRY(comment_todo) link;
    struct comment_job job;
    int64_t due_ms; /* tccl_now_ms: not before */
    int tries;
};

struct comment_list {
    TAILQ_HEAD(comment_todos, comment_todo) jobs;
    size_t count;
};

void comment_list_init(struct comment_list *list);
void comment_list_clear(struct comment_list *list);

/* Adds a job, or makes one that is there as late as its latest step. Beyond COMMENT_LIST_MOST jobs
 * the oldest goes. Returns 0, 1 if a job had to go, -1 without memory. */
int comment_list_add(struct comment_list *list, const struct comment_job *job, int64_t due_ms);

/* The first job that is due, or NULL; then *next_ms is when the first will be (-1: no job). */
struct comment_todo *comment_list_due(struct comment_list *list, int64_t now_ms, int64_t *next_ms);

/* Puts a job behind the others, until due_ms. */
void comment_list_later(struct comment_list *list, struct comment_todo *todo, int64_t due_ms);
void comment_list_remove(struct comment_list *list, struct comment_todo *todo);

#endif
