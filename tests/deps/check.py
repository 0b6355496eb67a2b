"""What the checks of this folder share: walking the sources, trying a check on files made up for it, answering."""

import pathlib
import sys
import tempfile

ROOMS = ["layout", "compiler", "codegen", "runtime", "tools"]


def sources(root, rooms=ROOMS):
    """(path below the root, file) of each C++ source, in order"""
    for room in rooms:
        for file in sorted((root / room).rglob("*")):
            if file.suffix in (".h", ".cc") and file.is_file():
                yield file.relative_to(root).as_posix(), file


def self_test(scan, wrong, right):
    """Runs a check on made-up files (path -> text): findings must name each of `wrong` and none of `right`."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in (wrong | right).items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = {finding.split(":")[0] for finding in scan(root)[1]}
    for name in sorted(set(wrong) - found):
        print(f"self-test: {name} should have been reported")
    for name in sorted(found & set(right)):
        print(f"self-test: {name} should not have been reported")
    return found == set(wrong)


def main(scan, try_it):
    """ROOT or --self-test; `scan(root)` gives the number of files read and the findings."""
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(0 if try_it() else 1)
    count, findings = scan(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(findings + [f"{count} files, {len(findings)} findings"]))
    sys.exit(1 if findings or count == 0 else 0)
