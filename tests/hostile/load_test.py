# SPDX-License-Identifier: MIT
"""Goal: the library loads late into stock interpreters, uses jemalloc only where the program brought
it, and stays when it is closed (O59, O63).
Method: python3 and lua5.4 as they are installed load it and run operations, with jemalloc put before
them and without.

load_test.py LIBRARY LUA_MODULE LUA TOOLS: the last is the folder of program_case.py."""
import os
import shutil
import subprocess
import sys

LIBRARY, MODULE, LUA, TOOLS = sys.argv[1:5]
sys.path.insert(0, TOOLS)
import program_case  # noqa: E402
from program_case import Skip  # noqa: E402

PYTHON = r"""
import ctypes, select, sys
library = ctypes.CDLL(sys.argv[1])  # dlopen, RTLD_NOW
features = library.errand_features
features.restype = ctypes.c_char_p
print(features().decode())
pointer, size = ctypes.c_void_p, ctypes.c_size_t
runtime, pool, lease, fd = pointer(), pointer(), pointer(), ctypes.c_int()
def ok(status): assert status == 0, status
ok(library.errand_runtime_create(None, ctypes.byref(runtime)))
config = (ctypes.c_uint32 * 20)()  # errand_blocking_config up to idle_ns; 0 = defaults
config[0] = 16
ok(library.errand_blocking_create(config, ctypes.byref(pool)))
ok(library.errand_attach(runtime, pool, 0, ctypes.byref(lease)))
library.errand_executor_abandon(ctypes.byref(pool))
ok(library.errand_runtime_wake_fd(runtime, ctypes.byref(fd)))
heard = []
completion_fn = ctypes.CFUNCTYPE(None, pointer, pointer)
hear = completion_fn(lambda arg, completion: heard.append(completion))
spec = (ctypes.c_uint64 * 64)()  # larger than errand_spec
for word in (b"errand", b"", b"x" * 100000):
    ok(library.errand_spec_echo(spec, word, size(len(word))))
    ok(library.errand_start(lease, spec, None, None))
count = size()
while len(heard) < 3:
    assert select.select([fd.value], [], [], 20)[0], "nobody woke the loop"
    ok(library.errand_drain(runtime, size(100), hear, None, ctypes.byref(count)))
library.errand_deadline_in.restype = ctypes.c_uint64
deadline = library.errand_deadline_in(ctypes.c_uint64(5000000000))
ok(library.errand_runtime_shutdown(ctypes.byref(runtime), ctypes.c_uint64(deadline), 2, None))
print("done")
"""

UNLOAD = r"""
import ctypes, _ctypes, os, sys
name = os.path.realpath(sys.argv[1])
def mapped():
    with open("/proc/self/maps") as file: return name in file.read()
library = ctypes.CDLL(name)
assert mapped()
_ctypes.dlclose(library._handle)
assert mapped(), "it was unloaded: a thread of its own would fall"
print("done")
"""

LUA_SCRIPT = r"""
package.cpath = arg[1]
local errand = require "errand"
local value = errand.run(function() return errand.read_file("/proc/self/comm") end)
print(value)
print("done")
"""


def _without_sanitizer():
    if b"sanitizer=none" not in open(LIBRARY, "rb").read():
        raise Skip("a sanitized library does not load late")


def _jemalloc():
    found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                           env=dict(os.environ, PATH=os.environ["PATH"] + ":/sbin")).stdout
    for line in found.splitlines():
        if "libjemalloc.so" in line:
            return line.split("=>")[1].strip()
    raise Skip("libjemalloc.so is not installed")


def _python(script, preload=None):
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if preload:
        environment["LD_PRELOAD"] = preload
    for python in ("/usr/bin/python3", sys.executable):
        if os.path.exists(python):
            break
    done = subprocess.run([python, "-I", "-c", script, LIBRARY], capture_output=True,
                          text=True, timeout=program_case.LIMIT, env=environment)
    assert done.returncode == 0, done
    assert done.stdout.endswith("done\n"), done
    return done.stdout


def stock_python_loads_the_library_and_runs_operations(case):
    _without_sanitizer()
    assert "jemalloc=no" in _python(PYTHON)


def python_that_brings_jemalloc_has_its_jobs_use_it(case):
    _without_sanitizer()
    assert "jemalloc=yes" in _python(PYTHON, _jemalloc())


def library_that_is_closed_stays_for_its_threads(case):
    _without_sanitizer()
    _python(UNLOAD)


def _lua(preload=None):
    if not shutil.which(LUA) or not os.path.exists(MODULE):
        raise Skip("lua5.4 or its module is not there")
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if preload:
        environment["LD_PRELOAD"] = preload
    done = subprocess.run([LUA, "-", MODULE], input=LUA_SCRIPT, capture_output=True,
                          text=True, timeout=program_case.LIMIT, env=environment)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done
    assert done.stdout.startswith("lua"), done


def stock_lua_loads_the_module_with_jemalloc_and_without(case):
    _without_sanitizer()
    _lua()
    _lua(_jemalloc())


def library_needs_little_beside_the_c_library(case):
    # libffi and libseccomp: foreign calls and what confines them; both need the C library alone.
    done = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True)
    needed = [line.split("[")[1].rstrip("]") for line in done.stdout.splitlines()
              if "(NEEDED)" in line]
    strangers = [name for name in needed
                 if not name.startswith(("libc.so", "libgcc_s.so", "ld-linux", "libm.so",
                                         "libpthread.so", "libasan", "libubsan", "libtsan",
                                         "libffi.so", "libseccomp.so", "liburing.so"))]
    assert not strangers, strangers
    assert "NODELETE" in done.stdout, done.stdout


if __name__ == "__main__":
    program_case.main(globals())
