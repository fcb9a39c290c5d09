/* What the plugin goes by while it waits for tccld: who waits for slurmstepd, in a table as
 * /proc/net/unix is, and the note that a tccld hung. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "check.h"
#include "plugin/hung-stamp.h"
#include "plugin/step-signal.h"

static const char head[] = "Num       RefCount Protocol Flags    Type St Inode Path\n"
                           "0: 00000002 00000000 00010000 0001 01 10 /spool/n1_7.0\n"
                           "1: 00000003 00000000 00000000 0001 03 11\n"
                           "2: 00000003 00000000 00000000 0001 03 12 /spool/n1_7.01\n"
                           "3: 00000003 00000000 00000000 0001 03 13 /spool/n11_7.0\n"
                           "4: 00000003 00000000 00000000 0001 02 14 /spool/n1_7.0\n";

/* Is a signal held, with these connections to the socket? */
static bool look(struct signal_watch *watch, int64_t now, const char *inodes)
{
    char text[4096], one[2] = "";
    size_t size = (size_t)snprintf(text, sizeof(text), "%s", head);
    for (; *inodes; inodes++) {
        one[0] = *inodes;
        size += (size_t)snprintf(text + size, sizeof(text) - size,
                                 "5: 00000003 00000000 00000000 0001 03 %s /spool/n1_7.0\n", one);
    }
    cleanup_file FILE *table = fmemopen(text, size, "r");
    return signal_held(watch, table, now);
}

static void test_signals(void)
{
    struct signal_watch watch = {.socket = "/n1_7.0", .n_first = 1, .first = {9}};
    CHECK(!look(&watch, 1000, ""));
    CHECK(!look(&watch, 1300, "1")); /* it has just come, */
    CHECK(!look(&watch, 1400, "1")); /* and too short a while ago */
    CHECK(!look(&watch, 1600, "2")); /* that was answered, another has come */
    CHECK(look(&watch, 1900, "32"));
    CHECK(look(&watch, 2200, "3"));
    CHECK(!look(&watch, 2500, "9")); /* was there from the beginning */
    CHECK(!look(&watch, 2800, "9"));
}

static void test_stamp(void)
{
    char folder[] = "/tmp/tccl-waiting-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/hung", folder);
    CHECK_INT(hung_stamp_age(folder, 100000), -1);
    hung_stamp_put(folder, 100000);
    CHECK_INT(hung_stamp_age(folder, 100000), 0);
    CHECK_INT(hung_stamp_age(folder, 100000 + HUNG_MS - 1), HUNG_MS - 1);
    CHECK_INT(hung_stamp_age(folder, 100000 + HUNG_MS), -1);
    CHECK_INT(hung_stamp_age(folder, 99999), -1); /* the machine was started again */
    CHECK_INT(unlink(path), 0);
    CHECK_INT(symlink("/proc/uptime", path), 0);
    CHECK_INT(hung_stamp_age(folder, 0), -1);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(mkfifo(path, 0600), 0);
    CHECK_INT(hung_stamp_age(folder, 0), -1);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(tccl_write_file(path, 0644, "soon\n", 5, NULL), 0);
    CHECK_INT(hung_stamp_age(folder, 0), -1);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
}

int main(void)
{
    test_signals();
    test_stamp();
    return check_result();
}
