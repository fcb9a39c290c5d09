/* flood.c: connections to a tccld in great number, from many at a time, as somebody would who means
 * harm. Each says one thing, and is given up when tccld hangs up or after a while.
 * Usage: flood FROM PORT SECONDS MOST KIND
 * FROM: address that they come from; 127.1.0.0/16, fd00::/64: any one there; to 127.0.0.1 or ::1.
 * MOST: connections a second. KIND: silent (says
 * nothing), short (the length of a frame, and no more), junk (a frame of random letters), long (one
 * of 1 MiB), forged (looks like a credential). Prints how many there were. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { AT_ONCE = 6000, PATIENCE_MS = 1000, LONGEST = 1 << 20 };

struct one {
    int fd; /* -1: none */
    size_t sent;
    int64_t until;
};

static char said[LONGEST];
static size_t size;
static struct sockaddr_in6 from, to; /* IPv4 as ::ffff:127.0.0.1 */
static int fixed = 128;              /* bits of from that are the same for all */
static int done[2];                  /* hung up by tccld; given up */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}

static void fill(const char *kind)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bool forged = strcmp(kind, "forged") == 0;
    size = strcmp(kind, "silent") == 0  ? 0
           : strcmp(kind, "short") == 0 ? 4
           : strcmp(kind, "long") == 0  ? LONGEST
                                        : 4 + 400;
    uint32_t length = htonl((uint32_t)((size > 4 ? size : 400) - 4));
    for (size_t i = 4; i < size; i++)
        said[i] = letters[(unsigned)rand() % 64];
    memcpy(said, &length, 4);
    if (forged) {
        memcpy(said + 4, "MUNGE:AwQDAA", 12); /* version 3, a cipher, a MAC, no compression */
        said[size - 1] = ':';
    }
}

static void end(struct one *one, int how)
{
    /* No port is to wait for what may still be under way. */
    setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
               sizeof(struct linger));
    close(one->fd);
    one->fd = -1;
    done[how]++;
}

static void set_bit(struct in6_addr *address, int bit, bool value)
{
    uint8_t mask = (uint8_t)(0x80 >> bit % 8);
    address->s6_addr[bit / 8] = (uint8_t)((address->s6_addr[bit / 8] & ~mask) | (value ? mask : 0));
}

static void begin(struct one *one, int poll)
{
    int yes = 1;
    one->fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(one->fd, IPPROTO_IP, 24 /* IP_BIND_ADDRESS_NO_PORT */, &yes, sizeof(yes));
    setsockopt(one->fd, IPPROTO_IPV6, IPV6_FREEBIND, &yes, sizeof(yes));
    for (int i = fixed; i < 128; i++)
        set_bit(&from.sin6_addr, i, rand() & 1);
    one->sent = 0;
    one->until = now_ms() + PATIENCE_MS;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = one};
    if (bind(one->fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
        (connect(one->fd, (struct sockaddr *)&to, sizeof(to)) != 0 && errno != EINPROGRESS) ||
        epoll_ctl(poll, EPOLL_CTL_ADD, one->fd, &event) != 0)
        end(one, 1);
}

static void work(struct one *one, uint32_t events)
{
    char byte;
    while (one->sent < size && events & EPOLLOUT) {
        ssize_t written = send(one->fd, said + one->sent, size - one->sent, MSG_NOSIGNAL);
        if (written < 0 && errno == EAGAIN)
            break;
        if (written < 0) {
            end(one, 0);
            return;
        }
        one->sent += (size_t)written;
    }
    if (events & (EPOLLHUP | EPOLLERR) ||
        (events & EPOLLIN && recv(one->fd, &byte, 1, MSG_DONTWAIT) == 0))
        end(one, 0);
}

/* Returns 0, or -1: that is no address. */
static int read_address(const char *text, struct sockaddr_in6 *address)
{
    char mapped[64];
    snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
    address->sin6_family = AF_INET6;
    return inet_pton(AF_INET6, mapped, &address->sin6_addr) == 1 ? 0 : -1;
}

static int read_addresses(char *text)
{
    bool is_4 = !strchr(text, ':');
    char *bits = strchr(text, '/');
    if (bits) {
        *bits = '\0';
        fixed = atoi(bits + 1) + (is_4 ? 96 : 0);
    }
    return read_address(text, &from) | read_address(is_4 ? "127.0.0.1" : "::1", &to);
}

int main(int argc, char **argv)
{
    static struct one all[AT_ONCE];
    struct epoll_event events[AT_ONCE];
    int poll = epoll_create1(0);
    if (argc != 6 || read_addresses(argv[1]) != 0)
        return 2;
    to.sin6_port = htons((uint16_t)atoi(argv[2]));
    fill(argv[5]);
    for (int i = 0; i < AT_ONCE; i++)
        all[i].fd = -1;
    int64_t start = now_ms(), stop = start + atoi(argv[3]) * 1000, most = atoi(argv[4]), begun = 0;
    for (int64_t now; (now = now_ms()) < stop;) {
        for (int i = 0; i < AT_ONCE; i++) {
            if (all[i].fd >= 0 && now > all[i].until)
                end(&all[i], 1);
            if (all[i].fd < 0 && begun * 1000 <= (now - start) * most) {
                begin(&all[i], poll);
                begun++;
            }
        }
        int count = epoll_wait(poll, events, AT_ONCE, 1);
        for (int i = 0; i < count; i++)
            if (((struct one *)events[i].data.ptr)->fd >= 0)
                work(events[i].data.ptr, events[i].events);
    }
    printf("%d a second: %d hung up on, %d given up\n", (int)(begun * 1000 / (stop - start)),
           done[0], done[1]);
    return 0;
}
