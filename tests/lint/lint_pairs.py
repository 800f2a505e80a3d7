# SPDX-License-Identifier: MIT
"""A tag after "Pairs:" stands at two or more places: both ends of the pair say so.

    Pairs: op-settle (dispatch/settle.c), op-start.        in an atomic's comment block
    atomic_store_explicit(...);  /* Pairs: op-settle */    at each end

A tag is one word of small letters and hyphens; "Pairs: none" is right for an atomic that publishes nothing."""
import collections
import re
import tree

LIST = re.compile(r"Pairs:(.*?)(?:\b[A-Z]\w+:|\.(?:\s|\Z)|\*/|\Z)", re.S)
TAG = re.compile(r"[\s*]*([a-z0-9]+(?:-[a-z0-9]+)*)(?![\w/.])")
places = collections.defaultdict(list)
report = tree.Report()
for path in tree.c_files(report.root):
    for kind, token, line in tree.tokens(tree.read(report.root, path)):
        if kind != "block":
            continue
        for match in LIST.finditer(token):
            # What stands in parentheses tells where, it is no tag.  Points inside end nothing.
            rest = re.sub(r"\([^()]*\)", " ", token[match.start():])
            listed = LIST.search(rest).group(1)
            found = [TAG.match(item) for item in listed.split(",")]
            tags = [item.group(1) for item in found if item]
            if tags == ["none"]:
                continue
            at = line + token.count("\n", 0, match.start())
            for tag in tags:
                places[tag].append((path, at))
            if not tags:
                report.problem(path, at, "Pairs: names no tag (and does not say none)")
for tag, where in sorted(places.items()):
    if len(where) < 2:
        report.problem(where[0][0], where[0][1], "Pairs: %s stands nowhere else" % tag)
report.end()
