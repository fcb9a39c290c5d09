/* acct.h: what the commands of tcclacct share, and these themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include "base/error.h"
#include "chain/beside-text.h"
#include "draw/sheet.h"
#include "draw/term.h"

/* What makes a word that of several: "s". */
static inline const char *ending(long long count)
{
    return count == 1 ? "" : "s";
}

/* acct-fields.c: the fields that tcclacct shows of a record. */

/* How times are shown. */
struct acct_clock {
    time_t now;
    const char *format; /* acct_time_print */
};

struct acct_field {
    const char *name;
    int width;          /* characters; negative: to the left */
    int type;           /* how it is shown */
    const char *source; /* the member of the record */
};

/* All fields, in the order of --long. */
int acct_field_count(void);
const struct acct_field *acct_field_at(int i); /* NULL past the last */

/* Its text, allocated; "" if it has no value; NULL if out of memory. */
char *acct_field_text(const struct acct_field *field, const json_t *record,
                      const struct acct_clock *clock);

/* As printf: the text, allocated; NULL if out of memory. */
__attribute__((format(printf, 1, 2))) char *acct_field_print(const char *format, ...);

/* The field of that name (case-insensitive), else the first that begins with it, else NULL. */
const struct acct_field *acct_field_find(const char *name);

/* acct-table.c: records as a table or in parsable form, in the manner of sacct. */

enum { ACCT_COLUMNS = 64 };

enum acct_style {
    ACCT_ALIGNED,
    ACCT_PARSABLE,        /* -P: delimiter between fields */
    ACCT_PARSABLE_ENDING, /* -p: also after the last */
};

struct acct_layout {
    enum acct_style style;
    const char *delimiter; /* for the parsable styles */
    bool header;
    int n_columns;
    struct {
        const struct acct_field *field;
        int width;  /* negative: left-aligned */
        bool given; /* explicit width: binding for the last column, too */
    } columns[ACCT_COLUMNS];
};

/* Reads a list of fields with widths, "jobid,ring%80,user%-12"; "all" stands for every field.
 * Returns 0, or -1 with err naming the entry and listing the fields. */
int acct_layout_columns(struct acct_layout *layout, const char *text, struct tccl_error *err);

/* Prints the header (with a line of dashes in the aligned style), or one record. In the aligned
 * style a text longer than its column ends in '+'; a left-aligned last column is printed whole.
 * Returns 0, or -1 if out of memory. */
void acct_print_header(FILE *out, const struct acct_layout *layout);
int acct_print_row(FILE *out, const struct acct_layout *layout, const json_t *record,
                   const struct acct_clock *clock);

/* acct-request.c: which records are asked for, and the query for them. */

struct acct_request {
    const char *config, *node; /* --config, --node; NULL: not given */
    const char *file;          /* --file: a store to be read in place of asking tccld; or NULL */
    const char *start, *end;   /* -S, -E */
    time_t now;
    bool all_users;
    json_t *lost;   /* what the answer says of lost records; NULL: nothing */
    json_t *filter; /* sent to the node that keeps the records (records.h) */
};

/* Begin with a zeroed request, and clear it in the end. Returns 0, or -1 with err. */
int acct_request_begin(struct acct_request *request, struct tccl_error *err);
void acct_request_clear(struct acct_request *request);

/* Completes the filter: -S and -E, by default since start (not with jobs); and the caller's own
 * records unless users, all or jobs are given, everyone's for root. Returns 0, or -1 with err. */
int acct_request_finish(struct acct_request *request, time_t start, struct tccl_error *err);

/* Queries the records, in the order of their start and with user names. If only this node's records
 * are available, says so on stderr and sets *complete to 0. A new reference, or NULL with err. */
json_t *acct_request_records(struct acct_request *request, int *complete, struct tccl_error *err);
/* The same for the summary (client.h). */
json_t *acct_request_summary(struct acct_request *request, int *complete, struct tccl_error *err);

/* A line that records are lost: of the time that was asked for, or, where that has no beginning
 * (-j), since the first of these. Returns whether there is one. */
enum { ACCT_LOST_TEXT = 256 };
bool acct_request_lost(const struct acct_request *request, const json_t *records,
                       char text[static ACCT_LOST_TEXT]);

/* The command line and its user, for the end of a page. */
struct acct_asked {
    char *const *argv; /* from the command's name ("ring") on */
    int argc;
    bool complete;    /* false: only this node's records were available */
    const char *lost; /* a line about lost records; NULL: none */
};

