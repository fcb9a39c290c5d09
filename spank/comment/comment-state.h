/* comment-state.h: what tccl-comment knows from one run to the next, a file in StateDir. */
#ifndef TCCL_COMMENT_STATE_H
#define TCCL_COMMENT_STATE_H

#include "comment/comment-list.h"
#include "comment/comment-seen.h"

struct comment_state {
    int64_t cursor; /* unix time: steps that started before it were read; 0: none yet */
    struct comment_list list;
    struct comment_seen seen;
};

void comment_state_init(struct comment_state *state);
void comment_state_clear(struct comment_state *state);

/* Reads the file into a state just initialised. Returns 0; 1 if there is no file; -1 with err if it
 * can't be read or makes no sense (state is then as just initialised). */
int comment_state_read(struct comment_state *state, const char *path, struct tccl_error *err);

/* Writes it whole. Returns 0, or -1 with err. */
int comment_state_write(const struct comment_state *state, const char *path,
                        struct tccl_error *err);

#endif
