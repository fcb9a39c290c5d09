/* peer-hello.c: both sides of the hello: who comes, with which credential, and whether it is
 * served. */
#include "measure/peer/peer.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/credential.h"
#include "client/frame.h"
#include "client/message.h"

enum { HELLO_BYTES = 4096, CRED_BYTES = 16384, REASON_BYTES = 300, END_BYTES = 64 };

int tccl_peer_address(const char *text, bool any, char host[static TCCL_PEER_HOST], uint16_t *port,
                      struct tccl_error *err)
{
    const char *six = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = six ? (six[1] == ':' ? six + 1 : NULL) : strrchr(text, ':');
    const char *begin = six ? text + 1 : text;
    char *end = NULL;
    if (!six && colon && strchr(text, ':') != colon) /* an IPv6 address without a port */
        colon = NULL;
    size_t length = six ? (size_t)(six - begin) : colon ? (size_t)(colon - text) : strlen(text);
    long number = colon ? strtol(colon + 1, &end, 10) : TCCL_PEER_PORT;
    bool good_port = !colon || (colon[1] >= '0' && colon[1] <= '9' && !*end);
    if ((text[0] == '[' && !six) || (six && six[1] && !colon) || !good_port || number < 1 ||
        number > UINT16_MAX || length >= TCCL_PEER_HOST || (length == 0 && !any))
        return tccl_fail(err, "%.80s: is not HOST, HOST:PORT or [IPV6]:PORT", text);
    memcpy(host, begin, length);
    host[length] = '\0';
    *port = (uint16_t)number;
    return 0;
}

/* ---- messages ---- */

static int write_text(int fd, const char *text, size_t limit, int64_t deadline,
                      struct tccl_error *err)
{
    if (!text)
        return tccl_fail(err, "out of memory");
    int rc = tccl_frame_write(fd, text, strlen(text), limit, deadline, err);
    return rc == 1 ? tccl_fail(err, "no time is left for the handshake") : rc;
}

/* Owns the message; NULL: out of memory. */
static int write_message(int fd, json_t *message, int64_t deadline, struct tccl_error *err)
{
    cleanup_json json_t *owned = message;
    cleanup_free char *text = owned ? tccl_message_text(owned) : NULL;
    return write_text(fd, text, HELLO_BYTES, deadline, err);
}

static int read_text(int fd, size_t limit, int64_t deadline, char **text, size_t *size,
                     struct tccl_error *err)
{
    int rc = tccl_frame_read(fd, limit, deadline, text, size, err);
    return rc == 1 ? tccl_fail(err, "no handshake in time") : rc;
}

/* With what is not NULL: the reader's nonce and our own, both ends of the connection, and that of
 * RDMA. */
static json_t *new_message(const char *type, const char *nonce, const char *own, const char *from,
                           const char *to, const struct tccl_rdma_end *end)
{
    json_t *rdma = end ? tccl_rdma_to_json(end) : NULL;
    return json_pack("{s:i, s:s, s:i, s:s, s:s*, s:s*, s:s*, s:s*, s:o*}", "v", TCCL_WIRE_VERSION,
                     "type", type, "protocol", TCCL_PEER_PROTOCOL, "program", TCCL_VERSION, "nonce",
                     nonce, "own", own, "from", from, "to", to, "rdma", rdma);
}

/* A message in a credential that only reader can open; as it is where nobody has to prove anything.
 */
static int send_sealed(int fd, const json_t *message, const struct tccl_trust *trust, uid_t reader,
                       int64_t deadline, struct tccl_error *err)
{
    cleanup_free char *text = tccl_message_text(message), *cred = NULL;
    if (text && !trust->anybody &&
        tccl_cred_encode(trust->munge, reader, text, strlen(text), deadline, &cred, err) != 0)
        return -1;
    return write_text(fd, cred ? cred : text, CRED_BYTES, deadline, err);
}

/* Both say the type and the protocol. */
static int check_message(const json_t *message, const char *type, struct tccl_error *err)
{
    json_int_t protocol;
    if (strcmp(tccl_message_type(message), type) != 0)
        return tccl_fail(err, "is no tccl-profile%s", strcmp(type, "peer") == 0 ? " peer" : "");
    if (tccl_get_int(message, "protocol", 0, INT32_MAX, &protocol, err) != 0)
        return -1;
    if (protocol != TCCL_PEER_PROTOCOL)
        return tccl_fail(err,
                         "speaks protocol %d, this tccl-profile (%s) speaks %d: update the "
                         "older side",
                         (int)protocol, TCCL_VERSION, TCCL_PEER_PROTOCOL);
    return 0;
}

/* Address and port of the peer's end of a connection, as both sides see them: "10.0.0.1 8518". */
static void name_end(int fd, bool ours, char text[static END_BYTES])
{
    struct sockaddr_storage any = {0};
    const struct sockaddr_in *four = (const void *)&any;
    const struct sockaddr_in6 *six = (const void *)&any;
    socklen_t size = sizeof(any);
    char address[INET6_ADDRSTRLEN] = "?";
    if (ours)
        getsockname(fd, (struct sockaddr *)&any, &size);
    else
        getpeername(fd, (struct sockaddr *)&any, &size);
    bool is_six = any.ss_family == AF_INET6;
    inet_ntop(any.ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, address,
              sizeof(address));
    snprintf(text, END_BYTES, "%s %u", address, ntohs(is_six ? six->sin6_port : four->sin_port));
}

