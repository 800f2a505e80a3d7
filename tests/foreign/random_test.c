/* SPDX-License-Identifier: MIT */
/* Goal: whatever a C compiler can pass by value, a described call passes the same way.
 * Method: random signatures (structures to depth 3 with arrays, to 12 parameters, a fifth of them
 * variadic) are written as C, compiled in batches, and called by description with random bits: each
 * function writes down every scalar that it got and answers random bits of its own.  Each is called by
 * a job and by the bytes of a sandbox.  The seed is printed with a failure. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rig.h"

enum { BATCH = 100, PARAMETERS = 12, NODES = 65536, SEEN = 16384 };

typedef struct maker {
    uint64_t state;
    FILE *source;
    errand_ffi_type nodes[NODES];
    size_t node_count;
    unsigned struct_count;
    unsigned struct_of[NODES]; /* each structure node's number in the source */
} maker;

typedef struct made {
    errand_ffi_signature signature;
    char symbol[32];
    errand_ffi_type parameters[PARAMETERS];
    unsigned char arguments[SEEN], result[SEEN]; /* leaf after leaf */
    size_t argument_size, result_size;
} made;

static uint64_t
draw(maker *self)
{
    uint64_t word = self->state += UINT64_C(0x9e3779b97f4a7c15);

    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

static uint64_t
below(maker *self, uint64_t n)
{
    return draw(self) % n;
}

static const char *const c_names[] = {
    [ERRAND_FFI_BOOL] = "_Bool",   [ERRAND_FFI_I8] = "int8_t",
    [ERRAND_FFI_U8] = "uint8_t",   [ERRAND_FFI_I16] = "int16_t",
    [ERRAND_FFI_U16] = "uint16_t", [ERRAND_FFI_I32] = "int32_t",
    [ERRAND_FFI_U32] = "uint32_t", [ERRAND_FFI_I64] = "int64_t",
    [ERRAND_FFI_U64] = "uint64_t", [ERRAND_FFI_F32] = "float",
    [ERRAND_FFI_F64] = "double",   [ERRAND_FFI_POINTER] = "void *",
};

/* ---- types ------------------------------------------------------------------------------- */

static errand_ffi_type make_type(maker *self, unsigned depth);

static errand_ffi_type
make_scalar(maker *self)
{
    /* Floats are an eighth of the kinds, but half of what can go wrong. */
    errand_ffi_kind kind =
        (errand_ffi_kind)(below(self, 3) == 0 ? ERRAND_FFI_F32 + below(self, 2)
                                              : ERRAND_FFI_BOOL + below(self, 12));

    return (errand_ffi_type){.kind = kind};
}

static void
write_field(maker *self, const errand_ffi_type *type, unsigned number)
{
    unsigned dimensions[8], count = 0;

    for (; type->kind == ERRAND_FFI_ARRAY; type = type->items)
        dimensions[count++] = type->count;
    if (type->kind == ERRAND_FFI_STRUCT)
        fprintf(self->source, "s%u m%u", self->struct_of[type->items - self->nodes],
                number);
    else
        fprintf(self->source, "%s m%u", c_names[type->kind], number);
    for (unsigned i = 0; i < count; i++)
        fprintf(self->source, "[%u]", dimensions[i]);
    fprintf(self->source, "; ");
}

static errand_ffi_type
make_struct(maker *self, unsigned depth)
{
    errand_ffi_type fields[5];
    errand_ffi_type type = {.kind = ERRAND_FFI_STRUCT,
                            .count = (uint32_t)(1 + below(self, 5))};

    for (uint32_t i = 0; i < type.count; i++)
        fields[i] = make_type(self, depth + 1);
    assert_true(self->node_count + type.count <= NODES);
    type.items = self->nodes + self->node_count;
    memcpy(self->nodes + self->node_count, fields, type.count * sizeof fields[0]);
    self->struct_of[self->node_count] = self->struct_count;
    self->node_count += type.count;
    fprintf(self->source, "typedef struct { ");
    for (uint32_t i = 0; i < type.count; i++)
        write_field(self, &fields[i], i);
    fprintf(self->source, "} s%u;\n", self->struct_count++);
    return type;
}

/* Inside a structure of that depth; depth 0: a parameter. */
static errand_ffi_type
make_type(maker *self, unsigned depth)
{
    uint64_t which = below(self, 8);

    if (which == 0 && depth > 0) {
        errand_ffi_type element = make_type(self, depth);

        self->nodes[self->node_count] = element;
        return (errand_ffi_type){.kind = ERRAND_FFI_ARRAY,
                                 .count = (uint32_t)(1 + below(self, 4)),
                                 .items = &self->nodes[self->node_count++]};
    }
    return which <= 2 && depth < 3 ? make_struct(self, depth) : make_scalar(self);
}

/* ---- values -------------------------------------------------------------------------------- */

/* Random bits for each scalar of a type: into an image, and one after the other. */
static void
draw_image(maker *self, const errand_ffi_type *type, unsigned char *image,
           unsigned char *leaves, size_t *leaf_size)
{
    errand__layout layout;
    size_t at = 0;

    errand__type_layout(type, &layout);
    if (type->kind != ERRAND_FFI_STRUCT && type->kind != ERRAND_FFI_ARRAY) {
        uint64_t word = draw(self);

        if (type->kind == ERRAND_FFI_BOOL)
            word &= 1;
        errand__word_into(type->kind, image, word);
        memcpy(leaves + *leaf_size, image, layout.size);
        *leaf_size += layout.size;
        return;
    }
    for (uint32_t i = 0; i < type->count; i++) {
        const errand_ffi_type *item =
            type->kind == ERRAND_FFI_ARRAY ? type->items : &type->items[i];

        errand__type_layout(item, &layout);
        at = errand__align_up(at, layout.align);
        draw_image(self, item, image + at, leaves, leaf_size);
        at += layout.size;
    }
}

static errand_ffi_value
value_of(const errand_ffi_type *type, const unsigned char *image)
{
    errand_ffi_value value = {.kind = type->kind};
    errand__layout layout;
    uint64_t word;

    errand__type_layout(type, &layout);
    if (type->kind == ERRAND_FFI_STRUCT)
        return errand_ffi_bytes(image, layout.size);
    word = errand__word_of(type->kind, image);
    memcpy(&value.as, &word, sizeof word);
    return value;
}

static void
collect(const errand_ffi_value *value, unsigned char *leaves, size_t *size)
{
    const errand_ffi_type type = {.kind = value->kind};
    errand__layout layout;

    if (value->kind == ERRAND_FFI_VOID)
        return;
    if (value->kind == ERRAND_FFI_STRUCT || value->kind == ERRAND_FFI_ARRAY) {
        for (size_t i = 0; i < value->size; i++)
            collect(&value->as.items[i], leaves, size);
        return;
    }
    errand__type_layout(&type, &layout);
    memcpy(leaves + *size, &value->as, layout.size);
    *size += layout.size;
}

/* ---- the source ------------------------------------------------------------------------------- */

/* A line for each scalar below an expression. */
static void
write_leaves(maker *self, const errand_ffi_type *type, const char *name,
             const unsigned char **leaves)
{
    errand__layout layout;
    char inner[256];

    if (type->kind != ERRAND_FFI_STRUCT && type->kind != ERRAND_FFI_ARRAY) {
        errand__type_layout(type, &layout);
        if (leaves == NULL) {
            fprintf(self->source, " P(%s)", name);
            return;
        }
        fprintf(self->source, " memcpy(&%s, \"", name);
        for (size_t i = 0; i < layout.size; i++)
            fprintf(self->source, "\\x%02x", (*leaves)[i]);
        fprintf(self->source, "\", %zu);", layout.size);
        *leaves += layout.size;
        return;
    }
    for (uint32_t i = 0; i < type->count; i++) {
        bool array = type->kind == ERRAND_FFI_ARRAY;

        snprintf(inner, sizeof inner, array ? "%s[%u]" : "%s.m%u", name, i);
        write_leaves(self, array ? type->items : &type->items[i], inner, leaves);
    }
}

static const char *
type_name(maker *self, const errand_ffi_type *type, char *room)
{
    if (type->kind == ERRAND_FFI_VOID)
        return "void";
    if (type->kind != ERRAND_FFI_STRUCT)
        return c_names[type->kind];
    sprintf(room, "s%u", self->struct_of[type->items - self->nodes]);
    return room;
}

static void
write_function(maker *self, const made *function)
{
    const errand_ffi_signature *view = &function->signature;
    const unsigned char *leaves = function->result;
    char room[32], name[32];
    uint32_t named = view->variadic ? view->fixed : view->count;

    fprintf(self->source, "%s %s(", type_name(self, &view->result, room), view->symbol);
    for (uint32_t i = 0; i < named; i++)
        fprintf(self->source, "%s%s p%u", i > 0 ? ", " : "",
                type_name(self, &view->parameters[i], room), i);
    fprintf(self->source, view->variadic ? ", ...) {" : ") {");
    if (view->variadic)
        fprintf(self->source, " va_list l; va_start(l, p%u);", named - 1);
    for (uint32_t i = named; i < view->count; i++) {
        const char *type = type_name(self, &view->parameters[i], room);
        fprintf(self->source, " %s p%u = va_arg(l, %s);", type, i, type);
    }
    fprintf(self->source, " size = 0;");
    for (uint32_t i = 0; i < view->count; i++) {
        snprintf(name, sizeof name, "p%u", i);
        write_leaves(self, &view->parameters[i], name, NULL);
    }
    if (view->result.kind != ERRAND_FFI_VOID) {
        fprintf(self->source, " %s r;", type_name(self, &view->result, room));
        write_leaves(self, &view->result, "r", &leaves);
        fprintf(self->source, " return r;");
    }
    fprintf(self->source, " }\n");
}

static void
make_function(maker *self, made *out, unsigned number, unsigned char *images)
{
    unsigned char result[SEEN];
    errand_ffi_kind kind;

    memset(out, 0, sizeof *out);
    sprintf(out->symbol, "f%u", number);
    out->signature = (errand_ffi_signature){
        .struct_size = sizeof out->signature,
        .symbol = out->symbol,
        .parameters = out->parameters,
        .count = (uint32_t)below(self, PARAMETERS + 1),
        .result = below(self, 10) == 0 ? (errand_ffi_type){.kind = ERRAND_FFI_VOID}
                                       : make_type(self, 0)};
    out->signature.variadic = out->signature.count > 0 && below(self, 5) == 0;
    if (out->signature.variadic)
        out->signature.fixed = 1 + (uint32_t)below(self, out->signature.count);
    for (uint32_t i = 0; i < out->signature.count; i++) {
        do {
            out->parameters[i] = make_type(self, 0);
            kind = out->parameters[i].kind;
        } while (out->signature.variadic && i >= out->signature.fixed &&
                 (kind < ERRAND_FFI_I32 || kind == ERRAND_FFI_F32));
        draw_image(self, &out->parameters[i], images + (size_t)i * SEEN, out->arguments,
                   &out->argument_size);
    }
    if (out->signature.result.kind != ERRAND_FFI_VOID)
        draw_image(self, &out->signature.result, result, out->result, &out->result_size);
    write_function(self, out);
}

/* ---- the test ---------------------------------------------------------------------------------- */

static size_t
differs(const made *function, void *handle)
{
    const unsigned char *seen = dlsym(handle, "seen");
    size_t at = 0;

    while (at < function->argument_size && seen[at] == function->arguments[at])
        at++;
    for (size_t i = at; i < at + 8 && i < function->argument_size; i++)
        fprintf(stderr, "%02x/%02x ", seen[i], function->arguments[i]);
    return at;
}

static void
check(ffi_rig *rig, errand_ffi_library *library, void *handle, made *function,
      const unsigned char *images)
{
    errand_ffi_value arguments[PARAMETERS];
    errand_ffi_error error = {.column = 0};
    unsigned char got[SEEN];
    size_t got_size = 0, *size = dlsym(handle, "size");
    errand_ffi_function *described;

    if (errand_ffi_describe_as(library, &function->signature, &described, &error) !=
        ERRAND_OK)
        fail_msg("%s", error.text);
    for (uint32_t i = 0; i < function->signature.count; i++)
        arguments[i] = value_of(&function->parameters[i], images + (size_t)i * SEEN);
    const errand_ffi_result *result =
        rig_call(rig, described, arguments, function->signature.count);
    collect(&result->value, got, &got_size);
    if (*size != function->argument_size ||
        memcmp(dlsym(handle, "seen"), function->arguments, *size) != 0)
        fail_msg("arguments differ from byte %zu of %zu on: %s",
                 differs(function, handle), function->argument_size,
                 errand_ffi_function_text(described));
    if (got_size != function->result_size || memcmp(got, function->result, got_size) != 0)
        fail_msg("the result differs: %s", errand_ffi_function_text(described));
    errand_ffi_function_abandon(&described);
}

static void
run_batch(ffi_rig *rig, uint64_t seed, unsigned count, const char *folder)
{
    static maker self;
    static made functions[BATCH];
    unsigned char *images = calloc((size_t)BATCH * PARAMETERS, SEEN);
    char path[128], object[128], command[512];
    errand_ffi_library *library;
    void *handle;

    memset(&self, 0, sizeof self);
    self.state = seed;
    snprintf(path, sizeof path, "%s/batch.c", folder);
    snprintf(object, sizeof object, "%s/batch%llu.so", folder, (unsigned long long)seed);
    self.source = fopen(path, "we");
    assert_non_null(self.source);
    assert_non_null(images);
    fprintf(self.source,
            "#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n"
            "#include <string.h>\nunsigned char seen[%d]; size_t size;\n"
            "#define P(x) memcpy(seen + size, &x, sizeof x); size += sizeof x;\n",
            SEEN);
    for (unsigned i = 0; i < count; i++) {
        make_function(&self, &functions[i], i, images + (size_t)i * PARAMETERS * SEEN);
    }
    assert_int_equal(fclose(self.source), 0);
    snprintf(command, sizeof command, "%s -std=c17 -w -O%d -shared -fPIC -o %s %s",
             COMPILER, (int)(seed % 2), object, path);
    assert_int_equal(system(command), 0);
    assert_int_equal(errand_ffi_library_create(object, &library), ERRAND_OK);
    handle = dlopen(object, RTLD_NOW);
    assert_non_null(handle);
    for (unsigned i = 0; i < count; i++)
        check(rig, library, handle, &functions[i],
              images + (size_t)i * PARAMETERS * SEEN);
    dlclose(handle);
    errand_ffi_library_abandon(&library);
    unlink(object);
    unlink(path);
    free(images);
}

static void
random_signatures_pass_as_the_compiler_does(void **state)
{
    ffi_rig *rig = *state;
    char folder[] = "/tmp/errand-foreign-XXXXXX";
    const char *scale = getenv("ERRAND_TEST_SCALE"), *given = getenv("ERRAND_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 1;
    unsigned left = scale != NULL && strtoul(scale, NULL, 10) >= 10 ? 10000
                    : test_under("valgrind")                        ? 20
                                                                    : 200;

    if (system(COMPILER " --version >/dev/null 2>&1") != 0)
        test_skip("there is no C compiler here");
    assert_non_null(mkdtemp(folder));
    for (; left > 0; seed++) {
        unsigned count = left < BATCH ? left : BATCH;

        printf("seed %llu\n", (unsigned long long)seed);
        run_batch(rig, seed, count, folder);
        left -= count;
    }
    rmdir(folder);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_signatures_pass_as_the_compiler_does,
                                        rig_setup, rig_teardown),
    };

    return test_group("foreign/random", tests, NULL, NULL);
}
