/* SPDX-License-Identifier: MIT */
/* Goal: links go where they are put and leave without a trace.
 * Method: short lists, read forward and backward. */
#include <string.h>
#include "core/core.h"
#include "group.h"

typedef struct item {
    char name;
    errand__link link;
} item;

static void
assert_list(const errand__link *head, const char *names)
{
    size_t count = strlen(names);
    const errand__link *link = head;
    for (size_t i = 0; i < count; i++) {
        link = link->next;
        assert_ptr_not_equal(link, head);
        assert_int_equal(ERRAND__CONTAINER(link, item, link)->name, names[i]);
    }
    assert_ptr_equal(link->next, head);
    for (size_t i = count; i > 0; i--) {
        assert_int_equal(ERRAND__CONTAINER(link, item, link)->name, names[i - 1]);
        link = link->previous;
    }
    assert_ptr_equal(link, head);
    assert_int_equal(errand__list_empty(head), count == 0);
}

static void
append_and_prepend_keep_their_order(void **state)
{
    (void)state;
    errand__link head;
    item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    errand__list_init(&head);
    assert_list(&head, "");
    errand__list_append(&head, &b.link);
    assert_list(&head, "b");
    errand__list_append(&head, &c.link);
    errand__list_prepend(&head, &a.link);
    assert_list(&head, "abc");
}

static void
unlinking_leaves_the_others_and_can_be_repeated(void **state)
{
    (void)state;
    errand__link head;
    item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'}, never = {.name = 'n'};
    errand__list_init(&head);
    errand__list_append(&head, &a.link);
    errand__list_append(&head, &b.link);
    errand__list_append(&head, &c.link);
    assert_true(errand__list_linked(&b.link));
    errand__list_unlink(&b.link);
    assert_false(errand__list_linked(&b.link));
    assert_list(&head, "ac");
    errand__list_unlink(&b.link);
    errand__list_unlink(&never.link);
    assert_list(&head, "ac");
    errand__list_unlink(&a.link);
    errand__list_unlink(&c.link);
    assert_list(&head, "");
    errand__list_prepend(&head, &b.link);
    assert_list(&head, "b");
}

static bool
before(const errand__link *a, const errand__link *b)
{
    return (ERRAND__CONTAINER(a, item, link)->name | 0x20) <
           (ERRAND__CONTAINER(b, item, link)->name | 0x20);
}

static void
sorting_keeps_every_link_and_the_order_of_equal_ones(void **state)
{
    /* Letters are equal in both cases. */
    static const char *const texts[][2] = {
        {"", ""},
        {"a", "a"},
        {"ba", "ab"},
        {"aAaA", "aAaA"},
        {"cBAab", "AaBbc"},
        {"zyxwvutsrqponmlkjihgfedcbaA", "aAbcdefghijklmnopqrstuvwxyz"},
        {"bABaBAb", "AaAbBBb"}};
    item items[32];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        errand__link head;

        errand__list_init(&head);
        for (size_t k = 0; k < strlen(texts[i][0]); k++) {
            items[k].name = texts[i][0][k];
            errand__list_append(&head, &items[k].link);
        }
        errand__list_sort(&head, before);
        assert_list(&head, texts[i][1]);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_and_prepend_keep_their_order),
        cmocka_unit_test(sorting_keeps_every_link_and_the_order_of_equal_ones),
        cmocka_unit_test(unlinking_leaves_the_others_and_can_be_repeated),
    };
    return test_group("core/list", tests, NULL, NULL);
}