/* The command line. */
struct acct_line {
    struct acct_request request;
    struct acct_asked asked;
    bool json;
    const char *html; /* the page's file; NULL: none is asked for */
    /* of a list */
    struct acct_layout layout;
    char *fields;       /* of all -o, with commas; NULL: none given */
    const char *preset; /* of -l or -b */
    bool fold, no_header, list_fields;
    /* of a ring */
    bool svg;
    const char *svg_file; /* NULL: standard output */
};

/* The commands, with their operands. Each writes to stdout. Returns 0, or -1 with err. */
int acct_list(struct acct_line *line, int count, char **words, struct tccl_error *err);
int acct_draw(struct acct_line *line, int count, char **words, struct tccl_error *err);
int acct_summarize(struct acct_line *line, int count, char **words, struct tccl_error *err);

/* Replaces "user" of each record by the name of its uid, where this machine knows one, as ls(1)
 * does: the recorded name comes from the step's environment, which the user may set, and is "" for
 * a batch step. Looks up each uid once. */
void acct_name_users(json_t *records);

/* Should step a stand for the job rather than step b? Order: planned, failed, left, off;
 * then the step on more nodes; then the later one. */
bool acct_fold_prefers(const json_t *a, const json_t *b);
/* Folds step records into one record per job (or component of a heterogeneous job; requeues
 * included), in the order of first steps. Each is the record of the job's preferred step, without
 * "step" and with "steps", the number of steps. A new reference; NULL if out of memory. */
json_t *acct_fold(const json_t *records);

/* Writes JSON on stdout, indented, in ASCII. Returns 0, or -1 with err. */
int acct_print_json(const json_t *json, struct tccl_error *err);
/* Ends a command: flushes stdout, and reports rc != 0 or a write error on stderr. A closed pipe is
 * not reported. Returns the exit status. */
int acct_end(int rc, struct tccl_error *err);

/* The end of a page. */
void acct_html_asked(const struct acct_asked *asked, FILE *out);

/* Writes a summary (profiler/client/README.md, SUMMARY) for a terminal of that many columns (at
 * least 72), in UTF-8 or ASCII; and as an HTML page. Names and reasons are escaped. Errors are left
 * to ferror. */
void acct_summary_text(FILE *out, const json_t *summary, int columns, bool utf8);
void acct_summary_page(FILE *out, const json_t *summary, const struct acct_asked *asked);

/* acct-time.c: times in the syntax of Slurm's commands. */

/* Reads a time as sacct's -S and -E do: parts in any order, such as HH:MM[:SS] [AM|PM], MMDD[YY],
 * MM/DD[/YY], MM.DD[.YY], YYYY-MM-DD, today, tomorrow, midnight, noon, fika, teatime,
 * now[{+|-}count[seconds|minutes|hours|days|weeks]], with blanks, '-' or 'T' between them; or
 * utsSECONDS. Without a date it is today; a month without a year that is still to come is last
 * year's; a day beyond the end of its month runs into the next. Extensions: yesterday, any case,
 * abbreviated units. Returns 0, or -1 with err. */
int acct_time_parse(const char *text, time_t now, time_t *result, struct tccl_error *err);

/* Local midnight of the day of now. */
time_t acct_midnight(time_t now);

/* Writes a time in the format of SLURM_TIME_FORMAT: NULL or "standard", "relative" (to now), or a
 * format for strftime. */
void acct_time_print(time_t when, time_t now, const char *format, char *text, size_t size);

/* acct-filter.c: what tcclacct's options ask for, as a filter for records (records.h). */

/* Adds what an option asks for, by the option's long name: jobs (12,13.0,14+1.batch,15_2,
 * 16_[1-3,7].0), user or uid (names or uids), nodelist (n[1-4],login), nnodes (MIN[-MAX]), state
 * and reason (words, any case, abbreviated), partition, accounts, qos, name (any names). Returns 0,
 * or -1 with err naming the entry. */
int acct_filter(json_t *filter, const char *option, const char *text, struct tccl_error *err);

/* The name of one of Slurm's special steps (batch, extern, interactive), or NULL. */
const char *acct_step_name(json_int_t step);

/* acct-summary.c: the days of a summary (profiler/client/README.md, SUMMARY); the rest of it is
 * above. */

