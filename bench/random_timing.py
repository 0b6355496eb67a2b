"""Programs drawn at random (random_programs/): hlojit against XLA:CPU, worst first.

    build/venv/bin/python bench/random_timing.py FAMILY... [--seed N] [--count N] [--seconds S] [--threads N]
    build/venv/bin/python bench/random_timing.py all --answers --count 20      # nothing is timed

Nobody chose these programs, so what is slow in them was seen by nobody; small.py says how they are compared and
timed. Where the two sides differ, the evaluator is asked: if it agrees with hlojit, the program is listed as one that
XLA:CPU rounds otherwise (sums that cancel, steps and ties, what its fusions do not round). The exit code is 1 if it
does not, or if hlojit fails. A program that XLA:CPU does not run is told and left out.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import small
import xla_peer


def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("families", nargs="+", metavar="FAMILY", help="names in random_programs/__init__.py, or all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50, help="programs a family (default 50)")
    parser.add_argument("--numbers", type=int, nargs="+", metavar="N", help="only these of them")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further program of a family after that long")
    parser.add_argument("--answers", action="store_true", help="compare only")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--min-ms", type=float, default=6)
    parser.add_argument("--save", metavar="DIR", help="write DIR/FAMILY_SEED_NUMBER.hlo of each")
    parser.add_argument("--hlojit", default=str(small.ROOT / "build/release/bin/hlojit"))
    return parser.parse_args()


def judged(problem, made, ours):
    """What a difference between the sides is: wrong, or another rounding of XLA:CPU's."""
    if not problem.startswith("WRONG"):
        return problem
    answer = ours.ask(cmd="check", against_eval=True, timeout_s=60, **made.request)
    if answer["rc"] == 0:
        return f"the evaluator agrees, XLA:CPU does not: {problem.removeprefix('WRONG: ')}"
    return f"{problem}; evaluator: {answer.get('msg', answer['rc'])}"


def measure(case, options, peer, ours, nothing):
    """Figures as small.timed makes them (none with --answers), or a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = small.prepared(case, peer, ours, pathlib.Path(folder))
            problem = small.compared(made, ours)
        except Exception as error:  # noqa: BLE001 - a peer that cannot run one program goes on with the next
            return f"XLA:CPU fails: {str(error).splitlines()[0][:120]}"
        if problem:
            return judged(problem, made, ours)
        return [] if options.answers else small.timed(made, options, ours, nothing)


def run(family, options, peer, ours, nothing):
    """Prints a family's list; the number of programs that are wrong or fail."""
    from random_programs import program
    rows, problems, begin = [], [], time.monotonic()
    for number in options.numbers or range(options.count):
        if time.monotonic() - begin > options.seconds:
            break
        case, text = program(family, options.seed, number)
        if options.save:
            (pathlib.Path(options.save) / f"{case.name}.hlo").write_text(small.text_of(case))
        found = measure(case, options, peer, ours, nothing)
        if isinstance(found, str):
            problems.append(f"{case.name}: {found}\n    {text}")
        else:
            rows.append((found, case.name, text))
    if not options.answers:
        for (us, xla, ratio, *_), name, text in sorted(rows, key=lambda row: row[0][2]):
            print(f"{ratio:7.2f} {us:10.1f} {xla:10.1f} us  {name}: {text}")
    for problem in problems:
        print(problem)
    wrong = sum("WRONG" in p or ": fails: " in p for p in problems)
    timed = "" if options.answers else f"; {small.summary([r[0] for r in rows])}; {options.threads} threads"
    print(f"{family}, seed {options.seed}: {len(rows)} agree, {len(problems)} problems, {wrong} wrong{timed}", flush=True)
    return wrong


def main():
    options = options_of()
    xla_peer.restart_with_kept_memory(options.threads)
    from random_programs import FAMILIES
    families = list(FAMILIES) if options.families == ["all"] else options.families
    if unknown := [f for f in families if f not in FAMILIES]:
        sys.exit(f"random_timing.py: no family {unknown[0]}; there are {', '.join(FAMILIES)}")
    if options.save:
        pathlib.Path(options.save).mkdir(parents=True, exist_ok=True)
    peer, ours, nothing = small.sides(options)
    wrong = sum([run(family, options, peer, ours, nothing) for family in families])
    ours.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
