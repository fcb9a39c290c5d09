/* fair-queue.h: what waits to be done one after the other, so that all users get their turn,
 * however much one of them asks for. */
#pragma once

#include <sys/types.h>

struct fair_queue;

/* For at most that many things, of them at most that many of one user. NULL without memory. */
struct fair_queue *fair_queue_new(int most, int most_of_one);
/* Nothing may wait in it. NULL is fine. */
void fair_queue_free(struct fair_queue *queue);

/* Puts what in, behind all that the user (anything that tells users apart) has in there. unbounded:
 * no bound holds for this user. Returns 0, or -1 when there are too many, or without memory. */
int fair_queue_add(struct fair_queue *queue, uid_t user, int unbounded, void *what);
/* Takes out what is next, NULL if there is nothing: users take turns, and of a user the oldest
 * comes first. */
void *fair_queue_take(struct fair_queue *queue);
/* The same, but nothing of users who have to wait. */
void *fair_queue_take_unless(struct fair_queue *queue,
                             int (*has_to_wait)(const void *context, uid_t user),
                             const void *context);
