/* way.c: a chain as a list of devices and arrows that wraps. */
#include "draw/way.h"

#include "draw/svg.h"

static void put_gpu(const struct tccl_named_chain *chain, int i, FILE *out)
{
    char bus[TCCL_BUS_TEXT];
    if (chain->numbers) {
        fprintf(out, "<li class=\"gpu\">GPU&#160;%d</li>", (int)chain->gpus[i]);
        return;
    }
    tccl_bus_format(chain->gpus[i], bus);
    fprintf(out, "<li class=\"gpu\">%s</li>", bus);
}

static void put_nic(const char *name, FILE *out)
{
    fputs("<li class=\"nic\">", out);
    tccl_svg_escape(name, out);
    fputs("</li>", out);
}

/* "writes 12.60", "memory 1 11.45". */
static void put_arrow(struct tccl_text_arrow arrow, double gbps, bool slow, FILE *out)
{
    fprintf(out, "<li class=\"%s\">", slow ? "edge slow" : "edge");
    if (arrow.kind == 'm')
        fprintf(out, "memory&#160;%d", arrow.memory);
    else
        fputs(arrow.kind == 'w' ? "write" : arrow.kind == 'r' ? "read" : "direct", out);
    if (gbps > 0)
        fprintf(out, " <b>%.2f</b>", gbps);
    fputs(" &#8594;</li>", out);
}

void tccl_way_write(const struct tccl_named_chain *chain, const double *gbps, const bool *slow,
                    FILE *out)
{
    int n = tccl_named_arrows(chain);
    fputs("<ol class=\"way\">\n", out);
    if (!chain->closed)
        put_nic(chain->entry.nic, out);
    for (int i = 0; i < n; i++) {
        int gpu = chain->closed ? i : i - 1;
        if (gpu >= 0)
            put_gpu(chain, gpu, out);
        put_arrow(tccl_named_arrow(chain, i), gbps ? gbps[i] : 0, slow && slow[i], out);
        fputc('\n', out);
    }
    if (chain->closed)
        put_gpu(chain, 0, out);
    else
        put_nic(chain->exit.nic, out);
    fputs("\n</ol>\n", out);
}
