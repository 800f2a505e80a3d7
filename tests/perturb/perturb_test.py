# SPDX-License-Identifier: MIT
"""One seed, one digest and one output, whatever else changes: the perturbation check (D1, D141, I8).

A scenario is a command; its first run, in inline order, is what all others must print to the byte:
the other order, 1 to 16 workers, workers that dawdle, and an environment in which everything that
no seed decides is another.  ERRAND_TEST_SCALE=10 (./check --long) runs it for more seeds, and 1000
seeds twice each instead of 40; where a sanitizer makes each run long, for more programs, and 100.
"""
import os
import platform
import shutil
import subprocess
import sys
import program_case

HOST, JITTER = os.environ["PERTURB_HOST"], os.environ["PERTURB_JITTER"]
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "examples")
SCALE = int(os.environ.get("ERRAND_TEST_SCALE", "1"))
SANITIZED = os.environ["PERTURB_SANITIZED"] == "yes"
LONG = SCALE > 1 and not SANITIZED
SEEDS = range(1, 2 + 2 * LONG)
TIME = program_case.LIMIT * 2


def _run(command, folder, environment=None, **more):
    """What it printed, and how it ended."""
    settings = dict(cwd=folder, env=environment or dict(os.environ), stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME)
    settings.update(more)
    done = subprocess.run(command, **settings)
    return done.returncode, done.stdout, done.stderr


class Place:
    """A folder with a tree to look at and a field to work in, the same wherever it lies."""

    def __init__(self, case, name):
        self.folder = case.path(name)
        os.makedirs(os.path.join(self.folder, "tree", "below", "deep"))
        # Folders list their names in another order if these came in another order.
        names = ["f%d" % i for i in range(12)]
        for at in reversed(names) if len(name) % 2 else names:
            with open(os.path.join(self.folder, "tree", "below", at), "w") as file:
                file.write(at * 100)
        shutil.copy(os.path.join(HERE, "workload.lua"), self.folder)
        for at in os.listdir(os.path.join(EXAMPLES, "planted")):
            shutil.copy(os.path.join(EXAMPLES, "planted", at), self.folder)
        shutil.copy(os.path.join(EXAMPLES, "gather_and_race.lua"), self.folder)

    def fresh(self):
        field = os.path.join(self.folder, "field")
        shutil.rmtree(field, ignore_errors=True)
        os.mkdir(field)
        return self.folder


def _scenarios(case):
    """Name, and a function of (seed, order, workers, jitter) that answers the command."""
    program = case.program

    def script(*words):
        return lambda seed, order, workers, jitter: [
            program, *words, "--seed", str(seed), "--order", order, "--workers", str(workers)]

    all_of = {
        "jobs": lambda seed, order, workers, jitter: [HOST, str(seed), order, str(workers),
                                                      str(jitter)],
        "workload": script("run", "workload.lua"),
        "tour": script("tour", "--tree", "tree"),
    }
    if SANITIZED and SCALE == 1:
        return {"jobs": all_of["jobs"]}
    if LONG:
        all_of["gather"] = script("run", "gather_and_race.lua")
        for name in ("backup", "bank", "locks", "queue", "session"):
            all_of[name] = script("run", name + ".lua")
    return all_of


def _same(case, place, command, expected, what, environment=None, before=(), **more):
    found = _run([*before, *command], place.fresh(), environment, **more)
    if found[:2] == expected[:2]:
        return
    for side, text in (("expected", expected), ("found", found)):
        print("--- %s, %s: code %d" % (what, side, text[0]))
        print(text[1].decode(errors="replace")[-3000:], text[2].decode(errors="replace")[-600:])
    raise AssertionError("%s changed what %s printed" % (what, " ".join(command)))


# The first run, whose output is the expected one.
def _reference(place, make, seed):
    code, out, err = _run(make(seed, "inline", 1, 0), place.fresh())
    # A planted bug may show; then how it shows is what must be the same.
    assert code in (0, 1, 4) and b"digest: " in out, (code, out[-2000:], err[-2000:])
    return code, out, err


def _with(**variables):
    return dict(os.environ, **variables)


# ---- workers ------------------------------------------------------------------------------------

def both_orders_and_any_number_of_workers_print_the_same(case):
    place = Place(case, "here")
    for name, make in _scenarios(case).items():
        for seed in SEEDS:
            expected = _reference(place, make, seed)
            for order in ("inline", "paced"):
                for workers in (1, 2, 4, 16):
                    _same(case, place, make(seed, order, workers, 0), expected,
                          "%s order, %d workers" % (order, workers))


