/* reason.h: classes of the reasons in records: many texts, few causes. */
#ifndef TCCL_REASON_H
#define TCCL_REASON_H

#include <stdbool.h>

/* Classes are numbered, so that counters can be kept in an array. */
enum { TCCL_REASON_CLASSES = 26 };

/* The number of a reason text's class, from 0 to TCCL_REASON_CLASSES - 1, the last one for an
 * unknown text; -1 for NULL and "". In a text that quotes another node's reason, the root cause
 * counts: "n2: no plan came from n1: no answer within 300 ms" is "no answer in time".
 * Numbers may change between versions, words do not. */
int tccl_reason_number(const char *reason);
/* A class's word, "" beyond the last: "no profile", "no daemon", "no answer in time", … */
const char *tccl_reason_word(int number);
/* The word of a text's class: "" for NULL and "", "other" for an unknown text. */
const char *tccl_reason_class(const char *reason);

/* Does it speak of what is wrong on a node? Not where the step or the site's policy wants no ring,
 * or can have none; not for NULL and "". */
bool tccl_reason_of_node(const char *reason);

#endif
