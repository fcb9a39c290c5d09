/* check.c: what checks count, and a program's own folder. */
#include "check.h"

#include <ftw.h>

int check_failures;
long check_counted;
char **check_args;
struct tccl_error check_err;

static char folder[256];

bool check_that(bool ok, const char *file, int line)
{
    __atomic_add_fetch(&check_counted, 1, __ATOMIC_RELAXED);
    if (!ok) {
        __atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);
        fprintf(stderr, "%s:%d: ", file, line);
    }
    return ok;
}

void check_end(const char *file, int line, const char *call)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, check_err.text);
    exit(1);
}

static unsigned long rolled;

unsigned long check_seed(void)
{
    static unsigned long seed;
    static bool chosen;
    const char *text = getenv("TCCL_SEED");
    if (!chosen) {
        seed = text ? strtoul(text, NULL, 0) : (unsigned long)time(NULL) ^ getpid();
        printf("seed %lu (repeat with TCCL_SEED=%lu)\n", seed, seed);
        fflush(stdout);
        chosen = true;
        check_seed_anew();
    }
    return seed;
}

void check_seed_anew(void)
{
    rolled = check_seed();
    srand((unsigned)rolled);
    srand48((long)rolled);
}

int random_below(unsigned long *state, int limit)
{
    *state = *state * 6364136223846793005UL + 1442695040888963407UL;
    return (int)((*state >> 33) % (unsigned long)limit);
}

unsigned roll(unsigned limit)
{
    check_seed();
    return (unsigned)random_below(&rolled, (int)limit);
}

int check_exit(pid_t pid)
{
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}

void check_in_child(void (*run)(void))
{
    fflush(NULL);
    check_folder(); /* one of the child's own would stay */
    pid_t pid = fork();
    if (pid == 0) {
        check_failures = 0;
        run();
        _exit(check_failures ? 1 : 0);
    }
    CHECK_INT(check_exit(pid), 0);
}

const char *check_folder(void)
{
    const char *tmp = getenv("TMPDIR");
    if (!folder[0]) {
        snprintf(folder, sizeof(folder), "%.200s/tccl-test-XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(folder) || chmod(folder, 0755) != 0) {
            perror(folder);
            exit(1);
        }
    }
    return folder;
}

char *check_intern(const char *text)
{
    static char **texts;
    static size_t n;
    for (size_t i = 0; i < n; i++)
        if (strcmp(texts[i], text) == 0)
            return texts[i];
    texts = realloc(texts, (n + 1) * sizeof(*texts));
    if (!texts || !(texts[n] = strdup(text)))
        abort();
    return texts[n++];
}

const char *check_at(const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list args;
    int length = snprintf(path, PATH_MAX, "%s/", check_folder());
    va_start(args, fmt);
    if (!*fmt)
        path[length - 1] = '\0';
    else if (vsnprintf(path + length, PATH_MAX - (size_t)length, fmt, args) >= PATH_MAX - length)
        abort();
    va_end(args);
    return check_intern(path);
}

const char *check_printf(const char *fmt, ...)
{
    static char texts[16][8192];
    static int next;
    char *text = texts[next++ % 16];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(*texts), fmt, args) >= (int)sizeof(*texts))
        abort();
    va_end(args);
    return text;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    return walk->level == 0 && strcmp(path, folder) == 0 ? 0 : remove(path);
}

void check_remove(const char *path)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        CHECK_STR(strerror(errno), path);
}

void check_clear(void)
{
    if (folder[0]) {
        check_remove(folder);
        CHECK_INT(rmdir(folder), 0);
        folder[0] = '\0';
    }
}

void check_nothing_left(void)
{
    CHECK_INT(rmdir(check_folder()) | mkdir(check_folder(), 0755), 0);
}

int check_result(void)
{
    if (check_failures)
        fprintf(stderr, "%d checks failed\n", check_failures);
    return check_failures ? 1 : 0;
}

void check_write_file(const char *path, const char *text)
{
    char above[PATH_MAX];
    snprintf(above, sizeof(above), "%s", path);
    for (char *at = above + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(above, 0755);
    }
    cleanup_file FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0);
}

const char *check_read_file(const char *path)
{
    static char text[1 << 16];
    cleanup_file FILE *file = fopen(path, "r");
    text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = '\0';
    return text;
}
