"""Trains the examples on hlojit and on XLA:CPU, compares them, and draws the curves.

    python tour.py [mlp] [cnn] [transformer] [--steps N] [--plot FILE]

Each training runs in a process of its own, one after the other. Ends with status 1 if a curve on hlojit is
not the one on XLA:CPU: the first tenth of the losses within 2 %, the mean of the last tenth within 10 %
(rounding makes two trainings drift apart; which kernels sum in which order is nobody's promise).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = ("mlp", "cnn", "transformer")


def run(example: str, steps: int, hlojit: bool) -> dict:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "HLOJIT_AS_CPU": "1" if hlojit else "0"}
    out = subprocess.run([sys.executable, str(HERE / "training.py"), example, "--steps", str(steps)],
                         env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(out.stdout.splitlines()[-1])
    assert ("hlojit" in result["backend"]) == hlojit, result["backend"]
    return result


def same_curve(ours: list[float], theirs: list[float]) -> bool:
    a, b, tenth = np.array(ours), np.array(theirs), max(1, len(ours) // 10)
    return bool(np.allclose(a[:tenth], b[:tenth], rtol=0.02) and
                np.isclose(a[-tenth:].mean(), b[-tenth:].mean(), rtol=0.1, atol=0.02))


def plot(results: dict[str, tuple[dict, dict]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, len(results), figsize=(5 * len(results), 4), squeeze=False)
    for axis, (name, (ours, theirs)) in zip(axes[0], results.items()):
        axis.plot(theirs["losses"], label=f"XLA:CPU, {theirs['rest']:.1f} s", linewidth=3, alpha=0.5)
        axis.plot(ours["losses"], label=f"hlojit, {ours['rest']:.1f} s", linewidth=1)
        axis.set(title=name, xlabel="step", ylabel="loss")
        axis.legend()
    plt.tight_layout()
    plt.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help=f"of {', '.join(EXAMPLES)}; all by default")
    parser.add_argument("--steps", type=int, default=0, help="0: as many as each example says")
    parser.add_argument("--plot", default="tour.png")
    options = parser.parse_args()
    results = {e: (run(e, options.steps, True), run(e, options.steps, False)) for e in options.examples or EXAMPLES}
    print(f"{'':12} {'hlojit: first step, rest':>26} {'XLA:CPU: first step, rest':>26}  last loss of both")
    wrong = []
    for name, (ours, theirs) in results.items():
        times = [f"{r['first']:.2f} s, {r['rest']:.2f} s" for r in (ours, theirs)]
        same = same_curve(ours["losses"], theirs["losses"])
        print(f"{name:12} {times[0]:>26} {times[1]:>26}  {ours['losses'][-1]:.4f}, {theirs['losses'][-1]:.4f}"
              f"{'' if same else '  NOT THE SAME CURVE'}")
        wrong += [] if same else [name]
    plot(results, options.plot)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
