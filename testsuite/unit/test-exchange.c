/* Exported profiles: what was exported is imported the same; anything else leaves no trace. */
#include <dirent.h>
#include <unistd.h>

#include "base/fileio.h"
#include "machines.h"
#include "profile/exchange.h"
#include "profiles.h"
#include "search/setlog.h"

static char *export(struct tccl_profile *profile, size_t *size)
{
    struct tccl_error err = {""};
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    int dropped = 0;
    CHECK_INT(tccl_exchange_write(profile, out, &dropped, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_INT(dropped, 0);
    fclose(out);
    return text;
}

/* Are all files in one folder also in the other, byte by byte? */
static void check_same_folder(const char *a, const char *b)
{
    char command[2 * PATH_MAX + 64];
    snprintf(command, sizeof(command), "diff -r '%s' '%s' >&2", a, b);
    CHECK_INT(system(command), 0);
}

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return count;
}

static void check_round(struct tccl_profile *profile)
{
    struct tccl_error err = {""};
    struct tccl_exchanged made;
    struct tccl_profile *copy = NULL;
    char other[PATH_MAX];
    size_t size, size_again;
    make_cache(other);
    cleanup_free char *text = export(profile, &size);
    CHECK_INT(tccl_exchange_import(text, size, other, false, &made, &err), 0);
    CHECK_STR(err.text, "");
    CHECK_STR(made.id, tccl_profile_id(profile));
    CHECK(!made.replaced);
    CHECK_INT(entries(other), 1);
    if (tccl_profile_open(other, made.id, &copy, &err) == 0) {
        check_same_folder(tccl_profile_folder(profile), tccl_profile_folder(copy));
        CHECK(llabs((long long)tccl_profile_time(profile) - tccl_profile_time(copy)) <= 1 ||
              !strstr(text, "\"time\""));
        cleanup_free char *again = export(copy, &size_again);
        CHECK_STR(again, text);
    }
    CHECK_STR(err.text, "");
    tccl_profile_close(copy);
    remove_cache(other);
}

static void test_round(const struct tccl_machine *machine)
{
    for (int sets = 0; sets <= 200; sets += 100) {
        char cache[PATH_MAX];
        make_cache(cache);
        struct tccl_profile *profile = make_profile(cache, machine, sets, sets ? 16 : 1);
        check_round(profile);
        tccl_profile_close(profile);
        remove_cache(cache);
    }
}

/* With a model, whose hash must come through. */
static void test_model(void)
{
    char cache[PATH_MAX], path[PATH_MAX];
    struct tccl_error err = {""};
    struct tccl_profile *profile = NULL;
    struct tccl_model *model = load_machine("amd-4gpu");
    make_cache(cache);
    snprintf(path, sizeof(path), "%s/amd-4gpu.json", getenv("TCCL_MACHINES"));
    cleanup_json json_t *json = tccl_read_json(path, 1 << 20, &err);
    CHECK_INT(tccl_profile_create(cache, tccl_model_machine(model), "model", json, &profile, &err),
              0);
    CHECK_STR(err.text, "");
    if (profile)
        check_round(profile);
    tccl_profile_close(profile);
    tccl_model_free(model);
    remove_cache(cache);
}

/* Text with the first occurrence of a piece replaced. */
static char *changed(const char *text, const char *piece, const char *by)
{
    const char *at = strstr(text, piece);
    char *copy = NULL;
    if (!at || asprintf(&copy, "%.*s%s%s", (int)(at - text), text, by, at + strlen(piece)) < 0)
        abort();
    return copy;
}

static void refuse(const char *text, const char *why)
{
    struct tccl_error err = {""};
    struct tccl_exchanged made;
    char cache[PATH_MAX];
    make_cache(cache);
    CHECK_INT(tccl_exchange_import(text, strlen(text), cache, true, &made, &err), -1);
    CHECK_INT(entries(cache), 0);
    if (!strstr(err.text, why) || strchr(err.text, '\n') || strstr(err.text, ".import."))
        CHECK_STR(err.text, why);
    remove_cache(cache);
}

static void refuse_changed(const char *text, const char *piece, const char *by, const char *why)
{
    cleanup_free char *bad = changed(text, piece, by);
    refuse(bad, why);
}

static const char *const first_set = "{\"set\":\"g0>g1\",\"gbps\":10.5,\"spread\":0.0";

/* Each alteration, and what is said of it. */
static void test_refused(const struct tccl_machine *machine)
{
    char cache[PATH_MAX];
    size_t size;
    make_cache(cache);
    struct tccl_profile *profile = make_profile(cache, machine, 0, 4);
    struct tccl_set set = {0};
    CHECK_INT(tccl_set_parse("g0>g1", &set, NULL), 0);
    tccl_profile_append(profile, &set, &(struct tccl_measurement){.gbps = 10.5}, NULL);
    cleanup_free char *text = export(profile, &size);
    const struct {
        const char *piece, *by, *why;
    } cases[] = {
        {"tccl-profile", "tccl-model", "\"format\" is not"},
        {"\"version\":1", "\"version\":2", "version is 2"},
        {"\"sets\"", "\"colours\"", "unknown member \"colours\""},
        {"\"machine\":{", "\"profile\":{", "twice"},
        {"]}", "]", "truncated"},
        {"\"tables\":[", "\"tables\":[{},", "\"tables\": [0]"},
        {"\"gpus\":[0]", "\"gpus\":[1]", "\"tables\": [0]"},
        {"\"sets\":[", "\"sets\":{", "\"sets\""},
        {"\"memories\":2", "\"memories\":3", "but \"machine\" is"},
        {"\"memories\":2", "\"memories\":99", "\"machine\": "},
        {"V100", "A100", "but \"machine\" is"},
        {"\"format\":1,", "\"format\":2,", "format 2"},
        {"\"host\"", "\"model\"", "profile.json"},
        {first_set, "{\"set\":\"g0>g9\",\"gbps\":10.5,\"spread\":0.0", "\"sets\"[0]: "},
        {first_set, "{\"set\":\"g0>g0\",\"gbps\":10.5,\"spread\":0.0", "\"sets\"[0]: "},
        {first_set, "{\"set\":\"n1>g0\",\"gbps\":10.5,\"spread\":0.0", "\"sets\"[0]: "},
        {first_set, "{\"set\":\"g0>g1\",\"gbps\":-1,\"spread\":0.0", "\"sets\"[0]: "},
        {first_set, "{\"set\":\"g0>g1\",\"gbps\":1e999,\"spread\":0.0", "\"sets\": [0]: not JSON"},
        {first_set, "{\"set\":\"\",\"gbps\":1.0,\"spread\":0.0", "\"sets\"[0]: "},
        {first_set, "{\"gbps\":10.5,\"spread\":0.0", "\"sets\"[0]: "},
        {"\"time\":", "\"when\":", "\"time\" is missing"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        refuse_changed(text, cases[i].piece, cases[i].by, cases[i].why);
    refuse("", "no object");
    refuse("[]", "no object");
    refuse("{}", "\"format\"");
    tccl_profile_close(profile);
    remove_cache(cache);
}

/* A document that ends too early is never taken for a whole one. */
static void test_truncated(const struct tccl_machine *machine)
{
    char cache[PATH_MAX], folder[PATH_MAX];
    size_t size;
    make_cache(cache);
    struct tccl_profile *profile = make_profile(cache, machine, 5, 2);
    cleanup_free char *text = export(profile, &size);
    size_t end = size;
    while (end > 0 && text[end - 1] != '}')
        end--;
    for (size_t length = 0; length < end; length += 1 + (size_t)rand() % 199) {
        struct tccl_exchanged made;
        make_cache(folder);
        CHECK_INT(tccl_exchange_unpack(text, length, folder, &made, NULL), -1);
        tccl_exchange_remove(folder);
        CHECK(access(folder, F_OK) != 0);
    }
    tccl_profile_close(profile);
    remove_cache(cache);
}

/* A profile that is there stays, unless it may be replaced and nobody writes to it. */
static void test_there_already(const struct tccl_machine *machine)
{
    struct tccl_error err = {""};
    struct tccl_exchanged made;
    char from[PATH_MAX], to[PATH_MAX];
    size_t size, size_old, size_new;
    make_cache(from);
    make_cache(to);
    struct tccl_profile *profile = make_profile(from, machine, 20, 4);
    struct tccl_profile *there = make_profile(to, machine, 10, 2);
    cleanup_free char *text = export(profile, &size), *old = export(there, &size_old);
    CHECK_INT(tccl_exchange_import(text, size, to, false, &made, &err), -1);
    CHECK(strstr(err.text, "already") && strstr(err.text, tccl_profile_id(there)));
    err.text[0] = '\0';
    CHECK_INT(tccl_exchange_import(text, size, to, true, &made, &err), -1);
    CHECK(strstr(err.text, "another process"));
    cleanup_free char *kept = export(there, &size_old);
    CHECK_STR(kept, old);
    tccl_profile_close(there);
    err.text[0] = '\0';
    CHECK_INT(tccl_exchange_import(text, size, to, true, &made, &err), 0);
    CHECK_STR(err.text, "");
    CHECK(made.replaced);
    CHECK_INT(entries(to), 1);
    if (tccl_profile_open(to, made.id, &there, &err) == 0) {
        cleanup_free char *now = export(there, &size_new);
        CHECK_STR(now, text);
        tccl_profile_close(there);
    }
    tccl_profile_close(profile);
    remove_cache(from);
    remove_cache(to);
}

/* What a killed import left is removed by the next; not what a link of that name leads to. */
static void test_left_over(const struct tccl_machine *machine)
{
    struct tccl_exchanged made;
    char from[PATH_MAX], to[PATH_MAX], other[PATH_MAX], path[PATH_MAX + 64], left[PATH_MAX + 64];
    size_t size;
    make_cache(from);
    make_cache(to);
    make_cache(other);
    snprintf(path, sizeof(path), "%s/.import.ghijkl", to);
    CHECK_INT(symlink(other, path), 0);
    snprintf(path, sizeof(path), "%s/chains", other);
    CHECK_INT(tccl_make_folder(path, 0700, NULL), 0);
    snprintf(path, sizeof(path), "%s/chains/0000000f.chains", other);
    CHECK_INT(tccl_write_file(path, 0600, "", 0, NULL), 0);
    snprintf(left, sizeof(left), "%s/.import.abcdef/chains", to);
    CHECK_INT(tccl_make_folder(left, 0700, NULL), 0);
    snprintf(left, sizeof(left), "%s/.import.abcdef/sets.jsonl", to);
    CHECK_INT(tccl_write_file(left, 0600, "", 0, NULL), 0);
    struct tccl_profile *profile = make_profile(from, machine, 3, 2);
    cleanup_free char *text = export(profile, &size);
    CHECK_INT(tccl_exchange_import(text, size, to, false, &made, NULL), 0);
    CHECK_INT(entries(to), 1);
    CHECK_INT(access(path, F_OK), 0);
    tccl_profile_close(profile);
    remove_cache(from);
    remove_cache(to);
    remove_cache(other);
}

int main(void)
{
    struct tccl_machine machine = sample_machine();
    srand((unsigned)check_seed());
    test_round(&machine);
    test_model();
    test_refused(&machine);
    test_truncated(&machine);
    test_there_already(&machine);
    test_left_over(&machine);
    return check_result();
}
