/* SPDX-License-Identifier: MIT */
/* Design notes: every run of a small program, depth first.
 *
 * A run is a path: at each choice, which of its values.  The next path is the last one up to its
 * last choice that has a value left, with that value; what follows is met anew, and begins at 0.
 * So no path is taken twice, none is left out, and only one path is kept.
 *
 * A run that meets other choices than the one before on their common part is no function of its
 * choices; then nothing that could be counted here means anything, and it says so. */
#include "scheduler/scheduler.h"

#define WIDTH_DEFAULT 8
#define DEPTH_DEFAULT 4096
#define SITES_DEFAULT                                                                    \
    (1U << ERRAND_SITE_PLACE | 1U << ERRAND_SITE_PICK | 1U << ERRAND_SITE_APPLICATION)

typedef struct branch {
    uint64_t n;
    uint32_t taken, ways; /* taken: 0 .. ways - 1 */
} branch;

struct errand_enumerator {
    errand_enumerator_config config;
    branch *path;  /* config.depth of them */
    size_t length; /* of the path */
    size_t at;     /* choices of this run */
    uint64_t runs;
    bool cut, other, done;
};

errand_status
errand_enumerator_create(const errand_enumerator_config *config,
                         errand_enumerator **out_enumerator)
{
    errand_enumerator_config chosen = {.struct_size = sizeof chosen};
    errand_enumerator *enumerator;

    ERRAND_REQUIRE_ARG(out_enumerator != NULL, ERRAND_EINVAL, "out_enumerator is NULL");
    if (config != NULL)
        chosen = *config;
    ERRAND_REQUIRE_ARG(chosen.struct_size == sizeof chosen, ERRAND_EINVAL,
                       "config->struct_size must be sizeof(errand_enumerator_config)");
    ERRAND_REQUIRE_ARG((chosen.sites & ~((2U << ERRAND_SITES) - 2)) == 0, ERRAND_EINVAL,
                       "config->sites names a site that there is not");
    if (chosen.width == 0)
        chosen.width = WIDTH_DEFAULT;
    if (chosen.sites == 0)
        chosen.sites = SITES_DEFAULT;
    if (chosen.depth == 0)
        chosen.depth = DEPTH_DEFAULT;
    enumerator = errand__mem_alloc(NULL, sizeof *enumerator);
    if (enumerator == NULL)
        return ERRAND_ENOMEM;
    enumerator->config = chosen;
    enumerator->path = errand__mem_alloc(NULL, chosen.depth * sizeof *enumerator->path);
    if (enumerator->path == NULL) {
        errand__mem_free(NULL, enumerator, sizeof *enumerator);
        return ERRAND_ENOMEM;
    }
    *out_enumerator = enumerator;
    return ERRAND_OK;
}

void
errand_enumerator_abandon(errand_enumerator **take_enumerator)
{
    errand_enumerator *enumerator = take_enumerator == NULL ? NULL : *take_enumerator;

    if (enumerator == NULL)
        return;
    *take_enumerator = NULL;
    errand__mem_free(NULL, enumerator->path,
                     enumerator->config.depth * sizeof *enumerator->path);
    errand__mem_free(NULL, enumerator, sizeof *enumerator);
}

bool
errand_enumerator_next(errand_enumerator *enumerator)
{
    if (enumerator == NULL || enumerator->done)
        return false;
    if (enumerator->runs != 0) {
        size_t last =
            enumerator->at < enumerator->length ? enumerator->at : enumerator->length;

        enumerator->other |= enumerator->at < enumerator->length;
        while (last > 0 &&
               enumerator->path[last - 1].taken + 1 == enumerator->path[last - 1].ways)
            last--;
        if (last == 0)
            enumerator->done = true;
        else
            enumerator->path[last - 1].taken++;
        enumerator->length = last;
    }
    if (enumerator->done ||
        (enumerator->config.runs != 0 && enumerator->runs == enumerator->config.runs))
        return false;
    enumerator->at = 0;
    enumerator->runs++;
    return true;
}

uint64_t
errand_enumerator_runs(const errand_enumerator *enumerator)
{
    return enumerator == NULL ? 0 : enumerator->runs;
}

bool
errand_enumerator_complete(const errand_enumerator *enumerator)
{
    return enumerator != NULL && enumerator->done && !enumerator->cut &&
           !enumerator->other;
}

/* The way-th of the values that are tried; spread where there are more. */
static uint64_t
value_of(const branch *taken)
{
    uint64_t last = taken->n - 1; /* n = 0: 2^64 - 1 */

    if (last < taken->ways)
        return taken->taken;
    return last / taken->ways * taken->taken;
}

uint64_t
errand__enumerator_choose(errand_enumerator *enumerator, errand_site site, uint64_t n)
{
    const errand_enumerator_config *config = &enumerator->config;
    branch *here;

    if ((config->sites & 1U << site) == 0)
        return 0;
    if (enumerator->at == config->depth) {
        enumerator->cut = true;
        return 0;
    }
    here = &enumerator->path[enumerator->at++];
    if (enumerator->at > enumerator->length) {
        enumerator->length = enumerator->at;
        *here = (branch){.n = n};
        here->ways = n != 0 && n < config->width ? (uint32_t)n : config->width;
        enumerator->cut |= n == 0 || n > config->width;
    }
    enumerator->other |= here->n != n;
    return n == 0 ? value_of(here) : value_of(here) % n;
}
