/* acct-table.h: records as a table, or as text for other programs, as sacct prints its own. */
#ifndef TCCL_ACCT_TABLE_H
#define TCCL_ACCT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "acct/acct-fields.h"
#include "acct/acct-text.h"
#include "base/error.h"

enum { ACCT_COLUMNS = 64 };

enum acct_style {
    ACCT_ALIGNED,
    ACCT_PARSABLE,        /* a delimiter between fields: -P */
    ACCT_PARSABLE_ENDING, /* and behind the last one: -p */
};

struct acct_layout {
    enum acct_style style;
    const char *delimiter; /* of the parsable styles */
    bool header;
    int n_columns;
    struct {
        const struct acct_field *field;
        int width;  /* negative: to the left */
        bool given; /* the width was asked for, so also the last column keeps to it */
    } columns[ACCT_COLUMNS];
};

/* Reads a list of fields with widths, "jobid,ring%80,user%-12"; "all" stands for every field.
 * Returns 0, or -1 with err that names the entry and lists the fields. */
int acct_layout_columns(struct acct_layout *layout, const char *text, struct tccl_error *err);

/* Header (with a line of dashes in the aligned style), and one record. In the aligned style texts
 * longer than their column end in '+'; a last column to the left is written whole. Returns 0, or -1
 * without memory. */
void acct_print_header(FILE *out, const struct acct_layout *layout);
int acct_print_row(FILE *out, const struct acct_layout *layout, const json_t *record,
                   const struct acct_clock *clock);

#endif
