/* CONFIRM: what the processes of a step on this node say that NCCL built. */
#include "tccld/join/confirm.h"

#include <string.h>

#include "records/record.h"
#include "tccld/join/verdicts.h"
#include "tccld/net/liveness.h"

struct verdict {
    int rank; /* tccl_built_rank; NOTHING: begun */
    char text[CONFIRM_TEXT + 1];
    bool whole;
    int64_t lowest;
    int nccl; /* its version, 0: not known */
};

static int read_verdict(const struct tccl_lines *lines, struct verdict *verdict,
                        struct tccl_error *err)
{
    int64_t ranks, gpus, nccl = 0;
    char word[17];
    if (tccl_line_text(lines, "text", verdict->text, sizeof(verdict->text)) < 0)
        return tccl_fail(err, "text: a text of at most %d bytes is expected", CONFIRM_TEXT);
    if (tccl_line_integer(lines, "ranks", -1, INT32_MAX, &ranks) != 0 ||
        tccl_line_integer(lines, "gpus", -1, INT32_MAX, &gpus) != 0)
        return tccl_fail(err, "ranks, gpus: numbers from -1 to %d are expected", INT32_MAX);
    if (tccl_line_integer(lines, "lowest", -1, INT32_MAX, &verdict->lowest) != 0)
        verdict->lowest = -1;
    tccl_line_integer(lines, "nccl", 0, 999999, &nccl);
    verdict->nccl = (int)nccl;
    if (tccl_line_bool(lines, "whole", &verdict->whole) != 0)
        return tccl_fail(err, "whole: yes or no is expected");
    if (tccl_line_text(lines, "verdict", word, sizeof(word)) < 0)
        return tccl_fail(err, "verdict: a word is expected");
    verdict->rank = strcmp(word, "begun") == 0 ? TCCL_BUILT_NOTHING : tccl_built_rank(word);
    if (verdict->rank < 0 || !*word)
        return tccl_fail(err, "verdict: \"%.16s\" is unknown", word);
    return 0;
}

void confirm_hear(struct daemon *daemon, struct connection *connection,
                  const struct tccl_lines *question)
{
    struct tccl_error err = {0};
    struct verdict verdict;
    struct alive *alive = alives_asked(daemon, connection, question, &err);
    if (!alive || read_verdict(question, &verdict, &err) != 0) {
        connection_refuse(connection, err.text);
        return;
    }
    if (verdict.whole)
        verdicts_hear(daemon, alive, verdict.rank, verdict.text, (int)verdict.lowest, verdict.nccl);
    char text[32];
    struct tccl_line_writer answer;
    tccl_lines_begin(&answer, text, sizeof(text), "tccl-ok", 1);
    connection_answer_lines(connection, &answer);
}
