/* check-bundle.c: each part is a line of a table: a file as it is, or the output of a program. */
#include "check/check-items.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/command.h"
#include "base/fileio.h"

#define INSIDE "tccl-bundle"
#define PACKED "packed"

enum {
    PACKED_MAX = 16 << 20,
    COPY_MAX = 1 << 20,
    ASK_MS = 5000,
    TAR_MS = 30000,
    WORDS = 12,
    TEXT_MAX = 160 << 10
};

struct place {
    char folder[PATH_MAX - 128]; /* of its own, 0700 */
    const struct check_site *site;
    const struct check_options *options;
};

/* ---- parts ---- */

/* Programs. Words that begin with % stand for what only check_bundle knows: see fill_words. */
static const struct {
    const char *file;
    const char *words[WORDS];
} asked[] = {
    {"check.json", {"/proc/self/exe", "--json", "--timeout", "%seconds", "%config", "%node"}},
    {"hardware.json", {"/proc/self/exe", "machine", "--json"}},
    {"version-tccld.txt", {"tccld", "--version"}},
    {"version-slurm.txt", {"srun", "--version"}},
    {"version-slurmd.txt", {"slurmd", "-V"}},
    {"slurmd-gpus.txt", {"slurmd", "-G"}},
    {"kernel.txt", {"uname", "-a"}},
    {"gpus.txt", {"nvidia-smi"}},
    {"gpu-topology.txt", {"nvidia-smi", "topo", "-m"}},
    {"pci.txt", {"lspci", "-tvnn"}},
    {"profiles.json", {"tccl-profile", "list", "--json", "%config", "%node"}},
    {"summary.json", {"tcclacct", "summary", "--json", "%config", "%node"}},
    {"log.txt",
     {"journalctl", "--unit", "tccld", "--lines", "300", "--no-pager", "--output", "short-iso"}},
};

/* Files; NULL: its path is the site's. */
enum { CONF, PLUGSTACK, MACHINE, OTHERS };
static const struct {
    const char *file, *path;
} copied[] = {
    [CONF] = {"tccl.conf", NULL},
    [PLUGSTACK] = {"plugstack.conf", NULL},
    [MACHINE] = {"machine.json", NULL},
    [OTHERS] = {"os-release", "/etc/os-release"},
    {"nvidia-version", "/proc/driver/nvidia/version"},
};

enum {
    ASKED = sizeof(asked) / sizeof(*asked),
    COPIED = sizeof(copied) / sizeof(*copied),
};

static void say(const char *what)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s%s", *what ? "tccl: bundle: " : "", what);
}

static int put(const struct place *place, const char *file, const char *text, size_t size,
               struct tccl_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/" INSIDE "/%s", place->folder, file);
    return tccl_write_file(path, 0600, text, size, err);
}

/* How many bytes of a line of plugstack.conf are shown: all of a comment and of what is ours; of
 * another plugin "optional PATH", as its arguments may be secret. */
static size_t shown_bytes(const char *line, size_t length)
{
    static const char blank[] = " \t";
    size_t at = strspn(line, blank);
    if (line[at] == '#' || memmem(line, length, "tccl", 4))
        return length;
    at += strcspn(line + at, " \t\n");
    at += strspn(line + at, blank);
    return at + strcspn(line + at, " \t\n");
}

static int copy(const struct place *place, int part, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    struct tccl_error why = {0};
    size_t size;
    const char *const known[] = {[CONF] = place->site->conf.path,
                                 [PLUGSTACK] = place->site->plugstack.path,
                                 [MACHINE] = place->site->conf.machine};
    const char *path = part < OTHERS ? known[part] : copied[part].path;
    if (tccl_read_file(path, COPY_MAX, &text, &size, &why) != 0)
        return put(place, copied[part].file, why.text, strlen(why.text), err);
    if (part == PLUGSTACK) {
        /* In place; what is left out is a '*'. */
        char *to = text;
        for (const char *line = text; *line;) {
            size_t length = strcspn(line, "\n"), shown = shown_bytes(line, length);
            bool ends = line[length] == '\n', hides = shown + 1 < length;
            memmove(to, line, shown);
            to += shown;
            if (hides)
                to = mempcpy(to, " *", 2);
            if (ends)
                *to++ = '\n';
            line += length + ends;
        }
        size = (size_t)(to - text);
    }
    return put(place, copied[part].file, text, size, err);
}

