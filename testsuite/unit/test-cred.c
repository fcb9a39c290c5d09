/* Credentials, with a real munged of our own. */
#include "client/credential.h"

#include "base/clock.h"
#include "rig.h"

static int64_t soon(void)
{
    return tccl_now_ms() + 60000;
}

TEST(round)
{
    cleanup_free char *cred = NULL, *data = NULL;
    size_t size = 0;
    uid_t uid = 12345;
    CHECK_OK(tccl_cred_encode(rig.munge_socket, getuid(), "hello", 5, soon(), &cred, ERR));
    CHECK_INT(tccl_cred_decode(rig.munge_socket, cred, soon(), &uid, &data, &size, ERR), 0);
    CHECK_INT(uid, getuid());
    CHECK_INT(size, 5);
    CHECK_STR(data, "hello");
}

TEST(replay)
{
    cleanup_free char *cred = NULL, *data = NULL, *again = NULL;
    size_t size;
    uid_t uid;
    CHECK_INT(tccl_cred_encode(rig.munge_socket, TCCL_CRED_ANYONE, "x", 1, soon(), &cred, ERR), 0);
    CHECK_INT(tccl_cred_decode(rig.munge_socket, cred, soon(), &uid, &data, &size, ERR), 0);
    CHECK_INT(tccl_cred_decode(rig.munge_socket, cred, soon(), &uid, &again, &size, ERR), -1);
    CHECK(again == NULL);
    CHECK_HOLDS(check_err.text, "eplay");
}

TEST(forged)
{
    cleanup_free char *cred = NULL, *data = NULL;
    size_t size;
    uid_t uid;
    struct tccl_error err = {0}, garbage = {0};
    CHECK_INT(tccl_cred_encode(rig.munge_socket, TCCL_CRED_ANYONE, "x", 1, soon(), &cred, &err), 0);
    cred[strlen(cred) / 2] ^= 1;
    CHECK_INT(tccl_cred_decode(rig.munge_socket, cred, soon(), &uid, &data, &size, &err), -1);
    CHECK(data == NULL && strncmp(err.text, "munge: ", 7) == 0);
    CHECK_INT(tccl_cred_decode(rig.munge_socket, "hello", soon(), &uid, &data, &size, &garbage),
              -1);
}

/* Only the reader it was made for can open it. */
/* What munged need not be asked. Whatever munge makes has the form, at all lengths. */
TEST(form)
{
    static const char *const bad[] = {
        "",
        "MUNGE:",
        "MUNGE::",
        "hello",
        "MUNGE:AwQDAAAA:",
        "MUNGE:AwQDAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "MUNGE:AwQDAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:",
        "MUNGE:AwQDAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA===:",
        "MUNGE:AwQDAABAAAAAAAAAA AAAAAAAAAAAAAAAAAAAAAA:",
        "MUNGE:AwQDAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:x",
        "munge:AwQDAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:",
    };
    CHECK(tccl_cred_has_form("MUNGE:AwQDAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:"));
    CHECK(tccl_cred_has_form("MUNGE:AwQDAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==:"));
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK(!tccl_cred_has_form(bad[i]));
    for (size_t size = 1; size < 100; size++) {
        static const char text[100] = "x";
        cleanup_free char *cred = NULL;
        CHECK_INT(tccl_cred_encode(rig.munge_socket, (uid_t)TCCL_CRED_ANYONE, text, size, soon(),
                                   &cred, ERR),
                  0);
        CHECK(tccl_cred_has_form(cred));
    }
}

TEST(other_reader)
{
    cleanup_free char *cred = NULL, *data = NULL;
    size_t size;
    uid_t uid;
    CHECK_INT(tccl_cred_encode(rig.munge_socket, getuid() + 1, "secret", 6, soon(), &cred, ERR), 0);
    CHECK_INT(tccl_cred_decode(rig.munge_socket, cred, soon(), &uid, &data, &size, ERR), -1);
    CHECK(data == NULL);
}

/* Without munged the call ends by its deadline, with a text; when munged is back, all is well. */
TEST(munged_away)
{
    cleanup_free char *cred = NULL, *again = NULL;
    struct tccl_error err = {0}, none = {0};
    rig_stop_munged();
    CHECK_INT(tccl_cred_encode(rig.munge_socket, TCCL_CRED_ANYONE, "x", 1, tccl_now_ms() + 150,
                               &cred, &err),
              -1);
    CHECK(cred == NULL);
    CHECK(strstr(err.text, rig.munge_socket) != NULL || strstr(err.text, "ocket") != NULL);
    rig_start_munged();
    CHECK_INT(tccl_cred_encode(rig.munge_socket, TCCL_CRED_ANYONE, "x", 1, soon(), &again, &none),
              0);
}

SETUP
{
    rig_begin();
}
