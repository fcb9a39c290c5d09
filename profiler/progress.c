#include "progress.h"

#include <time.h>
#include <unistd.h>

#include "numberset.h"

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void tccl_progress_begin(struct tccl_progress_line *line, FILE *out, const char *machine)
{
    *line = (struct tccl_progress_line){.out = out, .machine = machine, .begun = now()};
    line->terminal = out && isatty(fileno(out));
}

static bool due(const struct tccl_progress_line *line, double time)
{
    double pause = line->terminal ? 0.1 : 1;

    return line->out && (line->shown == 0 || time - line->shown >= pause);
}

/* "1:05 left"; nothing is said before there is something to judge by. */
static void format_left(double elapsed, double fraction, char *text, size_t size)
{
    text[0] = '\0';
    if (fraction < 0.01 || elapsed < 0.5)
        return;
    double left = elapsed * (1 - fraction) / fraction;
    if (left > 359999)
        left = 359999;
    long seconds = (long)(left + 0.5);
    if (seconds < 3600)
        snprintf(text, size, ", %ld:%02ld left", seconds / 60, seconds % 60);
    else
        snprintf(text, size, ", %ld:%02ld:%02ld left", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
}

void tccl_progress_show(struct tccl_progress_line *line, const struct tccl_fill_progress *progress)
{
    double time = now();
    char gpus[64] = "", left[32];

    if (!due(line, time))
        return;
    line->shown = time;
    line->drawn = true;
    tccl_numberset_format(progress->gpus, gpus, sizeof(gpus));
    format_left(time - line->begun, progress->fraction, left, sizeof(left));
    fprintf(line->out,
            "%stccl: %s: %d of %d GPU sets done, now %s; %ld sets measured, %ld shared%s%s",
            line->terminal ? "\r" : "", line->machine, progress->done, progress->total, gpus,
            progress->measured, progress->shared, left, line->terminal ? "\033[K" : "\n");
    fflush(line->out);
}

void tccl_progress_end(struct tccl_progress_line *line, const struct tccl_fill_progress *progress,
                       bool interrupted)
{
    if (!line->out)
        return;
    fprintf(line->out,
            "%stccl: %s: %d of %d GPU sets done (%d before), %ld sets measured (%ld before), "
            "%ld shared, %.1f s%s\n",
            line->drawn && line->terminal ? "\r\033[K" : "", line->machine, progress->done,
            progress->total, progress->kept, progress->measured, progress->known, progress->shared,
            now() - line->begun, interrupted ? "; interrupted: run it again to go on" : "");
}
