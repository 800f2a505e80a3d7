/* SPDX-License-Identifier: MIT */
#ifndef ERRAND_LUA_IO_H
#define ERRAND_LUA_IO_H
/* io: what the files about open files, sockets, requests to web servers, streamed processes and
 * signals share.  All that waits there goes to the run's reactor, which is made at its first use. */
#include "lua_host.h"
#include "errand/files.h"
#include "errand/http.h"
#include "errand/io.h"
#include "errand/process.h"
#include "errand/source.h"

#define ERRAND__LUA_STREAM   "errand.stream"
#define ERRAND__LUA_LISTENER "errand.listener"
#define ERRAND__LUA_DATAGRAM "errand.datagram"
#define ERRAND__LUA_SOURCE   "errand.source"
#define ERRAND__LUA_PROCESS  "errand.process"
#define ERRAND__LUA_FILE     "errand.file"

/* ---- io.c: how such a verb waits --------------------------------------------------------- */
/* A verb or method: a closure of errand__lua_io_call over a light userdata, its record.
 * fill reads the arguments, raises while it owns nothing, makes the spec last.  push turns a
 * completion that is a success into results; NULL = none.  ready, if any, is asked before fill:
 * the number of results that it pushed, or -1 = it has to wait. */
typedef struct errand__lua_io_verb {
    const char *name;
    void (*fill)(lua_State *L, errand_spec *spec);
    int (*push)(lua_State *L, errand_completion *completion);
    int (*ready)(lua_State *L);
} errand__lua_io_verb;
int errand__lua_io_call(lua_State *L);
/* Adds them to the table on top, up to one without a name. */
void errand__lua_io_verbs(lua_State *L, const errand__lua_io_verb *verbs);

/* The running task, if it may wait and was not cancelled; raises else. */
errand__lua_task *errand__lua_io_task(lua_State *L, const char *operation);
/* The run's place in its reactor; raises. */
errand_lease *errand__lua_io_lease(lua_State *L, errand__lua_run *run,
                                   const char *operation);
/* After errand_spec_* of an object: raises unless OK. */
void errand__lua_io_filled(lua_State *L, errand_status status, const char *operation);
/* Awaits what spec describes, on lease; spec is used up.  The string at index `subject` (0 =
 * none) is what reports name.  Use as errand__lua_wait_for. */
int errand__lua_io_await(lua_State *L, errand__lua_task *task, errand_lease *lease,
                         errand_spec *spec, int subject, const char *operation,
                         lua_KFunction k, lua_KContext context);
/* In a continuation: the completion, which is a success; raises else. */
errand_completion *errand__lua_io_completion(lua_State *L, const char *operation);
/* Its payload as a type; raises. */
void *errand__lua_io_payload(lua_State *L, errand_completion *completion,
                             const errand_payload_type *type, const char *operation);
/* Pushes file bytes as a string; nil where there is no payload, or none in it. */
int errand__lua_io_push_bytes(lua_State *L, errand_completion *completion,
                              const char *operation);
/* At the end of a run: reactor and signals. */
void errand__lua_io_fini(errand__lua_run *run);
/* Adds all verbs to the module's table on top. */
void errand__lua_io_open(lua_State *L);
/* Makes the metatable `name`, with methods as its __index, and leaves both on the stack, the
 * methods on top; collect is its __gc, its __close and the method close. */
void errand__lua_io_class(lua_State *L, const char *name, lua_CFunction collect);

/* ---- io_options.c: tables of options -------------------------------------------------------- */
/* Raises unless index is a table whose names are all among those up to NULL, or nothing; then
 * false. */
bool errand__lua_io_options(lua_State *L, int index, const char *operation,
                            const char *const *names);
/* Pushes "a, b and c". */
void errand__lua_io_names(lua_State *L, const char *const *names);
/* A field of it: seconds as ns, a whole number up to most, truth; 0 where it is absent. */
uint64_t errand__lua_io_seconds(lua_State *L, int index, const char *name,
                                const char *operation);
uint64_t errand__lua_io_number(lua_State *L, int index, const char *name,
                               const char *operation, uint64_t most);
bool errand__lua_io_flag(lua_State *L, int index, const char *name);
/* A string, which stays on the stack, or NULL, as does a nil. */
const char *errand__lua_io_text(lua_State *L, int index, const char *name,
                                const char *operation);
