/* frame.h: a unix socket, and frames on a connection, the four bytes of a length and so many bytes.
 * Format: profiler/client/README.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    TCCL_FRAME_HEADER = 4,
    TCCL_FRAME_UNIX = 1024 * 1024, /* largest frame on the unix socket, bytes */
    TCCL_FRAME_TCP = 1024 * 1024,  /* largest frame (a credential) over TCP, bytes */
};

/* The four bytes in front of a frame: its length, most significant byte first. */
void tccl_frame_header(size_t size, unsigned char header[static TCCL_FRAME_HEADER]);
size_t tccl_frame_size(const unsigned char header[static TCCL_FRAME_HEADER]);

/* Connects to a unix socket until deadline (tccl_now_ms). Returns a close-on-exec, non-blocking
 * descriptor, or -1 with err. */
int tccl_frame_connect(const char *path, int64_t deadline, struct tccl_error *err);

/* Writes one frame to a non-blocking descriptor until deadline. Returns 0; 1 when the time is over;
 * -1 with err (also if size is over limit). */
int tccl_frame_write(int fd, const char *data, size_t size, size_t limit, int64_t deadline,
                     struct tccl_error *err);
/* Reads one frame of 1 to limit bytes. *data is allocated (caller frees) and has a NUL behind its
 * *size bytes. Returns 0; 1 when the time is over (the descriptor must then be closed);
 * -1 with err. */
int tccl_frame_read(int fd, size_t limit, int64_t deadline, char **data, size_t *size,
                    struct tccl_error *err);
/* The same into a buffer of limit bytes. */
int tccl_frame_take(int fd, char *data, size_t limit, int64_t deadline, size_t *size,
                    struct tccl_error *err);

/* ---- dial: TCP connections to a tccld, or another program of ours, for tools. */

/* Connects to host (a name or address) and port until deadline (tccl_now_ms), trying its addresses
 * in turn. Returns a close-on-exec, non-blocking descriptor, or -1 with err. */
int tccl_dial(const char *host, uint16_t port, int64_t deadline, struct tccl_error *err);

/* The same to another kind of program, whom, as err calls it; through the network interface device
 * if it is not "". */
int tccl_dial_as(const char *whom, const char *device, const char *host, uint16_t port,
                 int64_t deadline, struct tccl_error *err);
