/* agree.h: does every node of a step build all of its rings in a communicator? NCCL takes the least
 * number of channels and the least speed of all nodes, each by itself, so several rings at once are
 * told to it on all nodes or on none. One message per level of the tree, as BUILT; node 0 answers
 * for all. */
#ifndef TCCL_AGREE_H
#define TCCL_AGREE_H

#include "tccld/join/running.h"
#include "tccld/net/connection.h"

enum {
    AGREE_MOST = 1024,    /* communicators that are remembered; beyond, the oldest one goes, */
    AGREE_USER = 64,      /* of these of one user, whose oldest one goes */
    AGREE_SECOND = 16,    /* of one user, that begin within a second; more are answered "not" */
    AGREE_ROOT_MS = 600,  /* that node 0 waits, after its first word, for all others; */
    AGREE_BELOW_MS = 800, /* others, for node 0. The shim waits for a second */
    AGREE_TELL_MS = 5000, /* for the parent to hear of it, whoever still waits */
    AGREE_KEEP_MS = 60000 /* an answer is there for who comes later */
};

struct agreements;

struct agreements *agree_new(struct daemon *daemon); /* NULL without memory */
void agree_free(struct agreements *agreements);      /* NULL is fine */
/* The step is about to be forgotten. */
void agree_drop(struct agreements *agreements, const struct running_step *step);

/* Handlers of AGREE: of the shim on this node, of a node right below this one. */
lines_handler agree_hear;
request_handler agree_receive;

#endif
