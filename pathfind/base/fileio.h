/* fileio.h: files read within a bound and written whole, by root as the owner of their folder. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"

/* ---- folder: the folder of a file, in which root acts as its owner. */

/* In a folder that somebody else may write, root could be led elsewhere by links, and made to write
 * there. So root goes to a folder name by name, and acts as the owner of the folder that it is in,
 * in none of root's groups nor of the owner's, for this thread, until it leaves. New files are of
 * group 65534 then. A link that root has made in root's own folder is followed; one
 * of somebody else is followed as that user, who root then stays. Users other than root stay who
 * they are, and the kernel alone decides. */
struct tccl_folder {
    int fd;                  /* the folder; for openat and the like (O_PATH) */
    char name[NAME_MAX + 1]; /* of the file in it */
    bool careful;            /* root */
    bool looks;              /* acts as nobody, and only looks whose things are */
    bool bound;              /* to a user whose link was followed */
    bool denied;             /* has no right to act as the owner */
    bool others;             /* on the way there, somebody else than root may change things */
    uid_t uid;               /* as whom */
    uid_t also;              /* who counts as root for others */
    gid_t *groups;           /* root's other ones, while it acts without; NULL: it does not, */
    int n_groups;
    int links;
    char rest[PATH_MAX]; /* of the way */
};

/* Goes to the folder of the file at path; path may end in "/." for the folder itself. what: the
 * beginning of messages, such as "can't be written". Returns 0, or -1 with err and errno: also
 * where root may not act as the owner (no CAP_SETUID). In any case, tccl_folder_leave. */
int tccl_folder_enter(struct tccl_folder *folder, const char *path, const char *what,
                      struct tccl_error *err);

/* Closes it; root is root again. Leaves errno alone. */
void tccl_folder_leave(struct tccl_folder *folder);
#define cleanup_leave __attribute__((cleanup(tccl_folder_leave)))

/* Makes changes to the folder's names last. Returns 0, or -1 with errno. */
int tccl_folder_sync(const struct tccl_folder *folder);

/* As tccl_fail, with the meaning of errno, which stays as it is, and as whom root has tried. */
int tccl_folder_fail(const struct tccl_folder *folder, struct tccl_error *err, const char *path,
                     const char *what);

/* Opens the file, or makes it where flags have O_CREAT, never through a link. For root it has to be
 * a regular file of the user as whom it acts and must have no other name: a hard link may lead to
 * anybody's file. Returns the descriptor, or -1 with err and errno. */
int tccl_folder_open(const struct tccl_folder *folder, const char *path, int flags, mode_t mode,
                     struct tccl_error *err);

/* For root: may it follow that link, or write into that pipe, the name in the folder? Only where it
 * is root's or of the folder's owner, and nobody else can have put it there. Always true for
 * others. Returns 0, or -1 with err and errno. */
int tccl_folder_check_link(const struct tccl_folder *folder, const struct stat *link,
                           const char *path, struct tccl_error *err);

/* Enters, opens and leaves. */
int tccl_open_own(const char *path, int flags, mode_t mode, struct tccl_error *err);

/* Opens a regular file to read it; nothing else is opened, as opening a device may do something.
 * Root reads it as above; where it may not act as the owner, only his own files and those which
 * all may read, and no link of his is followed. Returns the descriptor, or -1 with err
 * and errno. */
int tccl_open_regular(const char *path, struct tccl_error *err);

/* Makes a folder and its parents. Returns 0 (also if it is there), or -1 with err. */
int tccl_make_folder(const char *path, mode_t mode, struct tccl_error *err);

/* For root: can only root (and also, 0: nobody else) change what is in that folder, and which
 * folder that is? Always true for others. Returns 0, or -1 with err. */
int tccl_folder_check_own(const char *path, uid_t also, struct tccl_error *err);

/* The same for whoever asks, about what only root (and also) should be able to change. */
int tccl_folder_check_roots(const char *path, uid_t also, struct tccl_error *err);

/* ---- fileio: files read within a bound and written whole. */

/* Reads a regular file of at most max bytes. *data is allocated (caller frees), has a NUL behind
 * its *size bytes. Returns 0, or -1 with err (errno kept: ENOENT when there is no such file). */
int tccl_read_file(const char *path, size_t max, char **data, size_t *size, struct tccl_error *err);

/* Writes all bytes. Returns 0, or -1 with errno. */
int tccl_write_all(int fd, const char *data, size_t size);

/* Writes a file whole: temporary file beside it, fsync, rename, fsync of the folder. After a
 * failure the old file is untouched and the temporary one removed. What is there and no regular
 * file, such as a device, is refused. Root does it as above. Returns 0, or -1 with err. */
int tccl_write_file(const char *path, mode_t mode, const void *data, size_t size,
                    struct tccl_error *err);

/* Removes a file in the same way. Returns 0, or -1 with err and errno. */
int tccl_remove_file(const char *path, struct tccl_error *err);

/* Writes what a person asked for with an option such as --output: to standard output where path is
 * NULL or "-"; into a device or pipe that is there; else a file, whole, with mode 0644 (where path
 * is a link, the file that it leads to). Returns 0, or -1 with err. */
int tccl_write_output(const char *path, const void *data, size_t size, struct tccl_error *err);

/* The same with what print writes, once all of it is there. print returns 0, or -1 with err.
 * Returns 0, or -1 with err: print's, or why it can't be written. */
int tccl_print_output(const char *path,
                      int (*print)(FILE *out, const void *what, struct tccl_error *err),
                      const void *what, struct tccl_error *err);

/* Reads a JSON file of at most max bytes. Returns a new reference, or NULL with err, which names
 * the file, line and column. */
json_t *tccl_read_json(const char *path, size_t max, struct tccl_error *err);

/* Writes JSON whole, as tccl_write_file does, in a form that diffs well. Returns 0, or -1. */
int tccl_write_json(const char *path, mode_t mode, const json_t *json, struct tccl_error *err);

/* Hash of what the JSON says, whatever its layout and the order of its members: XXH3 (64 bits) of
 * the text without spaces, members sorted, numbers with 12 digits. 16 hexadecimal digits and a NUL.
 * Returns 0, or -1 if out of memory. */
enum { TCCL_JSON_HASH = 17 };
int tccl_json_hash(const json_t *json, char hash[static TCCL_JSON_HASH]);
