# SPDX-License-Identifier: MIT
"""Atomic operations name their order, fences are not used, and each atomic variable or field
has a comment block: Writers, Readers, Order, Pairs, Why.

The block begins with the names it is about ("state: ..." or "head, tail: ...") and stands in
the same file.  Operators on atomics (x++, x = 1) are found by clang in the preset
threadsafety, which knows types."""
import re
import tree

PLAIN = re.compile(r"\batomic_(load|store|exchange|compare_exchange_(?:strong|weak)|"
                   r"fetch_(?:add|sub|or|xor|and)|flag_test_and_set|flag_clear)\s*\(")
FENCE = re.compile(r"\batomic_(thread|signal)_fence\b|\b__sync_\w+|\b__atomic_\w+")
TYPE = (r"(?:_Atomic\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|_Atomic\b[\w\s*]*?|"
        r"atomic_(?!load|store|exchange|compare|fetch|flag_|init|is_|thread|signal)\w+|"
        r"atomic_flag)")
DECLARED = re.compile(r"^[ \t]*(?:static\s+|extern\s+|_Thread_local\s+|_Alignas\([^)]*\)\s*)*"
                      + TYPE + r"[\s*]*(\w+(?:\s*\[[^\]]*\])*(?:\s*,\s*\**\w+)*)\s*[;=]", re.M)
WORDS = "Writers: Readers: Order: Pairs: Why:"
# "Writers, readers: any thread." says two at once, "Why not weaker: ..." is a Why.
SAID = [re.compile(word, re.I) for word in (r"\bwriters?\b[^.:]*:", r"\breaders?\b[^.:]*:",
                                           r"\border:", r"\bpairs:", r"\bwhy\b[^.:]*:")]

report = tree.Report()
for path in tree.c_files(report.root):
    text = tree.read(report.root, path)
    bare = tree.code(text)
    for match in PLAIN.finditer(bare):
        report.problem(path, bare.count("\n", 0, match.start()) + 1,
                       "atomic_%s without its order; use _explicit" % match.group(1))
    for match in FENCE.finditer(bare):
        report.problem(path, bare.count("\n", 0, match.start()) + 1,
                       "%s: use an operation on the word itself" % match.group())
    if not path.startswith(("src/", "include/", "hosts/")):
        continue
    blocks = [token for kind, token, _ in tree.tokens(text)
              if kind == "block" and all(said.search(token) for said in SAID)]
    subjects = " ".join(block[:SAID[0].search(block).start()] for block in blocks)
    for match in DECLARED.finditer(bare):
        line = bare.count("\n", 0, match.start(1)) + 1
        for name in re.findall(r"\b[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]", "", match.group(1))):
            if not re.search(r"\b%s\b" % re.escape(name), subjects):
                report.problem(path, line, "atomic %s has no comment with %s" %
                               (name, WORDS))
report.end()
