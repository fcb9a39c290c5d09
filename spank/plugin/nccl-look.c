/* nccl-look.c: paths are tried as Python and ld.so would; a version is in a library's own name, to
 * which links lead, or in the header beside it, as in Python's packages. */
#include "plugin/plugin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "chain/nccl-version.h"

enum { LINKS = 8, ENTRIES = 64, TEXT = 4096 };

static const char library_name[] = "libnccl.so";

struct path {
    char text[NCCL_LOOK_PATH];
};

/* Returns false if it is too long, or not absolute. */
static __attribute__((format(printf, 2, 3))) bool put(struct path *path, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path->text, sizeof(path->text), format, list);
    va_end(list);
    return length > 0 && length < (int)sizeof(path->text) && path->text[0] == '/';
}

static const char *name_in(const struct path *path)
{
    return strrchr(path->text, '/') + 1;
}

/* Cuts the last component. Returns false if there is nothing above. */
static bool cut(struct path *path)
{
    char *slash = strrchr(path->text, '/');
    *slash = '\0';
    return slash > path->text;
}

/* Where a link leads to, one step. Returns false: it is none. */
static bool follow(struct path *path)
{
    char target[NCCL_LOOK_PATH];
    ssize_t length = readlink(path->text, target, sizeof(target) - 1);
    if (length <= 0)
        return false;
    target[length] = '\0';
    if (target[0] == '/')
        return put(path, "%s", target);
    struct path folder = *path;
    cut(&folder);
    return put(path, "%s/%s", folder.text, target);
}

