/* What root's tccld has left becomes the user's, and nothing else does. */
#include "tccld/rights/monitor.h"

#include "check.h"

enum { HEIR = 65532, OTHER = 65531, JOB = 65530 };

static struct tccl_conf conf;

static void make_file(const char *name, uid_t uid, gid_t gid)
{
    close(open(check_at("%s", name), O_CREAT | O_EXCL | O_WRONLY, 0600));
    CHECK_INT(lchown(check_at("%s", name), uid, gid), 0);
}

static void make_folder(const char *name, uid_t uid, mode_t mode)
{
    CHECK_INT(mkdir(check_at("%s", name), 0700), 0);
    CHECK_INT(chmod(check_at("%s", name), mode), 0);
    CHECK_INT(lchown(check_at("%s", name), uid, 0), 0);
}

static void check_owner(const char *name, uid_t uid, gid_t gid)
{
    struct stat stat = {.st_uid = 1};
    CHECK_INT(lstat(check_at("%s", name), &stat), 0);
    if (stat.st_uid != uid || stat.st_gid != gid)
        fprintf(stderr, "%s: %u:%u, not %u:%u\n", name, stat.st_uid, stat.st_gid, uid, gid);
    CHECK(stat.st_uid == uid && stat.st_gid == gid);
}

/* The folders of an upgrade, as root's tccld leaves them. */
TEST(upgrade)
{
    make_folder("run", 0, 0711);
    make_folder("run/7.0.0-0123456789abcdef", 0, 0711);
    make_file("run/7.0.0-0123456789abcdef/plan", 0, JOB);
    make_file("run/7.script", 0, 0);
    make_folder("state", 0, 0711);
    make_folder("state/metrics", 0, 0711);
    make_file("state/records.db", 0, 0);
    make_file("state/outbox.db", 0, 0);
    make_folder("state/records.old", 0, 0700);
    make_file("state/records.old/1", 0, 0);
    make_file("state/machine.json", OTHER, OTHER); /* as tccl-profile's user has made it */
    CHECK_INT(symlink("/etc/passwd", check_at("run/7.launcher")), 0);
    hand_over(&conf, HEIR);
    for (int again = 0; again < 2; again++) {
        check_owner("run", HEIR, HEIR);
        check_owner("run/7.0.0-0123456789abcdef", HEIR, HEIR);
        check_owner("run/7.0.0-0123456789abcdef/plan", HEIR, JOB);
        check_owner("run/7.script", HEIR, HEIR);
        check_owner("run/7.launcher", HEIR, HEIR);
        check_owner("state/metrics", HEIR, HEIR);
        check_owner("state/records.db", HEIR, HEIR);
        check_owner("state/outbox.db", HEIR, HEIR);
        check_owner("state/records.old/1", HEIR, HEIR);
        check_owner("state/machine.json", OTHER, OTHER);
        check_owner("cache", HEIR, HEIR); /* was not there */
        hand_over(&conf, HEIR);
    }
    struct stat stat_;
    CHECK(stat("/etc/passwd", &stat_) == 0 && stat_.st_uid == 0);
}

/* The heir has had the folder, and has put in what may be anybody's; what root has made there since
 * is a folder. */
TEST(planted)
{
    make_file("target", 0, 0);
    make_folder("secret", 0, 0755);
    make_file("secret/file", 0, 0);
    CHECK_INT(link(check_at("target"), check_at("state/tccld.hard")), 0);
    CHECK_INT(symlink(check_at("secret"), check_at("state/records.old/link")), 0);
    CHECK_INT(rename(check_at("state/metrics"), check_at("state/metrics.old")), 0);
    CHECK_INT(symlink(check_at("secret"), check_at("state/metrics")), 0);
    make_folder("state/records.new", 0, 0711);
    make_file("state/records.new/file", 0, 0);
    CHECK_INT(link(check_at("target"), check_at("state/records.new/hard")), 0);
    make_folder("state/records.old/open", 0, 0777);
    make_file("state/records.old/open/file", 0, 0);
    make_folder("state/records.old/others", OTHER, 0700);
    make_file("state/records.old/others/file", 0, 0);
    hand_over(&conf, HEIR);
    check_owner("target", 0, 0);
    check_owner("secret", 0, 0);
    check_owner("secret/file", 0, 0);
    check_owner("state/records.new", HEIR, HEIR);
    check_owner("state/records.new/file", HEIR, HEIR);
    check_owner("state/records.old/open/file", 0, 0);
    check_owner("state/records.old/others/file", 0, 0);
    check_owner("state/tccld.hard", 0, 0);
}

/* Folders that are not tccld's alone, or that lie where others can exchange them. */
TEST(foreign)
{
    make_folder("var", 0, 0755);
    make_folder("var/systemd", 0, 0755);
    make_folder("var/7.0.0-0123456789abcdef", 0, 0755);
    strcpy(conf.state_dir, check_at("var"));
    make_folder("home", OTHER, 0755);
    make_folder("home/run", 0, 0711);
    make_file("home/run/7.script", 0, 0);
    strcpy(conf.run_dir, check_at("home/run"));
    hand_over(&conf, HEIR);
    check_owner("var", 0, 0);
    check_owner("var/systemd", 0, 0);
    check_owner("var/7.0.0-0123456789abcdef", 0, 0);
    check_owner("home/run", 0, 0);
    check_owner("home/run/7.script", 0, 0);
}

SETUP
{
    if (geteuid() != 0) {
        check_skip("only root can give files away");
        return;
    }
    strcpy(conf.run_dir, check_at("run"));
    strcpy(conf.state_dir, check_at("state"));
    strcpy(conf.cache_dir, check_at("cache"));
    strcpy(conf.socket, check_at("run/tccld.sock"));
}
