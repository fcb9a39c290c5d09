/* acct-request.h: which records tcclacct's commands are asked for, and getting them. */
#ifndef TCCL_ACCT_REQUEST_H
#define TCCL_ACCT_REQUEST_H

#include <stdbool.h>
#include <time.h>

#include <getopt.h>
#include <jansson.h>

#include "base/error.h"

/* Values of long options without a letter; a command's own come behind. */
enum { ACCT_OPTION_CONFIG = 256, ACCT_OPTION_NODE, ACCT_OPTION_NAME, ACCT_OPTION_OWN };

struct acct_request {
    const char *config, *node; /* --config, --node; NULL: not given */
    const char *start, *end;   /* -S, -E */
    time_t now;
    bool all_users;
    json_t *filter; /* for the records' home (records.h) */
};

/* Zero-initialise, and begin; clear after all. Return 0, or -1 with err. */
int acct_request_begin(struct acct_request *request, struct tccl_error *err);
void acct_request_clear(struct acct_request *request);

/* Long options of all commands that ask for records, to be had in a command's own table; their
 * letters, for getopt_long's text. */
#define ACCT_REQUEST_LETTERS "j:u:aS:E:N:s:r:A:R:i:"
#define ACCT_REQUEST_OPTIONS                                                                       \
    {"jobs", required_argument, NULL, 'j'}, {"user", required_argument, NULL, 'u'},                \
        {"uid", required_argument, NULL, 'u'}, {"allusers", no_argument, NULL, 'a'},               \
        {"starttime", required_argument, NULL, 'S'}, {"endtime", required_argument, NULL, 'E'},    \
        {"nodelist", required_argument, NULL, 'N'}, {"state", required_argument, NULL, 's'},       \
        {"partition", required_argument, NULL, 'r'}, {"accounts", required_argument, NULL, 'A'},   \
        {"reason", required_argument, NULL, 'R'}, {"nnodes", required_argument, NULL, 'i'},        \
        {"name", required_argument, NULL, ACCT_OPTION_NAME},                                       \
        {"config", required_argument, NULL, ACCT_OPTION_CONFIG},                                   \
    {                                                                                              \
        "node", required_argument, NULL, ACCT_OPTION_NODE                                          \
    }

/* Takes one of them. Returns 0; 1 if it is none of them; -1 with err. */
int acct_request_option(struct acct_request *request, int option, const char *value,
                        struct tccl_error *err);

/* What getopt_long did not know, or found no value for ('?' with opterr 0). Returns -1 with err. */
int acct_refuse_option(char *const *argv, struct tccl_error *err);

/* Completes the filter: -S and -E, or since start where no -S is given and no jobs either; one's
 * own records unless users, all or jobs are asked for, root everyone's. Returns 0, or -1 with err.
 */
int acct_request_finish(struct acct_request *request, time_t start, struct tccl_error *err);

/* Asks the records' home: the records in the order of their start, users named. What only this node
 * knows is said on stderr; *complete is then 0. A new reference, or NULL with err. */
json_t *acct_request_records(const struct acct_request *request, int *complete,
                             struct tccl_error *err);
/* The summary (client.h), in the same way. */
json_t *acct_request_summary(const struct acct_request *request, int *complete,
                             struct tccl_error *err);

#endif
