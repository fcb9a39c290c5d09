/* Which NCCL a program will load, by trees of files: environments of Python, odd links, what is no
 * file, what is missing or may not be read; how many calls it takes; and a look that hangs. */
#include "plugin/plugin.h"

#include "base/clock.h"
#include "check.h"

enum { NOBODY = 65534, KNOWN = 23004, OTHER = 29901 };

static void run(const char *format, ...)
{
    char command[4096];
    va_list list;
    va_start(list, format);
    int length = snprintf(command, sizeof(command), "cd %s && ", check_folder());
    vsnprintf(command + length, sizeof(command) - (size_t)length, format, list);
    va_end(list);
    CHECK_INT(system(command), 0);
}

/* A package as pip lays it, in a folder of packages. */
static void package(const char *site, int version)
{
    run("mkdir -p %s/nvidia/nccl/lib %s/nvidia/nccl/include && : >%s/nvidia/nccl/lib/libnccl.so.2 "
        "&& printf '#define NCCL_MAJOR 2\n#define NCCL_VERSION_CODE %d\n' "
        ">%s/nvidia/nccl/include/nccl.h",
        site, site, site, version, site);
}

/* A Python with its lib, and a virtual environment of it. */
static void python(const char *name, int minor)
{
    run("mkdir -p %s/bin %s/lib/python3.%d/site-packages && : >%s/bin/python3.%d && "
        "chmod 755 %s/bin/python3.%d && ln -s python3.%d %s/bin/python3 && ln -s python3 "
        "%s/bin/python",
        name, name, minor, name, minor, name, minor, minor, name, name);
}

static void venv(const char *name, const char *base, int minor)
{
    run("mkdir -p %s/bin %s/lib/python3.%d/site-packages && ln -s %s/%s/bin/python3 "
        "%s/bin/python && ln -s python %s/bin/python3 && echo 'include-system-site-packages = "
        "false' >%s/pyvenv.cfg",
        name, name, minor, check_folder(), base, name, name, name);
}

static struct nccl_look look;

/* Looks with an environment, one text, in which @ is the check_folder() and blanks divide. NULL:
 * none. */
static const struct nccl_found *see(const char *program, const char *variables)
{
    static char text[8192], path[1024];
    char *env[16] = {NULL};
    size_t n = 0, length = 0;
    for (const char *at = variables; *at; at++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%.*s",
                                   *at == '@' ? 99 : 1, *at == '@' ? check_folder() : at);
    text[length] = '\0';
    for (char *rest = text, *word; (word = strsep(&rest, " "));)
        if (*word)
            env[n++] = word;
    snprintf(path, sizeof(path), "%s%s", program && *program == '@' ? check_folder() : "",
             program ? program + (*program == '@') : "");
    nccl_look(program ? path : NULL, env, &look);
    return look.n ? look.found : NULL;
}

static void check_seen(const char *program, const char *variables, unsigned version,
                       const char *where)
{
    const struct nccl_found *found = see(program, variables);
    const char *path = check_at("%s", where);
    if (!found)
        fprintf(stderr, "%s, %s: none\n", program ? program : "any", variables);
    CHECK(found != NULL);
    CHECK_INT(found ? found->version : 0, version);
    CHECK_STR(found ? found->path : "", path);
    CHECK((nccl_look_unknown(&look) != NULL) == (look.n == 1 && version == OTHER));
}

static void check_none(const char *program, const char *variables)
{
    const struct nccl_found *found = see(program, variables);
    if (found)
        fprintf(stderr, "%s, %s: %s\n", program ? program : "any", variables, found->path);
    CHECK(!found && !nccl_look_unknown(&look));
}

#define SITE "lib/python3.11/site-packages"
#define NCCL "nvidia/nccl/lib/libnccl.so.2"

