/* state.c: the tables of state.h as arrays. */
#include "base/state.h"

#include <stddef.h>
#include <string.h>

#define NAME(name, word, ...) word,
#define SENT(name, word, sent) sent,
const char *const tccl_state_names[] = {TCCL_STATES(NAME) NULL};
static const char *const read_by_people[] = {TCCL_BUILTS(NAME) NULL};
static const char *const sent[] = {TCCL_BUILTS(SENT) NULL};
const char *const tccl_built_names[] = {"yes", "partly", "no", TCCL_NO_CALL, "unknown", NULL};

static int find(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++)
        if (*words[i] == *word && strcmp(words[i], word) == 0)
            return i;
    return -1;
}

const char *tccl_state_name(enum tccl_state state)
{
    return tccl_state_names[state];
}

int tccl_state_named(const char *word)
{
    return find(tccl_state_names, word);
}

const char *tccl_built_name(int rank)
{
    return read_by_people[rank];
}

const char *tccl_built_word(int rank)
{
    return sent[rank];
}

int tccl_built_rank(const char *word)
{
    int rank = find(sent, word);
    return rank < 0 ? find(read_by_people, word) : rank;
}
