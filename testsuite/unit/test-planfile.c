/* Plan files: who may read them, and what they replace. */
#include "tccld/join/planfile.h"

#include "base/fileio.h"
#include "check.h"
#include "client/key.h"

static void folder_of(const struct tccl_step_key *key, char path[static 256])
{
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(key, name);
    snprintf(path, 256, "%s/%s", check_folder(), name);
}

static int write_plan(const struct tccl_step_key *key, char path[static PATH_MAX], const char *text)
{
    char buffer[TCCL_LINES_SIZE];
    struct tccl_line_writer plan;
    planfile_begin(&plan, buffer);
    tccl_line_put(&plan, "word", "%s", text);
    int failed = planfile_write(check_folder(), key, getgid(), "{}", &plan, NULL, path, ERR);
    CHECK(!failed == !*check_err.text);
    return failed;
}

TEST(write)
{
    struct tccl_step_key key = {.cluster = "c", .job = 1};
    char path[PATH_MAX], folder[256];
    struct stat stat_;
    umask(077);
    CHECK_INT(write_plan(&key, path, "one"), 0);
    CHECK_INT(write_plan(&key, path, "two"), 0); /* again: replaced */
    umask(022);
    cleanup_free char *file = NULL;
    size_t size = 0;
    CHECK_INT(tccl_read_file(path, 4096, &file, &size, NULL), 0);
    CHECK_STR(file, "tccl-plan 1\nword two\nend\n{}");
    CHECK_INT(stat(path, &stat_), 0);
    CHECK_INT(stat_.st_mode & 07777, 0640);
    folder_of(&key, folder);
    CHECK_INT(stat(folder, &stat_), 0);
    CHECK_INT(stat_.st_mode & 07777, 0711);
    planfile_remove(check_folder(), &key, NULL);
    CHECK_INT(stat(folder, &stat_), -1);
    planfile_remove(check_folder(), &key, NULL);
}

static json_int_t read_number(const char *name)
{
    cleanup_json json_t *record = planfile_read_record(check_folder(), name);
    return json_integer_value(json_object_get(record, "a"));
}

/* The record behind a plan, which stays as it is and whose it is, or alone: the owner's only. A
 * whole one or none. */
TEST(record)
{
    struct tccl_step_key key = {.cluster = "c", .job = 5};
    char path[PATH_MAX], folder[256], name[TCCL_KEY_TEXT];
    struct stat stat_, before;
    folder_of(&key, folder);
    tccl_key_folder(&key, name);
    CHECK(!planfile_read_record(check_folder(), name));
    CHECK_OK(planfile_record(check_folder(), name, "{\"a\": 1}", ERR));
    snprintf(path, sizeof(path), "%.200s/plan", folder);
    CHECK(stat(path, &stat_) == 0 && (stat_.st_mode & 07777) == 0600);
    CHECK_INT(read_number(name), 1);
    CHECK(planfile_lacks_plan(check_folder(), name));
    CHECK_INT(write_plan(&key, path, "x"), 0);
    cleanup_json json_t *empty = planfile_read_record(check_folder(), name);
    CHECK_INT(json_object_size(empty), 0);
    CHECK_OK(planfile_record(check_folder(), name, "{\"a\": 2}", ERR));
    CHECK_INT(read_number(name), 2);
    CHECK(!planfile_lacks_plan(check_folder(), name));
    cleanup_free char *file = NULL;
    size_t size;
    CHECK_OK(tccl_read_file(path, 4096, &file, &size, ERR));
    CHECK_STR(file, "tccl-plan 1\nword x\nend\n{\"a\": 2}");
    CHECK(stat(path, &before) == 0 && (before.st_mode & 07777) == 0640);
    planfile_take_back(check_folder(), &key, NULL);
    CHECK(access(path, F_OK) != 0);
    CHECK_OK(planfile_record(check_folder(), name, "{\"a\": 3}", ERR));
    CHECK_INT(read_number(name), 3);
    CHECK(stat(path, &stat_) == 0 && (stat_.st_mode & 07777) == 0600);
    CHECK_INT(truncate(path, 3), 0); /* torn */
    CHECK(!planfile_read_record(check_folder(), name));
    CHECK_INT(unlink(path) | mkfifo(path, 0600), 0);
    CHECK(!planfile_read_record(check_folder(), name));
    CHECK_OK(planfile_record(check_folder(), name, "{}", ERR));
    CHECK(stat(path, &stat_) == 0 && S_ISREG(stat_.st_mode) && (stat_.st_mode & 07777) == 0600);
    planfile_remove(check_folder(), &key, NULL);
    CHECK_INT(stat(folder, &stat_), -1);
}

