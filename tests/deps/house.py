#!/usr/bin/env python3
"""Keeps the house: what a reader may count on in any file.

- Every source of layout/, compiler/, codegen/, runtime/ and tools/ opens with a comment: the problem and the
  idea. A .cc may leave both to its header and say `// See name.h.`
- Functions fit a screen: at most SCREEN lines. (Not those of compiler/eval and tools/, some of which are lists of ops.)
- No two types of one name: a class, struct or enum that a header defines has a name that no other header gives to
  another type, of whatever namespace.

usage: house.py ROOT      exit code 1 and a line per finding if there is any
       house.py --self-test
"""

import collections
import re

import check

SCREEN = 60
UNSCREENED = ("compiler/eval/", "tools/")

# Where a function may begin, as clang-format prints it: at the margin or inside a class, with a name and "(".
BEGINNING = re.compile(r"^(?P<indent>(?:  ){0,2})(?!(?:if|for|while|switch|do|else|case|return|namespace|enum|class|struct|union"
                       r"|using|constexpr)\b)(?:[A-Za-z~\[][^\n;{}=]*?)?(?P<name>[\w:~]+|operator\S+)\(")
TYPE = re.compile(r"^(?:template <[^\n]*>\n)?(?:class|struct|enum class|enum) (\w+)(?: final)?(?: : [^\n{]*)? \{", re.M)


def functions_of(text):
    """(name, first line, number of lines) of each function with a body of several lines"""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        match = BEGINNING.match(lines[number])
        opening = number
        # A long signature goes on in lines that are indented further.
        while match and opening + 1 < len(lines) and not lines[opening].endswith(("{", "}", ";")):
            opening += 1
            if not lines[opening].startswith(match.group("indent") + "    "):
                match = None
        if not match or not lines[opening].endswith("{"):
            number += 1
            continue
        end = opening + 1
        while end < len(lines) and lines[end] != match.group("indent") + "}":
            end += 1
        yield match.group("name"), number + 1, end - number + 1
        number = end + 1


def types_of(text):
    """names of the types that a header defines at namespace level"""
    return TYPE.findall(text)


def scan(root):
    """(number of files read, findings)"""
    findings, count = [], 0
    types = collections.defaultdict(list)
    for path, file in check.sources(root):
        text = file.read_text()
        count += 1
        if not text.startswith(("// ", "/* ")):
            findings.append(f"{path}:1: does not open with a comment")
        see = re.match(r"// See (\S+\.h)\.", text)
        if see and not (file.parent / see.group(1)).is_file() and not (root / see.group(1)).is_file():
            findings.append(f"{path}:1: sends the reader to {see.group(1)}, which there is not")
        if not path.startswith(UNSCREENED):
            for name, line, length in functions_of(text):
                if length > SCREEN:
                    findings.append(f"{path}:{line}: {name} has {length} lines, a screen {SCREEN}")
        if file.suffix == ".h":
            for name in types_of(text):
                types[name].append(path)
    for name, places in sorted(types.items()):
        if len(places) > 1:
            findings.append(f"{places[-1]}: type {name} is also in {', '.join(places[:-1])}")
    return count, findings


def self_test():
    """Each file that must be found, and some that must not."""
    long = "".join(f"  f({n});\n" for n in range(SCREEN))
    wrong = {
        "layout/bare.cc": "#include <vector>\n",
        "compiler/sent.cc": "// See nowhere.h.\n",
        "compiler/passes/long.cc": "// Idea.\nvoid f(int x) {\n" + long + "}\n",
        "codegen/long.cc": "// Idea.\nvoid f(int x) {\n" + long + "}\n",
        "codegen/member.h": "// Idea.\nclass A {\n  int f(int x) const {\n" + long + "  }\n};\n",
        "codegen/a.h": "// Idea.\nnamespace hlojit::codegen {\nstruct Twice {\n};\n}\n",
    }
    right = {
        "compiler/a.h": "// Idea.\nnamespace hlojit {\nstruct Twice {\n};\nstruct Once {\n};\n}\n",
        "compiler/a.cc": "// See a.h.\n",
        "compiler/eval/a.cc": "// Idea.\nvoid f(int x) {\n" + long + "}\n",
        "codegen/short.cc": "// Idea.\nvoid f(int x) {\n  g();\n}\nvoid h() {\n" + long[:100] + "}\n",
        "runtime/c.h": "/* In C. */\n",
    }
    return check.self_test(scan, wrong, right)


if __name__ == "__main__":
    check.main(scan, self_test)
