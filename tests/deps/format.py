#!/usr/bin/env python3
"""Keeps the formatter's word: every C and C++ source of the project is as .clang-format would print it.

Reports each file that is not, with its first line that differs. `clang-format-19 -i FILE...` mends it.

usage: format.py ROOT CLANG_FORMAT     exit code 1 and a line per finding if there is any
"""

import pathlib
import re
import subprocess
import sys

ROOMS = ["layout", "compiler", "codegen", "runtime", "tools", "bench", "tests"]


def main():
    root, formatter = pathlib.Path(sys.argv[1]), sys.argv[2]
    files = sorted(str(path) for room in ROOMS for path in (root / room).rglob("*") if path.suffix in (".cc", ".h", ".c"))
    if not files:
        sys.exit("format: no sources under " + str(root))
    done = subprocess.run([formatter, "--dry-run", *files], capture_output=True, text=True)
    first = {}
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: warning", done.stderr, re.MULTILINE):
        first.setdefault(path, line)
    for path, line in first.items():
        print(f"{pathlib.Path(path).relative_to(root)}:{line}: not as .clang-format prints it")
    print(f"{len(files)} files, {len(first)} not formatted")
    if done.returncode != 0:
        print(done.stderr)
    return 1 if first or done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
