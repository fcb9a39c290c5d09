/* term.h: texts for a terminal: made safe, as wide as there is room, in colours and UTF-8 where it
 * has them. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Escapes a UTF-8 text for a terminal or a line: control characters, characters that change the
 * writing direction, backslashes and the first character of delimiter (unless NULL or "") become
 * \n, \xHH, \uHHHH and \\. Allocated (caller frees); NULL if out of memory. */
char *tccl_term_escape(const char *text, const char *delimiter);
/* The same, cut to that many columns, dots (of which only their width counts before the cut) behind
 * it. */
char *tccl_term_cut(const char *text, int columns, const char *dots);

/* Width of a text in columns (LC_CTYPE must be a UTF-8 locale). */
int tccl_term_width(const char *text);
/* How many bytes of text fit into that many columns; *used: the columns they take. */
int tccl_term_fit(const char *text, int columns, int *used);

/* Width of the output in columns: COLUMNS, else that of the terminal, else 80. */
int tccl_term_columns(void);
/* May colours be used: stdout is a terminal, TERM is not dumb, and NO_COLOR is not set? */
bool tccl_term_colour(void);
/* Does the environment's locale (LC_ALL, LC_CTYPE, LANG) use UTF-8? */
bool tccl_term_utf8(void);

/* Where a line is being written. Errors are left to ferror. */
struct tccl_pen {
    FILE *out;
    int columns, used; /* used: of the line so far */
    bool colour, utf8;
};

/* Without UTF-8, '?' stands for anything that is not ASCII. */
void tccl_pen_put(struct tccl_pen *pen, const char *text);
__attribute__((format(printf, 2, 3))) void tccl_pen_print(struct tccl_pen *pen, const char *format,
                                                          ...); /* at most 255 bytes */
/* "1": bold; "0": none. */
void tccl_pen_colour(struct tccl_pen *pen, const char *code);
void tccl_pen_end(struct tccl_pen *pen);
/* Words over lines; each further line begins with left and indent. A word wider than a line is cut.
 */
void tccl_pen_words(struct tccl_pen *pen, const char *text, const char *left, const char *indent);
/* A text, escaped, cut to that many columns. */
void tccl_pen_cut(struct tccl_pen *pen, const char *text, int columns);
/* A bar of that part (0 to 1) of so many columns, in eighths of a block with UTF-8. The smallest
 * part still shows something. */
void tccl_pen_bar(struct tccl_pen *pen, double part, int columns);
