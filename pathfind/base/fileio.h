/* fileio.h: files read within a bound and written whole. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "base/folder.h"

/* Reads a regular file of at most max bytes. *data is allocated (caller frees), has a NUL behind
 * its *size bytes. Returns 0, or -1 with err (errno kept: ENOENT when there is no such file). */
int tccl_read_file(const char *path, size_t max, char **data, size_t *size, struct tccl_error *err);

/* Writes all bytes. Returns 0, or -1 with errno. */
int tccl_write_all(int fd, const char *data, size_t size);

/* Writes a file whole: temporary file beside it, fsync, rename, fsync of the folder. After a
 * failure the old file is untouched and the temporary one removed. What is there and no regular
 * file, such as a device, is refused. Root does it as folder.h says. Returns 0, or -1 with err. */
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
