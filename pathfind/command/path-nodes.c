/* path-nodes.c: the nodes given on the command line, in order. */
#include "command/path.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/numberset.h"
#include "ring/reach.h"

/* One --node, taken apart. */
struct node_text {
    char *path;
    int count;
    const char *gpus; /* NULL if not given */
};

/* "FILE", "FILE=COUNT" or "FILE=COUNT:GPUS"; what is behind the last "=" counts only if it begins
 * with a digit. path is the caller's. */
static int split_node(const char *text, struct node_text *node, struct tccl_error *err)
{
    const char *mark = strrchr(text, '=');
    *node = (struct node_text){.count = 1};
    if (!mark || !isdigit((unsigned char)mark[1])) {
        node->path = strdup(text);
        return node->path ? 0 : tccl_fail(err, "out of memory");
    }
    char *end;
    long count = strtol(mark + 1, &end, 10);
    if (count < 1 || count > MAX_COUNT || (*end && *end != ':') || mark == text)
        return tccl_fail(err,
                         "--node %.200s: give FILE=COUNT or FILE=COUNT:GPUS, COUNT from 1 to %d",
                         text, MAX_COUNT);
    node->count = count;
    node->gpus = *end ? end + 1 : NULL;
    node->path = strndup(text, mark - text);
    return node->path ? 0 : tccl_fail(err, "out of memory");
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Makes room for one entry more. */
static int grow(void **array, int count, size_t size, struct tccl_error *err)
{
    void *more = realloc(*array, (count + 1) * size);
    if (!more)
        return tccl_fail(err, "out of memory");
    *array = more;
    return 0;
}

static struct source *find_source(struct nodes *nodes, const char *path, struct tccl_error *err)
{
    for (int i = 0; i < nodes->n_sources; i++)
        if (same_file(nodes->sources[i]->path, path))
            return nodes->sources[i];
    if (grow((void **)&nodes->sources, nodes->n_sources, sizeof(*nodes->sources), err) != 0)
        return NULL;
    struct source *source = source_open(path, err);
    if (source)
        nodes->sources[nodes->n_sources++] = source;
    return source;
}

static int find_gpus(const struct source *source, const char *text, struct group *group,
                     struct tccl_error *err)
{
    struct tccl_error why = {""};
    group->gpus = (UINT32_C(1) << source->machine.n_gpus) - 1;
    group->gpus_given = text != NULL;
    if (text && tccl_numberset_parse(text, source->machine.n_gpus, &group->gpus, &why) != 0)
        return tccl_fail(err, "--gpus %.60s: %s (%s has %d GPUs)", text, why.text, source->path,
                         source->machine.n_gpus);
    return group->gpus ? 0 : tccl_fail(err, "%s: no GPU", source->path);
}

static int add_group(struct nodes *nodes, const char *path, int count, const char *gpus,
                     struct tccl_error *err)
{
    struct group group = {.count = count, .source = find_source(nodes, path, err)};
    if (!group.source || find_gpus(group.source, gpus, &group, err) != 0)
        return -1;
    if (nodes->total > MAX_NODES - count)
        return tccl_fail(err, "more than %d nodes in all", MAX_NODES);
    if (grow((void **)&nodes->groups, nodes->n_groups, sizeof(group), err) != 0)
        return -1;
    nodes->groups[nodes->n_groups++] = group;
    nodes->total += count;
    return 0;
}

/* --model or --profile: adds a node, unless a --node names the same file. */
static int add_first(const struct options *options, struct nodes *nodes, struct tccl_error *err)
{
    const char *path = options->model ? options->model : options->profile;
    if (source_check(path, options->profile != NULL, err) < 0)
        return -1;
    for (int i = 0; i < options->n_nodes; i++) {
        struct node_text node;
        if (split_node(options->nodes[i], &node, err) != 0)
            return -1;
        bool same = same_file(node.path, path);
        free(node.path);
        if (same)
            return 0;
    }
    return add_group(nodes, path, 1, options->gpus, err);
}

int nodes_open(const struct options *options, struct nodes *nodes, struct tccl_error *err)
{
    *nodes = (struct nodes){.given = options->ring || options->rings > 1};
    if ((options->model || options->profile) && add_first(options, nodes, err) != 0)
        return -1;
    for (int i = 0; i < options->n_nodes; i++) {
        struct node_text node;
        if (split_node(options->nodes[i], &node, err) != 0)
            return -1;
        int rc =
            add_group(nodes, node.path, node.count, node.gpus ? node.gpus : options->gpus, err);
        free(node.path);
        if (rc < 0)
            return -1;
    }
    return 0;
}

void nodes_clear(struct nodes *nodes)
{
    for (int i = 0; i < nodes->n_classes; i++) {
        tccl_table_free(nodes->classes[i]->table);
        tccl_node_class_free(nodes->classes[i]->class);
        free(nodes->classes[i]);
    }
    for (int i = 0; i < nodes->n_sources; i++)
        source_free(nodes->sources[i]);
    free(nodes->classes);
    free(nodes->sources);
    free(nodes->groups);
    *nodes = (struct nodes){.n_sources = 0};
}

int node_class_refresh(struct node_class *class, struct tccl_error *err)
{
    tccl_node_class_free(class->class);
    if (class->source->model)
        tccl_table_ends(class->table, class->source->model);
    class->class = tccl_node_class_from_table(class->table, &class->source->machine,
                                              class->as_job ? TCCL_VIEW_JOB : TCCL_VIEW_ALL);
    return class->class ? 0 : tccl_fail(err, "%s: out of memory", class->source->path);
}

struct node_class *nodes_class(struct nodes *nodes, struct source *source, uint32_t gpus,
                               struct tccl_error *err)
{
    for (int i = 0; i < nodes->n_classes; i++)
        if (nodes->classes[i]->source == source && nodes->classes[i]->gpus == gpus)
            return nodes->classes[i];
    if (grow((void **)&nodes->classes, nodes->n_classes, sizeof(*nodes->classes), err) != 0)
        return NULL;
    struct node_class *class = calloc(1, sizeof(*class));
    if (!class)
        return tccl_fail_null(err, "out of memory");
    nodes->classes[nodes->n_classes++] = class;
    class->source = source;
    class->gpus = gpus;
    class->as_job = source->profile && !nodes->given;
    class->table = tccl_table_new(&source->machine, gpus);
    if (!class->table)
        return tccl_fail_null(err, "%s: out of memory", source->path);
    return node_class_refresh(class, err) != 0 ? NULL : class;
}

const struct group *nodes_group(const struct nodes *nodes, int i)
{
    int group = 0;
    while (i >= nodes->groups[group].count)
        i -= nodes->groups[group++].count;
    return &nodes->groups[group];
}
