/* acct-text.h: texts of records that are safe to print, and how wide they are. */
#ifndef TCCL_ACCT_TEXT_H
#define TCCL_ACCT_TEXT_H

/* Escapes a UTF-8 text for a terminal or a line: control characters, characters that change the
 * writing direction, backslashes and the first character of delimiter (unless NULL or "") become
 * \n, \xHH, \uHHHH and \\. Allocated (caller frees); NULL if out of memory. */
char *acct_escape(const char *text, const char *delimiter);

/* Width of a text in terminal columns (LC_CTYPE must be a UTF-8 locale). */
int acct_columns(const char *text);

/* How many bytes of text fit into that many columns; *used: the columns they take. */
int acct_bytes_within(const char *text, int columns, int *used);

#endif
