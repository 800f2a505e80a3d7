/* SPDX-License-Identifier: MIT */
/* work: a verb that awaits one operation, whoever described it.
 *
 * Design notes.  Verbs of this module and jobs that a program registered are the same thing: an
 * errand_lua_job that fills a spec and pushes a result; a registered one finds its name at index
 * 1, before its arguments.  Registered jobs stay in the registry
 * until the state is closed, also when another takes their name, because a waiting coroutine
 * holds a plain pointer to its own. */
#include "lua_host.h"
#include <string.h>

static const char jobs_key;

#define FIRST_KIND 0x1A000000U
#define VERB       1U /* until its fill writes the library's own kind */

const char *
errand__lua_work_text(lua_State *L, int index)
{
    size_t length;
    const char *text = luaL_checklstring(L, index, &length);
    luaL_argcheck(L, strlen(text) == length, index, "text holds a zero byte");
    return text;
}

const char *
errand__lua_work_name(lua_State *L, int index, const char *operation, const char *what,
                      const char *mend)
{
    const char *text = errand__lua_work_text(L, index);
    if (text[0] == '\0')
        errand__lua_error_raise(L, "inval", operation, "the %s is empty: %s", what, mend);
    return text;
}

void
errand__lua_work_filled(lua_State *L, errand_status status, const char *operation)
{
    if (status != ERRAND_OK)
        errand__lua_error_status(L, status, operation);
}

static int
work_over(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    const errand_lua_job *job = (const errand_lua_job *)context;
    const errand_task_news *news = errand__lua_wait_news(L, job->name);
    errand_completion *completion = news->completion;
    if (completion->outcome != ERRAND_COMPLETED)
        errand__lua_error_completion(L, completion, job->name);
    if (job->push == NULL)
        return 0;
    return job->push(L, completion, job->held_arg);
}

/* The value at the top names what an operation works on: a number, or a text of which one is made
 * (FNV-1a). */
static uint64_t
domain_of(lua_State *L, const char *operation)
{
    uint64_t number = (uint64_t)lua_tointeger(L, -1);
    size_t length = 0;
    const char *text =
        lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;
    if (text != NULL) {
        number = UINT64_C(0xcbf29ce484222325);
        for (size_t i = 0; i < length; i++)
            number = (number ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    } else if (!lua_isinteger(L, -1)) {
        luaL_error(L, "%s: domain must be a string or an integer, not %s", operation,
                   luaL_typename(L, -1));
    }
    return number == 0 ? 1 : number;
}

void
errand__lua_work_options(lua_State *L, int index, const char *operation,
                         errand__lua_work_option *out_options)
{
    *out_options = (errand__lua_work_option){.domain = 0};
    if (lua_getfield(L, index, "domain") != LUA_TNIL)
        out_options->domain = domain_of(L, operation);
    lua_pop(L, 1);
    lua_getfield(L, index, "effect_free");
    out_options->effect_free = lua_toboolean(L, -1);
    lua_pop(L, 1);
}

/* Takes the table of options off, if one is the last argument of a verb that takes none else. */
static void
take_options(lua_State *L, const errand_lua_job *job,
             errand__lua_work_option *out_options)
{
    int index = lua_gettop(L);
    *out_options = (errand__lua_work_option){.domain = 0};
    if (index < 2 || !lua_istable(L, index))
        return;
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || strcmp(lua_tostring(L, -2), "domain") != 0)
            luaL_error(L, "%s: the only option is 'domain'", job->name);
    }
    errand__lua_work_options(L, index, job->name, out_options);
    lua_settop(L, index - 1);
}

static int
work_await(lua_State *L, const errand_lua_job *job, uint32_t kind)
{
    errand__lua_task *task = errand__lua_wait_task(L, job->name);
    errand__lua_run *run = task->run;
    errand_identity identity;
    errand__lua_work_option options = {.domain = 0};
    errand_spec spec = ERRAND_SPEC_INIT;
    spec.kind = kind;
    spec.held_name = job->name;
    luaL_checkstack(L, LUA_MINSTACK, job->name);
    errand__lua_join_alive(L, task, job->name);
    if (kind == VERB)
        take_options(L, job, &options);
    job->fill(L, &spec, job->held_arg);
    if (options.domain != 0)
        spec.domain = options.domain;
    if (kind == VERB)
        spec.held_name = job->name; /* people know it by the verb */
    errand_status status =
        errand_task_await(run->visit, run->lease, &spec, UINT64_MAX, &identity);
    if (status != ERRAND_OK) {
        errand_spec_abandon(&spec);
    } else if (run->options.on_completion != NULL) {
        int subject = kind == VERB ? 1 : 2;
        if (lua_type(L, subject) == LUA_TSTRING)
            lua_pushvalue(L, subject);
        errand__lua_report_subject(L, run, &identity);
    }
    return errand__lua_wait_for(L, task, status, job->name, work_over, (lua_KContext)job);
}

int
errand__lua_work_verb(lua_State *L)
{
    return work_await(L, lua_touserdata(L, lua_upvalueindex(1)), VERB);
}

int
errand__lua_verb_job(lua_State *L)
{
    errand__lua_wait_task(L, "job");
    luaL_checkstring(L, 1);
    const errand_lua_job *job = NULL;
    uint32_t kind = 0;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &jobs_key) == LUA_TTABLE) {
        lua_pushvalue(L, 1);
        if (lua_rawget(L, -2) == LUA_TUSERDATA) {
            job = lua_touserdata(L, -1);
            lua_getiuservalue(L, -1, 1);
            kind = (uint32_t)lua_tointeger(L, -1);
        }
    }
    if (job == NULL)
        errand__lua_error_raise(L, "unknown_job", "job",
                                "no job is called '%s': the host program registers them",
                                lua_tostring(L, 1));
    lua_pop(L, 3);
    return work_await(L, job, kind);
}

void
errand_lua_register_job(lua_State *L, const errand_lua_job *job)
{
    luaL_checkstack(L, 8, "register_job");
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &jobs_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &jobs_key);
    }
    lua_Integer number = (lua_Integer)lua_rawlen(L, -1) + 1;
    errand_lua_job *own = lua_newuserdatauv(L, sizeof *own, 1);
    *own = *job;
    lua_pushinteger(L, (lua_Integer)FIRST_KIND + number);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, number);
    lua_pushstring(L, job->name);
    lua_insert(L, -2);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

errand_status
errand__lua_work_codecs(lua_State *L, errand_runtime *runtime)
{
    errand_status status = ERRAND_OK;
    luaL_checkstack(L, 4, "run");
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &jobs_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        return ERRAND_OK;
    }
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1; i <= count && status == ERRAND_OK; i++) {
        lua_rawgeti(L, -1, i);
        const errand_lua_job *job = lua_touserdata(L, -1);
        lua_pop(L, 1);
        if (job->held_type != NULL && job->held_codec != NULL)
            status = errand_record_codec(runtime, job->held_type, job->held_type->name,
                                         job->held_codec);
    }
    lua_pop(L, 1);
    return status;
}
