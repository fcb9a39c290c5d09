/* acct-text.h: texts of records that are safe to print, and how wide they are. */
#ifndef TCCL_ACCT_TEXT_H
#define TCCL_ACCT_TEXT_H

/* A UTF-8 text that is safe on a terminal and in a line: control characters, characters that change
 * the direction of writing, backslashes and the first character of delimiter (unless NULL or "")
 * are written as \n, \xHH, \uHHHH and \\. Allocated (caller frees); NULL without memory. */
char *acct_escape(const char *text, const char *delimiter);

/* Columns that a text takes on a terminal (LC_CTYPE must be a UTF-8 one). */
int acct_columns(const char *text);

/* How many bytes of text fit into so many columns; *used: the columns that they take. */
int acct_bytes_within(const char *text, int columns, int *used);

#endif
