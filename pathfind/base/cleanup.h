/* cleanup.h: the one clean-up idiom of the tree: variables that release themselves at scope end. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

static inline void tccl_cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

static inline void tccl_cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void tccl_cleanup_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

static inline void tccl_cleanup_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static inline void tccl_cleanup_json(json_t **json)
{
    json_decref(*json);
}

#define cleanup_free __attribute__((cleanup(tccl_cleanup_free)))
#define cleanup_close __attribute__((cleanup(tccl_cleanup_close)))
#define cleanup_file __attribute__((cleanup(tccl_cleanup_file)))
#define cleanup_dir __attribute__((cleanup(tccl_cleanup_dir)))
#define cleanup_json __attribute__((cleanup(tccl_cleanup_json)))

/* Hands the value of a cleanup variable to the caller: return tccl_steal(pointer). */
#define tccl_steal(variable)                                                                       \
    __extension__({                                                                                \
        __typeof__(variable) stolen_ = (variable);                                                 \
        (variable) = NULL;                                                                         \
        stolen_;                                                                                   \
    })
