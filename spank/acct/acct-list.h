/* acct-list.h: tcclacct without a command: records as a table or in parsable form. */
#ifndef TCCL_ACCT_LIST_H
#define TCCL_ACCT_LIST_H

/* Same contract as the commands of acct-commands.h. */
int list_main(int argc, char **argv);

#endif