enum { ACCT_SPANS = 31 };
/* Consecutive days, folded. */
struct acct_span {
    int place;       /* its index from the first span on; spans without steps are left out */
    json_int_t noon; /* about noon of its first day, unix time: an hour more or less (daylight
                      * saving) is still the same day */
    json_int_t steps, planned, built, failed; /* built: of those planned, by NCCL */
    double gain; /* mean over days, weighted by planned rings; 0: unknown */
};
/* Folds the days into at most ACCT_SPANS spans of *each days. Returns how many spans have
 * steps. */
int acct_summary_spans(const json_t *summary, struct acct_span spans[static ACCT_SPANS],
                       json_int_t *each);

/* ---- acct-ring: the ring, or rings, of a step, read from its record (record.h) and shown. */

/* Consecutive nodes with the same chains. */
struct acct_run {
    int set; /* index */
    int first, count;
};

/* Runs that repeat: runs first to first + n_runs - 1, consecutively that many times. */
struct acct_group {
    int first, n_runs, times;
};

struct acct_ring {
    struct tccl_named_rings *sets; /* distinct ones, in order of appearance; of one ring: chains */
    struct acct_run *runs;
    struct acct_group *groups; /* all runs, in order */
    char **names;              /* of the nodes */
    int n_rings;               /* in each set: that run at once */
    int n_sets, n_runs, n_groups, n_nodes, n_gpus;
    bool cut; /* truncated: this is only the beginning of the ring */
};

/* Reads the text (chain-text.h): nodes with equal chains once, repetitions grouped. A ring without
 * node names belongs to the node called alone. All nodes must have as many chains. Returns 0, or -1
 * with err. acct_ring_clear frees, also after a failure. */
int acct_ring_read(const char *text, const char *alone, struct acct_ring *ring,
                   struct tccl_error *err);
void acct_ring_clear(struct acct_ring *ring);

/* A record's ring, and what is drawn of it. */
struct acct_drawn {
    struct acct_ring ring;
    struct tccl_sheet sheet;
    struct tccl_named_rings nccl;  /* NCCL's own on the first node, each with an equal part */
    struct tccl_neighbour *beside; /* steps that ran on its nodes when this one began */
    int n_beside;
    bool bounds;   /* beside them all have their GB/s at least (NeighboursBy) */
    json_t *shown; /* texts that it holds */
};

/* Returns 0, or -1 with err: the record has no ring (with the record's own reason), its text can't
 * be read, or out of memory. If it holds only the beginning of the ring, the sheet says so.
 * acct_drawn_clear frees, also after a failure. */
int acct_drawn_read(const json_t *record, struct acct_drawn *drawn, struct tccl_error *err);
void acct_drawn_clear(struct acct_drawn *drawn);

/* A field of the record (acct.h) as the table shows it. Borrowed from drawn; "" where there
 * is none, or no memory. */
const char *acct_drawn_field(struct acct_drawn *drawn, const json_t *record, const char *name);
/* A node by its index: its name; "node 3" where the ring's text does not come so far. */
enum { ACCT_PLACE = 48 };
void acct_drawn_place(const struct acct_drawn *drawn, int node, char text[static ACCT_PLACE]);
/* Is a neighbour known to reach its GB/s at least, rather than just that? */
bool acct_drawn_least(const struct acct_drawn *drawn, int neighbour);

/* These read a record and draw it. Returns 0, or -1 with err as above; nothing has been written
 * then. Errors of out are left to ferror. */

/* As SVG: one self-contained <svg> element. */
int acct_ring_svg(FILE *out, const json_t *record, struct tccl_error *err);

/* As a page for browsers. */
int acct_ring_page(FILE *out, const json_t *record, const struct acct_asked *asked,
                   struct tccl_error *err);

/* For a terminal of that many columns (at least 40), in UTF-8 if the environment's locale (LC_ALL,
 * LC_CTYPE, LANG) uses it, else in ASCII. colour: with terminal colours. LC_CTYPE must be a UTF-8
 * locale, for the width of characters. */
int acct_ring_text(FILE *out, const json_t *record, int columns, bool colour,
                   struct tccl_error *err);

/* As an object: {"step": the record, "ring": {"closed", "cut", "rings": how many run at once,
 * "nodes": [{"name", "chains": index}], "chains": [[chain]]}}; a chain is {"entry", "gpus",
 * "links": [{"kind", "memory"}], "exit"}. A new reference, or NULL with err. */
json_t *acct_ring_json(json_t *record, struct tccl_error *err);