/* ---- the peer ---- */

static int check_hello(int fd, const char *hello, size_t size, const char *nonce, bool sealed,
                       struct tccl_peer_guest *guest, struct tccl_error *err)
{
    cleanup_json json_t *message = tccl_message_parse(hello, size, err);
    const char *text, *own, *there;
    char here[END_BYTES];
    if (!message || check_message(message, "measure", err) != 0 ||
        tccl_get_text(message, "nonce", TCCL_NONCE - 1, &text, err) != 0 ||
        tccl_get_text(message, "own", TCCL_NONCE - 1, &own, err) != 0)
        return -1;
    snprintf(guest->nonce, sizeof(guest->nonce), "%s", own);
    if (strcmp(text, nonce) != 0)
        return tccl_fail(err, "the handshake is for another connection");
    /* Who answers in our place could hand our nonce to a guest of their own, and come here with
     * what that one says. */
    if (sealed && tccl_get_text(message, "to", END_BYTES - 1, &there, err) != 0)
        return -1;
    name_end(fd, true, here);
    if (sealed && strcmp(here, there) != 0)
        return tccl_fail(
            err, "the handshake is for %s, this is %s: connect directly, without a proxy or NAT",
            there, here);
    const json_t *rdma = json_object_get(message, "rdma");
    guest->rdma = rdma;
    return rdma ? tccl_rdma_from_json(rdma, &guest->end, err) : 0;
}

static int take_hello(int fd, const struct tccl_trust *trust, const char *nonce, int64_t deadline,
                      struct tccl_peer_guest *guest, struct tccl_error *err)
{
    cleanup_free char *text = NULL, *hello = NULL;
    size_t size, hello_size;
    if (read_text(fd, CRED_BYTES, deadline, &text, &size, err) < 0)
        return -1;
    if (trust->anybody) /* as it is; else out of its credential */
        return check_hello(fd, text, size, nonce, false, guest, err);
    if (tccl_cred_decode(trust->munge, text, deadline, &guest->user, &hello, &hello_size, err) !=
            0 ||
        check_hello(fd, hello, hello_size, nonce, true, guest, err) != 0)
        return -1;
    if (tccl_trust_has(trust, guest->user))
        return 0;
    return tccl_fail(err, "user %u may not use this peer", (unsigned)guest->user);
}

void tccl_peer_refuse(int fd, const char *why)
{
    json_t *message = tccl_message_new("refused");
    if (message)
        tccl_put_text(message, "reason", why, REASON_BYTES);
    write_message(fd, message, tccl_now_ms(), NULL);
}

int tccl_peer_hear(int fd, const struct tccl_trust *trust, int64_t deadline,
                   struct tccl_peer_guest *guest, struct tccl_error *err)
{
    struct tccl_envelope envelope = {.to = "run", .from = "peer"};
    struct tccl_error reason = {0};
    json_t *greeting = new_message("peer", NULL, NULL, NULL, NULL, NULL);
    *guest = (struct tccl_peer_guest){.user = (uid_t)-1};
    if (greeting && (json_object_set_new(greeting, "munge", json_boolean(!trust->anybody)) != 0 ||
                     tccl_envelope_put(greeting, &envelope, err) != 0)) {
        json_decref(greeting);
        return tccl_fail(err, "out of memory");
    }
    if (write_message(fd, greeting, deadline, err) < 0)
        return -1;
    if (take_hello(fd, trust, envelope.nonce, deadline, guest, &reason) == 0)
        return 0;
    tccl_peer_refuse(fd, reason.text);
    return tccl_fail(err, "%s", reason.text);
}

int tccl_peer_agree(int fd, const struct tccl_trust *trust, const struct tccl_peer_guest *guest,
                    const struct tccl_rdma_end *ours, int64_t deadline, struct tccl_error *err)
{
    struct tccl_error why = {0};
    char from[END_BYTES], to[END_BYTES];
    /* Good for this connection alone: the reader's nonce, and both ends. */
    name_end(fd, true, from);
    name_end(fd, false, to);
    cleanup_json json_t *welcome = new_message("welcome", guest->nonce, NULL, from, to, ours);
    if (!welcome)
        return tccl_fail(err, "out of memory");
    if (send_sealed(fd, welcome, trust, guest->user, deadline, &why) == 0)
        return 0;
    tccl_peer_refuse(fd, why.text);
    return tccl_fail(err, "%s", why.text);
}

/* ---- our side ---- */

static int refusal(const json_t *message, struct tccl_error *err)
{
    const char *reason = NULL;
    if (strcmp(tccl_message_type(message), "refused") != 0)
        return tccl_fail(err, "is no tccl-profile peer");
    tccl_get_optional_text(message, "reason", REASON_BYTES, &reason, NULL);
    return tccl_fail(err, "refuses: %s", reason ? reason : "no reason given");
}

