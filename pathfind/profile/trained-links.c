/* trained-links.c: links as they were trained, in memory and in profile.json. */
#include "profile/cache.h"

#include <string.h>

void tccl_trained_add(struct tccl_trained_links *links, const char *busid, int lanes, double gts)
{
    if (links->n == TCCL_TRAINED_LINKS || strlen(busid) >= TCCL_BUSID || lanes < 1 || lanes > 32 ||
        !(gts >= 2.5 && gts <= 256))
        return;
    int at = 0;
    while (at < links->n && strcmp(links->list[at].busid, busid) != 0)
        at++;
    struct tccl_trained_link *link = &links->list[at];
    if (at < links->n && link->lanes * link->gts >= lanes * gts)
        return;
    links->n += at == links->n;
    *link = (struct tccl_trained_link){.lanes = lanes, .gts = gts};
    strcpy(link->busid, busid);
}

const struct tccl_trained_link *tccl_trained_find(const struct tccl_trained_links *links,
                                                  const char *busid)
{
    for (int i = 0; i < links->n; i++)
        if (strcmp(links->list[i].busid, busid) == 0)
            return &links->list[i];
    return NULL;
}

json_t *tccl_trained_to_json(const struct tccl_trained_links *links)
{
    json_t *json = json_object();
    for (int i = 0; json && i < links->n; i++)
        json_object_set_new(json, links->list[i].busid,
                            json_pack("[i, f]", links->list[i].lanes, links->list[i].gts));
    return json;
}

void tccl_trained_from_json(const json_t *json, struct tccl_trained_links *links)
{
    const char *busid;
    json_t *link;
    *links = (struct tccl_trained_links){0};
    json_object_foreach((json_t *)json, busid, link)
    {
        const json_int_t lanes = json_integer_value(json_array_get(link, 0));
        tccl_trained_add(links, busid, lanes > 0 && lanes <= 32 ? (int)lanes : 0,
                         json_number_value(json_array_get(link, 1)));
    }
}