/* A number of bytes as argument index; missing = 0: it must be given. */
size_t errand__lua_io_size(lua_State *L, int index, lua_Integer missing);
/* An address without names; raises, naming what it is for. */
errand_endpoint errand__lua_io_endpoint(lua_State *L, const char *text, const char *what,
                                        const char *operation);
int errand__lua_io_push_endpoint(lua_State *L, const errand_endpoint *endpoint);
/* "TERM", "SIGTERM", 15; raises. */
int32_t errand__lua_io_signal(lua_State *L, int index, const char *operation);
void errand__lua_io_push_signal(lua_State *L, int32_t number);

/* ---- io_reach.c: connect, listen, udp ------------------------------------------------------------- */
void errand__lua_reach_open(lua_State *L);

/* ---- io_stream.c, io_listener.c ---------------------------------------------------------------------- */
void errand__lua_stream_open(lua_State *L);
void errand__lua_listener_open(lua_State *L);
/* Pushes an object with a reference of its own. */
void errand__lua_stream_push(lua_State *L, errand_stream *stream);
void errand__lua_listener_push(lua_State *L, errand_listener *listener);
void errand__lua_datagram_push(lua_State *L, errand_datagram *datagram);
/* Raises where this state listens at that address and the run is seeded. */
void errand__lua_listener_refuse(lua_State *L, const errand__lua_run *run,
                                 const errand_endpoint *to, const char *operation);
/* Sets one thing on the stream at index object. */
errand_status errand__lua_stream_put(lua_State *L, int object,
                                     errand_stream_option option, uint64_t value);

/* ---- io_stream_options.c -------------------------------------------------------------------------------- */
/* The option table's fields that are a stream's settings; and their names, for other tables. */
extern const char *const errand__lua_stream_options[];
void errand__lua_stream_check(lua_State *L, int index, const char *operation);
void errand__lua_stream_settings(lua_State *L, int index, int object,
                                 const char *operation);

/* ---- io_file.c, io_lines.c, io_paths.c ---------------------------------------------------------------------------- */
void errand__lua_file_open(lua_State *L);
void errand__lua_paths_open(lua_State *L);
/* The file at index, if it is one that is open; else NULL. */
errand_file *errand__lua_file_check(lua_State *L, int index);
#define ERRAND__LUA_PIECE 65536 /* bytes asked for where the script names no number */
typedef struct errand__lua_file {
    errand_file *file; /* NULL = closed */
    uint64_t domain;   /* and the next number: of writes to what has no position */
} errand__lua_file;
/* The file of a method, which is open; raises. */
errand__lua_file *errand__lua_file_need(lua_State *L, const char *operation);
/* The argument, or the position; raises. */
int64_t errand__lua_file_offset(lua_State *L, int index);
int errand__lua_file_lines(lua_State *L);

/* ---- io_source.c ---------------------------------------------------------------------------------------- */
/* Pushes a source's userdata without a source, which goes into *out; name is of messages. */
typedef int errand__lua_source_push_fn(lua_State *L, errand_completion *completion,
                                       const char *name);
errand_source **errand__lua_source_new(lua_State *L, const char *name,
                                       errand__lua_source_push_fn *push);
int errand__lua_source_bytes(lua_State *L, errand_completion *completion,
                             const char *name);
void errand__lua_source_open(lua_State *L);

/* ---- command.c: what both kinds of command read from the table at 1 --------------------------------------- */
/* Refuses what would be left out in silence: a field that is none of those up to NULL, and what stands
 * beside the list of words. */
void errand__lua_command_fields(lua_State *L, const char *operation,
                                const char *const *fields);
/* Pushes a table of the strings and the array of pointers. */
const char *const *errand__lua_command_argv(lua_State *L, const char *operation);
/* The same for env = {NAME = "value"}; NULL if there is none. */
const char *const *errand__lua_command_env(lua_State *L, const char *operation);
/* Pushes "sort -u": what the report names. */
void errand__lua_command_line(lua_State *L, const char *const *argv);

/* ---- io_process.c, io_http.c ------------------------------------------------------------------------------- */
void errand__lua_process_open(lua_State *L);
int errand__lua_verb_process(lua_State *L);
void errand__lua_http_open(lua_State *L);

#endif
