# SPDX-License-Identifier: MIT
"""What the lints share: the project's files, C text without comments, promises, reports."""
import argparse
import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
C_FILES = (".c", ".h", ".hpp")

Promise = collections.namedtuple("Promise", "number sentence status reason line")


def files(root):
    """Every file that belongs to the project, as sorted paths relative to root: what git
    knows or would add; without git, everything but build output."""
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"], capture_output=True, check=True).stdout
        paths = {path.decode() for path in listed.split(b"\0") if path}
    else:
        paths = set()
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in ("build", "__pycache__")]
            paths.update(os.path.relpath(os.path.join(folder, name), root)
                         for name in names)
    return sorted(path for path in paths if os.path.isfile(os.path.join(root, path)))


def c_files(root, *folders):
    """The C files, of all folders or of those named."""
    return [path for path in files(root) if path.endswith(C_FILES)
            and (not folders or path.startswith(tuple(f + "/" for f in folders)))]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


TOKEN = re.compile(r"""
    (?P<block>/\*.*?(?:\*/|\Z))
  | (?P<line>//[^\n]*)
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<char>'(?:\\.|[^'\\\n])*')
""", re.S | re.X)


def tokens(text):
    """Yields (kind, text, line number) of each comment, string and character constant."""
    line, at = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        yield match.lastgroup, match.group(), line


def blank(text):
    """Spaces in place of everything but line ends."""
    return re.sub(r"[^\n]", " ", text)


def without(text, *kinds):
    """The same text, with tokens of these kinds blanked; lines and columns stay."""
    return TOKEN.sub(lambda m: blank(m.group()) if m.lastgroup in kinds else m.group(), text)


def code(text):
    """Without comments and without what strings say."""
    return without(text, "block", "line", "string", "char")


ROW = re.compile(r"^\|\s*([A-Z]\d+)\s*\|(.*)\|([^|]*)\|\s*$")


def promises(root):
    """The rows of docs/promises.md, in order."""
    rows = []
    if not os.path.exists(os.path.join(root, "docs/promises.md")):
        return rows
    for number, line in enumerate(read(root, "docs/promises.md").splitlines(), 1):
        match = ROW.match(line)
        if match:
            # "met, later: reason" is met, and a part of it comes later.
            status, _, reason = re.sub(r",\s*later\b", "", match.group(3)).partition(":")
            rows.append(Promise(match.group(1), match.group(2).strip(), status.strip(),
                                reason.strip(), number))
    return rows


class Report:
    """Collects problems; prints them as file:line: what, and says how to exit."""

    def __init__(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--root", default=ROOT)
        parser.add_argument("--changed", action="store_true",
                            help="slow lints look at changed files only")
        self.options = parser.parse_args()
        self.root = os.path.abspath(self.options.root)
        self.problems = 0

    def problem(self, path, line, what):
        self.problems += 1
        print("%s:%d: %s" % (path, line, what))

    def note(self, text):
        """Says what is no problem; ./check leaves such lines out where it shows failures."""
        print("note: " + text)

    def end(self):
        sys.exit(1 if self.problems else 0)


def changed(root):
    """Files that differ from where this branch left main, or from the last commit."""
    def git(*words):
        done = subprocess.run(["git", "-c", "safe.directory=*", "-C", root] + list(words),
                              capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""
    head = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main")
    if not base or base == head:
        base = git("rev-parse", "HEAD~1") or head
    named = git("diff", "--name-only", base).splitlines()
    named += git("ls-files", "--others", "--exclude-standard").splitlines()
    return set(named) if head else set(files(root))
