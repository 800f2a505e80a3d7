/* SPDX-License-Identifier: MIT */
/* Design notes
 * - Nothing is read from the environment, and nothing from the command line but one word.
 * - The host wrote the request file and is trusted; what is checked here is that host and
 *   worker are of the same version and that the kernel keeps this process from writing it. */
#include "program.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/core.h"

#define DIGITS(x) #x
#define NUMBER(x) DIGITS(x)
#define VERSION                                                                          \
    NUMBER(ERRAND_VERSION_MAJOR)                                                         \
    "." NUMBER(ERRAND_VERSION_MINOR) "." NUMBER(ERRAND_VERSION_PATCH)

static errand__worker worker = {.rulesets = {-1, -1}, .tasks = -1};

_Noreturn void
errand__worker_fail(errand__worker *self, uint32_t code, int error, const char *format,
                    ...)
{
    char text[ERRAND__WIRE_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (error != 0) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, ": %s", strerror(error));
    }
    if (self->response != NULL) {
        self->response->setup_errno = (uint32_t)error;
        self->response->layers = self->layers;
        memcpy(self->response->setup_text, text, sizeof text);
        /* Pairs: wire-ready */
        atomic_store_explicit(&self->response->ready, code, memory_order_release);
        errand__wire_wake(&self->response->ready);
    } else {
        fprintf(stderr, "errand-worker: %s\n", text);
    }
    _exit((int)code);
}

