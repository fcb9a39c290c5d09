/* state.h: the names of what was decided for a step (State), and of what NCCL did (Built). */
#pragma once

/* S(name, word). left: left to NCCL, as there is nothing to gain; failed: NCCL's own choice in
 * place of a ring, with the reason. */
#define TCCL_STATES(S)                                                                             \
    S(OFF, "off")                                                                                  \
    S(PLANNED, "planned")                                                                          \
    S(FAILED, "failed")                                                                            \
    S(LEFT, "left")

enum tccl_state {
#define TCCL_STATE_ENUM(name, word) TCCL_STATE_##name,
    TCCL_STATES(TCCL_STATE_ENUM)
#undef TCCL_STATE_ENUM
};
extern const char *const tccl_state_names[]; /* "off" "planned" "failed" "left" NULL */

const char *tccl_state_name(enum tccl_state state);
/* -1: none has that name. */
int tccl_state_named(const char *word);

/* B(name, word that people read, word in messages and in the store), by rank: of several words
 * about a step that of the highest one counts. Two are the same to people: what was left to NCCL,
 * and what it built otherwise; why is in the reason. */
#define TCCL_BUILTS(B)                                                                             \
    B(NOTHING, "", "")            /* nobody has said anything */                                   \
    B(NOT_USED, "no", "not used") /* the plan was left alone */                                    \
    B(UNKNOWN, "unknown", "unknown")                                                               \
    B(YES, "yes", "applied")                                                                       \
    B(PARTLY, "partly", "fewer") /* only the first ones of several rings */                        \
    B(DIFFERS, "no", "differs")

enum tccl_built {
#define TCCL_BUILT_ENUM(name, word, sent) TCCL_BUILT_##name,
    TCCL_BUILTS(TCCL_BUILT_ENUM)
#undef TCCL_BUILT_ENUM
        TCCL_BUILT_RANKS
};
/* What people read where no communicator over the step's GPUs was seen. */
#define TCCL_NO_CALL "no call"

extern const char *const tccl_built_names[]; /* all that people read: "yes" "partly" … NULL */

const char *tccl_built_name(int rank); /* that people read */
const char *tccl_built_word(int rank); /* of messages and of the store */
int tccl_built_rank(const char *word); /* of such a word, or of what people read; -1: none */
