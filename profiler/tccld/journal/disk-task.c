/* One thread alone uses store and outbox, so neither needs a lock, and a slow disk holds up records
 * but no steps. */
#include "tccld/journal/disk-task.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "client/message.h"

void disk_task_run(void *argument)
{
    struct disk_task *task = argument;
    task->run(task);
}

void disk_task_done(void *argument)
{
    struct disk_task *task = argument;
    if (task->then)
        task->then(task);
    json_decref(task->record);
    json_decref(task->answer);
    free(task);
}

void disk_task_set_time(struct disk_task *task)
{
    task->believed = task->journal->believed;
    task->keep_days = task->journal->daemon->conf->keep_days[0];
    task->keep_misdated = task->journal->daemon->conf->keep_days[1];
}

int disk_task_submit(struct disk_task first)
{
    struct disk_task *task = malloc(sizeof(*task));
    if (task) {
        *task = first;
        disk_task_set_time(task);
        if (threads_submit(first.journal->disk, disk_task_run, disk_task_done, task) == 0)
            return 0;
    }
    free(task);
    json_decref(first.record);
    json_decref(first.answer);
    return -1;
}

void journal_refuse(struct connection *connection, const char *text, bool refused)
{
    cleanup_json json_t *message = tccl_message_new("error");
    tccl_put_text(message, "text", text, 511);
    json_object_set_new(message, "refused", json_boolean(refused));
    connection_answer(connection, message);
}
