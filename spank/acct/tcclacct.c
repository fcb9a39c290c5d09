/* tcclacct.c: main: lists records in the manner of sacct, or runs a command. */
#include <locale.h>
#include <string.h>

#include "acct/acct.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"purge", purge_main},
    {"ring", ring_main},
    {"summary", summary_main},
};

int main(int argc, char **argv)
{
    setlocale(LC_TIME, "");
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters */
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return list_main(argc, argv);
}
