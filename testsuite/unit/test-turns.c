/* test-turns.c: users take turns, whatever one of them asks for. */
#include "check.h"
#include "tccld/journal/fair-queue.h"

enum { MOST = 40, EACH = 16, USERS = 5, ROUNDS = 20000 };

static char names[] = "abcdefghijklmnopqrstuvwxyz";

static void add(struct turns *turns, uid_t user, char name)
{
    CHECK_INT(turns_add(turns, user, 0, &names[name - 'a']), 0);
}

static void check_order(struct turns *turns, const char *expected)
{
    char order[sizeof(names)] = "";
    const char *one;
    for (size_t i = 0; i < sizeof(order) - 1 && (one = turns_take(turns)); i++)
        order[i] = *one;
    CHECK_STR(order, expected);
}

static void test_order(void)
{
    struct turns *turns = turns_new(MOST, EACH);
    check_order(turns, "");
    for (char name = 'a'; name <= 'f'; name++)
        add(turns, 7, name);
    check_order(turns, "abcdef");
    for (char name = 'a'; name <= 'e'; name++)
        add(turns, 7, name);
    add(turns, 8, 'm');
    add(turns, 8, 'n');
    add(turns, 0, 'x');
    check_order(turns, "amxbncde");
    turns_free(turns);
}

static void test_bounds(void)
{
    struct turns *turns = turns_new(MOST, EACH);
    for (int i = 0; i < EACH; i++)
        add(turns, 1, 'a');
    CHECK_INT(turns_add(turns, 1, 0, names), -1);
    CHECK_INT(turns_add(turns, 1, 1, names), 0);
    for (int i = 0; i < EACH; i++)
        add(turns, 2, 'a');
    CHECK_INT(turns_add(turns, 2, 0, names), -1);
    for (int i = 2 * EACH + 1; i < MOST; i++)
        CHECK_INT(turns_add(turns, 0, 1, names), 0);
    CHECK_INT(turns_add(turns, 3, 0, names), -1);
    CHECK_INT(turns_add(turns, 0, 1, names), -1);
    while (turns_take(turns))
        ;
    turns_free(turns);
}

/* While the first user always asks for as much as there is room for, nobody waits for more than two
 * turns of each of the others. */
static void test_fair(void)
{
    struct turns *turns = turns_new(MOST, EACH);
    int waits[USERS], since[USERS] = {0}, id[USERS];
    srand48((long)check_seed());
    for (int i = 0; i < USERS; i++)
        waits[i] = 0, id[i] = i;
    for (int round = 0; round < ROUNDS; round++) {
        while (turns_add(turns, 0, 0, &id[0]) == 0)
            ;
        int user = 1 + (int)(lrand48() % (USERS - 1));
        if (!waits[user] && turns_add(turns, (uid_t)user, 0, &id[user]) == 0)
            waits[user] = 1, since[user] = round;
        const int *next = turns_take(turns);
        CHECK(next && (*next == 0 || round - since[*next] <= 2 * USERS));
        if (next)
            waits[*next] = 0;
    }
    for (int i = 1; i < USERS; i++)
        CHECK(!waits[i] || ROUNDS - since[i] <= 2 * USERS);
    while (turns_take(turns))
        ;
    turns_free(turns);
}

int main(void)
{
    test_order();
    test_bounds();
    test_fair();
    return check_result();
}