static int ask(const struct place *place, int part, struct tccl_error *err)
{
    static struct tccl_command_output output;
    const char *argv[2 * WORDS + 1];
    char seconds[16], why[64] = "";
    snprintf(seconds, sizeof(seconds), "%d", place->options->seconds);
    /* What stands for a word: itself, one that is only known now, or two, or none. */
    const char *const *words = asked[part].words;
    int n = 0;
    for (int i = 0; i < WORDS && words[i]; i++) {
        bool config = strcmp(words[i], "%config") == 0, node = strcmp(words[i], "%node") == 0;
        const char *value = config ? place->options->config : node ? place->options->node : NULL;
        if (value) {
            argv[n++] = config ? "--config" : "--node";
            argv[n++] = value;
        } else if (!config && !node) {
            argv[n++] = strcmp(words[i], "%seconds") == 0 ? seconds : words[i];
        }
    }
    argv[n] = NULL;
    int64_t end = tccl_now_ms() + ASK_MS + (part == 0 ? place->options->seconds * 1000 : 0);
    int status = tccl_command_run(argv, NULL, end, &output);
    if (status == TCCL_COMMAND_NONE)
        snprintf(why, sizeof(why), "%s: not found\n", argv[0]);
    else if (status == TCCL_COMMAND_LATE)
        snprintf(why, sizeof(why), "%s: killed after %d s\n", argv[0], ASK_MS / 1000);
    else if (status != 0)
        snprintf(why, sizeof(why), "exit status %d\n", status);
    cleanup_free char *text = malloc(TEXT_MAX);
    if (!text)
        return tccl_fail(err, "out of memory");
    int size = snprintf(text, TEXT_MAX, "%s%s%s", output.out, output.err,
                        asked[part].words[0][0] == '/' && status >= 0 ? "" : why);
    return put(place, asked[part].file, text, (size_t)size, err);
}

/* ---- the whole ---- */

static int fill(const struct place *place, struct tccl_error *err)
{
    for (int i = 0; i < ASKED; i++) {
        say(asked[i].words[0][0] == '/' ? "tccl-check" : asked[i].words[0]);
        if (ask(place, i, err) != 0)
            return -1;
    }
    for (int i = 0; i < COPIED; i++)
        if (copy(place, i, err) != 0)
            return -1;
    return 0;
}

/* Packed where nobody else can write, then written whole to its place. */
static int pack(const struct place *place, const char *path, struct tccl_error *err)
{
    static struct tccl_command_output output;
    cleanup_free char *data = NULL;
    char made[PATH_MAX];
    size_t size;
    snprintf(made, sizeof(made), "%s/" PACKED, place->folder);
    const char *const argv[] = {"tar", "-czf", made, "-C", place->folder, INSIDE, NULL};
    int status = tccl_command_run(argv, NULL, tccl_now_ms() + TAR_MS, &output);
    output.err[strcspn(output.err, "\n")] = '\0';
    if (status != 0)
        return tccl_fail(err, "tar: %s: it is needed to write %s",
                         status == TCCL_COMMAND_NONE ? "not found" : output.err, path);
    if (tccl_read_file(made, PACKED_MAX, &data, &size, err) != 0)
        return -1;
    return tccl_write_file(path, 0600, data, size, err);
}

static int make_folder(struct place *place, struct tccl_error *err)
{
    const char *temporary = getenv("TMPDIR");
    char inside[PATH_MAX];
    snprintf(place->folder, sizeof(place->folder), "%.3000s/tccl-bundle.XXXXXX",
             temporary && *temporary == '/' ? temporary : "/tmp");
    if (!mkdtemp(place->folder))
        return tccl_fail(err, "%s: %s", place->folder, strerror(errno));
    snprintf(inside, sizeof(inside), "%.4000s/" INSIDE, place->folder);
    if (mkdir(inside, 0700) == 0)
        return 0;
    tccl_fail(err, "%s: %s", inside, strerror(errno));
    rmdir(place->folder);
    return -1;
}

int check_bundle(const struct check_options *options)
{
    static struct check_site site;
    struct tccl_error err = {""};
    struct place place = {.site = &site, .options = options};
    int failed = make_folder(&place, &err);
    if (failed == 0) {
        check_site_read(options, tccl_now_ms() + options->seconds * 1000, &site);
        failed = fill(&place, &err);
        say("");
        if (failed == 0)
            failed = pack(&place, options->bundle, &err);
        char path[PATH_MAX + 64];
        for (int i = 0; i < ASKED + COPIED; i++) {
            snprintf(path, sizeof(path), "%s/" INSIDE "/%s", place.folder,
                     i < ASKED ? asked[i].file : copied[i - ASKED].file);
            unlink(path);
        }
        snprintf(path, sizeof(path), "%s/" INSIDE, place.folder);
        rmdir(path);
        snprintf(path, sizeof(path), "%s/" PACKED, place.folder);
        unlink(path);
        rmdir(place.folder);
    }
    if (failed != 0)
        fprintf(stderr, "tccl: --bundle: %s\n", err.text);
    else
        printf("tccl: %s: %d files; names of nodes and users are in it: look at it before you send "
               "it\n",
               options->bundle, ASKED + COPIED);
    return failed != 0;
}