/* A plan that has no record behind it yet, and what a tccld that was killed has left. */
TEST(behind_plan)
{
    struct tccl_step_key key = {.cluster = "c", .job = 6};
    char folder[256], name[TCCL_KEY_TEXT];
    const char *plan = "tccl-plan 1\nword x\nend\n";
    folder_of(&key, folder);
    tccl_key_folder(&key, name);
    CHECK_INT(mkdir(folder, 0711), 0);
    CHECK_OK(tccl_write_file(check_printf("%.200s/plan", folder), 0600, plan, strlen(plan), ERR));
    CHECK(!planfile_read_record(check_folder(), name));
    CHECK_OK(planfile_record(check_folder(), name, "{\"a\": 8}", ERR));
    CHECK_INT(read_number(name), 8);
    close(open(check_printf("%.200s/plan.new", folder), O_CREAT | O_WRONLY, 0600));
    planfile_remove(check_folder(), &key, NULL);
    CHECK(access(folder, F_OK) != 0);
}

/* A tccld that is killed leaves a whole plan or none: the one before stays until the new one is. */
TEST(killed)
{
    struct tccl_step_key key = {.cluster = "c", .job = 4};
    char path[PATH_MAX], folder[256], part[300], name[TCCL_KEY_TEXT];
    struct stat first, second;
    folder_of(&key, folder);
    tccl_key_folder(&key, name);
    snprintf(part, sizeof(part), "%s/plan.new", folder);
    CHECK(!planfile_lacks_plan(check_folder(), name)); /* there is no folder */
    CHECK_INT(mkdir(folder, 0711), 0);
    CHECK(planfile_lacks_plan(check_folder(), name));
    close(open(part, O_CREAT | O_WRONLY, 0600));
    CHECK(planfile_lacks_plan(check_folder(), name));
    CHECK_INT(write_plan(&key, path, "one"), 0);
    CHECK(!planfile_lacks_plan(check_folder(), name));
    CHECK_INT(access(part, F_OK), -1);
    CHECK_INT(stat(path, &first), 0);
    int held = open(path, O_RDONLY);
    CHECK_INT(write_plan(&key, path, "two"), 0);
    CHECK(stat(path, &second) == 0 && first.st_ino != second.st_ino);
    CHECK(fstat(held, &first) == 0 && first.st_nlink == 0 && first.st_size == second.st_size);
    close(held);
    close(open(part, O_CREAT | O_WRONLY, 0600));
    planfile_remove(check_folder(), &key, NULL);
    CHECK_INT(stat(folder, &first), -1);
}

enum { TAKEN_BY_FILE, TAKEN_BY_LINK, TAKEN_BY_PIPE, TAKEN_BY_FOLDER, FREE, TAKEN };

static void remove_away(const char *path)
{
    CHECK_INT(system(check_printf("rm -r %s.??????", path)), 0);
}

static void write_shared(const struct tccl_step_key *key, int uid, char path[static PATH_MAX],
                         struct tccl_error *err)
{
    char buffer[TCCL_LINES_SIZE];
    struct tccl_line_writer plan;
    planfile_begin(&plan, buffer);
    tccl_line_put(&plan, "uid", "%d", uid);
    tccl_line_put(&plan, "index", "3");
    CHECK_INT(planfile_write(check_folder(), key, 65532, "{}", &plan, NULL, path, err), 0);
}

