/* test-fair-queue.c: users take queue, whatever one of them asks for. */
#include "check.h"
#include "tccld/journal/journal-internal.h"

enum { MOST = 40, EACH = 16, USERS = 5, ROUNDS = 20000 };

static char names[] = "abcdefghijklmnopqrstuvwxyz";

static void add(struct fair_queue *queue, uid_t user, char name)
{
    CHECK_INT(fair_queue_add(queue, user, 0, &names[name - 'a']), 0);
}

static void check_order(struct fair_queue *queue, const char *expected)
{
    char order[sizeof(names)] = "";
    const char *one;
    for (size_t i = 0; i < sizeof(order) - 1 && (one = fair_queue_take(queue)); i++)
        order[i] = *one;
    CHECK_STR(order, expected);
}

TEST(order)
{
    struct fair_queue *queue = fair_queue_new(MOST, EACH);
    check_order(queue, "");
    for (char name = 'a'; name <= 'f'; name++)
        add(queue, 7, name);
    check_order(queue, "abcdef");
    for (char name = 'a'; name <= 'e'; name++)
        add(queue, 7, name);
    add(queue, 8, 'm');
    add(queue, 8, 'n');
    add(queue, 0, 'x');
    check_order(queue, "amxbncde");
    fair_queue_free(queue);
}

TEST(bounds)
{
    struct fair_queue *queue = fair_queue_new(MOST, EACH);
    for (int i = 0; i < EACH; i++)
        add(queue, 1, 'a');
    CHECK_INT(fair_queue_add(queue, 1, 0, names), -1);
    CHECK_INT(fair_queue_add(queue, 1, 1, names), 0);
    for (int i = 0; i < EACH; i++)
        add(queue, 2, 'a');
    CHECK_INT(fair_queue_add(queue, 2, 0, names), -1);
    for (int i = 2 * EACH + 1; i < MOST; i++)
        CHECK_INT(fair_queue_add(queue, 0, 1, names), 0);
    CHECK_INT(fair_queue_add(queue, 3, 0, names), -1);
    CHECK_INT(fair_queue_add(queue, 0, 1, names), 0);
    while (fair_queue_take(queue))
        ;
    fair_queue_free(queue);
}

/* While the first user always asks for as much as there is room for, nobody waits for more than two
 * turns of each of the others. */
TEST(fair)
{
    struct fair_queue *queue = fair_queue_new(MOST, EACH);
    int waits[USERS], since[USERS] = {0}, id[USERS];
    for (int i = 0; i < USERS; i++)
        waits[i] = 0, id[i] = i;
    for (int round = 0; round < ROUNDS; round++) {
        while (fair_queue_add(queue, 0, 0, &id[0]) == 0)
            ;
        int user = 1 + (int)(lrand48() % (USERS - 1));
        if (!waits[user] && fair_queue_add(queue, (uid_t)user, 0, &id[user]) == 0)
            waits[user] = 1, since[user] = round;
        const int *next = fair_queue_take(queue);
        CHECK(next && (*next == 0 || round - since[*next] <= 2 * USERS));
        if (next)
            waits[*next] = 0;
    }
    for (int i = 1; i < USERS; i++)
        CHECK(!waits[i] || ROUNDS - since[i] <= 2 * USERS);
    while (fair_queue_take(queue))
        ;
    fair_queue_free(queue);
}
