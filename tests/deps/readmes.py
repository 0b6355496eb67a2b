#!/usr/bin/env python3
"""Keeps the folders' READMEs true to what is there.

- The README of a folder names each of its sources: by its name, by a pattern with *, or in a file that it sends the
  reader to (`pipeline.cc` has the passes).
- The list of faults in tools/fuzz/README.md names places that are there: `file`: `name in it`.

usage: readmes.py ROOT      exit code 1 and a line per finding if there is any
       readmes.py --self-test
"""

import fnmatch
import re

import check

FAULTS = "tools/fuzz/README.md"
ROW = re.compile(r"^\| [^|]+ \| (`[^|]+) \| [^|]+ \|$", re.M)


def words(text):
    return set(re.findall(r"[\w*]+", text))


def named_by(readme):
    """what stands for files in a README: names and patterns"""
    text = readme.read_text()
    named = words(text)
    for name in re.findall(r"`([\w/.]+\.cc)`", text):
        for file in (readme.parent / name, readme.parent.parent / name):
            if file.is_file():
                named |= words(file.read_text())
    return named


def unnamed(root):
    """(number of files looked at, findings)"""
    findings, count, known = [], 0, {}
    for path, file in check.sources(root):
        readme = file.parent / "README.md"
        if not readme.is_file():
            continue
        count += 1
        if readme not in known:
            known[readme] = named_by(readme)
        named = known[readme]
        patterns = [n for n in named if n.strip("*") and "*" in n]
        if file.stem not in named and not any(fnmatch.fnmatch(file.stem, p) for p in patterns):
            findings.append(f"{path}: is not in the README beside it")
    return count, findings


def text_of(root, name):
    """of the sources of that name below the root or in compiler/; empty if there are none"""
    files = [f for room in (root, root / "compiler") for f in sorted(room.glob(name + ".*")) if f.suffix in (".cc", ".h")]
    return "".join(f.read_text() for f in files)


def faults(root):
    readme = root / FAULTS
    if not readme.is_file():
        return []
    findings = []
    for place in ROW.findall(readme.read_text()):
        text = ""
        for name in re.findall(r"`([^`]+)`", place):
            there = text_of(root, name) if re.fullmatch(r"[\w/]+", name) else ""
            if there:
                text = there
            elif not all(word in text for word in re.findall(r"\w+", name)):
                findings.append(f"{FAULTS}: there is no {name} in {place}")
    return findings


def scan(root):
    count, findings = unnamed(root)
    return count, findings + faults(root)


def self_test():
    """Each file that must be found, and some that must not."""
    wrong = {
        "layout/stray.cc": "",
        "tools/fuzz/README.md": "| a fault | `plan/cost`: `left`, `gone` | 3 |\n",
    }
    right = {
        "layout/README.md": "`shape`; *_rules\n",
        "layout/shape.h": "",
        "layout/gather_rules.cc": "",
        "compiler/pipeline.cc": "passes::fold\n",
        "compiler/README.md": "`pipeline.cc`\n",
        "compiler/passes/README.md": "as in `pipeline.cc`\n",
        "compiler/passes/fold.cc": "",
        "compiler/plan/cost.cc": "int left();\n",
        "tools/alone/any.cc": "",
    }
    return check.self_test(scan, wrong, right)


if __name__ == "__main__":
    check.main(scan, self_test)
