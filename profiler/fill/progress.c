/* progress.c: the line that shows the progress of a run. It is drawn within the width of the
 * terminal and never goes back, whatever the estimate does. */
#include "fill/fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/numberset.h"

enum { COUNT_TEXT = 32, TEXT = 160, MAX_BAR = 20, MIN_BAR = 5, NARROW = 20, WIDE = 400 };

void tccl_progress_begin(struct tccl_progress_line *line, FILE *out, const char *machine)
{
    *line = (struct tccl_progress_line){.out = out, .machine = machine, .begun = tccl_seconds()};
    line->terminal = out && isatty(fileno(out));
}

/* "15,220"; brief: "15k". */
static void format_count(long count, bool brief, char text[static COUNT_TEXT])
{
    char digits[COUNT_TEXT];
    int n = snprintf(digits, sizeof(digits), "%ld", count), at = 0;
    if (brief) {
        snprintf(text, COUNT_TEXT, "%ld%s",
                 count / (count < 10000      ? 1
                          : count < 10000000 ? 1000
                                             : 1000000),
                 count < 10000      ? ""
                 : count < 10000000 ? "k"
                                    : "M");
        return;
    }
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
}

/* Seconds left: of the work as it has gone since it began, or of the time that there is where that
 * ends it. Negative: nothing to judge by, as a budget says nothing of what is likely.
 */
static double seconds_left(struct tccl_progress_line *line,
                           const struct tccl_fill_progress *progress, double elapsed)
{
    if (progress->fraction <= 0)
        line->prepared = elapsed;
    double worked = elapsed - line->prepared;
    if (worked < 0.5 || progress->fraction < (worked < 10 ? 0.01 : 0.0001))
        return -1;
    double left = worked * (1 - progress->fraction) / progress->fraction;
    return progress->left >= 0 ? fmin(left, progress->left) : left;
}

