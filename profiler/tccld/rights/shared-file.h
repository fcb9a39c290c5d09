/* shared-file.h: the file of a step's processes in /dev/shm, made ahead for the job's user, which
 * takes root, or CAP_CHOWN and CAP_FOWNER. */
#ifndef TCCL_SHARED_FILE_H
#define TCCL_SHARED_FILE_H

#include <stdint.h>
#include <sys/types.h>

/* Where it is, by name: SHARED_FOLDER/tccl-<uid>-<16 digits of the hash>.<index>. */
#define SHARED_FOLDER "/dev/shm"

struct shared_file {
    uid_t uid;     /* the job's user */
    gid_t gid;     /* whose group it gets; not part of its name */
    uint64_t hash; /* of the step's key */
    int32_t index; /* of the node in the step */
};

/* Makes it, empty, mode 0600 and the user's, in place of what others may have put there; one of the
 * user's own stays. As far as it goes: without, a step of several tasks has no ring. */
void shared_file_make(const struct shared_file *file);

/* Removes it, if it is there: whatever has the name. */
void shared_file_remove(const struct shared_file *file);

#endif
