/* state.c: the tables of state.h as arrays. */
#include "base/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NAME(name, word, other) word,
#define OTHER(name, word, other) other,
const char *const tccl_state_names[] = {TCCL_STATES(NAME) NULL};
static const char *const before[] = {TCCL_STATES(OTHER) NULL};
static const char *const read_by_people[] = {TCCL_BUILTS(NAME) NULL};
static const char *const sent[] = {TCCL_BUILTS(OTHER) NULL};
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
    int state = find(tccl_state_names, word);
    if (state < 0)
        state = find(before, word);
    return state < 0 && strcmp(word, "partial") == 0 ? TCCL_STATE_PLANNED : state;
}

const char *tccl_built_name(int rank)
{
    return read_by_people[rank];
}

const char *tccl_built_word(int rank)
{
    return sent[rank];
}

const char *tccl_outcome_word(const char *word)
{
    bool partial = strcmp(word, "partial") == 0;
    int state = tccl_state_named(word), rank = tccl_built_rank(word);
    int name = find(tccl_built_names, word);
    return partial      ? tccl_built_name(TCCL_BUILT_PARTLY)
           : state >= 0 ? tccl_state_name((enum tccl_state)state)
           : name >= 0  ? tccl_built_names[name]
           : rank > 0   ? tccl_built_name(rank)
                        : NULL;
}

int tccl_built_rank(const char *word)
{
    int rank = find(sent, word);
    return rank < 0 ? find(read_by_people, word) : rank;
}