/* ", 1:05 left" */
static void format_left(double left, char *text, size_t size)
{
    text[0] = '\0';
    if (left < 0)
        return;
    long seconds = (long)(fmin(left, 359999) + 0.5);
    if (seconds < 3600)
        snprintf(text, size, ", %ld:%02ld left", seconds / 60, seconds % 60);
    else
        snprintf(text, size, ", %ld:%02ld:%02ld left", seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
}

/* Of what this run will do: of its time where that ends it, else of the work. */
static int percent(struct tccl_progress_line *line, const struct tccl_fill_progress *progress,
                   double elapsed, double left)
{
    bool by_time = progress->left >= 0 && left >= progress->left && elapsed > 0;
    double done = by_time ? elapsed / (elapsed + left) : progress->fraction;
    int value = (int)(fmin(done, 1) * 100);
    line->percent = value > line->percent ? value : line->percent;
    return line->percent;
}

/* What stands behind the bar. */
static void format_numbers(const struct tccl_fill_progress *progress, double elapsed, double left,
                           bool brief, char text[static TEXT])
{
    char place[64] = "", rest[32], failed[48] = "";
    char measured[COUNT_TEXT], shared[COUNT_TEXT], pruned[COUNT_TEXT];
    double rate = elapsed > 0.2 ? (double)progress->measured / elapsed : 0;
    size_t size = sizeof(place);
    if (progress->phase == TCCL_FILL_MATRIX)
        snprintf(place, size, "matrix %d/%d", progress->step, progress->steps);
    else if (progress->phase == TCCL_FILL_SYMMETRY)
        snprintf(place, size, "symmetry");
    else if (progress->phase == TCCL_FILL_PAIRS)
        snprintf(place, size, "pairs");
    else if (progress->phase == TCCL_FILL_TOGETHER)
        snprintf(place, size, "beside %d/%d", progress->together, progress->together_total);
    else
        tccl_numberset_format(progress->gpus, place, size);
    format_left(left, rest, sizeof(rest));
    format_count(progress->measured, brief, measured);
    format_count(progress->shared, brief, shared);
    format_count(progress->pruned, brief, pruned);
    if (progress->failed > 0)
        snprintf(failed, sizeof(failed), ", %ld failed", progress->failed);
    snprintf(text, TEXT,
             brief ? "%.16s: %s (%.*f/s), %s sym, %s pruned%s%s"
                   : "%s: %s measured (%.*f/s), %s by symmetry, %s pruned%s%s",
             place, measured, rate < 100, rate, shared, pruned, failed, rest);
}

/* With the machine's name, without it, or in short words: what fits. */
static void format_drawn(const struct tccl_progress_line *line, int percent_,
                         const char *const numbers[2], int width,
                         char text[static TCCL_PROGRESS_TEXT])
{
    char name[TCCL_NAME + 2] = "", bar[MAX_BAR];
    int room = 0;
    for (int level = 0; level < 3 && room < MIN_BAR; level++) {
        snprintf(name, sizeof(name), "%s%s", level == 0 ? line->machine : "",
                 level == 0 ? " " : "");
        room = width - 14 - (int)strlen(name) - (int)strlen(numbers[level == 2]);
        if (room < MIN_BAR && level < 2)
            continue;
        room = room < MIN_BAR ? MIN_BAR : room > MAX_BAR ? MAX_BAR : room;
        memset(bar, ' ', (size_t)room);
        memset(bar, '#', (size_t)(percent_ * room / 100));
        snprintf(text, TCCL_PROGRESS_TEXT, "tccl: %s[%.*s] %d %% %s", name, room, bar, percent_,
                 numbers[level == 2]);
        break;
    }
    if ((int)strlen(text) > width)
        text[width] = '\0';
}

void tccl_progress_format(struct tccl_progress_line *line,
                          const struct tccl_fill_progress *progress, double elapsed, int width,
                          char text[static TCCL_PROGRESS_TEXT])
{
    char wordy[TEXT], brief[TEXT];
    double left = seconds_left(line, progress, elapsed);
    int done = percent(line, progress, elapsed, left);
    format_numbers(progress, elapsed, left, false, wordy);
    format_numbers(progress, elapsed, left, true, brief);
    if (line->terminal)
        format_drawn(line, done, (const char *const[]){wordy, brief}, width, text);
    else
        snprintf(text, TCCL_PROGRESS_TEXT, "tccl: %s: %d %%, %d of %d GPU sets done, now %s",
                 line->machine, done, progress->done, progress->total, wordy);
}

/* Columns of the terminal, one of which stays free, since the cursor needs it. */
static int columns(const struct tccl_progress_line *line)
{
    const char *said = getenv("COLUMNS");
    struct winsize size;
    int width = said ? atoi(said) : 0;
    if (width <= 0 && ioctl(fileno(line->out), TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = 80;
    return (width < NARROW ? NARROW : width > WIDE ? WIDE : width) - 1;
}

void tccl_progress_show(struct tccl_progress_line *line, const struct tccl_fill_progress *progress)
{
    double time = tccl_seconds();
    char text[TCCL_PROGRESS_TEXT];
    double pause = line->terminal ? 0.1 : time - line->begun < 10 ? 1 : 10;
    if (!line->out || (line->shown > 0 && time - line->shown < pause))
        return;
    line->shown = time;
    line->drawn = true;
    tccl_progress_format(line, progress, time - line->begun, line->terminal ? columns(line) : 0,
                         text);
    fprintf(line->out, "%s%s%s", line->terminal ? "\r" : "", text,
            line->terminal ? "\033[K" : "\n");
    fflush(line->out);
}

void tccl_progress_end(struct tccl_progress_line *line, const struct tccl_fill_progress *progress,
                       int rc, const char *note)
{
    char measured[COUNT_TEXT], shared[COUNT_TEXT], pruned[COUNT_TEXT], noisy[48] = "";
    char sets[64] = "";
    const char *ending = rc == TCCL_FILL_STOPPED ? "; interrupted: run it again to go on"
                         : rc == TCCL_FILL_TIME  ? "; the time is over: run it again to go on"
                                                 : "";
    if (!line->out)
        return;
    if (line->drawn && line->terminal)
        fputs("\r\033[K", line->out);
    if (rc < 0)
        return;
    format_count(progress->measured, false, measured);
    format_count(progress->shared, false, shared);
    format_count(progress->pruned, false, pruned);
    if (progress->noisy > 0)
        snprintf(noisy, sizeof(noisy), " (%ld noisy)", progress->noisy);
    if (progress->sets > 0)
        snprintf(sets, sizeof(sets), " (%ld for several rings at once)", progress->sets);
    fprintf(line->out,
            "tccl: %s: %d of %d GPU sets done (%d before): %d proven, %d partial; %s loads "
            "measured%s%s, %ld before, %s by symmetry, %s pruned, %.1f s%s%s\n",
            line->machine, progress->done, progress->total, progress->kept, progress->proven,
            progress->partial, measured, noisy, sets, progress->known, shared, pruned,
            tccl_seconds() - line->begun, note, ending);
    if (progress->failed > 0) /* so that somebody looks what is wrong */
        fprintf(line->out,
                "tccl: %ld load%s can't be measured, the last %s: another run tries them again\n",
                progress->failed, progress->failed == 1 ? "" : "s", progress->why.text);
    if (progress->faster > 0)
        fprintf(line->out,
                "tccl: warning: %s (%d such load%s): a further transfer made these loads faster, "
                "so they bound no chains: one that was not measured may be faster: see "
                "tccl-profile report\n",
                progress->most.text, progress->faster, progress->faster == 1 ? "" : "s");
}
