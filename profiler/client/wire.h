/* wire.h: frames and messages between the plugin, the tools and tccld. Format:
 * profiler/client/README.md. */
#ifndef TCCL_WIRE_H
#define TCCL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "client/client.h"

enum {
    TCCL_WIRE_VERSION = 1,
    TCCL_FRAME_HEADER = 4,
    TCCL_FRAME_UNIX = 512 * 1024,  /* largest frame on the unix socket, bytes */
    TCCL_FRAME_TCP = 1024 * 1024,  /* largest frame (a credential) over TCP, bytes */
    TCCL_MAX_NODES = 16384,        /* nodes of one step */
    TCCL_MAX_GRES = 64,            /* GRES indices in a JOIN */
    TCCL_MAX_TIMEOUT_MS = 3600000, /* longest wait a message may ask for */
    TCCL_KEY_TEXT = 96,
};
#define TCCL_NO_STEP 0xfffffffeu     /* the step in an announcement's key: Slurm's NO_VAL */
#define TCCL_MAX_RUN 253402300799999 /* of a key: the end of the year 9999, milliseconds */

/* The four bytes in front of a frame: its length, most significant byte first. */
void tccl_frame_header(size_t size, unsigned char header[static TCCL_FRAME_HEADER]);
size_t tccl_frame_size(const unsigned char header[static TCCL_FRAME_HEADER]);

/* Writes one frame to a non-blocking descriptor until deadline (tccl_now_ms). Returns 0; 1 when the
 * time is over; -1 with err (also if size is over limit). */
int tccl_frame_write(int fd, const char *data, size_t size, size_t limit, int64_t deadline,
                     struct tccl_error *err);
/* Reads one frame of 1 to limit bytes. *data is allocated (caller frees) and has a NUL behind its
 * *size bytes. Returns 0; 1 when the time is over (the descriptor is then good for closing only);
 * -1 with err. */
int tccl_frame_read(int fd, size_t limit, int64_t deadline, char **data, size_t *size,
                    struct tccl_error *err);

/* Text of a message -> object with the right version and a type. A new reference, or NULL with err.
 */
json_t *tccl_message_parse(const char *data, size_t size, struct tccl_error *err);
/* A message as compact text; allocated, NULL only without memory. */
char *tccl_message_text(const json_t *message);
/* The type of a parsed message. */
const char *tccl_message_type(const json_t *message);
/* A new message of that type; NULL only without memory. */
json_t *tccl_message_new(const char *type);

/* Members of an object, checked: an integer within [min, max]; a finite number >= 0; a text of at
 * most max bytes (*text is borrowed; NULL where it is absent and optional). Each returns 0, or -1
 * with err that names the member. */
int tccl_get_int(const json_t *object, const char *name, json_int_t min, json_int_t max,
                 json_int_t *value, struct tccl_error *err);
int tccl_get_number(const json_t *object, const char *name, double *value, struct tccl_error *err);
int tccl_get_text(const json_t *object, const char *name, size_t max, const char **text,
                  struct tccl_error *err);
int tccl_get_optional_text(const json_t *object, const char *name, size_t max, const char **text,
                           struct tccl_error *err);
/* Adds a text of any bytes, cut to max bytes; NULL adds nothing. What is not UTF-8 becomes '?'. */
int tccl_put_text(json_t *object, const char *name, const char *text, size_t max);

/* What every message between machines carries: its receiver's node name, the sender's, when the
 * sender started (microseconds of its clock; 0 for a tool), and a number used once. A credential
 * made for one node is valid on all: these four make it good for one receiver, once. */
enum { TCCL_NONCE = 33 };
struct tccl_envelope {
    const char *to, *from; /* borrowed */
    json_int_t epoch;
    char nonce[TCCL_NONCE];
};
/* Puts an envelope with a fresh nonce on a message. Returns 0, or -1 with err. */
int tccl_envelope_put(json_t *message, struct tccl_envelope *envelope, struct tccl_error *err);
/* Texts are borrowed from the message. Returns 0, or -1 with err. */
int tccl_envelope_get(const json_t *message, struct tccl_envelope *envelope,
                      struct tccl_error *err);

/* Keys. */
json_t *tccl_key_to_json(const struct tccl_step_key *key);
int tccl_key_from_json(const json_t *json, struct tccl_step_key *key, struct tccl_error *err);
bool tccl_key_equal(const struct tccl_step_key *a, const struct tccl_step_key *b);
/* "cluster:1234.0", "cluster:1234+1.batch", "cluster:1234.0 restart 2": for people. */
void tccl_key_format(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT]);
/* A file name that is different for different keys and safe whatever the key holds. */
void tccl_key_folder(const struct tccl_step_key *key, char text[static TCCL_KEY_TEXT]);

/* JOIN. A message read holds all that its join points to. */
struct tccl_join_message {
    struct tccl_join join;
    json_t *json;
    const char **nodes;
    int gres[TCCL_MAX_GRES];
};
json_t *tccl_join_to_json(const struct tccl_join *join, struct tccl_error *err);
/* Returns NULL with err. */
struct tccl_join_message *tccl_join_from_json(json_t *json, struct tccl_error *err);
void tccl_join_free(struct tccl_join_message *message);

/* PLAN, as the plugin gets it. */
json_t *tccl_plan_to_json(const struct tccl_plan *plan);
int tccl_plan_from_json(const json_t *json, struct tccl_plan *plan, struct tccl_error *err);
int tccl_state_parse(const char *name, struct tccl_error *err);

#endif
