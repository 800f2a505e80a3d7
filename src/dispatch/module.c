/* SPDX-License-Identifier: MIT */
/* module: whose code an address is in.
 *
 * Design notes.
 * - The loader is asked only by threads that are about to enter a body: after a fault its locks may
 *   be held for ever by the thread that met it.  What was asked stands in a list that is replaced
 *   as a whole; the list's lock is never held by code that could fault.
 * - A library that was unloaded may still be in the list, and one that was loaded since a worker
 *   last met a body of an unknown module is not.  The first is harmless unless another takes its
 *   place; of the second every fault is suspect. */
#include <errno.h>
#include <link.h>
#include <string.h>
#include "dispatch/dispatch.h"
#include "dispatch/fault.h"

#define MODULES_MOST 1024

typedef struct module_list {
    uint32_t count, files;
    errand__module modules[MODULES_MOST];
} module_list;

/* Guarded by list_lock. */
static errand__lock list_lock;
static module_list *list;

static const char *
last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool
has_loader(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            return true;
    return false;
}

/* The loader's lock is held here: nothing of ours may be taken. */
static int
note_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    module_list *fresh = arg;
    bool is_program = fresh->files == 0; /* it comes first */
    const char *name = is_program && info->dlpi_name[0] == '\0'
                           ? program_invocation_short_name
                           : last_part(info->dlpi_name);

    (void)size;
    fresh->files++;
    for (int i = 0; i < info->dlpi_phnum && fresh->count < MODULES_MOST; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        errand__module *module = &fresh->modules[fresh->count];

        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
            continue;
        module->start = info->dlpi_addr + part->p_vaddr;
        module->size = part->p_memsz;
        module->base = info->dlpi_addr;
        module->number = fresh->files;
        module->lonely = is_program && !has_loader(info);
        errand__text_format(module->name, sizeof module->name, "%s", name);
        fresh->count++;
    }
    return 0;
}

void
errand__modules_refresh(void)
{
    module_list *fresh = errand__mem_map(sizeof *fresh), *old;

    if (fresh == NULL)
        return; /* what is not in the old list is suspect */
    dl_iterate_phdr(note_module, fresh);
    errand__lock_acquire(&list_lock);
    old = list;
    list = fresh;
    errand__lock_release(&list_lock);
    errand__mem_unmap(old, sizeof *old);
}

bool
errand__modules_find(uintptr_t address, errand__module *out)
{
    bool found = false;

    errand__lock_acquire(&list_lock);
    for (uint32_t i = 0; list != NULL && i < list->count && !found; i++) {
        found = address - list->modules[i].start < list->modules[i].size;
        if (found)
            *out = list->modules[i];
    }
    errand__lock_release(&list_lock);
    return found;
}

bool
errand__modules_named(const char *part)
{
    bool found = false;

    errand__lock_acquire(&list_lock);
    for (uint32_t i = 0; list != NULL && i < list->count && !found; i++)
        found = strstr(list->modules[i].name, part) != NULL;
    errand__lock_release(&list_lock);
    return found;
}
