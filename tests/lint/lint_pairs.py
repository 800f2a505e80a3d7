# SPDX-License-Identifier: MIT
"""A tag after "Pairs:" stands at two or more places: both ends of the pair say so.

    Pairs: op-settle (dispatch/settle.c), op-start.        in an atomic's comment block
    atomic_store_explicit(...);  /* Pairs: op-settle */    at each end

A tag has a hyphen; "Pairs: none" is right for an atomic that publishes nothing."""
import collections
import re
import tree

LIST = re.compile(r"Pairs:(.*?)(?:\b[A-Z]\w+:|\*/|\Z)", re.S)
TAG = re.compile(r"(?<![\w/.-])[a-z0-9]+(?:-[a-z0-9]+)+(?![\w/-])")
places = collections.defaultdict(list)
report = tree.Report()
for path in tree.c_files(report.root):
    for kind, token, line in tree.tokens(tree.read(report.root, path)):
        if kind != "block":
            continue
        for match in LIST.finditer(token):
            # What stands in parentheses tells where, it is no tag.
            listed = re.sub(r"\([^()]*\)", " ", match.group(1))
            tags = TAG.findall(listed)
            at = line + token.count("\n", 0, match.start())
            for tag in tags:
                places[tag].append((path, at))
            if not tags and not re.search(r"\bnone\b", listed):
                report.problem(path, at, "Pairs: names no tag (and does not say none)")
for tag, where in sorted(places.items()):
    if len(where) < 2:
        report.problem(where[0][0], where[0][1], "Pairs: %s stands nowhere else" % tag)
report.end()
