/* odd-loader.c: runs ring-probe, made into a shared library, in unusual ways.
 *
 * odd-loader [--deep] [--forks] [--early] LIBRARY[,LIBRARY] ARGUMENT...: each library is loaded for
 * itself (RTLD_LOCAL, or with RTLD_DEEPBIND), and its main is called with the arguments; the second
 * one makes a communicator of ranks 0 and 1 only, by which it is told apart. --forks: meanwhile a
 * thread makes children, again and again, each of which reads its environment and ends or becomes
 * another program. --early: NCCL is used before that, past the shim. */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_SECONDS = 300 };

static atomic_bool done;
static atomic_int children;

static void child(int number)
{
    static const char *const names[] = {"NCCL_GRAPH_FILE", "NCCL_TOPO_FILE", "NCCL_DEBUG", "PATH"};
    char *const arguments[] = {(char[]){"true"}, NULL};
    alarm(CHILD_SECONDS); /* one that hangs is killed, which its parent sees */
    for (int i = 0; i < 4; i++)
        if (getenv(names[i]) && strncmp(names[i], "NCCL_G", 6) == 0)
            _exit(3);
    if (number % 2)
        execvp(arguments[0], arguments);
    _exit(0);
}

static void *make_children(void *unused)
{
    (void)unused;
    while (!done) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0)
            child(children);
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0) {
            fprintf(stderr, "odd-loader: a child ended with %x\n", status);
            exit(1);
        }
        children++;
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    return NULL;
}

/* A communicator of one GPU, by NCCL's functions under the names that nobody stands in front of:
 * what NCCL keeps for the life of a process it has asked for. */
static int use_early(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) /* its log is opened once, too */
        if (strcmp(argv[i], "--log") == 0)
            setenv("NCCL_DEBUG_FILE", argv[i + 1], 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,GRAPH,P2P,SHM,NET,ENV,COLL,TUNING", 1);
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL), *comm = NULL;
    int (*init)(void **, int, const int *), (*destroy)(void *);
    if (!nccl)
        return -1;
    *(void **)&init = dlsym(nccl, "pncclCommInitAll");
    *(void **)&destroy = dlsym(nccl, "pncclCommDestroy");
    return init && destroy && init(&comm, 1, NULL) == 0 ? destroy(comm) : -1;
}

static int run(const char *library, bool deep, int argc, char **argv)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
    int (*call)(int, char **);
    if (!handle) {
        fprintf(stderr, "odd-loader: %s\n", dlerror());
        return 1;
    }
    *(void **)&call = dlsym(handle, "probe_main");
    optind = 0;
    return call ? call(argc, argv) : 1;
}

int main(int argc, char **argv)
{
    bool deep = false, forks = false, early = false;
    pthread_t thread;
    char *second[64];
    int status = 0, first = 1, n = 0;
    for (; first < argc && argv[first][0] == '-'; first++) {
        deep = deep || strcmp(argv[first], "--deep") == 0;
        forks = forks || strcmp(argv[first], "--forks") == 0;
        early = early || strcmp(argv[first], "--early") == 0;
    }
    if (early && use_early(argc, argv) != 0)
        return 1;
    if (first == argc)
        return 2;
    if (forks && pthread_create(&thread, NULL, make_children, NULL) != 0)
        return 1;
    for (int i = first; i < argc && n < 59; i++)
        second[n++] = argv[i];
    second[n++] = (char[]){"--comms=0"};
    second[n++] = (char[]){"--subset=0-1"};
    second[n] = NULL;
    char *other = strchr(argv[first], ',');
    if (other)
        *other++ = '\0';
    status = run(argv[first], deep, argc - first, argv + first);
    if (other && status == 0)
        status = run(other, deep, n, second);
    done = true;
    if (forks)
        pthread_join(thread, NULL);
    if (forks && children == 0)
        return 1;
    return status;
}
