# SPDX-License-Identifier: MIT
"""exported_names.py LIBRARY INCLUDE: the shared library shows exactly the functions that the
public headers declare with ERRAND_API.  Of testing.h it may show some: the others are in the
static library for tests only."""
import os
import re
import subprocess
import sys
import tree

library, include = sys.argv[1:3]
required, allowed = set(), set()
for folder, _, names in os.walk(include):
    for name in names:
        if not name.endswith(".h"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            bare = tree.code(file.read())
        for match in re.finditer(r"^[^#\n]*\bERRAND_API\b([^;{]*)[;{]", bare, re.M):
            found = re.search(r"\b(errand_\w+)\s*(?:\(|\Z|\[)", match.group(1))
            if found:
                (allowed if name == "testing.h" else required).add(found.group(1))
listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                        text=True, check=True).stdout
exported = {line.split()[2].split("@")[0] for line in listed.splitlines()
            if len(line.split()) == 3 and line.split()[1] != "A"}
problems = ["%s: declared, but not in the library" % name
            for name in sorted(required - exported)]
problems += ["%s: in the library, but not declared in a public header" % name
             for name in sorted(exported - required - allowed)]
print("\n".join(problems))
sys.exit(1 if problems else 0)
