/* A program that looks functions up in all ways, linked to chain-1 and chain-2 (chained.c). It
 * prints what it found and what that did. Usage: lookup WHAT FOLDER: of the libraries. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    char bytes[128];
} unique_id;

extern int chain(int before);
extern void *look_from_1(void *handle, const char *name);
extern void *look_from_2(void *handle, const char *name);
extern void *look_for_version_from_1(void *handle, const char *name, const char *version);

static const char *folder;

static void *load(const char *name, int how)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    void *handle = dlopen(path, RTLD_NOW | how);
    if (!handle) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return handle;
}

/* The file that holds an address. */
static const char *file_of(void *address)
{
    Dl_info info;
    if (!address)
        return "none";
    if (!dladdr(address, &info))
        return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

/* The file, and dlerror's word, which it says once. */
static void tell(const char *what, void *found)
{
    char error[512];
    const char *now = dlerror();
    snprintf(error, sizeof(error), "%s%s", now ? ", " : "", now ? now : "");
    printf("%s: %s%s%s\n", what, file_of(found), error, dlerror() ? ", again" : "");
}

static void *handler_found;

static void on_signal(int number)
{
    (void)number;
    handler_found = dlsym(RTLD_DEFAULT, "look_from_1");
}

/* A name of which nothing more can be read. */
static const char *at_end_of_page(const char *name)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE))
        exit(1);
    return strcpy(pages + page - strlen(name) - 1, name);
}

static int no_names_of_nccl(void)
{
    static const char *const names[] = {"",     "n",     "nc",         "ncc",   "nccl",
                                        "ncd",  "ncclX", "ncclErrorX", "pnccl", "printf",
                                        "nice", "chain", "no_such"};
    printf("next: %d\n", chain(0));
    void *third = load("chain-3.so", RTLD_LOCAL);
    void *(*look_from_3)(void *, const char *) = NULL;
    *(void **)&look_from_3 = dlsym(third, "look_from_3");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *name = at_end_of_page(names[i]);
        tell(name, dlsym(RTLD_DEFAULT, name));
        tell("  next", dlsym(RTLD_NEXT, name));
        tell("  from 1, next", look_from_1(RTLD_NEXT, name));
        tell("  from 2, next", look_from_2(RTLD_NEXT, name));
        tell("  from 3", look_from_3(RTLD_DEFAULT, name));
        tell("  from 3, next", look_from_3(RTLD_NEXT, name));
        tell("  of 3", dlsym(third, name));
    }
    tell("not mine", dlsym(RTLD_DEFAULT, "only_in_4"));
    tell("of its own scope", look_from_3(RTLD_DEFAULT, "only_in_4"));
    tell("next in it", look_from_3(RTLD_NEXT, "only_in_4"));
    tell("of the program", dlsym(dlopen(NULL, RTLD_NOW), "chain"));
    tell("no version", look_for_version_from_1(RTLD_DEFAULT, "printf", "GLIBC_9"));
    tell("version", look_for_version_from_1(RTLD_NEXT, "regexec", "GLIBC_2.3.4"));
    tell("older version", look_for_version_from_1(RTLD_NEXT, "regexec", "GLIBC_2.2.5"));
    printf("other function: %d\n",
           look_for_version_from_1(RTLD_NEXT, "regexec", "GLIBC_2.3.4") !=
               look_for_version_from_1(RTLD_NEXT, "regexec", "GLIBC_2.2.5"));
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    tell("in a handler", handler_found);
    errno = 77;
    dlsym(RTLD_DEFAULT, "printf");
    printf("errno %d\n", errno);
    return 3;
}

/* What a handle's functions do: which copy answers, what is absent, what dlerror says. */
static const char *told_from = "";

static void use(const char *what, void *handle)
{
    int (*get_id)(unique_id *) = NULL, (*get_version)(int *) = NULL;
    int (*init)(void **, int, unique_id, int) = NULL, (*destroy)(void *) = NULL;
    unique_id id = {{0}};
    int version = 0;
    void *comm = NULL;
    *(void **)&get_version = dlsym(handle, "ncclGetVersion");
    *(void **)&get_id = dlsym(handle, "ncclGetUniqueId");
    *(void **)&init = dlsym(handle, "ncclCommInitRank");
    const char *error = dlerror();
    *(void **)&destroy = dlsym(handle, "ncclCommDestroy");
    printf("%s: error %s\n", what, error ? error : "none");
    void *absent = dlsym(handle, "ncclCommShrink");
    const char *text = dlerror();
    text = text ? strstr(text, told_from) : NULL;
    printf("  absent: %s, %s\n", file_of(absent), text ? text : "no error");
    tell("  no function", dlsym(handle, "ncclNothing"));
    tell("  twin", dlsym(handle, "pncclGetUniqueId"));
    errno = 77;
    dlsym(handle, "ncclCommInitRank");
    int number = errno;
    if (!get_version || !get_id || !init || !destroy)
        return;
    int status = get_version(&version) + get_id(&id) + init(&comm, 4, id, 2) + destroy(comm);
    printf("  version %d, copy %d, front %d, status %d, errno %d\n", version, id.bytes[0],
           id.bytes[1], status, number);
}