TEST(shared)
{
    enum { UID = 65532 };
    char path[PATH_MAX], name[TCCL_KEY_TEXT], shared[256];
    struct stat stat_, before;
    if (geteuid() != 0)
        return;
    const char *target = check_at("target");
    for (int how = 0; how < TAKEN; how++) {
        struct tccl_step_key key = {.cluster = "shared", .job = (uint32_t)getpid()};
        tccl_key_folder(&key, name);
        snprintf(shared, sizeof(shared), SHARED_FOLDER "/tccl-%d%s.3", UID, strrchr(name, '-'));
        unlink(shared);
        /* Another user has taken the name of the shim's file. */
        char inside[300];
        snprintf(inside, sizeof(inside), "%s/x", shared);
        if (how == TAKEN_BY_FILE)
            close(open(shared, O_CREAT | O_EXCL | O_WRONLY, 0666));
        else if (how == TAKEN_BY_LINK)
            CHECK_INT(symlink(target, shared), 0);
        else if (how == TAKEN_BY_PIPE)
            CHECK_INT(mkfifo(shared, 0666), 0);
        else if (how == TAKEN_BY_FOLDER)
            CHECK_INT(mkdir(shared, 0777) | mkdir(inside, 0777), 0);
        if (how < FREE)
            CHECK_INT(lchown(shared, 65533, 65533), 0);
        write_shared(&key, UID, path, ERR);
        CHECK_INT(lstat(shared, &stat_), 0);
        CHECK(S_ISREG(stat_.st_mode) && (stat_.st_mode & 07777) == 0600 && stat_.st_uid == UID);
        CHECK_INT(access(target, F_OK), -1);
        if (how == TAKEN_BY_FOLDER)
            remove_away(shared);
        write_shared(&key, UID, path, ERR); /* in use: stays */
        CHECK(lstat(shared, &before) == 0 && before.st_ino == stat_.st_ino);
        planfile_remove(check_folder(), &key, NULL);
        CHECK_INT(lstat(shared, &stat_), -1);
    }
}

/* A link in the plan's place is replaced, never followed; one in the folder's place is refused. */
TEST(links)
{
    struct tccl_step_key key = {.cluster = "c", .job = 2};
    char path[PATH_MAX], folder[256], plan[300];
    struct stat stat_;
    folder_of(&key, folder);
    const char *target = check_at("target");
    snprintf(plan, sizeof(plan), "%s/plan", folder);
    close(open(target, O_CREAT | O_WRONLY, 0600));
    CHECK_INT(mkdir(folder, 0711), 0);
    CHECK_INT(symlink(target, plan), 0);
    CHECK_INT(write_plan(&key, path, "x"), 0);
    CHECK(stat(target, &stat_) == 0 && stat_.st_size == 0);
    CHECK(lstat(plan, &stat_) == 0 && S_ISREG(stat_.st_mode));
    planfile_remove(check_folder(), &key, NULL);
    CHECK_INT(symlink("/tmp", folder), 0);
    CHECK_INT(write_plan(&key, path, "x"), -1);
    CHECK_STR(path, "");
    CHECK_INT(access("/tmp/plan", F_OK), -1);
    unlink(folder);
    unlink(target);
}

TEST(names)
{
    struct tccl_step_key key = {.cluster = "c", .job = 3};
    char name[TCCL_KEY_TEXT];
    tccl_key_folder(&key, name);
    CHECK(planfile_is_folder(name));
    CHECK(!planfile_is_folder("7.script") && !planfile_is_folder("records"));
    CHECK(!planfile_is_folder("7.0.0-0123456789abcdefg") && !planfile_is_folder("-7.0.0-0"));
}

TEARDOWN
{
    check_nothing_left();
}
