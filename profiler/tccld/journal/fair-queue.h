/* fair-queue.h: what waits to be done one after the other, so that all users get their turn,
 * however much one of them asks for. */
#ifndef TCCL_TURNS_H
#define TCCL_TURNS_H

#include <sys/types.h>

struct turns;

/* For at most that many things, of them at most that many of one user. NULL without memory. */
struct turns *turns_new(int most, int most_of_one);
/* Nothing may wait in it. NULL is fine. */
void turns_free(struct turns *turns);

/* Puts what in, behind all that the user (anything that tells users apart) has in there. unbounded:
 * as many of this user as there is room for. Returns 0, or -1 when there are too many. */
int turns_add(struct turns *turns, uid_t user, int unbounded, void *what);
/* Takes out what is next, NULL if there is nothing: users take turns, and of a user the oldest
 * comes first. */
void *turns_take(struct turns *turns);

#endif
