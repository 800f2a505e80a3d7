# SPDX-License-Identifier: MIT
"""Policies and tapes of the command line; and that a seed means the same in every process."""
import program_case

SCRIPT = """
local errand = require "errand"
local tasks = {}
for _, i in ipairs(errand.workload(6, "tasks")) do
    tasks[#tasks + 1] = errand.spawn(function()
        for _ = 1, 3 do errand.yield() end
        print(i, errand.choose(1000))
        errand.job("primes", 50)
    end)
end
errand.gather(tasks)
"""
POLICIES = ("shuffle", "fifo", "pick", "pct:3:60", "delay:4:60", "starve:2:60", "portfolio:60")


def _refused(case, *words):
    done = case.lua(SCRIPT, *words)
    assert done.code == 2 and done.out == "", done
    assert done.err.startswith("errand: ") and done.err.count("\n") == 1, done
    return done.err


def the_same_seed_gives_the_same_lines_in_fresh_processes(case):  # D1
    for policy in POLICIES:
        outputs = set()
        for seed in ("1", "2", "3", "40"):
            first = case.lua(SCRIPT, "--seed", seed, "--policy", policy)
            again = case.lua(SCRIPT, "--seed", seed, "--policy", policy)
            assert first.code == 0 and first.out == again.out, (first, again)
            program_case.digest_of(first.out)
            outputs.add(first.out)
        assert len(outputs) == 4, policy


def a_saved_tape_makes_the_same_run_with_any_seed(case):
    for policy in ("shuffle", "pct:3:60"):
        first = case.lua(SCRIPT, "--seed", "5", "--policy", policy, "--save-tape", "t.tape")
        assert first.code == 0, first
        again = case.lua(SCRIPT, "--seed", "6", "--policy", policy, "--tape", "t.tape",
                         "--save-tape", "again.tape")
        assert again.out == first.out and again.err == "", (first, again)
        with open(case.path("t.tape")) as one, open(case.path("again.tape")) as other:
            text = one.read()
            assert text == other.read()
        assert text.startswith("errand tape 1\n") and "\nworkload " in text, text


def items_left_out_on_the_tape_stay_out_and_shift_no_others(case):  # D145
    whole = case.lua(SCRIPT, "--seed", "5", "--save-tape", "t.tape")
    with open(case.path("t.tape")) as file:
        lines = file.read().splitlines()
    for index, line in enumerate(lines):
        fields = line.split()
        if fields[0] == "workload" and fields[2] in ("4", "5"):  # behind those that stay
            lines[index] = " ".join(fields[:-1] + ["1"])
    case.write("less.tape", "\n".join(lines) + "\n")
    less = case.lua(SCRIPT, "--tape", "less.tape", "--seed", "1")
    assert less.code == 0 and "did not ask for" in less.err, less
    numbers = [set(line for line in done.out.splitlines() if "\t" in line)
               for done in (whole, less)]
    assert len(numbers[0]) == 6 and len(numbers[1]) == 4, numbers
    assert numbers[1] < numbers[0], numbers


def an_empty_tape_takes_everything_plain(case):
    case.write("empty.tape", "errand tape 1\n# nothing\n")
    done = case.lua(SCRIPT, "--tape", "empty.tape")
    assert [line for line in done.out.splitlines() if "\t" in line] == [
        "%d\t1" % i for i in range(1, 7)], done
    assert "did not ask" not in done.err, done


def a_bad_tape_is_refused_by_its_line(case):
    case.write("bad.tape", "errand tape 1\npick 0 0 3 3\n")
    assert "bad.tape: line 2: the value must be below n" in _refused(
        case, "--tape", "bad.tape")
    assert "No such file" in _refused(case, "--tape", "none.tape")


def a_tape_that_cannot_be_kept_is_said(case):
    assert "can be written" in _refused(case, "--save-tape", "/nowhere/t.tape")
    done = case.lua(SCRIPT, "--seed", "1", "--save-tape", "/dev/full")
    assert done.code == 7 and "not complete" in done.err, done


def unknown_policies_and_arrival_order_are_refused(case):
    for word in ("random", "pct:0", "pct:99", ""):
        assert "there is no policy" in _refused(case, "--policy", word)
    for words in (["--policy", "pick"], ["--tape", "x"], ["--save-tape", "x"]):
        said = _refused(case, "--order", "arrival", *words)
        assert words[0] in said and "--order inline" in said


def policies_and_tapes_alone_mean_a_seeded_order(case):
    done = case.lua(SCRIPT, "--policy", "fifo")
    assert done.code == 0 and "virtual" in done.out, done


if __name__ == "__main__":
    program_case.main(globals())
