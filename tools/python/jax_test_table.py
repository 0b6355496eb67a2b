"""JAX's own test files on hlojit in the cpu's place and on XLA:CPU, as a table: what passes, and processor seconds.

    python jax_test_table.py DIR FILE... [--keep FOLDER]

DIR: a checkout of JAX at the installed version; FILE: e.g. lax_test.py. One file and one backend at a time, one
worker, one generated case a test; the python that runs this needs what run_jax_tests.sh needs. FOLDER keeps each
run's outcomes: a file that has them on both backends is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

BACKENDS = ("hlojit", "XLA:CPU")


def outcome(case: xml.etree.ElementTree.Element) -> str:
    tags = {child.tag for child in case}
    return "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"


def run(directory: pathlib.Path, file: str, backend: str) -> dict:
    """Outcome by test id, and the processor seconds of all processes."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_GENERATED_CASES": "1",
                   "HLOJIT_AS_CPU": "1" if backend == "hlojit" else "0"}
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "600", "-n", "1",
                        "--junitxml", report.name, f"tests/{file}"], cwd=directory, env=environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cases = list(xml.etree.ElementTree.parse(report.name).iter("testcase"))
    results = {f"{case.get('classname', '').split('.')[-1]}::{case.get('name')}": outcome(case) for case in cases}
    return {"cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "results": results}


def kept(folder: pathlib.Path | None, directory: pathlib.Path, file: str, backend: str) -> dict:
    if folder is None:
        return run(directory, file, backend)
    path = folder / f"{pathlib.Path(file).stem}.{'hlojit' if backend == 'hlojit' else 'xla'}.json"
    if not path.exists():
        path.write_text(json.dumps(run(directory, file, backend)))
    return json.loads(path.read_text())


def row(file: str, runs: dict[str, dict]) -> str:
    passed = {b: {t for t, o in r["results"].items() if o == "passed"} for b, r in runs.items()}
    lost = passed["XLA:CPU"] - passed["hlojit"]
    cells = [pathlib.Path(file).stem.removesuffix("_test"), *(f"{len(passed[b]):,}" for b in BACKENDS),
             str(len(lost) or "none"), *(f"{runs[b]['cpu']:.0f}" for b in BACKENDS)]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    print("| file | passed on hlojit | on XLA:CPU | passed there alone | processor seconds, hlojit | XLA:CPU |")
    print("|---|--:|--:|--:|--:|--:|")
    for file in options.files:
        print(row(file, {b: kept(options.keep, options.directory, file, b) for b in BACKENDS}), flush=True)


if __name__ == "__main__":
    main()
