/* credential.c: munge, with a retry while munged is busy or being restarted. */
#include "client/credential.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <munge.h>

#include "base/cleanup.h"
#include "base/clock.h"

static void cleanup_context_(munge_ctx_t *context)
{
    munge_ctx_destroy(*context);
}
#define cleanup_context __attribute__((cleanup(cleanup_context_)))

static munge_ctx_t context_new(const char *socket)
{
    munge_ctx_t context = munge_ctx_create();
    if (context && *socket && munge_ctx_set(context, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
        munge_ctx_destroy(context);
        return NULL;
    }
    return context;
}

/* Sleeps before the next retry. Returns 0, or -1 if there is none left. */
static int try_again(munge_err_t code, int *tries, int64_t deadline)
{
    if (code != EMUNGE_SOCKET || ++*tries >= TCCL_CRED_RETRIES)
        return -1;
    if (tccl_now_ms() + TCCL_CRED_RETRY_MS > deadline)
        return -1;
    usleep(TCCL_CRED_RETRY_MS * 1000);
    return 0;
}

static int fail(struct tccl_error *err, munge_ctx_t context, munge_err_t code)
{
    const char *text = context ? munge_ctx_strerror(context) : NULL;
    return tccl_fail(err, "munge: %s", text ? text : munge_strerror(code));
}

int tccl_cred_encode(const char *socket, uid_t reader, const char *data, size_t size,
                     int64_t deadline, char **cred, struct tccl_error *err)
{
    cleanup_context munge_ctx_t context = context_new(socket);
    if (!context)
        return tccl_fail(err, "munge: out of memory");
    munge_err_t code = munge_ctx_set(context, MUNGE_OPT_TTL, TCCL_CRED_TTL);
    if (code == EMUNGE_SUCCESS && reader != (uid_t)TCCL_CRED_ANYONE)
        code = munge_ctx_set(context, MUNGE_OPT_UID_RESTRICTION, reader);
    if (code != EMUNGE_SUCCESS)
        return fail(err, context, code);
    *cred = NULL;
    int tries = 0;
    do
        code = munge_encode(cred, context, data, (int)size);
    while (code != EMUNGE_SUCCESS && try_again(code, &tries, deadline) == 0);
    return code == EMUNGE_SUCCESS ? 0 : fail(err, context, code);
}

/* munge's own form: "MUNGE:", base64 with its padding, ":". What is in it begins with five bytes
 * (version, cipher, MAC, compression, realm) and holds a MAC of at least 16. */
bool tccl_cred_has_form(const char *cred)
{
    static const char prefix[] = "MUNGE:";
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum { LEAST = 28 };
    if (strncmp(cred, prefix, sizeof(prefix) - 1) != 0)
        return false;
    const char *text = cred + sizeof(prefix) - 1;
    size_t length = strspn(text, digits), padding = strspn(text + length, "=");
    return length >= LEAST && padding <= 2 && (length + padding) % 4 == 0 &&
           strcmp(text + length + padding, ":") == 0;
}

int tccl_cred_decode(const char *socket, const char *cred, int64_t deadline, uid_t *uid,
                     char **data, size_t *size, struct tccl_error *err)
{
    cleanup_context munge_ctx_t context = context_new(socket);
    *data = NULL;
    if (!context)
        return tccl_fail(err, "munge: out of memory");
    int tries = 0, length = 0;
    gid_t gid;
    munge_err_t code;
    void *payload = NULL;
    do {
        free(payload); /* munge_decode returns the payload of an expired credential, too */
        payload = NULL;
        code = munge_decode(cred, context, &payload, &length, uid, &gid);
    } while (code != EMUNGE_SUCCESS && try_again(code, &tries, deadline) == 0);
    if (code != EMUNGE_SUCCESS || !payload) {
        free(payload);
        return code == EMUNGE_SUCCESS ? tccl_fail(err, "munge: the credential is empty")
                                      : fail(err, context, code);
    }
    *data = payload; /* munge puts a NUL behind it (munge.3) */
    *size = (size_t)length;
    return 0;
}
