/* reason.h: the kinds of reason in records: many texts, few causes. */
#ifndef TCCL_REASON_H
#define TCCL_REASON_H

/* The causes, by number: what counts them can keep an array. */
enum { TCCL_REASON_CLASSES = 22 };

/* The number of a reason text's class, from 0 to TCCL_REASON_CLASSES - 1, the last one for a text
 * that is not known; -1 for NULL and "". Of causes that one text reports of another, the first one
 * in its chain counts: "n2: no plan came from n1: no answer within 300 ms" is "no answer in time".
 * Numbers may change from version to version, words don't. */
int tccl_reason_number(const char *reason);
/* A class's word, "" beyond the last: "no profile", "no daemon", "no answer in time", … */
const char *tccl_reason_word(int number);
/* The word of a text's class: "" for NULL and "", "other" for a text that is not known. */
const char *tccl_reason_class(const char *reason);

#endif
