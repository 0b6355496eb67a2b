"""How far an answer may be from XLA:CPU's, by element type; bench/README.md gives the reasons.

|got - golden| <= rtol * |golden| + atol * max(1, largest finite |golden| of that output)
"""

import numpy as np

# Element type: (rtol, atol). Types that are not here (integers, pred) must be equal.
TOLERANCES = {
    "f64": (1e-13, 1e-14),
    "f32": (1e-5, 1e-6),
    "f16": (2e-3, 5e-4),
    "bf16": (1.6e-2, 4e-3),
    "f8e4m3fn": (1.3e-1, 2e-3),
    "f8e5m2": (2.5e-1, 2e-5),
}


def limits(dtype, golden):
    """(rtol, atol) for an output of HLO element type `dtype`, with atol scaled by its largest value."""
    rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
    values = np.abs(np.asarray(golden, dtype=np.float64))
    values = values[np.isfinite(values)]
    largest = float(values.max()) if values.size else 0.0
    return rtol, float(f"{atol * max(1.0, largest):.3g}")


def difference(dtype, got, golden, loose=1.0):
    """None if `got` is close enough, else a sentence about the worst element."""
    if got.shape != golden.shape:
        return f"shape {got.shape} instead of {golden.shape}"
    if dtype not in TOLERANCES:
        wrong = np.flatnonzero(got.ravel() != golden.ravel())
        return f"{wrong.size} of {got.size} elements differ" if wrong.size else None
    rtol, atol = limits(dtype, golden)
    a, b = np.asarray(got, np.float64).ravel(), np.asarray(golden, np.float64).ravel()
    with np.errstate(invalid="ignore"):
        fine = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= loose * (rtol * np.abs(b) + atol))
    wrong = np.flatnonzero(~fine)
    if not wrong.size:
        return None
    worst = wrong[np.argmax(np.nan_to_num(np.abs(a - b)[wrong], nan=np.inf))]
    return f"{wrong.size} of {got.size} elements off, worst [{worst}] {a[worst]:.9g} for {b[worst]:.9g}"