TEST(python)
{
    python("usr", 11);
    venv("venv", "usr", 11);
    check_none("@/venv/bin/python", "");
    package("usr/" SITE, KNOWN);
    check_none("@/venv/bin/python", "PYTHONNOUSERSITE=1"); /* it has packages of its own only */
    check_seen("@/usr/bin/python3", "", KNOWN, "usr/" SITE "/" NCCL);
    package("venv/" SITE, OTHER);
    check_seen("@/venv/bin/python", "", OTHER, "venv/" SITE "/" NCCL);
    /* Whichever PATH finds; the variables of an environment alone say nothing to Python. */
    check_seen("python", "PATH=@/none:@/venv/bin:@/usr/bin", OTHER, "venv/" SITE "/" NCCL);
    check_seen("python3", "PATH=relative:@/usr/bin:@/venv/bin VIRTUAL_ENV=@/venv", KNOWN,
               "usr/" SITE "/" NCCL);
    check_seen(NULL, "PATH=@/venv/bin", OTHER, "venv/" SITE "/" NCCL);
    check_seen("bin/python", "PWD=@/venv", OTHER, "venv/" SITE "/" NCCL);
    check_none("bin/python", "");
    run("mv usr/bin/python3 usr/bin/python3.moved && ln -s usr link && ln -s python3.11 "
        "usr/bin/python3");
    check_seen("@/link/bin/python", "", KNOWN, "link/" SITE "/" NCCL);
    /* In front of it, and in place of it. */
    package("path", OTHER);
    check_seen("@/usr/bin/python", "PYTHONPATH=:rel:@/none:@/path", OTHER, "path/" NCCL);
    package("home/.local/" SITE, OTHER);
    check_seen("@/usr/bin/python", "HOME=@/home", OTHER, "home/.local/" SITE "/" NCCL);
    check_seen("@/usr/bin/python", "HOME=@/home PYTHONNOUSERSITE=1", KNOWN, "usr/" SITE "/" NCCL);
    check_seen("@/venv/bin/python", "HOME=@/home", OTHER, "venv/" SITE "/" NCCL);
    venv("outer", "usr", 11);
    check_none("@/outer/bin/python", "HOME=@/home");
    run("echo 'include-system-site-packages = true' >outer/pyvenv.cfg");
    check_seen("@/outer/bin/python", "HOME=@/home", OTHER, "home/.local/" SITE "/" NCCL);
    check_seen("@/outer/bin/python", "", KNOWN, "usr/" SITE "/" NCCL);
    /* Copies in place of links, as uv and venv write the version. */
    run("mkdir -p copies/bin && cp usr/bin/python3.11 copies/bin/python3 && echo 'version_info = "
        "3.12.4' >copies/pyvenv.cfg");
    package("copies/lib64/python3.12/site-packages", OTHER);
    check_seen("@/copies/bin/python3", "", OTHER, "copies/lib64/python3.12/site-packages/" NCCL);
    run("echo 'version = old' >copies/pyvenv.cfg");
    check_none("@/copies/bin/python3", "LD_LIBRARY_PATH=@/venv/" SITE "/nvidia/nccl/lib");
}

TEST(programs)
{
    const char *env = "PATH=@/venv/bin:/usr/bin";
    run("printf '#!/usr/bin/env python3\n' >train && printf '#! %s/venv/bin/python -u\n' >tool && "
        "printf '#!/bin/sh\npython train\n' >shell && printf '#!' >odd && printf '\177ELF' >elf && "
        "mkfifo fifo && chmod 755 train tool shell odd elf fifo && cp tool venv/bin/torchrun",
        check_folder());
    check_seen("@/train", env, OTHER, "venv/" SITE "/" NCCL);
    check_seen("@/tool", "", OTHER, "venv/" SITE "/" NCCL);
    check_seen("torchrun", env, OTHER, "venv/" SITE "/" NCCL);
    static const char *const others[] = {"@/shell", "@/odd", "@/elf", "@/fifo", "@",
                                         "@/none",  "bash",  "",      "."};
    for (size_t i = 0; i < COUNT(others); i++)
        check_none(others[i],
                   "PATH=@/venv/bin:/usr/bin LD_LIBRARY_PATH=@/venv/" SITE "/nvidia/nccl/lib");
}

TEST(libraries)
{
    run("mkdir -p lib plain/lib empty loop && : >lib/libnccl.so.2.99.1 && ln -s libnccl.so.2.99.1 "
        "lib/libnccl.so.2 && : >plain/lib/libnccl.so.2 && ln -s libnccl.so.2 loop/libnccl.so.2");
    /* LD_PRELOAD is for any program, and decides alone. */
    const char *preload = "LD_PRELOAD=libm.so:@/lib/libnccl.so.2 LD_LIBRARY_PATH=@/plain/lib";
    check_seen("@/elf", preload, OTHER, "lib/libnccl.so.2");
    check_seen("@/venv/bin/python", preload, OTHER, "lib/libnccl.so.2");
    check_none("@/elf", "LD_PRELOAD=@/lib/libnccl.so.3");
    python("bare", 11);
    check_none("@/bare/bin/python", "LD_LIBRARY_PATH=@/empty:@/loop:rel:");
    check_seen("@/bare/bin/python", "LD_LIBRARY_PATH=@/empty:@/lib:@/plain/lib", OTHER,
               "lib/libnccl.so.2");
    check_seen("@/bare/bin/python", "VLLM_NCCL_SO_PATH=@/lib/libnccl.so.2", OTHER,
               "lib/libnccl.so.2");
    check_seen(NULL, "LD_LIBRARY_PATH=@/lib", OTHER, "lib/libnccl.so.2");
    /* Which version it is can't be told; nor is it, where another one may be loaded. */
    check_seen("@/bare/bin/python", "LD_LIBRARY_PATH=@/plain/lib", 0, "plain/lib/libnccl.so.2");
    check_seen("@/venv/bin/python", "LD_LIBRARY_PATH=@/plain/lib", OTHER, "venv/" SITE "/" NCCL);
    CHECK_INT(look.n, 2);
    CHECK(!nccl_look_unknown(&look));
    see("@/venv/bin/python", "LD_LIBRARY_PATH=@/lib");
    CHECK_INT(look.n, 2);
    CHECK(nccl_look_unknown(&look) != NULL);
    see("@/venv/bin/python", "LD_LIBRARY_PATH=@/usr/" SITE "/nvidia/nccl/lib");
    CHECK(!nccl_look_unknown(&look));
    /* conda has it in its lib. */
    python("conda", 11);
    run("cp -a lib/* conda/lib");
    check_seen("@/conda/bin/python", "", OTHER, "conda/lib/libnccl.so.2");
}

