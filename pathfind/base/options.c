/* options.c: command lines by a table. getopt_long gets only the rows of the command that is read,
 * so that abbreviations are those of its own options. */
#include "base/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 96, FIRST = 256 /* what getopt returns of row 0 */ };

static bool is_of(const struct tccl_option *option, int command)
{
    return !option->commands || option->commands & 1u << command;
}

static int takes(const struct tccl_option *option)
{
    switch (option->kind) {
    case TCCL_OPTION_TEXT:
    case TCCL_OPTION_COUNT:
    case TCCL_OPTION_RATIO:
    case TCCL_OPTION_OWN:
        return required_argument;
    case TCCL_OPTION_OWN_MAYBE:
        return optional_argument;
    default:
        return no_argument;
    }
}

int tccl_command_of(const struct tccl_program *program, int argc, char *const *argv)
{
    for (int i = 1; argc > 1 && i < program->n_commands; i++)
        if (strcmp(argv[1], program->commands[i].name) == 0)
            return i;
    return 0;
}

int tccl_usage_fail(const struct tccl_program *program, int command, struct tccl_error *err,
                    const char *format, ...)
{
    char text[400];
    const char *name = program->commands[command].name;
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    return tccl_fail(err, "%s; see %s %s%s--help", text, program->name, name, *name ? " " : "");
}

static void print_help(const struct tccl_program *program, int command)
{
    fputs(program->commands[command].head, stdout);
    for (const struct tccl_option *row = program->options;
         row < program->options + program->n_options; row++)
        if (row->help && (program->lenient || is_of(row, command)))
            fputs(row->help, stdout);
    fputs(program->commands[command].foot, stdout);
}

/* Lines for bash: commands, "run"; options, "--gap|-g|VALUES", with "-" for a flag, and "" where
 * any value will do. */
static void print_completions(const struct tccl_program *program, int command)
{
    for (int i = 1; command == 0 && i < program->n_commands; i++)
        puts(program->commands[i].name);
    for (const struct tccl_option *row = program->options;
         row < program->options + program->n_options; row++)
        if (is_of(row, command) && !(row->help && !*row->help)) {
            const char letter[] = {'-', (char)row->letter, '\0'};
            const char *values = takes(row) == no_argument ? "-" : row->values ? row->values : "";
            printf("--%s|%s|%s\n", row->name, row->letter ? letter : "", values);
        }
    if (program->more)
        program->more(command);
}

static TCCL_OPTION_SETTER(set_number)
{
    char *end;
    bool count = option->kind == TCCL_OPTION_COUNT;
    double number = strtod(text, &end);
    if (!count && end > text && strcmp(end, "%") == 0) {
        number /= 100;
        end++;
    }
    bool plain = strspn(text, "0123456789") == strlen(text);
    if (end == text || *end || (count && !plain) ||
        !(number >= option->min && number <= option->max))
        return tccl_fail(err, "--%s %.60s: give a%s number from %.10g to %.10g", option->name, text,
                         count ? " whole" : "", option->min, option->max);
    if (count)
        *(int *)field = (int)number;
    else
        *(double *)field = number;
    return 0;
}

static TCCL_OPTION_SETTER(set)
{
    switch (option->kind) {
    case TCCL_OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case TCCL_OPTION_TEXT:
        *(const char **)field = text;
        return 0;
    case TCCL_OPTION_COUNT:
    case TCCL_OPTION_RATIO:
        return set_number(option, field, text, err);
    default:
        return option->set(option, field, text, err);
    }
}

/* getopt has moved past the word, but not if it is a letter among others. */
static int refuse(const struct tccl_program *program, int command, bool missing, char *const *argv,
                  void *fields, struct tccl_error *err)
{
    char letter[] = {'-', (char)optopt, '\0'}, *word = argv[optind - 1];
    bool is_letter = optopt > 0 && optopt < FIRST;
    size_t length = strcspn(word, "=");
    if (missing && optopt >= FIRST &&
        program->options[optopt - FIRST].set) { /* says what it wants */
        const struct tccl_option *row = &program->options[optopt - FIRST];
        row->set(row, (char *)fields + row->at, "", err);
    }
    if (missing)
        return tccl_usage_fail(program, command, err, "%.60s: a value is missing", word);
    if (!is_letter && optopt)
        return tccl_usage_fail(program, command, err, "%.60s: this option takes no value", word);
    for (int i = 0; !is_letter && i < program->n_options; i++)
        if (strncmp(word + 2, program->options[i].name, length - 2) == 0 &&
            strlen(program->options[i].name) == length - 2)
            return tccl_usage_fail(program, command, err, "%.60s: not an option of this command",
                                   word);
    return tccl_usage_fail(program, command, err, "%.60s: unknown option",
                           is_letter ? letter : word);
}

int tccl_options_read(const struct tccl_program *program, int command, int argc, char **argv,
                      void *fields, struct tccl_error *err)
{
    struct option longs[ROWS_MAX + 1] = {{0}};
    char letters[3 * ROWS_MAX + 3] = "+:", *end = letters + 2;
    int count = 0, found;
    if (strcmp(argv[argc - 1], "--complete") == 0 && (!program->stops || argc == 2))
        return print_completions(program, tccl_command_of(program, argc, argv)), 1;
    for (int i = 0; i < program->n_options && count < ROWS_MAX; i++) {
        const struct tccl_option *row = &program->options[i];
        if (!program->lenient && !is_of(row, command))
            continue;
        longs[count++] = (struct option){row->name, takes(row), NULL, FIRST + i};
        if (row->letter)
            end += sprintf(end, "%c%.*s", row->letter, takes(row), "::");
    }
    argc -= command > 0;
    argv += command > 0;
    opterr = 0;
    optind = 0; /* glibc begins anew, also where a line was left in the middle of a word */
    while ((found = getopt_long(argc, argv, letters + !program->stops, longs, NULL)) != -1) {
        const struct tccl_option *row = program->options;
        if (found == ':' || found == '?')
            return refuse(program, command, found == ':', argv, fields, err);
        if (found >= FIRST)
            row += found - FIRST;
        else
            while (row->letter != found || !(program->lenient || is_of(row, command)))
                row++;
        if (row->kind == TCCL_OPTION_HELP)
            return print_help(program, command), 1;
        if (row->kind == TCCL_OPTION_VERSION)
            return printf("%s (slurm-tccl) %s\n", program->name, TCCL_RELEASE), 1;
        if (set(row, (char *)fields + row->at, optarg, err) != 0)
            return -1;
    }
    optind += command > 0;
    return 0;
}

int tccl_end_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "tccl: standard output: %s\n", strerror(errno));
    return status ? status : EXIT_FAILURE;
}
