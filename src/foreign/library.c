/* SPDX-License-Identifier: MIT */
/* library: a shared object by name, opened once and closed when nothing here needs it.
 *
 * Design notes: opening runs the object's constructors, so it happens under no lock: two threads may
 * both open it, the loader counts, and who comes second closes once. */
#include <dlfcn.h>
#include <string.h>
#include "foreign/foreign.h"

struct errand_ffi_library {
    /* handle: of dlopen; NULL = nobody has opened it yet.
     * Writers: whoever opened it first.  Readers: any thread.
     * Order:   compare-exchange acq_rel; loads acquire.
     * Pairs:   library-handle.
     * Why:     what the constructors did must be seen by whoever calls into it. */
    _Atomic(void *) handle;
    /* holders: its creator and each function.
     * Writers, Readers: whoever holds it.   Order: acq_rel on the way down.
     * Pairs:   library-holders.
     * Why:     the last one closes what all others used. */
    atomic_uint holders;
    size_t size;
    bool process;
    char name[];
};

errand_status
errand_ffi_library_create(const char *name, errand_ffi_library **out_library)
{
    errand_ffi_library *library;
    size_t length = name == NULL ? 0 : strlen(name);

    ERRAND_REQUIRE_ARG(out_library != NULL, ERRAND_EINVAL, "out_library is NULL");
    ERRAND_REQUIRE_ARG(name == NULL || length > 0, ERRAND_EINVAL,
                       "the name is empty; give NULL for what the process has");
    library = errand__mem_alloc(NULL, sizeof *library + length + 1);
    if (library == NULL)
        return ERRAND_ENOMEM;
    library->size = sizeof *library + length + 1;
    library->process = name == NULL;
    if (length > 0)
        memcpy(library->name, name, length);
    atomic_init(&library->handle, NULL);
    atomic_init(&library->holders, 1);
    *out_library = library;
    return ERRAND_OK;
}

errand_status
errand_ffi_library_load(errand_ffi_library *library, errand_ffi_error *out_error)
{
    ERRAND_REQUIRE_ARG(library != NULL, ERRAND_EINVAL, "the library is NULL");
    return errand__library_open(library, out_error) ? ERRAND_OK : ERRAND_EUNSUPPORTED;
}

void
errand_ffi_library_abandon(errand_ffi_library **take_library)
{
    errand_ffi_library *library;
    void *handle;

    if (take_library == NULL || *take_library == NULL)
        return;
    library = *take_library;
    *take_library = NULL;
    /* Pairs: library-holders */
    if (atomic_fetch_sub_explicit(&library->holders, 1, memory_order_acq_rel) > 1)
        return;
    handle = atomic_load_explicit(&library->handle, memory_order_acquire);
    if (handle != NULL)
        dlclose(handle);
    errand__mem_free(NULL, library, library->size);
}

void
errand__library_hold(errand_ffi_library *library)
{
    atomic_fetch_add_explicit(&library->holders, 1, memory_order_relaxed);
}

const char *
errand__library_name(const errand_ffi_library *library)
{
    return library->process ? NULL : library->name;
}

static bool
refuse_loader(errand_ffi_error *out_error)
{
    const char *text = dlerror();

    return errand__ffi_refuse(out_error, 0, "%s", text == NULL ? "not found" : text);
}

bool
errand__library_open(errand_ffi_library *library, errand_ffi_error *out_error)
{
    void *none = NULL, *handle;

    if (atomic_load_explicit(&library->handle, memory_order_acquire) != NULL)
        return true;
    handle = dlopen(errand__library_name(library), RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return refuse_loader(out_error);
    /* Pairs: library-handle */
    if (!atomic_compare_exchange_strong_explicit(
            &library->handle, &none, handle, memory_order_acq_rel, memory_order_acquire))
        dlclose(handle);
    return true;
}

void *
errand__library_find(errand_ffi_library *library, const char *symbol,
                     errand_ffi_error *out_error)
{
    void *handle = atomic_load_explicit(&library->handle, memory_order_acquire);
    void *address;

    dlerror();
    address = dlsym(handle, symbol);
    if (address == NULL)
        refuse_loader(out_error);
    return address;
}
