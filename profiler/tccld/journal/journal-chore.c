#include "tccld/journal/journal-chore.h"

#include <stdlib.h>

#include "client/message.h"

void chore_run(void *task)
{
    struct chore *chore = task;
    chore->run(chore);
}

void chore_done(void *task)
{
    struct chore *chore = task;
    if (chore->then)
        chore->then(chore);
    json_decref(chore->record);
    json_decref(chore->answer);
    free(chore);
}

int chore_submit(struct chore first)
{
    struct chore *chore = malloc(sizeof(*chore));
    if (chore) {
        *chore = first;
        chore->since = journal_oldest(first.journal);
        if (pool_submit(first.journal->disk, chore_run, chore_done, chore) == 0)
            return 0;
    }
    free(chore);
    json_decref(first.record);
    json_decref(first.answer);
    return -1;
}

void chore_log_error(struct chore *chore)
{
    if (chore->err.text[0])
        log_limited(&chore->journal->trouble, "%s", chore->err.text);
}

json_t *chore_error_message(const char *text, bool refused)
{
    json_t *message = tccl_message_new("error");
    tccl_put_text(message, "text", text, 511);
    json_object_set_new(message, "refused", json_boolean(refused));
    return message;
}
