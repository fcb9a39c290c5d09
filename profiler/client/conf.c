/* conf.c: tccl.conf: a table of keys, each with a setter that checks its value. */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <ini.h>

#include "base/cleanup.h"
#include "base/fileio.h"
#include "client/conf.h"
#include "client/hostlist.h"

enum { FILE_MAX = 4 << 20, PEERS_MAX = 65536 };

static void short_host_name(char *name, size_t size)
{
    if (gethostname(name, size) != 0)
        name[0] = '\0';
    name[size - 1] = '\0';
    name[strcspn(name, ".")] = '\0';
}

/* Copies value with %n, %h and %% replaced. Returns 0; 1 when it is longer than max; -1 for another
 * %. */
static int replace(const char *value, const struct tccl_conf *conf, char *out, size_t max)
{
    char host[TCCL_CONF_NAME];
    size_t used = 0;
    short_host_name(host, sizeof(host));
    for (const char *at = value; *at; at++) {
        char plain[2] = {*at, '\0'};
        const char *piece = *at != '%'     ? plain
                            : *++at == 'n' ? conf->node
                            : *at == 'h'   ? host
                            : *at == '%'   ? "%"
                                           : NULL;
        if (!piece)
            return -1;
        size_t length = strlen(piece);
        if (length > max - used)
            return 1;
        memcpy(out + used, piece, length);
        used += length;
    }
    out[used] = '\0';
    return 0;
}

static TCCL_SETTER(set_path)
{
    char path[PATH_MAX];
    if (value[0] != '/' && !(key->min == 0 && value[0] == '\0'))
        return 1;
    int rc = replace(value, conf, path, (size_t)key->max);
    if (rc < 0)
        return tccl_fail(
            err, "%s=%.80s: give a path in which %%n is the node, %%h the host, %%%% a '%%'",
            key->name, value);
    if (rc > 0)
        return tccl_fail(err, "%s=%.80s: a path here has at most %d bytes", key->name, value,
                         key->max);
    strcpy(field, path);
    return 0;
}

/* A program by its name, or by its path; "none" is kept as "". */
static TCCL_SETTER(set_program)
{
    const char *slash = strchr(value, '/');
    if (!*value || (slash && slash != value) || strlen(value) > (size_t)key->max)
        return 1;
    strcpy(field, strcasecmp(value, "none") == 0 ? "" : value);
    return 0;
}

static TCCL_SETTER(set_node)
{
    if (value[0] != '\0' && !tccl_host_valid(value))
        return 1;
    strcpy(field, value);
    return 0;
}