/* The beginning of a regular file; nothing of anything else. */
static void read_text(const struct path *path, char text[static TEXT])
{
    struct stat status;
    text[0] = '\0';
    cleanup_close int fd = open(path->text, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    ssize_t length = read(fd, text, TEXT - 1);
    text[length > 0 ? length : 0] = '\0';
}

/* The next entry of a list, or NULL. */
static const char *next_entry(const char **list, const char *dividers, int *length)
{
    *list += strspn(*list, dividers);
    const char *entry = *list;
    *length = (int)strcspn(entry, dividers);
    *list += *length;
    return *length ? entry : NULL;
}

static const char *value_of(char *const *env, const char *name)
{
    const char *value = job_env_get(env, name);
    return value ? value : "";
}

/* ---- A library ---- */

/* 22907 of "libnccl.so.2.29.7"; 0: the name has no version. */
static unsigned version_in(const char *name)
{
    unsigned major, minor, patch;
    if (sscanf(name, "libnccl.so.%2u.%2u.%2u", &major, &minor, &patch) != 3)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

static unsigned version_by_header(struct path file)
{
    static const char line[] = "#define NCCL_VERSION_CODE ";
    char text[TEXT];
    struct path header;
    if (!cut(&file) || !put(&header, "%s/../include/nccl.h", file.text))
        return 0;
    read_text(&header, text);
    const char *found = strstr(text, line);
    unsigned long version = found ? strtoul(found + strlen(line), NULL, 10) : 0;
    return version < 1000000 ? (unsigned)version : 0;
}

/* Returns whether there is such a library. */
static bool add(struct nccl_look *look, const struct path *path)
{
    struct stat status;
    if (look->n == NCCL_LOOK_MOST || stat(path->text, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    struct nccl_found *found = &look->found[look->n++];
    memcpy(found->path, path->text, sizeof(found->path));
    struct path file = *path;
    found->version = version_in(name_in(&file));
    for (int i = 0; i < LINKS && !found->version && follow(&file); i++)
        found->version = version_in(name_in(&file));
    if (!found->version)
        found->version = version_by_header(file);
    return true;
}

static bool add_in(struct nccl_look *look, const char *folder, int length)
{
    struct path path;
    return put(&path, "%.*s/libnccl.so.2", length, folder) && add(look, &path);
}

static bool add_preloaded(struct nccl_look *look, const char *list)
{
    const char *entry;
    int length;
    struct path path;
    for (int i = 0; i < ENTRIES && (entry = next_entry(&list, ": ", &length)); i++)
        if (put(&path, "%.*s", length, entry) &&
            strncmp(name_in(&path), library_name, strlen(library_name)) == 0 && add(look, &path))
            return true;
    return false;
}

/* ---- Python ---- */

static bool is_python(const char *name)
{
    static const char python[] = "python";
    size_t length = strlen(python);
    return strncmp(name, python, length) == 0 &&
           name[length + strspn(name + length, "0123456789.")] == '\0';
}

/* A program as execvp would find it. */
static bool find_program(const char *name, char *const *env, struct path *path)
{
    const char *list = value_of(env, "PATH"), *entry;
    struct stat status;
    int length;
    if (name[0] == '/')
        return put(path, "%s", name);
    if (strchr(name, '/'))
        return put(path, "%s/%s", value_of(env, "PWD"), name);
    for (int i = 0; i < ENTRIES && (entry = next_entry(&list, ":", &length)); i++)
        if (put(path, "%.*s/%s", length, entry, name) && stat(path->text, &status) == 0 &&
            S_ISREG(status.st_mode) && status.st_mode & 0111)
            return true;
    return false;
}

/* The interpreter in a script's first line: "#!/usr/bin/env python3", "#!/venv/bin/python". */
static bool find_interpreter(struct path *path, char *const *env)
{
    char text[TEXT], *rest = text;
    read_text(path, text);
    text[strcspn(text, "\n")] = '\0';
    if (strncmp(text, "#!", 2) != 0)
        return false;
    rest += 2 + strspn(text + 2, " \t");
    char *word = strsep(&rest, " \t");
    if (!put(path, "%s", word))
        return false;
    if (strcmp(name_in(path), "env") != 0)
        return is_python(name_in(path));
    return rest && is_python(rest) && find_program(rest, env, path);
}

/* Returns false: the program is not Python's. */
static bool find_python(const char *program, char *const *env, struct path *path)
{
    if (!program)
        return find_program("python3", env, path) || find_program("python", env, path);
    if (!find_program(program, env, path))
        return false;
    return is_python(name_in(path)) || find_interpreter(path, env);
}

struct python {
    struct path prefix, base; /* of a virtual environment; of the interpreter itself */
    int minor;                /* 11: python3.11; -1: not known */
    bool venv, system;        /* system: packages of base, too */
};

static int minor_in(const char *name)
{
    int minor, end = 0;
    return sscanf(name, "python3.%3d%n", &minor, &end) == 1 && !name[end] ? minor : -1;
}

/* The prefix is where the interpreter lies, as it was called if there is a pyvenv.cfg, else as
 * links lead to it. */
static bool describe_python(const struct path *called, struct python *python)
{
    char text[TEXT];
    struct path file = *called, configured;
    *python = (struct python){.prefix = *called, .minor = minor_in(name_in(called))};
    for (int i = 0; i < LINKS && follow(&file); i++)
        python->minor = python->minor < 0 ? minor_in(name_in(&file)) : python->minor;
    python->base = file;
    if (!cut(&python->base) || !cut(&python->base) || !cut(&python->prefix) ||
        !cut(&python->prefix) || !put(&configured, "%s/pyvenv.cfg", python->prefix.text))
        return false;
    read_text(&configured, text);
    python->venv = text[0] != '\0';
    python->system = !python->venv || strstr(text, "include-system-site-packages = true");
    if (!python->venv)
        python->prefix = python->base;
    const char *version = strstr(text, "version");
    if (python->minor < 0 && version)
        sscanf(version + strcspn(version, "=\n"), "= 3.%3d", &python->minor);
    return python->minor >= 0;
}

static bool add_package(struct nccl_look *look, const char *site, int length)
{
    struct path path;
    return put(&path, "%.*s/nvidia/nccl/lib/libnccl.so.2", length, site) && add(look, &path);
}

static bool add_package_of(struct nccl_look *look, const char *prefix, const char *form, int minor)
{
    struct path site;
    return put(&site, "%s/%s/python3.%d/%s", prefix, form, minor, "site-packages") &&
           add_package(look, site.text, -1);
}

/* Of pip install --user. */
static bool add_users(struct nccl_look *look, char *const *env, int minor)
{
    const char *base = value_of(env, "PYTHONUSERBASE");
    struct path local;
    if (*value_of(env, "PYTHONNOUSERSITE") ||
        !put(&local, "%s%s", *base ? base : value_of(env, "HOME"), *base ? "" : "/.local"))
        return false;
    return add_package_of(look, local.text, "lib", minor);
}

/* The first package in the order of sys.path. */
static void add_packages(struct nccl_look *look, char *const *env, const struct python *python)
{
    const char *list = value_of(env, "PYTHONPATH"), *entry;
    const char *prefix = python->prefix.text, *base = python->base.text;
    int length, minor = python->minor;
    struct path debian;
    for (int i = 0; i < ENTRIES && (entry = next_entry(&list, ":", &length)); i++)
        if (add_package(look, entry, length))
            return;
    if (python->venv && (add_package_of(look, prefix, "lib", minor) ||
                         add_package_of(look, prefix, "lib64", minor)))
        return;
    if (!python->system || add_users(look, env, minor) ||
        add_package_of(look, base, "lib", minor) || add_package_of(look, base, "lib64", minor))
        return;
    if (strcmp(base, "/usr") == 0 && put(&debian, "/usr/local/lib/python3.%d/dist-packages", minor))
        add_package(look, debian.text, -1);
}

/* ---- All of it ---- */

#ifdef __aarch64__
#define MACHINE "aarch64"
#else
#define MACHINE "x86_64"
#endif

/* Where the loader looks for a library that nobody names a folder for: that of a distribution's
 * PyTorch, beside which a package may be there for something else. */
static const char *const everybodys[] = {"/usr/local/lib", "/usr/lib64",
                                         "/usr/lib/" MACHINE "-linux-gnu"};

void nccl_look(const char *program, char *const *env, struct nccl_look *look)
{
    const char *list = value_of(env, "LD_LIBRARY_PATH"), *entry;
    struct path path, given;
    struct python python;
    int length;
    look->n = 0;
    if (add_preloaded(look, value_of(env, "LD_PRELOAD")))
        return;
    if (find_python(program, env, &path)) {
        if (!describe_python(&path, &python))
            return;
        add_packages(look, env, &python);
        if (put(&path, "%s/lib", python.prefix.text))
            add_in(look, path.text, -1);
    } else if (program) {
        return;
    }
    if (put(&given, "%s", value_of(env, "VLLM_NCCL_SO_PATH")))
        add(look, &given);
    for (int i = 0; i < ENTRIES && (entry = next_entry(&list, ":;", &length)); i++)
        if (add_in(look, entry, length))
            return;
    for (size_t i = 0; i < sizeof(everybodys) / sizeof(*everybodys); i++)
        add_in(look, everybodys[i], -1);
}

const struct nccl_found *nccl_look_unknown(const struct nccl_look *look)
{
    for (int i = 0; i < look->n; i++)
        if (!look->found[i].version || tccl_nccl_known(look->found[i].version))
            return NULL;
    return look->n ? look->found : NULL;
}
