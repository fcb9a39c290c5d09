/* Programs that do to their environment what programs do. Usage: program WHAT [ARGUMENT…];
 * with OWN_GETENV it brings a getenv along. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#ifdef OWN_GETENV
__attribute__((visibility("default"))) char *getenv(const char *name)
{
    static char answer[64];
    snprintf(answer, sizeof(answer), "own(%s)", name);
    return answer;
}
#endif

static void show(const char *name)
{
    const char *value = getenv(name), *secure = secure_getenv(name);
    printf("%s=%s %s\n", name, value ? value : "(none)", secure ? secure : "(none)");
}

static int show_all(char **names)
{
    for (; *names; names++)
        show(*names);
    return 3;
}

/* Odd names, entries without "=", a name that others begin with, an empty value, two of a name. */
static int odd(char **unused)
{
    (void)unused;
    static char *entries[] = {
        "A=1", "AB=2", "no value", "=3", "EMPTY=", "A=4", "NCCL_=5", "NCCL_X=6", NULL};
    environ = entries;
    return show_all((char *[]){"A", "AB", "ABC", "no value", "no", "EMPTY", "NCCL_", "NCCL_X",
                               "NCCL_GRAPH_FILE", "NCCL_ENV_PLUGIN", "TCCL_PLAN", "A=1",
                               "EMPTY=", "", NULL});
}

static int no_environment(char **unused)
{
    (void)unused;
    environ = NULL;
    show("HOME");
    show("NCCL_GRAPH_FILE");
    setenv("HOME", "/there", 1);
    show("HOME");
    clearenv();
    show("HOME");
    show("NCCL_TOPO_FILE");
    return 4;
}

static atomic_bool over;

/* Questions while others change what was asked for: always one of the values that were set. */
static void *questions(void *unused)
{
    (void)unused;
    long wrong = 0;
    while (!over) {
        const char *value = getenv("CHANGES"), *other = getenv("OTHER");
        wrong += value && strncmp(value, "value ", 6) != 0;
        wrong += !other || strncmp(other, "other ", 6) != 0;
    }
    return (void *)wrong;
}

/* The list of entries never grows, so that a libc's own getenv may be called at the same time. */
static int threads(char **unused)
{
    (void)unused;
    static char puts[2][16] = {"CHANGES=value a", "CHANGES=value b"};
    pthread_t askers[3];
    setenv("CHANGES", "value", 1);
    setenv("OTHER", "other 0", 1);
    putenv(puts[0]);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&askers[i], NULL, questions, NULL))
            return 1;
    for (int i = 0; i < 20000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "other %d", i % 50);
        setenv("OTHER", text, 1);
        putenv(puts[i % 2]);
    }
    over = true;
    long wrong = 0;
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(askers[i], &result);
        wrong += (long)result;
    }
    clearenv();
    show("OTHER");
    printf("wrong: %ld\n", wrong);
    return 5;
}

static int run_child(char **command)
{
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        execv(command[0], command);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    printf("child: %d\n", WEXITSTATUS(status));
    return 6;
}

static int use(const char *library, int how)
{
    void *handle = dlopen(library, RTLD_NOW | how);
    int (*function)(void) = NULL;
    if (!handle) {
        printf("%s\n", dlerror());
        return 1;
    }
    *(void **)&function = dlsym(handle, "use_nccl");
    return function ? function() : 1;
}

static int locally(char **names)
{
    return use(names[0], RTLD_LOCAL);
}

static int deeply(char **names)
{
    return use(names[0], RTLD_LOCAL | RTLD_DEEPBIND);
}

static int globally(char **names)
{
    return use(names[0], RTLD_GLOBAL);
}

/* All descriptors are closed, and files that the program opens get the numbers it expects. */
static int without_files(char **names)
{
    for (int fd = 0; fd < 256; fd++)
        if (fd != STDOUT_FILENO)
            close(fd);
    show("HOME");
    int rc = use(names[0], RTLD_LOCAL);
    int first = dup(STDOUT_FILENO), second = dup(STDOUT_FILENO);
    printf("descriptors: %d %d\n", first, second);
    return rc == 0 ? 7 : 1;
}

static int forked(char **names)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int rc = use(names[0], RTLD_LOCAL);
        fflush(stdout);
        _exit(rc);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    use(names[0], RTLD_LOCAL);
    return 8 + status;
}

static int many(char **numbers)
{
    long found = 0;
    for (long i = atol(numbers[0]); i > 0; i--)
        found += (getenv("HOME") != NULL) + (secure_getenv("NCCL_X") != NULL) +
                 (dlsym(RTLD_DEFAULT, "printf") != NULL);
    return found < 0;
}

static int identity(char **names)
{
    printf("uid %d\n", (int)geteuid());
    return show_all(names);
}

static int whose_getenv(char **unused)
{
    (void)unused;
    Dl_info info = {0};
    dladdr(dlsym(RTLD_DEFAULT, "getenv"), &info);
    puts(info.dli_fname ? info.dli_fname : "nobody's");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*does)(char **arguments);
    } all[] = {
        {"show", show_all},      {"odd", odd},         {"none", no_environment},
        {"threads", threads},    {"child", run_child}, {"local", locally},
        {"deep", deeply},        {"global", globally}, {"no-files", without_files},
        {"fork", forked},        {"many", many},       {"identity", identity},
        {"whose", whose_getenv},
    };
    for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(*all); i++)
        if (!strcmp(argv[1], all[i].name))
            return all[i].does(argv + 2);
    fprintf(stderr, "program: no such thing\n");
    return 2;
}
