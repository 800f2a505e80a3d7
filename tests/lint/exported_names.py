# SPDX-License-Identifier: MIT
"""exported_names.py LIBRARY INCLUDE: the shared library shows exactly the functions that the
public headers declare with ERRAND_API (those of testing.h only in a library for tests)."""
import os
import re
import subprocess
import sys
import tree

library, include = sys.argv[1:3]
declared = set()
for folder, _, names in os.walk(include):
    for name in names:
        if name.endswith(".h") and name != "testing.h":
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                bare = tree.code(file.read())
            for match in re.finditer(r"^[^#\n]*\bERRAND_API\b([^;{]*)[;{]", bare, re.M):
                found = re.search(r"\b(errand_\w+)\s*(?:\(|\Z|\[)", match.group(1))
                if found:
                    declared.add(found.group(1))
listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                        text=True, check=True).stdout
exported = {line.split()[2].split("@")[0] for line in listed.splitlines()
            if len(line.split()) == 3 and line.split()[1] != "A"}
for name in sorted(declared - exported):
    print("%s: declared, but not in the library" % name)
for name in sorted(exported - declared):
    print("%s: in the library, but not declared in a public header" % name)
sys.exit(1 if declared != exported else 0)
