# SPDX-License-Identifier: MIT
"""The command line: what is wrong with it is said, with the mend, and the code is 2."""
import os
import program_case


def _refused(case, *words):
    done = case.run(*words)
    assert done.code == 2, done
    assert done.out == "", done
    assert done.err.startswith("errand: ") and done.err.count("\n") == 1, done
    return done.err


def no_command_names_the_commands(case):
    assert "errand tour" in _refused(case)


def an_unknown_command_is_named(case):
    assert "'dance'" in _refused(case, "dance")


def a_script_in_the_place_of_a_command_gets_the_right_line(case):
    assert "errand run notes.lua" in _refused(case, "notes.lua")


def run_without_a_script_says_so(case):
    assert "needs a script" in _refused(case, "run", "--seed", "1")


def an_unknown_option_is_named_with_the_mend(case):
    said = _refused(case, "tour", "--sede", "1")
    assert "--sede" in said and "behind --" in said
    assert "-z" in _refused(case, "tour", "-z")
    assert "short for" not in _refused(case, "run", "--frob")


def every_command_takes_the_short_forms_of_its_options(case):
    for command in ("run", "explore", "tour", "log", "diff", "call", "doctor", "version"):
        texts = {case.run(*words).out for words in ((command, "--help"), (command, "-h"),
                                                    (command, "--he"), ("help", command))}
        assert len(texts) == 1 and texts.pop().startswith("errand "), command
    assert case.run("doctor", "--js").out.startswith("{")
    assert "-z" in _refused(case, "doctor", "-z")
    assert "'now'" in _refused(case, "doctor", "now")


def a_short_option_that_means_several_names_them(case):
    said = _refused(case, "tour", "--s", "1")
    assert "--seed" in said and "--stats" in said and "there is no option" not in said
    assert "--seed" in _refused(case, "tour", "--s=1")


def a_run_writes_over_none_of_its_own_files(case):
    script = case.path("script.lua")
    with open(script, "w") as file:
        file.write("print(1)\n")
    link = case.path("link.lua")
    os.symlink(script, link)
    assert case.run("run", script, "--seed", "1", "--record", case.path("a.log"),
                    "--save-tape", case.path("a.tape")).code == 0
    log, tape = case.path("a.log"), case.path("a.tape")
    for words in (["--record", script], ["--trace", link], ["--seed", "1", "--save-tape", script],
                  ["--replay", log, "--record", log], ["--replay", log, "--trace", log],
                  ["--tape", tape, "--save-tape", tape], ["--tape", tape, "--record", tape],
                  ["--trace", case.path("new"), "--record", case.path("new")],
                  ["--seed", "1", "--trace", case.path("new"), "--save-tape", case.path("new")]):
        assert "that is the same file as" in _refused(case, "run", script, *words), words
    assert not os.path.exists(case.path("new"))
    with open(script) as file:
        assert file.read() == "print(1)\n"
    assert os.path.getsize(log) > 0 and os.path.getsize(tape) > 0
    assert case.run("run", script, "--seed", "1", "--trace", "/dev/null", "--save-tape",
                    "/dev/null").code == 0


def help_tells_what_ctrl_c_does(case):
    said = case.run("help").out
    assert "shield" in said and "second Ctrl-C ends it at once" in said


def an_option_without_its_value_is_named(case):
    assert "--seed needs a value" in _refused(case, "tour", "--seed")


def a_flag_with_a_value_is_named(case):
    assert "--quiet takes no value" in _refused(case, "tour", "--quiet=yes")


def values_out_of_range_are_refused(case):
    for option, values in {
            "--seed": ["", "-1", "x", "1x", "18446744073709551616", "0x", "1e3"],
            "--workers": ["0", "1025", "-1", "two", ""],
            "--deadline": ["0", "-1", "nan", "inf", "soon", "", "1e300"],
            "--order": ["", "random", "Inline"]}.items():
        for value in values:
            said = _refused(case, "tour", option, value)
            assert option in said, said


def a_word_too_many_is_named(case):
    assert "'here'" in _refused(case, "tour", "here")
    assert "'too'" in _refused(case, "help", "run", "too")


def tree_belongs_to_the_tour(case):
    case.write("a.lua", "print(1)")
    assert "cd" in _refused(case, "run", "a.lua", "--tree", ".")


def a_tree_that_is_no_folder_is_named(case):
    done = case.run("tour", "--tree", "nowhere")
    assert done.code == 2 and "nowhere" in done.err, done


def help_and_version_answer_on_standard_output(case):
    for words in (["help"], ["--help"], ["-h"], ["help", "run"], ["run", "--help"],
                  ["tour", "-h"], ["help", "codes"], ["help", "tour"], ["help", "help"]):
        done = case.run(*words)
        assert done.code == 0 and done.err == "" and len(done.out) > 100, done
    for words in (["--version"], ["version"]):
        done = case.run(*words)
        assert done.code == 0 and done.out.startswith("errand 0."), done
    assert case.run("help", "nothing").code == 2


def options_stand_anywhere_and_two_hyphens_end_them(case):
    case.write("a.lua", "print(#arg, arg[0], arg[1], arg[2], ...)")
    done = case.run("run", "--quiet", "a.lua", "x", "--seed", "3", "--", "--seed")
    assert done.code == 0 and done.out == "2\ta.lua\tx\t--seed\tx\t--seed\n", done


if __name__ == "__main__":
    program_case.main(globals())
