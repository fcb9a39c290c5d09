/* base.c: what libc may not offer in every program that the shim is loaded into. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int digit(char c, int base)
{
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

int shim_bus_find(const tccl_bus *list, int n, tccl_bus bus)
{
    for (int i = 0; i < n; i++)
        if (list[i] == bus)
            return i;
    return -1;
}

void shim_text_add(struct shim_text *text, const char *format, ...)
{
    if (text->full || text->length >= text->size) {
        text->full = true;
        return;
    }
    va_list list;
    va_start(list, format);
    size_t room = text->size - text->length;
    int n = vsnprintf(text->at + text->length, room, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= room) {
        text->full = true;
        text->at[text->length] = '\0';
        return;
    }
    text->length += (size_t)n;
}

const char *shim_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

uint64_t shim_hash(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

int shim_number(const char *text, int base, uint64_t max, uint64_t *number)
{
    uint64_t value = 0;
    if (!text[0])
        return -1;
    for (; *text; text++) {
        int d = digit(*text, base);
        if (d < 0 || (uint64_t)d > max || value > (max - (uint64_t)d) / (uint64_t)base)
            return -1;
        value = value * (uint64_t)base + (uint64_t)d;
    }
    *number = value;
    return 0;
}

long shim_read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    size_t length = 0;
    while (length < size) {
        ssize_t n = read(fd, text + length, size - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                break;
            int failed = errno;
            close(fd);
            errno = failed;
            return -1;
        }
        length += (size_t)n;
    }
    close(fd);
    text[length < size ? length : size - 1] = '\0';
    if (length < size)
        return (long)length;
    errno = EFBIG;
    return -1;
}

int shim_write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

void *shim_scratch(size_t size)
{
    void *scratch = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return scratch == MAP_FAILED ? NULL : scratch;
}

void shim_scratch_free(void *scratch, size_t size)
{
    if (scratch)
        munmap(scratch, size);
}

bool shim_is_memory_file(int fd, const char *name)
{
    char path[40], wanted[64], found[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int length = snprintf(wanted, sizeof(wanted), "/memfd:%s (deleted)", name);
    return length == (int)readlink(path, found, sizeof(found)) &&
           !memcmp(found, wanted, (size_t)length);
}

int64_t shim_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void shim_sleep_us(long microseconds)
{
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&time, NULL);
}

int shim_tid(void)
{
    return (int)syscall(SYS_gettid);
}

char *shim_env(const char *name)
{
    size_t length = strlen(name);
    char **at = environ, *entry;
    if (length == 0 || !at)
        return NULL;
    /* Not strncmp: nearly all entries differ in their first letters. Each is read once, as another
     * thread may be changing them. */
    for (; (entry = *at); at++) {
        size_t same = 0;
        while (same < length && entry[same] == name[same])
            same++;
        if (same == length && entry[same] == '=')
            return entry + length + 1;
    }
    return NULL;
}

int shim_lock_take(shim_lock *lock)
{
    int64_t deadline = shim_now_us() + 1000000;
    for (int tries = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); tries++) {
        if (tries > 100)
            shim_sleep_us(50);
        if (tries % 16 == 15 && shim_now_us() > deadline)
            return -1;
    }
    return 0;
}

void shim_lock_release(shim_lock *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

bool shim_forked(int *owner)
{
    int pid = getpid(), before = __atomic_exchange_n(owner, pid, __ATOMIC_SEQ_CST);
    return before != pid && before != 0;
}
