/* reason.c: the table of reasons (error.h) as arrays. */
#include "base/error.h"

#include <string.h>

const char *const tccl_reason_words[] = {
    "",
#define WORD(name, word, of_node) word,
    TCCL_REASONS(WORD) NULL,
};

enum tccl_reason tccl_reason_named(const char *word)
{
    int i = TCCL_REASON_NONE;
    while (word && i < TCCL_REASON_OTHER &&
           (*word != *tccl_reason_words[i] || strcmp(word, tccl_reason_words[i]) != 0))
        i++;
    return (enum tccl_reason)i;
}

bool tccl_reason_of_node(enum tccl_reason reason)
{
    static const bool of_node[] = {false,
#define OF_NODE(name, word, of_node) of_node,
                                   TCCL_REASONS(OF_NODE)};
    return of_node[reason];
}
