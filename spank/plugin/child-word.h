/* child-word.h: what a child finds out by calls that may hang, and have no deadline of their own.
 * It is no thread, since this process may be left, or unload the plugin, while a thread still
 * waits.
 */
#ifndef TCCL_CHILD_WORD_H
#define TCCL_CHILD_WORD_H

#include <stddef.h>

#include "base/error.h"

/* Runs find in a child, which fills in its copy of word; size: at most PIPE_BUF. The child is
 * killed after ms. Returns 0 with word; 1: it said nothing in time; -1 with err. */
int child_word(void (*find)(const void *what, void *word), const void *what, void *word,
               size_t size, int ms, struct tccl_error *err);

#endif
