# SPDX-License-Identifier: MIT
"""Includes point downwards only; hosts, tools and examples see public headers only; no file
has a name that says nothing."""
import os
import re
import tree

BELOW = {
    "core": [],
    "recording": ["core"],
    "registrar": ["core"],
    "inbox": ["registrar", "core"],  # its nodes are parts of records
    "dispatch": ["registrar", "inbox", "core"],
    "workers": ["dispatch", "core"],
    "workers/sandbox": ["workers", "foreign", "dispatch", "core"],
    "workers/doctor": ["workers", "core"],
    "scheduler": ["inbox", "registrar", "core"],
    "runtime": ["scheduler", "workers", "dispatch", "inbox", "registrar", "recording", "core"],
    "operations": ["core"],
    "foreign": ["core"],
    "durable": ["core"],
    "world": ["core"],
}
PUBLIC_ONLY = ("hosts", "tools", "examples", "include")
NAMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "shared", "stuff"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)

report = tree.Report()
for path in tree.c_files(report.root):
    if os.path.splitext(os.path.basename(path))[0] in NAMELESS:
        report.problem(path, 1, "the file's name does not say what it is for")
    text = tree.without(tree.read(report.root, path), "block", "line")
    parts = path.split("/")
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        target = match.group(1)
        if target.endswith(".c"):
            report.problem(path, line, "includes a .c file")
        if target.startswith("../") or "/../" in target:
            report.problem(path, line, "includes by a path with ..")
            continue
        folder = target.split("/")[0] if "/" in target else None
        if folder == "src":
            report.problem(path, line, "name the folder without src/")
        if folder not in BELOW:
            continue
        if parts[0] == "src" and parts[1] in BELOW:
            own = "/".join(parts[1:3]) if "/".join(parts[1:3]) in BELOW else parts[1]
            if folder != parts[1] and folder not in BELOW[own]:
                report.problem(path, line, "%s may not include %s (only %s)" %
                               (own, folder, ", ".join(BELOW[own]) or "nothing"))
        elif parts[0] in PUBLIC_ONLY:
            report.problem(path, line, "%s/ may use public headers only" % parts[0])
report.end()