static int nccl(void)
{
    void *first = load("libnccl.so.2", RTLD_LOCAL), *second = load("libnccl-b.so.2", RTLD_LOCAL);
    use("first", first);
    use("second", second);
    use("first again", first);
    return 4;
}

static int in_namespace(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, "libnccl-b.so.2");
    void *there = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    snprintf(path, sizeof(path), "%s/%s", folder, "chain-1.so");
    void *looker = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    void *(*look)(void *, const char *) = NULL;
    if (!there || !looker) {
        printf("%s\n", dlerror());
        return 1;
    }
    use("in a namespace", there);
    tell("its function", dlsym(there, "ncclGetUniqueId"));
    *(void **)&look = dlsym(looker, "look_from_1");
    tell("from there", look(RTLD_DEFAULT, "chain") == dlsym(looker, "chain") ? NULL : looker);
    tell("  next", look(RTLD_NEXT, "chain"));
    tell("  NCCL of there", look(there, "ncclGetUniqueId"));
    tell("  no NCCL", look(RTLD_DEFAULT, "ncclGetUniqueId"));
    return 5;
}

/* The program's scope: nothing before NCCL is in it, then NCCL's. */
static int global(void)
{
    told_from = "undefined"; /* it names the shim where it would name the program */
    void *program = dlopen(NULL, RTLD_NOW);
    printf("%d %d", dlsym(RTLD_DEFAULT, "ncclGetUniqueId") != NULL,
           dlsym(program, "ncclGetUniqueId") != NULL);
    printf(" %d\n", dlerror() != NULL);
    load("libnccl-b.so.2", RTLD_GLOBAL);
    use("global", program);
    use("default", RTLD_DEFAULT);
    use("next", RTLD_NEXT);
    printf("%d %d\n", dlsym(RTLD_DEFAULT, "ncclCommShrink") != NULL, dlerror() != NULL);
    return 6;
}

/* A preloaded library that stands in front of NCCL is called, and by itself finds NCCL's. */
static int front(void)
{
    void (*use_library)(const char *) = NULL;
    char path[512];
    told_from = "undefined";
    use("front", RTLD_DEFAULT);
    snprintf(path, sizeof(path), "%s/%s", folder, "libnccl.so.2");
    *(void **)&use_library = dlsym(RTLD_DEFAULT, "use_library");
    use_library(path);
    use("front, with a handle", RTLD_DEFAULT);
    return 7;
}

static int own_dlsym(void)
{
    int (*lookups)(void) = NULL;
    *(void **)&lookups = dlsym(RTLD_DEFAULT, "lookups");
    if (!lookups)
        return 1;
    int before = lookups();
    dlsym(RTLD_DEFAULT, "printf");
    printf("%d\n", lookups() - before);
    use("with another dlsym", load("libnccl.so.2", RTLD_LOCAL));
    return 8;
}

/* What a library found while it was being relocated, and in its constructor. */
static int early(void)
{
    int (*start)(void) = NULL;
    *(void **)&start = dlsym(RTLD_DEFAULT, "start_of_7");
    printf("%d\n", start ? start() : -1);
    return 10;
}

/* Whose the functions are that dlsym hands out of so many copies. */
static int whose(void)
{
    for (int i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof(name), "libnccl-%d.so", i);
        void *handle = load(name, RTLD_LOCAL);
        tell(name, dlsym(handle, "ncclCommInitRank"));
        tell("  again", dlsym(handle, "ncclCommInitRank"));
        tell("  no wrapper", dlsym(handle, "ncclGetVersion"));
    }
    return 9;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*does)(void);
    } all[] = {
        {"names", no_names_of_nccl},
        {"nccl", nccl},
        {"namespace", in_namespace},
        {"global", global},
        {"front", front},
        {"own-dlsym", own_dlsym},
        {"whose", whose},
        {"early", early},
    };
    folder = argv[argc > 2 ? 2 : 0];
    for (size_t i = 0; argc > 2 && i < sizeof(all) / sizeof(*all); i++)
        if (!strcmp(argv[1], all[i].name))
            return all[i].does();
    fprintf(stderr, "lookup: no such thing\n");
    return 2;
}
