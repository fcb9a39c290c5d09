/* frames.h: frames in libevent's buffers. */
#pragma once

#include <stddef.h>

#include <event2/buffer.h>

/* Takes one whole frame of 1 to limit bytes out of a buffer. *data is allocated (caller frees), has
 * a NUL behind its *size bytes. Returns 1; 0: more bytes must come first; -1: the length is beyond
 * the limit, or no memory. */
int frames_take(struct evbuffer *in, size_t limit, char **data, size_t *size);
/* Appends a frame. Returns 0, or -1 if it is beyond the limit or without memory. */
int frames_add(struct evbuffer *out, const char *data, size_t size, size_t limit);
