/* connection.h: whoever is connected to tccld and asks, for those who answer. The unix socket and
 * TCP are the same from here. A connection has one question under way; the next one is heard when
 * the answer to it has been read. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "base/lines.h"
#include "tccld/main/daemon.h"

struct connection;

/* Who asks: the uid of the socket or the credential; the node that the envelope names ("" on the
 * unix socket). Both until the next question. */
uid_t connection_uid(const struct connection *connection);
const char *connection_node(const struct connection *connection);
/* Is it root, TccldUser (on the unix socket), MungeUser (over TCP) or SlurmUser? */
bool connection_trusted(const struct connection *connection);
/* Who has connected to the unix socket; 0: not known. */
pid_t connection_pid(const struct connection *connection);

/* Keeps the question open beyond its handler; each hold ends with connection_drop. A question that
 * nobody holds any more and nobody has answered ends the connection. */
struct connection *connection_hold(struct connection *connection);
void connection_drop(struct connection *connection);

/* Answers the question; over TCP an envelope is put on the message (borrowed). Does nothing on a
 * closed connection. */
void connection_answer(struct connection *connection, json_t *message);
/* Answers that it is noted, in the way that was asked. */
void connection_answer_ok(struct connection *connection);
/* Answers a question of lines by lines, which end here. */
void connection_answer_lines(struct connection *connection, struct tccl_line_writer *lines);
/* Answers with an error, in the way that was asked. */
void connection_refuse(struct connection *connection, const char *text);
/* The same to one who takes it for the reason why a step has no ring. */
void connection_refuse_as(struct connection *connection, enum tccl_reason reason, const char *text);
/* Has the other side gone? */
bool connection_closed(const struct connection *connection);

/* What can be asked. */
enum { FROM_UNIX = 1, FROM_TCP = 2 };
typedef void request_handler(struct daemon *daemon, struct connection *connection, json_t *message);
/* What the runtime shim asks, over the unix socket: lines (lines.h) in place of JSON. */
typedef void lines_handler(struct daemon *daemon, struct connection *connection,
                           const struct tccl_lines *lines);
struct request {
    const char *type; /* of lines: their name */
    unsigned from;
    bool trusted; /* from those of connection_trusted only */
    request_handler *handle;
    lines_handler *handle_lines; /* in place of handle */
};

/* All that tccld is asked (requests.c); a type of NULL ends it. */
extern const struct request tccld_requests[];
