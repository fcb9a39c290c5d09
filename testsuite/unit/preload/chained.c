/* A library that looks for functions in all the ways that depend on who looks. LINK: its number;
 * built several times. */
#include <dlfcn.h>
#include <stdlib.h>

#define PUBLIC __attribute__((visibility("default")))
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(name) JOIN(name, LINK)

PUBLIC int chain(int before);
PUBLIC void OF(only_in_)(void);
PUBLIC void *OF(look_from_)(void *handle, const char *name);
PUBLIC void *OF(look_for_version_from_)(void *handle, const char *name, const char *version);
PUBLIC int OF(start_of_)(void);

/* Each one calls the next one of that name. */
int chain(int before)
{
    int (*next)(int) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "chain");
    before = before * 10 + LINK;
    return next ? next(before) : before;
}

void OF(only_in_)(void)
{
}

#if LINK == 3 /* brings 4 along */
PUBLIC void only_in_4(void);
PUBLIC void use_4(void);

void use_4(void)
{
    only_in_4();
}
#endif

/* Not by a jump: the caller must be this library. */
void *OF(look_from_)(void *handle, const char *name)
{
    void *volatile found = dlsym(handle, name);
    return found;
}

void *OF(look_for_version_from_)(void *handle, const char *name, const char *version)
{
    void *volatile found = dlvsym(handle, name, version);
    return found;
}

/* What was found before the program began: when the loader relocated this library, and by its
 * constructor. */
static int at_start;

__attribute__((constructor)) static void start(void)
{
    at_start += dlsym(RTLD_DEFAULT, "chain") ? 10 : 0;
}

#ifdef EARLY
static int without(void)
{
    return 0;
}

static int with_function(void)
{
    return 1;
}

static int with_environment(void)
{
    return 2;
}

__attribute__((used)) static int (*choose(void))(void)
{
    if (getenv("HOME"))
        return with_environment;
    return dlsym(RTLD_DEFAULT, "getenv") ? with_function : without;
}

static int chosen(void) __attribute__((ifunc("choose")));
#else
static int chosen(void)
{
    return 0;
}
#endif

int OF(start_of_)(void)
{
    return at_start + chosen();
}

#ifdef FRONT
/* A library in front of NCCL: marks each id, and calls NCCL's own. */
typedef struct {
    char bytes[128];
} unique_id;

PUBLIC int ncclGetUniqueId(unique_id *id);
PUBLIC void use_library(const char *path);

static void *library = RTLD_NEXT;

void use_library(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int ncclGetUniqueId(unique_id *id)
{
    int (*next)(unique_id *) = NULL;
    *(void **)&next = dlsym(library, "ncclGetUniqueId");
    int result = next ? next(id) : 5;
    id->bytes[1] += 50;
    return result;
}
#endif

#ifdef DLSYM
/* A library that stands in front of dlsym itself. */
PUBLIC void *dlsym(void *restrict handle, const char *restrict name);
PUBLIC int lookups(void);
static int count;

int lookups(void)
{
    return count;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    static const char *const versions[] = {"GLIBC_2.2.5", "GLIBC_2.17"};
    void *(*next)(void *, const char *) = NULL;
    for (int i = 0; i < 2 && !next; i++)
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    count++;
    return next ? next(handle, name) : NULL;
}
#endif
