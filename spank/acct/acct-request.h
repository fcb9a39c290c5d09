/* acct-request.h: the options that select records, and the query for them. */
#ifndef TCCL_ACCT_REQUEST_H
#define TCCL_ACCT_REQUEST_H

#include <stdbool.h>
#include <time.h>

#include <getopt.h>
#include <jansson.h>

#include "base/error.h"

/* Values of long options without a letter; a command's own follow. */
enum { ACCT_OPTION_CONFIG = 256, ACCT_OPTION_NODE, ACCT_OPTION_NAME, ACCT_OPTION_OWN };

struct acct_request {
    const char *config, *node; /* --config, --node; NULL: not given */
    const char *start, *end;   /* -S, -E */
    time_t now;
    bool all_users;
    json_t *lost;   /* what the answer says of lost records; NULL: nothing */
    json_t *filter; /* sent to the node that keeps the records (records.h) */
};

/* Begin with a zeroed request, and clear it in the end. Returns 0, or -1 with err. */
int acct_request_begin(struct acct_request *request, struct tccl_error *err);
void acct_request_clear(struct acct_request *request);

/* Long options that all these commands share, for the command's own table, and their letters, for
 * getopt_long. */
#define ACCT_REQUEST_LETTERS "j:u:aS:E:N:s:r:A:q:R:i:"
#define ACCT_REQUEST_OPTIONS                                                                       \
    {"jobs", required_argument, NULL, 'j'}, {"user", required_argument, NULL, 'u'},                \
        {"uid", required_argument, NULL, 'u'}, {"allusers", no_argument, NULL, 'a'},               \
        {"starttime", required_argument, NULL, 'S'}, {"endtime", required_argument, NULL, 'E'},    \
        {"nodelist", required_argument, NULL, 'N'}, {"state", required_argument, NULL, 's'},       \
        {"partition", required_argument, NULL, 'r'}, {"accounts", required_argument, NULL, 'A'},   \
        {"qos", required_argument, NULL, 'q'}, {"reason", required_argument, NULL, 'R'},           \
        {"nnodes", required_argument, NULL, 'i'},                                                  \
        {"name", required_argument, NULL, ACCT_OPTION_NAME},                                       \
        {"config", required_argument, NULL, ACCT_OPTION_CONFIG},                                   \
    {                                                                                              \
        "node", required_argument, NULL, ACCT_OPTION_NODE                                          \
    }

/* Handles one of these options. Returns 0; 1 if it is none of them; -1 with err. */
int acct_request_option(struct acct_request *request, int option, const char *value,
                        struct tccl_error *err);

/* The value of --html: neither empty nor another option. Returns 0, or -1 with err. */
int acct_request_html(const char *file, struct tccl_error *err);

/* Reports an option that getopt_long refused ('?' with opterr 0). Returns -1 with err. */
int acct_refuse_option(char *const *argv, struct tccl_error *err);

/* Completes the filter: -S and -E, by default since start (not with jobs); and the caller's own
 * records unless users, all or jobs are given, everyone's for root. Returns 0, or -1 with err. */
int acct_request_finish(struct acct_request *request, time_t start, struct tccl_error *err);

/* Queries the records, in the order of their start and with user names. If only this node's records
 * are available, says so on stderr and sets *complete to 0. A new reference, or NULL with err. */
json_t *acct_request_records(struct acct_request *request, int *complete, struct tccl_error *err);
/* The same for the summary (client.h). */
json_t *acct_request_summary(struct acct_request *request, int *complete, struct tccl_error *err);

/* Removes the misdated records that match (client.h). Returns how many, -1 with err. */
long acct_request_purge(const struct acct_request *request, struct tccl_error *err);

/* A line that records are lost: of the time that was asked for, or, where that has no beginning
 * (-j), since the first of these. Returns whether there is one. */
enum { ACCT_LOST_TEXT = 256 };
bool acct_request_lost(const struct acct_request *request, const json_t *records,
                       char text[static ACCT_LOST_TEXT]);

#endif