/* Out of its credential; what is none can only be a refusal. */
static json_t *open_answer(const char *text, size_t size, const struct tccl_trust *trust,
                           int64_t deadline, struct tccl_error *err)
{
    cleanup_free char *data = NULL;
    struct tccl_error why = {0};
    size_t length;
    uid_t user;
    if (trust->anybody || !tccl_cred_has_form(text)) {
        json_t *message = tccl_message_parse(text, size, err);
        if (!message || trust->anybody || strcmp(tccl_message_type(message), "refused") == 0)
            return message;
        json_decref(message);
        return tccl_fail_null(err, "sent no munge credential, so who runs it is not known");
    }
    if (tccl_cred_decode(trust->munge, text, deadline, &user, &data, &length, &why) != 0)
        return tccl_fail_null(err, "its munge credential is not valid: %s", why.text);
    if (!tccl_trust_has(trust, user))
        return tccl_fail_null(err, "is run by user %u, and not by root, MungeUser or this user",
                              (unsigned)user);
    return tccl_message_parse(data, length, err);
}

static bool has_text(const json_t *message, const char *name, const char *text)
{
    const char *said = json_string_value(json_object_get(message, name));
    return said && strcmp(said, text) == 0;
}

static int hear_answer(int fd, const char *own, const struct tccl_trust *trust,
                       const struct tccl_rdma_end *ours, struct tccl_rdma_end *theirs,
                       int64_t deadline, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    char from[END_BYTES], to[END_BYTES];
    size_t size;
    if (read_text(fd, CRED_BYTES, deadline, &text, &size, err) < 0)
        return -1;
    cleanup_json json_t *answer = open_answer(text, size, trust, deadline, err);
    if (!answer)
        return -1;
    if (strcmp(tccl_message_type(answer), "welcome") != 0)
        return refusal(answer, err);
    /* Is it a proof for us, on this connection? */
    name_end(fd, false, from);
    name_end(fd, true, to);
    if (!trust->anybody && !(has_text(answer, "nonce", own) && has_text(answer, "from", from) &&
                             has_text(answer, "to", to)))
        return tccl_fail(err, "its munge credential is for another connection: connect directly, "
                              "without a proxy or NAT");
    return ours ? tccl_rdma_from_json(json_object_get(answer, "rdma"), theirs, err) : 0;
}

/* theirs is set where ours is given. */
static int say_hello(int fd, const struct tccl_trust *trust, const struct tccl_rdma_end *ours,
                     struct tccl_rdma_end *theirs, int64_t deadline, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    char own[TCCL_NONCE], to[END_BYTES];
    const char *nonce;
    size_t size;
    if (read_text(fd, HELLO_BYTES, deadline, &text, &size, err) < 0)
        return -1;
    cleanup_json json_t *greeting = tccl_message_parse(text, size, err);
    if (!greeting)
        return -1;
    if (strcmp(tccl_message_type(greeting), "refused") == 0)
        return refusal(greeting, err);
    if (check_message(greeting, "peer", err) != 0)
        return -1;
    /* Does the other side ask for as much as we do? */
    bool proves = json_is_true(json_object_get(greeting, "munge"));
    if (proves && trust->anybody)
        return tccl_fail(err, "needs a munge credential: leave out --no-munge here");
    if (!proves && !trust->anybody)
        return tccl_fail(err, "runs without munge (--no-munge): start it with munge, or use "
                              "--no-munge here, too, where nobody else can listen there");
    if (tccl_get_text(greeting, "nonce", TCCL_NONCE - 1, &nonce, err) != 0 ||
        tccl_nonce_make(own, err) != 0)
        return -1;
    name_end(fd, false, to);
    cleanup_json json_t *hello = new_message("measure", nonce, own, NULL, to, ours);
    if (!hello)
        return tccl_fail(err, "out of memory");
    if (send_sealed(fd, hello, trust, (uid_t)TCCL_CRED_ANYONE, deadline, err) < 0)
        return -1;
    return hear_answer(fd, own, trust, ours, theirs, deadline, err);
}

int tccl_peer_connect(const char *peer, const char *device, const struct tccl_trust *trust,
                      const struct tccl_rdma_end *ours, struct tccl_rdma_end *theirs,
                      int64_t deadline, struct tccl_error *err)
{
    char host[TCCL_PEER_HOST];
    uint16_t port;
    if (tccl_peer_address(peer, false, host, &port, err) != 0)
        return tccl_fail_in(err, "peer");
    cleanup_close int fd = tccl_dial_as("tccl-profile peer", device, host, port, deadline, err);
    if (fd < 0)
        return -1;
    tccl_peer_tune(fd);
    if (say_hello(fd, trust, ours, theirs, deadline, err) != 0)
        return tccl_fail_in(err, "peer %s:%u", host, port);
    int connected = fd;
    fd = -1;
    return connected;
}
