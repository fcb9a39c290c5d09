/* acct-table.h: records as a table or in parsable form, in the manner of sacct. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "acct/acct-fields.h"
#include "base/error.h"
#include "draw/term.h"

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
