/* serve.c: tcclacct serve: rings of jobs, what they gained, and congested sets as a page for a
 * browser. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acct/acct-commands.h"
#include "acct/serve-data.h"
#include "acct/serve-site.h"
#include "base/cleanup.h"
#include "client/conf.h"

static const char help[] =
    "Usage: tcclacct serve [OPTION]…\n"
    "Shows rings of jobs, what they gained, and congested sets in a browser: what you\n"
    "may see, to you alone. Ctrl-C ends it.\n"
    "\n"
    "  --socket=PATH  listen on this unix socket, for its owner only (default:\n"
    "                 tcclacct.sock in $XDG_RUNTIME_DIR, or in /tmp/tcclacct-UID)\n"
    "  --port=N       listen on TCP port N of 127.0.0.1 and ::1; 0: any that is free\n"
    "  --config=FILE  instead of $TCCL_CONF or " TCCL_SYSCONFDIR "/slurm/tccl.conf\n"
    "  --node=NAME    this node's Slurm name, where it isn't the host's\n"
    "  -h, --help\n"
    "From elsewhere: ssh -L 8080:PATH THIS-HOST, and open http://localhost:8080/\n"
    "See tcclacct(1).\n";

enum { OPTION_SOCKET = 256, OPTION_PORT, OPTION_CONFIG, OPTION_NODE };

static const struct option long_options[] = {
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"port", required_argument, NULL, OPTION_PORT},
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"node", required_argument, NULL, OPTION_NODE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
    const char *socket, *port, *config, *node;
    bool help;
};

static int parse_options(struct request *request, int argc, char **argv, struct tccl_error *err)
{
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
        switch (option) {
        case OPTION_SOCKET:
            request->socket = optarg;
            break;
        case OPTION_PORT:
            request->port = optarg;
            break;
        case OPTION_CONFIG:
            request->config = optarg;
            break;
        case OPTION_NODE:
            request->node = optarg;
            break;
        case 'h':
            request->help = true;
            return 0;
        default:
            return tccl_fail(err,
                             "serve: %.60s: no such option, or its value is missing; see "
                             "tcclacct serve --help",
                             argv[optind - 1]);
        }
    if (optind < argc)
        return tccl_fail(err, "serve: %.60s: what is that? see tcclacct serve --help",
                         argv[optind]);
    if (request->socket && request->port)
        return tccl_fail(err, "serve: --socket and --port: choose one of them");
    return 0;
}

static int parse_port(const char *text, uint16_t *port, struct tccl_error *err)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number > UINT16_MAX)
        return tccl_fail(err, "serve: --port=%.60s: a number from 0 to 65535 is expected", text);
    *port = (uint16_t)number;
    return 0;
}

/* A folder that only we can enter; nobody else may have made it in our place. */
static int make_private(const char *folder, struct tccl_error *err)
{
    struct stat about;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return tccl_fail(err, "serve: %s: %s; give --socket=PATH", folder, strerror(errno));
    if (lstat(folder, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid() ||
        (about.st_mode & 077) != 0)
        return tccl_fail(err, "serve: %s is not a folder of yours alone; give --socket=PATH",
                         folder);
    return 0;
}

static int default_socket(char *path, size_t size, struct tccl_error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char folder[64];
    struct stat about;
    if (runtime && *runtime == '/' && stat(runtime, &about) == 0 && about.st_uid == geteuid()) {
        snprintf(path, size, "%s/tcclacct.sock", runtime);
        return 0;
    }
    snprintf(folder, sizeof(folder), "/tmp/tcclacct-%u", geteuid());
    snprintf(path, size, "%s/tcclacct.sock", folder);
    return make_private(folder, err);
}

static void say_socket(const char *socket)
{
    char host[256] = "HOST";
    cleanup_free char *path = realpath(socket, NULL);
    gethostname(host, sizeof(host) - 1);
    printf("tcclacct: serving %s\n"
           "tcclacct: from your own machine: ssh -L 8080:%s %s, then open http://localhost:8080/\n",
           socket, path ? path : socket, host);
}

static void ready(const struct serve_place *place, const char *url)
{
    if (url)
        printf("tcclacct: open %s\n"
               "tcclacct: whoever knows this address sees what you see; Ctrl-C ends it\n",
               url);
    else
        say_socket(place->socket);
    fflush(stdout);
}

/* Returns 0, or -1 with err. */
static int serve(const struct request *request, struct tccl_error *err)
{
    struct tccl_conf conf;
    char path[PATH_MAX];
    struct serve_place place = {.work = serve_data, .context = &conf, .socket = request->socket};
    if (request->port && parse_port(request->port, &place.port, err) != 0)
        return -1;
    if (fcntl(STDOUT_FILENO, F_GETFD) < 0) /* sockets would take its place, too */
        return tccl_fail(err, "serve: standard output is closed: nowhere to say the address");
    if (!request->port && !request->socket) {
        if (default_socket(path, sizeof(path), err) != 0)
            return -1;
        place.socket = path;
    }
    if (tccl_conf_read(tccl_conf_tool_path(request->config), request->node, &conf, err) != 0)
        return -1;
    int rc = serve_site_run(&place, ready, err);
    tccl_conf_clear(&conf);
    return rc;
}

int serve_main(int argc, char **argv)
{
    struct tccl_error err = {0};
    struct request request = {0};
    int rc = parse_options(&request, argc, argv, &err);
    if (rc == 0 && request.help)
        fputs(help, stdout);
    else if (rc == 0)
        rc = serve(&request, &err);
    if (rc != 0)
        fprintf(stderr, "tccl: %s\n", err.text);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
