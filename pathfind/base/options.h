/* options.h: the options of a program in one table: its command line is read by it, its --help and
 * what bash completes (contrib/completions) are printed from it. For programs: it writes to stdout.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum tccl_option_kind {
    TCCL_OPTION_FLAG,      /* no value; sets a bool */
    TCCL_OPTION_TEXT,      /* sets a const char *, borrowed from the command line */
    TCCL_OPTION_COUNT,     /* sets an int, from min to max */
    TCCL_OPTION_RATIO,     /* sets a double, from min to max; "3%" is 0.03 */
    TCCL_OPTION_OWN,       /* `set` does, with its value, */
    TCCL_OPTION_OWN_FLAG,  /* without one: text is NULL, */
    TCCL_OPTION_OWN_MAYBE, /* or with one behind a '=': NULL where there is none */
    TCCL_OPTION_HELP,
    TCCL_OPTION_VERSION,
};

/* field: `at` bytes into the struct. Returns 0, or -1 with err. */
#define TCCL_OPTION_SETTER(name)                                                                   \
    int name(const struct tccl_option *option UNUSED, void *field UNUSED, const char *text UNUSED, \
             struct tccl_error *err UNUSED)
struct tccl_option;
typedef TCCL_OPTION_SETTER(tccl_option_setter);

/* A row. What rows of the same commands have as help is printed in the order of the table. */
struct tccl_option {
    const char *name;  /* the long one, without "--" */
    int letter;        /* the short one; 0: none */
    unsigned commands; /* that take it: 1 << index of each; 0: all */
    enum tccl_option_kind kind;
    size_t at;          /* of what it sets, in the struct that is filled */
    const char *values; /* that bash completes: words with '|' between them, behind a ',' where
                           they may be a list; "@file", "@folder", "@user", "@host"; NULL: none */
    const char *help;   /* its lines in --help, with newlines; NULL: the line of another row has it;
                           "": not meant for people */
    double min, max;
    tccl_option_setter *set;
};

struct tccl_command {
    const char *name;        /* "": the program without a command, or before one */
    const char *head, *foot; /* of --help, before and behind the options' lines */
};

struct tccl_program {
    const char *name;
    const struct tccl_command *commands; /* the first one without a name */
    int n_commands;
    const struct tccl_option *options;
    int n_options;
    bool lenient; /* every command takes every option, and --help is always the same */
    void (*more)(
        int command); /* prints more that bash completes, as "--only||,a|b" or, of operands,
"||VALUES"; NULL: nothing */
    bool stops;       /* options end at the first operand: the others are a command of its own */
};

/* The index of the command that argv[1] names; 0: of none. */
int tccl_command_of(const struct tccl_program *program, int argc, char *const *argv);

/* Reads the options of a command: those behind its name, or all where it is 0. fields: the struct
 * that is filled, zero or with its defaults. Returns 0: operands begin at argv[optind]; 1: --help
 * or
 * --version was answered; -1 with err: wrong usage. */
int tccl_options_read(const struct tccl_program *program, int command, int argc, char **argv,
                      void *fields, struct tccl_error *err);

/* Fails with a text about the command line: "TEXT; see PROGRAM COMMAND --help". Returns -1. */
int tccl_usage_fail(const struct tccl_program *program, int command, struct tccl_error *err,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What was printed must have arrived: a full disk is a failure, said on stderr. Returns the exit
 * status: `status`, or 1. */
int tccl_end_output(int status);