/* As Slurm does it: in lower case. */
static TCCL_SETTER(set_cluster)
{
    if (strlen(value) > TCCL_KEY_CLUSTER || set_node(key, field, conf, value, err) != 0)
        return 1;
    for (char *at = field; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return 0;
}

/* An address or host name as getaddrinfo takes it. */
static bool valid_address(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.:_-%";
    size_t length = strlen(text);
    return length > 0 && length < TCCL_CONF_NAME && strspn(text, allowed) == length;
}

static TCCL_SETTER(set_address)
{
    if (value[0] != '\0' && !valid_address(value))
        return 1;
    strcpy(field, value);
    return 0;
}

static TCCL_SETTER(set_user)
{
    if (!tccl_value_word(value, strlen(value)))
        return 1;
    strcpy(field, value);
    return 0;
}

static TCCL_SETTER(set_port)
{
    int port = 0;
    if (tccl_set_count(key, &port, conf, value, err) != 0)
        return -1;
    *(uint16_t *)field = (uint16_t)port;
    return 0;
}

static TCCL_SETTER(set_on)
{
    bool on = strcasecmp(value, "on") == 0;
    if (!on && strcasecmp(value, "off") != 0)
        return 1;
    *(bool *)field = on;
    return 0;
}

/* "730d", "forever", of which 0 days are meant; moves *text behind it. */
static int read_days(const struct tccl_key *key, const char **text, int *days)
{
    bool forever = strncasecmp(*text, "forever", 7) == 0;
    long number = forever ? 0 : tccl_value_number(text);
    *text += forever ? 7 : **text == 'd';
    *days = (int)number;
    return forever || ((*text)[-1] == 'd' && number >= key->min && number <= key->max) ? 0 : -1;
}

static TCCL_SETTER(set_keep)
{
    static const char misdated[] = ",misdated=";
    const char *at = value;
    int keep[2];
    int wrong = read_days(key, &at, &keep[0]);
    keep[1] = keep[0];
    if (!wrong && strncmp(at, misdated, strlen(misdated)) == 0) {
        at += strlen(misdated);
        wrong = read_days(key, &at, &keep[1]);
    }
    if (wrong || *at)
        return tccl_fail(
            err,
            "%s=%.80s: give a number of days, from %dd to %dd, or forever, and behind "
            "it, if you like, the same for records that are misdated (730d,misdated=7d)",
            key->name, value, key->min, key->max);
    memcpy(field, keep, sizeof(keep));
    return 0;
}

#define FIELD(name) offsetof(struct tccl_conf, name)
enum { SOCKET_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1, PATH_LONGEST = PATH_MAX - 64 };
#define PATH "a path that begins with '/'"
#define USER "the name or number of one user"

static const struct tccl_key keys[] = {TCCL_CONF_KEYS(TCCL_KEY_ROW)};
enum { KEYS = TCCL_N_CONF_KEYS };

/* How many letters are to be changed, added or taken away, without regard to case; MOST and more:
 * too many. */
static int letters_apart(const char *a, const char *b)
{
    enum { MOST = 40 };
    int row[MOST + 1], n = (int)strlen(b);
    if (n > MOST || strlen(a) > MOST)
        return MOST;
    for (int k = 0; k <= n; k++)
        row[k] = k;
    for (int i = 0; a[i]; i++)
        for (int k = 0, before = row[0]++; k < n; k++) {
            int change = before + (tolower((unsigned char)a[i]) != tolower((unsigned char)b[k]));
            int other = 1 + (row[k] < row[k + 1] ? row[k] : row[k + 1]);
            before = row[k + 1];
            row[k + 1] = change < other ? change : other;
        }
    return row[n];
}

/* Where this key belongs; NULL: nowhere. */
static const char *section_of(const char *name)
{
    const char *key;
    if (tccl_key_find(keys, KEYS, name))
        return "[tccl]";
    for (int named = 0; named < 2; named++)
        for (int i = 0; (key = tccl_policy_key(named, i)); i++)
            if (strcasecmp(name, key) == 0)
                return named ? "[policy NAME]" : "[policy]";
    return NULL;
}

/* Fails with the section where the key belongs, with the key that is meant, or with those of
 * [tccl], of a policy, or of both. */
static int refuse_key(bool tccl, const struct tccl_policy *policy, const char *name,
                      struct tccl_error *err)
{
    char known[1024] = "";
    size_t used = 0;
    const char *key, *meant = NULL, *section = section_of(name);
    if (section)
        return tccl_fail(err, "'%.40s' is a key of %s, not of this section", name, section);
    int nearest = strlen(name) < 5 ? 2 : 3; /* letters */
    for (int i = 0; tccl && i < KEYS; i++) {
        used += (size_t)snprintf(known + used, sizeof(known) - used, " %s", keys[i].name);
        int apart = letters_apart(name, keys[i].name);
        meant = apart < nearest ? keys[i].name : meant;
        nearest = apart < nearest ? apart : nearest;
    }
    for (int i = 0; policy && (key = tccl_policy_key(policy->name[0], i)); i++) {
        int apart = letters_apart(name, key);
        if (!tccl || !tccl_key_find(keys, KEYS, key))
            used += (size_t)snprintf(known + used, sizeof(known) - used, " %s", key);
        meant = apart < nearest ? key : meant;
        nearest = apart < nearest ? apart : nearest;
    }
    if (meant)
        return tccl_fail(err, "unknown key '%.40s': did you mean %s?", name, meant);
    return tccl_fail(err, "unknown key '%.40s'; known:%s", name, known);
}

/* Whose mistake it is, tccld and the tools say. A job goes by the other keys. Returns 0. */
static int pass_over(struct tccl_conf *conf, int line)
{
    conf->passed_over = conf->passed_over ? conf->passed_over : line;
    return 0;
}

/* Of a policy that one may not know all conditions of, nothing holds. */
static int set_policy(struct tccl_conf *conf, struct tccl_policy *policy, const char *name,
                      const char *value, int line, struct tccl_error *err)
{
    int rc = tccl_policy_set(policy, name, value, err);
    if (rc <= 0)
        return rc;
    if (!conf->own)
        return refuse_key(false, policy, name, err);
    policy->never = policy->name[0];
    return pass_over(conf, line);
}

/* line: of the file; 0: it does not come from there. Machine= is StateDir/machine.json unless it is
 * given. */
static int set_value(struct tccl_conf *conf, const struct tccl_key *key, const char *value,
                     int line, struct tccl_error *err)
{
    char machine[PATH_MAX];
    snprintf(machine, sizeof(machine), "%.*s/machine.json", PATH_LONGEST, conf->state_dir);
    bool defaulted = !*conf->machine || !strcmp(machine, conf->machine);
    if (tccl_key_set(key, conf, conf, value, err) != 0)
        return -1;
    if (defaulted && key->offset == FIELD(state_dir))
        snprintf(conf->machine, sizeof(conf->machine), "%.*s/machine.json", PATH_LONGEST,
                 conf->state_dir);
    conf->lines[key - keys] = line;
    return 0;
}

static int add_peer(struct tccl_conf *conf, const char *node, const char *host, long port,
                    struct tccl_error *err)
{
    if (!tccl_host_valid(node) || !valid_address(host))
        return tccl_fail(err, "peer %.40s=%.40s: give NODE=HOST:PORT", node, host);
    if ((conf->n_peers & (conf->n_peers - 1)) == 0) { /* full at powers of two */
        size_t room = conf->n_peers ? 2 * (size_t)conf->n_peers : 1;
        void *peers =
            conf->n_peers < PEERS_MAX ? realloc(conf->peers, room * sizeof(*conf->peers)) : NULL;
        if (!peers)
            return tccl_fail(err, "no room for more than %d peers", conf->n_peers);
        conf->peers = peers;
    }
    struct tccl_peer *peer = &conf->peers[conf->n_peers++];
    memset(peer, 0, sizeof(*peer));
    strcpy(peer->node, node);
    strcpy(peer->host, host);
    peer->port = (uint16_t)port;
    return 0;
}

/* Reads "18001" or "18001-18004" behind the last ':'; first = 0 if there is no port. */
static int read_ports(const char *text, long *first, long *count)
{
    *first = tccl_value_number(&text);
    long last = *first;
    if (*text == '-') {
        text++;
        last = tccl_value_number(&text);
    }
    *count = last - *first + 1;
    return *text || *first < 1 || last < *first || last > 65535 ? -1 : 0;
}

/* Cuts HOST, HOST:PORTS or [IPV6]:PORTS: host is written, *ports points behind ':' or is NULL. */
static int cut_host(const char *value, char host[TCCL_CONF_NAME], const char **ports)
{
    bool six = value[0] == '[' && strchr(value, ':') && !strchr(value, ',');
    const char *begin = value + six;
    const char *end = six ? strchr(value, ']') : strrchr(value, ':');
    *ports = six ? (end && end[1] == ':' ? end + 2 : NULL) : end ? end + 1 : NULL;
    if (six && (!end || (end[1] && end[1] != ':')))
        return -1;
    size_t length = end ? (size_t)(end - begin) : strlen(begin);
    if (length == 0 || length >= TCCL_CONF_NAME)
        return -1;
    memcpy(host, begin, length);
    host[length] = '\0';
    return six || !strchr(host, ':') ? 0 : -1;
}

/* n[1-4]=127.0.0.1:18001-18004, n[1-4]=h[1-4]:8517, n1=h1, n7=down. */
static int read_peer(struct tccl_conf *conf, const char *name, const char *value, int line,
                     struct tccl_error *err)
{
    __attribute__((cleanup(tccl_hosts_clear))) struct tccl_hosts nodes = {0}, hosts = {0};
    char host[TCCL_CONF_NAME];
    const char *ports;
    long first = 0, count = 1;
    if (tccl_hosts_expand(name, PEERS_MAX, &nodes, err) != 0)
        return -1;
    if (strcasecmp(value, "down") == 0) {
        /* n[7-9]=down. Where else they listen may stand in another line. */
        for (size_t i = 0; i < nodes.count; i++) {
            if (add_peer(conf, nodes.names[i], nodes.names[i], 0, err) != 0)
                return -1;
            conf->peers[conf->n_peers - 1].down = line;
        }
        return 0;
    }
    if (cut_host(value, host, &ports) != 0 || (ports && read_ports(ports, &first, &count) != 0))
        return tccl_fail(
            err,
            "peer %.40s=%.80s: give NODE=HOST:PORT, NODES=HOSTS:FIRST-LAST with as many "
            "hosts or ports as nodes, or NODES=down",
            name, value);
    if (!strchr(host, ':') && tccl_hosts_expand(host, PEERS_MAX, &hosts, err) != 0)
        return -1;
    if ((hosts.count > 1 && hosts.count != nodes.count) ||
        (count > 1 && (size_t)count != nodes.count))
        return tccl_fail(err, "peer %.40s=%.80s: %zu nodes, but %zu hosts and %ld ports", name,
                         value, nodes.count, hosts.count ? hosts.count : 1, count);
    /* Host i of a list of 1 or n hosts. */
    for (size_t i = 0; i < nodes.count; i++) {
        const char *own = hosts.count > 1 ? hosts.names[i] : hosts.count ? hosts.names[0] : host;
        if (add_peer(conf, nodes.names[i], own, count > 1 ? first + (long)i : first, err) != 0)
            return -1;
    }
    return 0;
}

/* The name behind "policy " in a section's, or NULL. */
static const char *policy_name(const char *section)
{
    static const char word[] = "policy";
    size_t length = sizeof(word) - 1;
    if (strncasecmp(section, word, length) != 0 || !isspace((unsigned char)section[length]))
        return NULL;
    section += length;
    return section + strspn(section, " \t");
}

#define SECTIONS "there are [tccl], [policy], [policy NAME], [peers]"

/* A section begins. */
static int begin_section(struct tccl_conf *conf, const char *section, struct tccl_error *err)
{
    static const char *const sections[] = {"tccl", "policy", "peers"};
    const char *name = policy_name(section);
    if (name) {
        /* Begins a [policy NAME]. */
        if (!tccl_policy_name_valid(name))
            return tccl_fail(
                err,
                "[policy %.80s]: a policy's name has 1 to %d letters, digits, '.', '_' "
                "and '-'",
                name, TCCL_POLICY_NAME);
        for (int i = 0; i < conf->n_policies; i++)
            if (!strcasecmp(conf->policies[i].name, name))
                return tccl_fail(err, "there is a [policy %s] already", conf->policies[i].name);
        if (conf->n_policies == TCCL_POLICIES_MAX)
            return tccl_fail(err, "there are more than %d policies", TCCL_POLICIES_MAX);
        size_t room = (size_t)conf->n_policies + 1;
        struct tccl_policy *policies = realloc(conf->policies, room * sizeof(*policies));
        if (!policies)
            return tccl_fail(err, "out of memory for another policy");
        conf->policies = policies;
        struct tccl_policy *policy = &policies[conf->n_policies++];
        *policy = tccl_policy_new(name);
        return 0;
    }
    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
        if (!strcasecmp(section, sections[i]))
            return 0;
    return tccl_fail(err, "unknown section [%.80s]; " SECTIONS, section);
}

static int read_entry(struct tccl_conf *conf, const char *section, const char *name,
                      const char *value, int line, struct tccl_error *err)
{
    if (!strcasecmp(section, "peers")) {
        int n_peers = conf->n_peers;
        int rc = conf->own ? 0 : read_peer(conf, name, value, line, err);
        for (int i = n_peers; i < conf->n_peers; i++)
            conf->peers[i].line = line;
        return rc;
    }
    if (!strcasecmp(section, "policy"))
        return set_policy(conf, &conf->policy, name, value, line, err);
    if (policy_name(section))
        return set_policy(conf, &conf->policies[conf->n_policies - 1], name, value, line, err);
    if (strcasecmp(section, "tccl") != 0)
        return tccl_fail(err, "%.40s is before any section; " SECTIONS, name);
    const struct tccl_key *key = tccl_key_find(keys, KEYS, name);
    if (!key && conf->own)
        return pass_over(conf, line);
    return key ? set_value(conf, key, value, line, err) : refuse_key(true, NULL, name, err);
}

/* The text being read, line by line, so that errors can name the line. */
struct reading {
    struct tccl_conf *conf;
    const char *next;
    bool past; /* what stands behind a mistake is read, too */
    int line;
    int wrong; /* line of the first mistake in an entry, 0: none */
    int long_line;
    int long_max;
    struct tccl_error *err;
};

/* The head of a section, if the line of length bytes is one: inih tells of a section only with its
 * first key, and cuts its name. Returns 0, or -1 with a mistake in it. */
static int take_header(struct reading *reading, const char *line, size_t length)
{
    char section[256];
    const char *end = length && line[0] == '[' ? memchr(line, ']', length) : NULL;
    if (!end)
        return 0; /* inih says what is wrong */
    snprintf(section, sizeof(section), "%.*s", (int)(end - line - 1), line + 1);
    const char *rest = end + 1;
    while (rest < line + length && isspace((unsigned char)*rest))
        rest++;
    if (rest < line + length && *rest != ';')
        tccl_fail(reading->err, "[%.80s]: text behind a section: begin another line", section);
    else if (begin_section(reading->conf, section, reading->err) == 0)
        return 0;
    reading->wrong = reading->wrong ? reading->wrong : reading->line;
    return -1;
}

/* An ini_reader: one line, without blanks in front (inih takes indented lines as the value above
 * going on) and without a comment begun by " #" (inih knows " ;"). */
static char *read_line(char *text, int size, void *stream)
{
    struct reading *reading = stream;
    if (!*reading->next || (reading->wrong && !reading->past))
        return NULL;
    size_t length = strcspn(reading->next, "\n");
    const char *begin = reading->next;
    reading->next += length + (begin[length] == '\n');
    reading->line++;
    while (length > 0 && isspace((unsigned char)*begin))
        begin++, length--;
    for (size_t i = 0; i < length; i++)
        if (begin[i] == '#' && (i == 0 || isspace((unsigned char)begin[i - 1])))
            length = i;
    if (length + 2 > (size_t)size) {
        reading->long_max = size - 2;
        reading->long_line = reading->long_line ? reading->long_line : reading->line;
        length = 0;
    }
    if (take_header(reading, begin, length) != 0) {
        begin = "[]"; /* what follows is in no section */
        length = 2;
    }
    memcpy(text, begin, length);
    strcpy(text + length, "\n");
    return text;
}

/* An ini_handler. */
static int take_entry(void *user, const char *section, const char *name, const char *value)
{
    struct reading *reading = user;
    if (reading->wrong && !reading->past)
        return 0;
    if (read_entry(reading->conf, section, name, value, reading->line, reading->err) == 0)
        return 1;
    reading->wrong = reading->wrong ? reading->wrong : reading->line;
    return 0;
}

/* Names file and line of the first mistake, if there is one; rc is inih's answer. */
static int judge(const struct reading *reading, int rc, const char *path)
{
    struct tccl_error *err = reading->err;
    int line = rc > 0 ? rc : 0;
    if (reading->long_line && (!line || reading->long_line < line)) {
        if (err)
            err->text[0] = '\0';
        return tccl_fail(err, "%s:%d: longer than %d characters", path, reading->long_line,
                         reading->long_max);
    }
    if (rc < 0)
        return tccl_fail(err, "out of memory to read %s", path);
    if (reading->wrong && (!line || reading->wrong <= line))
        return tccl_fail_in(err, "%s:%d", path, reading->wrong);
    if (rc == 0)
        return 0;
    if (err)
        err->text[0] = '\0';
    return tccl_fail(err, "%s:%d: neither [section] nor Key=value", path, line);
}

static int compare_peers(const void *a, const void *b)
{
    return strcmp(((const struct tccl_peer *)a)->node, ((const struct tccl_peer *)b)->node);
}

/* One node's in the order of their lines. */
static int compare_entries(const void *a, const void *b)
{
    int order = compare_peers(a, b);
    return order ? order
                 : ((const struct tccl_peer *)a)->line - ((const struct tccl_peer *)b)->line;
}

static int finish_peers(struct tccl_conf *conf, struct tccl_error *err)
{
    if (conf->n_peers)
        qsort(conf->peers, (size_t)conf->n_peers, sizeof(*conf->peers), compare_entries);
    for (int i = 0; i < conf->n_peers; i++)
        if (conf->peers[i].port == 0)
            conf->peers[i].port = conf->port;
    /* Of a node that is down and has an address, both are one entry: that of the address. */
    int kept = 0;
    bool joined = false; /* the last one that is kept is of two lines */
    for (int i = 0; i < conf->n_peers; i++) {
        struct tccl_peer *last = kept ? &conf->peers[kept - 1] : NULL;
        const struct tccl_peer *peer = &conf->peers[i];
        joined = last && !joined && !strcmp(last->node, peer->node) && !last->down != !peer->down;
        if (!joined) {
            conf->peers[kept++] = *peer;
        } else if (peer->down) {
            last->down = peer->down;
        } else {
            int line = last->down;
            *last = *peer;
            last->down = line;
        }
    }
    conf->n_peers = kept;
    for (int i = 0; i < kept; i++)
        conf->n_down += conf->peers[i].down > 0;
    /* If two lines name one node, the later one is wrong; of several errors, the first is reported.
     */
    const struct tccl_peer *wrong = NULL;
    for (int i = 1; i < conf->n_peers; i++) {
        const struct tccl_peer *peer = &conf->peers[i];
        if (!strcmp(peer->node, peer[-1].node) && (!wrong || peer->line < wrong->line))
            wrong = peer;
    }
    return wrong ? tccl_fail(err, "%s:%d: [peers] names node %s twice, first in line %d",
                             conf->path, wrong->line, wrong->node, wrong[-1].line)
                 : 0;
}

static int read_file(struct tccl_conf *conf, bool must, bool past, struct tccl_error *err)
{
    cleanup_free char *text = NULL;
    size_t size;
    struct tccl_error reason = {0};
    if (tccl_read_file(conf->path, FILE_MAX, &text, &size, &reason) != 0)
        return !must && errno == ENOENT ? 0 : tccl_fail(err, "%s", reason.text);
    if (strlen(text) != size)
        return tccl_fail(err, "%s: is not text", conf->path);
    struct tccl_error own = {0};
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark, written by some editors */
    bool marked = strncmp(text, mark, sizeof(mark) - 1) == 0;
    struct reading reading = {
        .conf = conf, .next = text + (marked ? sizeof(mark) - 1 : 0), .past = past, .err = &own};
    int rc = ini_parse_stream(read_line, &reading, take_entry, &reading);
    int wrong = judge(&reading, rc, conf->path);
    if (wrong)
        tccl_fail(err, "%s", own.text);
    return wrong && !past ? -1 : finish_peers(conf, err) != 0 ? -1 : wrong;
}

int tccl_conf_read_as(enum tccl_conf_reader who, const char *path, const char *node,
                      struct tccl_conf *conf, struct tccl_error *err)
{
    bool own = who == TCCL_CONF_PLUGIN, past = who == TCCL_CONF_CHECK;
    const char *file = path ? path : TCCL_SYSCONFDIR "/slurm/tccl.conf";
    *conf = (struct tccl_conf){.own = own, .policy = tccl_policy_new("")};
    for (int i = 0; i < KEYS; i++)
        if (keys[i].normal && set_value(conf, &keys[i], keys[i].normal, 0, err) != 0)
            return -1;
    if (node)
        snprintf(conf->node, sizeof(conf->node), "%s", node);
    else
        short_host_name(conf->node, sizeof(conf->node));
    if (!tccl_host_valid(conf->node) || (node && strcmp(node, conf->node) != 0))
        return tccl_fail(err, "'%.80s' is not the name of a node", node ? node : conf->node);
    if (strlen(file) >= sizeof(conf->path))
        return tccl_fail(err, "%.80s…: the path is too long", file);
    strcpy(conf->path, file);
    int wrong = read_file(conf, path != NULL, past, err);
    if (wrong && !past)
        tccl_conf_clear(conf);
    return wrong;
}

int tccl_conf_read(const char *path, const char *node, struct tccl_conf *conf,
                   struct tccl_error *err)
{
    return tccl_conf_read_as(TCCL_CONF_TOOL, path, node, conf, err);
}

int tccl_conf_override(struct tccl_conf *conf, const char *assignment, struct tccl_error *err)
{
    char name[64];
    const char *equals = strchr(assignment, '=');
    if (!equals || (size_t)(equals - assignment) >= sizeof(name))
        return tccl_fail(err, "'%.80s' is not Key=value", assignment);
    snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
    const struct tccl_key *key = tccl_key_find(keys, KEYS, name);
    if (key)
        return set_value(conf, key, equals + 1, 0, err);
    int rc = tccl_policy_set(&conf->policy, name, equals + 1, err);
    return rc > 0 ? refuse_key(true, &conf->policy, name, err) : rc;
}

int tccl_conf_line(const struct tccl_conf *conf, const char *key)
{
    const struct tccl_key *found = tccl_key_find(keys, KEYS, key);
    return found ? conf->lines[found - keys] : 0;
}

void tccl_conf_clear(struct tccl_conf *conf)
{
    free(conf->admins);
    tccl_policy_clear(&conf->policy);
    for (int i = 0; i < conf->n_policies; i++)
        tccl_policy_clear(&conf->policies[i]);
    free(conf->policies);
    free(conf->peers);
    conf->admins = NULL;
    conf->policies = NULL;
    conf->peers = NULL;
    conf->n_policies = conf->n_peers = conf->n_down = 0;
}

const char *tccl_conf_tool_path(const char *option)
{
    const char *variable = secure_getenv("TCCL_CONF");
    return option ? option : variable && *variable ? variable : NULL;
}

const struct tccl_peer *tccl_conf_peer(const struct tccl_conf *conf, const char *node)
{
    struct tccl_peer key;
    if (!conf->n_peers || strlen(node) >= sizeof(key.node))
        return NULL;
    strcpy(key.node, node);
    return bsearch(&key, conf->peers, (size_t)conf->n_peers, sizeof(key), compare_peers);
}

/* ---- peers ---- */

void tccl_peer_find(const struct tccl_conf *conf, const char *node, const char **host,
                    uint16_t *port)
{
    const struct tccl_peer *peer = tccl_conf_peer(conf, node);
    *host = peer ? peer->host : node;
    *port = peer ? peer->port : conf->port;
}

const struct tccl_peer *tccl_peer_down(const struct tccl_conf *conf, char *const *nodes, int count,
                                       int *more)
{
    const struct tccl_peer *first = NULL;
    *more = 0;
    for (int i = 0; conf->n_down && i < count; i++) {
        const struct tccl_peer *peer = tccl_conf_peer(conf, nodes[i]);
        if (!peer || !peer->down)
            continue;
        *more += first != NULL;
        first = first ? first : peer;
    }
    return first;
}