def workers_that_dawdle_change_nothing(case):
    # I23: under the thread sanitizer the bytes of results are what it looks at.
    place = Place(case, "here")
    loaded = {} if SANITIZED else {"LD_PRELOAD": JITTER}
    for name, make in _scenarios(case).items():
        for seed in SEEDS:
            expected = _reference(place, make, seed)
            for workers in (1, 2, 4, 16) if LONG else (2, 16):
                for _ in range(3 if LONG else 1):
                    _same(case, place, make(seed, "paced", workers, 1500), expected,
                          "dawdling, %d workers" % workers, _with(**loaded))


# ---- everything else that no seed decides --------------------------------------------------------

def _limits():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))


def _pinned():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _perturbations():
    """Name, environment, words before the command, settings of the process."""
    arch = ["setarch", platform.machine()]
    junk = "junk:true,zero:false"
    yield "addresses that are not random", None, [*arch, "-R"], {}
    if not SANITIZED:
        yield "random addresses", None, [], {}
        yield "memory that is laid out the old way", None, [*arch, "-L"], {}
    yield "a large environment", _with(FILLER="x" * 100000), [], {}
    yield "a small environment", {"PATH": os.environ["PATH"]}, [], {}
    for locale in ("C", "C.UTF-8", "tr_TR.UTF-8"):
        yield "locale " + locale, _with(LC_ALL=locale, LANG=locale), [], {}
    for zone in ("Asia/Kathmandu", "America/St_Johns", ":/nowhere"):
        yield "time zone " + zone, _with(TZ=zone), [], {}
    yield "memory filled with 0xa5", _with(
        MALLOC_PERTURB_="165", GLIBC_TUNABLES="glibc.malloc.perturb=165",
        MALLOC_CONF=junk), [], {}
    yield "memory filled with 0x01", _with(
        MALLOC_PERTURB_="1", GLIBC_TUNABLES="glibc.malloc.perturb=1",
        MALLOC_CONF="zero:true"), [], {}
    yield "few arenas", _with(GLIBC_TUNABLES="glibc.malloc.arena_max=1",
                              MALLOC_CONF="narenas:1,tcache:false"), [], {}
    yield "one processor", None, [], {"preexec_fn": _pinned}
    yield "few descriptors", None, [], {"preexec_fn": _limits}
    yield "a lower priority", None, ["nice", "-n", "5"], {}


def nothing_of_the_surroundings_is_seen(case):
    place = Place(case, "here")
    for name, make in _scenarios(case).items():
        for seed in SEEDS:
            expected = _reference(place, make, seed)
            for what, environment, before, more in _perturbations():
                _same(case, place, make(seed, "paced", 4, 200), expected, what, environment,
                      before, **more)


def another_folder_and_other_descriptors_are_not_seen(case):
    place = Place(case, "here")
    other = Place(case, os.path.join("a_much_longer_name", "of_another_folder", "elsewhere"))
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(40)]
    try:
        for name, make in _scenarios(case).items():
            expected = _reference(place, make, 1)
            command = make(1, "paced", 4, 200)
            _same(case, other, command, expected, "another folder")
            _same(case, place, command, expected, "40 descriptors more", pass_fds=fds)
            _same(case, place, command, expected, "no standard input",
                  before=["sh", "-c", 'exec "$@" <&-', "sh"])
    finally:
        for fd in fds:
            os.close(fd)


def a_busy_machine_changes_nothing(case):
    place = Place(case, "here")
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(2 * (os.cpu_count() or 1))]
    try:
        for name, make in _scenarios(case).items():
            expected = _reference(place, make, 1)
            for workers in (1, 16):
                _same(case, place, make(1, "paced", workers, 500), expected,
                      "a busy machine, %d workers" % workers)
    finally:
        for process in load:
            process.kill()
            process.wait()


# ---- many seeds ------------------------------------------------------------------------------------

def a_seed_prints_the_same_twice_and_another_one_does_not(case):
    # D1, D2: each seed in two processes, in the two orders in turn.
    place = Place(case, "here")
    scenarios = _scenarios(case)
    count = 1000 if LONG else 100 if SCALE > 1 else 40
    digests = {}
    for seed in range(1, count + 1):
        name = "jobs" if seed % 4 or SANITIZED and SCALE == 1 else "workload"
        first, second = ("inline", "paced") if seed % 2 else ("paced", "paced")
        jitter = 100 if seed % 3 == 0 else 0
        if name == "workload":
            def command(order):
                return [case.program, "run", "workload.lua", "small", "--seed", str(seed),
                        "--order", order]
        else:
            def command(order):
                return scenarios["jobs"](seed, order, 1 + seed % 5, jitter)
        expected = _run(command(first), place.fresh())
        assert expected[0] == 0, expected
        _same(case, place, command(second), expected, "a second process")
        digests.setdefault(name, set()).add(program_case.digest_of(expected[1].decode()))
    for name, found in digests.items():
        assert len(found) > 1, name
    print("%d seeds, each twice: %s other digests" % (
        count, ", ".join("%d of %s" % (len(found), name) for name, found in digests.items())))


if __name__ == "__main__":
    program_case.main(globals())