TEST(odd)
{
    python("odd-usr", 11);
    package("odd-usr/" SITE, OTHER);
    char header[256];
    snprintf(header, sizeof(header), "odd-usr/" SITE "/nvidia/nccl/include/nccl.h");
    static const char *const makes[] = {
        "rm %s",
        ": >%s",
        "rm %s && mkfifo %s",
        "rm %s && mkdir %s",
        "rmdir %s && ln -s nccl.h %s",
        "rm %s && head -c 9999999 /dev/zero >%s",
        "echo '#define NCCL_VERSION_CODE x' >%s",
        "echo '#define NCCL_VERSION_CODE 99999999999999999999' >%s"};
    for (size_t i = 0; i < COUNT(makes); i++) {
        run(makes[i], header, header);
        if (i == 2)
            run("test -p %s", header);
        check_seen("@/odd-usr/bin/python", "", 0, "odd-usr/" SITE "/" NCCL);
        CHECK(!nccl_look_unknown(&look));
        if (i == 0)
            run(": >%s", header);
    }
    run("rm odd-usr/" SITE "/" NCCL " && mkfifo odd-usr/" SITE "/" NCCL);
    check_none("@/odd-usr/bin/python", "");
    run("rm odd-usr/bin/python3 && ln -s python odd-usr/bin/python3");
    check_none("@/odd-usr/bin/python", "");
    /* Of lists only so many entries count, and of paths so many characters. */
    static char many[8192];
    strcpy(many, "PYTHONPATH=");
    for (int i = 0; i < 200; i++)
        strcat(many, "/none:");
    strcat(many, "@/path");
    check_none("@/bare/bin/python", many);
    memset(many + 11, 'x', 3000);
    many[11] = '/';
    strcpy(many + 3011, ":@/path");
    check_seen("@/bare/bin/python", many, OTHER, "path/" NCCL);
}

static void foresee(const char *program, uid_t uid, char text[512])
{
    char path[1024], *env[] = {NULL};
    snprintf(path, sizeof(path), "%s/%s", check_folder(), program);
    gid_t gid = uid;
    struct nccl_task task = {path, env, uid, gid, &gid, 1};
    nccl_foresee(&task, 20000, text, 512);
}

/* As the user: what only check_folder() may read isn't seen. */
TEST(user)
{
    char text[512];
    CHECK_INT(chmod(check_folder(), 0755), 0);
    foresee("venv/bin/python", geteuid(), text);
    CHECK(strstr(text, "NCCL 2.99.1: not known (") == text && strstr(text, "/venv/lib"));
    foresee("usr/bin/python", geteuid(), text);
    CHECK_STR(text, "");
    if (geteuid() != 0)
        return;
    foresee("venv/bin/python", NOBODY, text);
    CHECK(strstr(text, "NCCL 2.99.1: not known (") == text);
    run("chmod 700 venv/lib");
    foresee("venv/bin/python", NOBODY, text);
    CHECK_STR(text, "");
    run("chmod 755 venv/lib");
}

static void say(const void *what, void *word)
{
    *(int *)word = *(const int *)what;
}

static void hang(const void *what, void *word)
{
    for (;;)
        pause();
}

static void crash(const void *what, void *word)
{
    raise(SIGKILL);
}

/* As one whose user stops it right behind its word. */
static void stop(const void *what, void *word)
{
    struct stat status;
    say(what, word);
    for (int fd = 3; fd < 64; fd++)
        if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY && (fcntl(fd, F_GETFD) & FD_CLOEXEC) &&
            write(fd, word, sizeof(int)) < 0)
            return;
    raise(SIGSTOP);
}

TEST(child)
{
    int what = 7, word = 0;
    CHECK_INT(child_word(stop, &what, &word, sizeof(word), 20000, NULL), 0);
    CHECK_INT(word, 7);
    word = 0;
    CHECK_INT(child_word(say, &what, &word, sizeof(word), 20000, NULL), 0);
    CHECK_INT(word, 7);
    CHECK_INT(child_word(hang, &what, &word, sizeof(word), 50, NULL), 1);
    CHECK_INT(child_word(crash, &what, &word, sizeof(word), 20000, NULL), 1);
    while (waitpid(-1, NULL, WNOHANG) > 0) /* one that was killed may end late */
        continue;
}

SETUP
{
    if (system("for each in /usr/local/lib /usr/lib64 /usr/lib/*-linux-gnu; do "
               "[ ! -e $each/libnccl.so.2 ] || exit 0; done; exit 1") == 0)
        check_skip("this machine has an NCCL that any Python may find");
}
