/* doc.h: what people are told, on a terminal or as a page, from one description: headings, lines,
 * facts and tables. Errors are left to ferror. */
#pragma once

#include "chain/chain-text.h"
#include "draw/term.h"

/* width: on a terminal; below 0: to the left; 0: what is long, behind the others or on
 * lines of its own. Numbers are those to the right; a first column that is none names its row. */
struct tccl_doc_column {
    const char *head;
    int width;
};

struct tccl_doc {
    struct tccl_pen pen;
    bool html;
    const char *heading; /* the last one: it names tables without a caption; borrowed */
    const struct tccl_doc_column *columns; /* of the table that is open */
    int n_columns, at;                     /* at: the next cell */
    double bar;                            /* of this row, on a terminal; below 0: none */
    bool open;                             /* its long cell has begun */
    int behind;                            /* where that is on a terminal */
};

/* A heading; of a page with a card around what follows, up to the next tccl_doc_end. about: a line
 * below it; NULL: none. */
void tccl_doc_begin(struct tccl_doc *doc, const char *heading, const char *about);
void tccl_doc_end(struct tccl_doc *doc);
/* A line, or paragraph. */
__attribute__((format(printf, 2, 3))) void tccl_doc_line(struct tccl_doc *doc, const char *format,
                                                         ...);
/* A name and its value; of a page within <dl class="facts">. */
__attribute__((format(printf, 3, 4))) void tccl_doc_fact(struct tccl_doc *doc, const char *name,
                                                         const char *format, ...);

/* class: of a page, beside "rows". caption: of a page; NULL: the heading is its name for screen
 * readers. */
void tccl_doc_table(struct tccl_doc *doc, const char *class, const char *caption,
                    const struct tccl_doc_column *columns, int n);
void tccl_doc_table_end(struct tccl_doc *doc);
/* The next cell: of our own words and numbers; or of a record's text, made safe and cut to that
 * many columns (on a terminal, to its own). */
__attribute__((format(printf, 2, 3))) void tccl_doc_cell(struct tccl_doc *doc, const char *format,
                                                         ...);
void tccl_doc_text(struct tccl_doc *doc, const char *text, int most);
/* What is long, as chains are, in its cell: one below the other. */
void tccl_doc_code(struct tccl_doc *doc, const char *text);
/* Chains' texts. */
void tccl_doc_chains(struct tccl_doc *doc, const struct tccl_named_rings *rings);
/* A bar of that part (0 to 1), in the last cell; on a terminal at the end of the row. */
void tccl_doc_bar(struct tccl_doc *doc, double part);
void tccl_doc_row(struct tccl_doc *doc); /* ends it */