/* The file of descriptor, whole; *out_size: its size. */
static void *
map_file(int descriptor, int protection, size_t *out_size)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0 || status.st_size < ERRAND__WIRE_PAGE)
        return NULL;
    *out_size = (size_t)status.st_size;
    void *bytes = mmap(NULL, *out_size, protection, MAP_SHARED, descriptor, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static bool
fits(uint64_t offset, uint64_t size, uint64_t file_size)
{
    return offset <= file_size && size <= file_size - offset;
}

static void
check_sealed(errand__worker *self, int descriptor, const char *name)
{
    if (mmap(NULL, ERRAND__WIRE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
             0) != MAP_FAILED)
        errand__worker_fail(self, ERRAND__SETUP_WIRE, 0,
                            "the %s file can be written by the worker: it is not sealed",
                            name);
}

/* The request file, its version, and that it cannot be written. */
static void
open_request(errand__worker *self)
{
    size_t size = 0;
    void *request = map_file(ERRAND__WIRE_REQUEST_FD, PROT_READ, &size);
    if (request == NULL)
        errand__worker_fail(self, ERRAND__SETUP_WIRE, errno,
                            "the request file cannot be mapped");
    self->request = request;
    self->request_bytes = request;
    const errand__wire_request *head = self->request;
    if (head->magic != ERRAND__WIRE_MAGIC || head->version != ERRAND__WIRE_VERSION ||
        head->struct_size != sizeof *head ||
        strncmp(head->library_version, VERSION, sizeof head->library_version) != 0)
        errand__worker_fail(
            self, ERRAND__SETUP_WIRE, 0,
            "errand-worker is of version %s, the library is not: install both "
            "from one build",
            VERSION);
    if (head->request_file_size != size ||
        !fits(head->setup_offset, head->setup_size, size) ||
        head->setup_size < sizeof *self->setup || (head->setup_offset & 7) != 0 ||
        !fits(head->body_offset, head->body_size, size) ||
        !fits(head->return_offset, head->return_size, size))
        errand__worker_fail(self, ERRAND__SETUP_WIRE, 0,
                            "the request file contradicts itself");
    check_sealed(self, ERRAND__WIRE_REQUEST_FD, "request");
}

/* First of all, so that what is wrong with the rest can be told. */
static size_t
open_response(errand__worker *self)
{
    size_t size = 0;
    void *response = map_file(ERRAND__WIRE_RESPONSE_FD, PROT_READ | PROT_WRITE, &size);
    if (response == NULL || size < sizeof *self->response)
        errand__worker_fail(self, ERRAND__SETUP_WIRE, errno,
                            "the response file cannot be mapped");
    self->response = response;
    return size;
}

static void
check_response(errand__worker *self, size_t size)
{
    const errand__wire_request *head = self->request;
    if (head->response_file_size != size ||
        !fits(head->response_offset, head->response_size, size) ||
        head->response_offset < sizeof *self->response ||
        head->response_size < sizeof(errand__wire_error))
        errand__worker_fail(self, ERRAND__SETUP_WIRE, 0,
                            "the request file contradicts itself");
    self->response_bytes = (unsigned char *)self->response + head->response_offset;
    self->response_size = head->response_size;
}

static bool
list_fits(const errand__wire_request *head, uint64_t offset, uint64_t count, size_t item)
{
    return fits(offset, count * item, head->setup_size) && (offset & 7) == 0;
}

/* The set-up that the request file brings. */
static const errand__wire_setup *
checked_setup(errand__worker *self)
{
    const errand__wire_request *head = self->request;
    const errand__wire_setup *setup =
        (const void *)(self->request_bytes + head->setup_offset);
    bool fine =
        setup->struct_size == sizeof *setup && setup->path_count <= ERRAND__WIRE_PATHS &&
        setup->port_count <= ERRAND__WIRE_PORTS &&
        setup->entry_count <= ERRAND__WIRE_ENTRIES &&
        list_fits(head, setup->paths, setup->path_count, sizeof(errand__wire_path)) &&
        list_fits(head, setup->ports, setup->port_count, sizeof(uint16_t)) &&
        list_fits(head, setup->entries, setup->entry_count, sizeof(errand__wire_entry));
    for (int i = 0; i < 2; i++)
        fine = fine &&
               list_fits(head, setup->filter[i], setup->filter_length[i],
                         sizeof(struct sock_filter)) &&
               setup->tgid_count[i] <= ERRAND__WIRE_TGIDS;
    if (!fine)
        errand__worker_fail(self, ERRAND__SETUP_WIRE, 0, "the set-up contradicts itself");
    return setup;
}

static void
take_policy(errand__worker *self)
{
    self->setup = checked_setup(self);
    self->setup_bytes = (const void *)self->setup;
}

static void
take_entries(errand__worker *self)
{
    const errand__wire_setup *setup = checked_setup(self);
    self->entry_bytes = (const void *)setup;
    self->entries = (const void *)(self->entry_bytes + setup->entries);
    self->entry_count = setup->entry_count;
}

/* What jobs may borrow bytes of. */
static void
open_input(errand__worker *self)
{
    int descriptor = ERRAND__WIRE_PATH_FD + (int)self->setup->path_count;
    size_t size = 0;
    if (self->request->input_file_size == 0)
        return;
    self->input = map_file(descriptor, PROT_READ, &size);
    if (self->input == NULL || size != self->request->input_file_size)
        errand__worker_fail(self, ERRAND__SETUP_WIRE, errno,
                            "the input file cannot be mapped");
    check_sealed(self, descriptor, "input");
    close(descriptor);
}

static void
announce(errand__worker *self)
{
    errand__wire_response *response = self->response;
    response->layers = self->layers;
    response->landlock_abi = self->landlock_abi;
    response->setup_text[0] = '\0';
    /* Pairs: wire-ready */
    atomic_store_explicit(&response->ready, 1, memory_order_release);
    errand__wire_wake(&response->ready);
}

void
errand__worker_live(errand__worker *self)
{
    size_t response_size = open_response(self);
    open_request(self);
    check_response(self, response_size);
    if (self->setup == NULL) {
        take_policy(self);
        open_input(self);
    }
    take_entries(self);
    close(ERRAND__WIRE_REQUEST_FD);
    close(ERRAND__WIRE_RESPONSE_FD);
    self->processors = errand__cpus_allowed();
    errand__report_init(self->response,
                        self->setup->on_deny == (uint32_t)ERRAND_DENY_REPORT);
    errand__worker_confine(self);
    errand__worker_load(self);
    errand__worker_seal(self);
    announce(self);
    errand__worker_serve(self);
}

int
main(int count, char **words)
{
    const char *word = count == 2 ? words[1] : "";
    if (strcmp(word, "--version") == 0) {
        printf("errand-worker %s\n", VERSION);
        return 0;
    }
    if (strcmp(word, ERRAND__WIRE_ARGUMENT) == 0)
        errand__worker_live(&worker);
    if (strcmp(word, ERRAND__WIRE_TEMPLATE) == 0) {
        open_request(&worker);
        take_policy(&worker);
        open_input(&worker);
        errand__template_serve(&worker, words[1]);
    }
    fprintf(stderr,
            "errand-worker %s: a process in which the errand library runs jobs that "
            "it does not trust.\nThe library starts it; there is nothing to start "
            "by hand.\n",
            VERSION);
    return 2;
}
