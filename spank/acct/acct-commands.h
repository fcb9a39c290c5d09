/* acct-commands.h: the commands of tcclacct. A line in the table of tcclacct.c names each. */
#ifndef TCCL_ACCT_COMMANDS_H
#define TCCL_ACCT_COMMANDS_H

/* Each is called with its own name ("ring") as argv[0], followed by its arguments. It writes to
 * stdout, reports an error in one line on stderr, and returns the exit status. getopt has not been
 * used before; LC_CTYPE is C.UTF-8. */
int purge_main(int argc, char **argv);
int ring_main(int argc, char **argv);
int summary_main(int argc, char **argv);

#endif
