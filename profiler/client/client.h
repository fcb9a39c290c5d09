/* client.h: requests of the plugin and the tools to tccld. Every wait has a deadline; nothing here
 * logs. Messages and limits: profiler/client/README.md. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "client/conf.h"
#include "client/outcome.h"
#include "client/step-fields.h"

/* Sends a message on a connection to a tccld's unix socket (tccl_frame_connect) and waits for its
 * answer, a new reference; what is no answer but an error of tccld's is err. deadline: tccl_now_ms.
 * Returns 0; 1 when the time is over; -1 with err. */
int tccl_client_exchange(int fd, const json_t *message, int64_t deadline, json_t **answer,
                         struct tccl_error *err);
/* Asks whether tccld answers at all. Returns 0; 1 when the time is over; -1 with err. */
int tccl_client_alive(int fd, int timeout_ms, struct tccl_error *err);
/* Returns 0, or -1 with err. */
int tccl_client_join(int fd, const struct tccl_step *join, int timeout_ms, struct tccl_error *err);
/* Waits for the plan. Returns 0; 1 when the time is over; -1 with err. */
int tccl_client_wait_plan(int fd, int timeout_ms, struct tccl_outcome *plan,
                          struct tccl_error *err);

/* The step's end on this node: its plan file is removed. Returns 0 or -1. */
int tccl_client_leave(int fd, const struct tccl_step_key *key, int timeout_ms,
                      struct tccl_error *err);

/* Asks the records' home (AccountingHost over munge, else this node's tccld over its socket) for
 * records: filter is a JSON object (profiler/client/README.md, QUERY). Returns a new reference to
 * an array of records in the filter's order, or NULL with err. *complete = 0 when only this node's
 * records are seen. A long list comes in many answers: timeout_ms applies to each of them, or to
 * all together. *lost: a new reference to what is said of records that are lost; NULL where nothing
 * was said. lost may be NULL. */
json_t *tccl_client_query(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                          bool each, int *complete, json_t **lost, struct tccl_error *err);

/* Asks the tccld of a node, also of this one, over TCP, or (NULL) this node's over its socket:
 * which version it is, whether the plugin is there, and what question's members ask for (NODE of
 * profiler/client/README.md); NULL: nothing more. Returns the answer, a new reference, or NULL with
 * err. */
json_t *tccl_client_node(const struct tccl_conf *conf, const char *node, const json_t *question,
                         int timeout_ms, struct tccl_error *err);

/* Asks for a summary of the records that match a filter (profiler/client/README.md,
 * SUMMARY). Returns a new reference to an object, or NULL with err. */
json_t *tccl_client_summary(const struct tccl_conf *conf, const json_t *filter, int timeout_ms,
                            int *complete, struct tccl_error *err);
