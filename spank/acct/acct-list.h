/* acct-list.h: tcclacct without a command: the records as a table, or as text for other programs.
 */
#ifndef TCCL_ACCT_LIST_H
#define TCCL_ACCT_LIST_H

/* As the commands of acct-commands.h. */
int list_main(int argc, char **argv);

#endif
