/* SPDX-License-Identifier: MIT */
/* domain: what a number in a spec means, while any operation names it.
 *
 * Design notes.  A table of buckets that doubles when it holds as many domains as buckets; records
 * of domains that nobody names any more are kept for the next ones, so that nothing is allocated
 * once warm. */
#include "registrar/registrar.h"

#define ROOM_LEAST 16

static size_t
bucket_of(uint64_t number, size_t room)
{
    uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(mixed >> 32) & (room - 1);
}

static bool
grow(errand__registrar *registrar)
{
    size_t room = registrar->domain_room == 0 ? ROOM_LEAST : registrar->domain_room * 2;
    errand__domain **buckets =
        errand__mem_alloc(registrar->allocator, room * sizeof(errand__domain *));

    if (buckets == NULL)
        return false;
    for (size_t i = 0; i < room; i++)
        buckets[i] = NULL;
    for (size_t i = 0; i < registrar->domain_room; i++) {
        while (registrar->domains[i] != NULL) {
            errand__domain *domain = registrar->domains[i];
            size_t at = bucket_of(domain->number, room);

            registrar->domains[i] = domain->next;
            domain->next = buckets[at];
            buckets[at] = domain;
        }
    }
    errand__mem_free(registrar->allocator, registrar->domains,
                     registrar->domain_room * sizeof(errand__domain *));
    registrar->domains = buckets;
    registrar->domain_room = room;
    return true;
}

errand__domain *
errand__domain_hold(errand__registrar *registrar, uint64_t number)
{
    errand__domain *domain = NULL;
    size_t at;

    if (registrar->domain_room != 0) {
        at = bucket_of(number, registrar->domain_room);
        for (domain = registrar->domains[at]; domain != NULL; domain = domain->next) {
            if (domain->number == number) {
                domain->refs++;
                return domain;
            }
        }
    }
    if (registrar->domain_count == registrar->domain_room && !grow(registrar))
        return NULL;
    domain = registrar->free_domains;
    if (domain != NULL)
        registrar->free_domains = domain->next;
    else
        domain = errand__mem_alloc(registrar->allocator, sizeof *domain);
    if (domain == NULL)
        return NULL;
    *domain = (errand__domain){.number = number, .refs = 1};
    errand__list_init(&domain->queue);
    at = bucket_of(number, registrar->domain_room);
    domain->next = registrar->domains[at];
    registrar->domains[at] = domain;
    registrar->domain_count++;
    return domain;
}

void
errand__domain_let(errand__registrar *registrar, errand__domain *domain)
{
    errand__domain **place;

    if (--domain->refs != 0)
        return;
    place = &registrar->domains[bucket_of(domain->number, registrar->domain_room)];
    while (*place != domain)
        place = &(*place)->next;
    *place = domain->next;
    domain->next = registrar->free_domains;
    registrar->free_domains = domain;
    registrar->domain_count--;
}

void
errand__domains_empty(errand__registrar *registrar)
{
    for (size_t i = 0; i < registrar->domain_room; i++)
        for (errand__domain *domain = registrar->domains[i]; domain != NULL;
             domain = domain->next) {
            while (!errand__list_empty(&domain->queue))
                errand__list_unlink(domain->queue.next);
        }
}

static void
free_chain(errand__registrar *registrar, errand__domain *domain)
{
    while (domain != NULL) {
        errand__domain *next = domain->next;

        errand__mem_free(registrar->allocator, domain, sizeof *domain);
        domain = next;
    }
}

void
errand__domains_fini(errand__registrar *registrar)
{
    for (size_t i = 0; i < registrar->domain_room; i++)
        free_chain(registrar, registrar->domains[i]);
    free_chain(registrar, registrar->free_domains);
    errand__mem_free(registrar->allocator, registrar->domains,
                     registrar->domain_room * sizeof(errand__domain *));
    registrar->domains = NULL;
    registrar->free_domains = NULL;
    registrar->domain_room = registrar->domain_count = 0;
}
