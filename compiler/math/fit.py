#!/usr/bin/env python3
"""Fits the polynomials of compiler/math and prints them as C++ arrays.

The kernels need few, low-degree polynomials whose coefficients are exact in the working type. Each is a minimax fit
(Remez exchange in mpmath) of a function to given powers under a weight that turns the error into relative error of the
kernel's result. Then coefficients are rounded to the type one by one, lowest power first, and the rest is fitted anew,
so the rounding of the big ones is absorbed by the small ones.

    python3 -m venv /tmp/fit && /tmp/fit/bin/pip install mpmath
    /tmp/fit/bin/python compiler/math/fit.py [NAME...]

Prints the maximum weighted error in bits beside each array; a kernel wants 26 or more for f32, 55 or more for f64.
"""
import struct
import sys

from mpmath import mp, mpf

mp.prec = 200


def round_to(value, bits):
    """Nearest f32 (bits 24) or f64 (bits 53)."""
    value = float(value)
    return mpf(struct.unpack("f", struct.pack("f", value))[0]) if bits == 24 else mpf(value)


def remez(f, weight, lo, hi, powers, rounds=12):
    """Coefficients c with max |weight(x) * (f(x) - sum c_k x^powers_k)| minimal over [lo, hi], and that maximum."""
    n = len(powers)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * k / 401) for k in range(402)]
    fs = [f(x) for x in grid]
    ws = [weight(x) for x in grid]
    rows = [[w * x**p for p in powers] for x, w in zip(grid, ws)]
    idx = [round(401 * k / n) for k in range(n + 1)]
    # Start from least squares; it also serves where an exchange goes astray (symmetric odd-even cases).
    normal = mp.matrix(n, n)
    right = mp.matrix(n, 1)
    for i in range(n):
        right[i] = mp.fsum(r[i] * w * y for r, w, y in zip(rows, ws, fs))
        for j in range(n):
            normal[i, j] = mp.fsum(r[i] * r[j] for r in rows)
    c = list(mp.lu_solve(normal, right))
    best = (c, max(abs(w * y - mp.fdot(r, c)) for r, w, y in zip(rows, ws, fs)))
    for _ in range(rounds):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for i, k in enumerate(idx):
            for j in range(n):
                a[i, j] = rows[k][j]
            a[i, n] = (-1) ** i
            b[i] = ws[k] * fs[k]
        try:
            sol = mp.lu_solve(a, b)
        except ZeroDivisionError:
            break
        c = [sol[j] for j in range(n)]
        err = [w * y - mp.fdot(r, c) for r, w, y in zip(rows, ws, fs)]
        worst = max(abs(e) for e in err)
        if worst < best[1]:
            best = (c, worst)
        if worst < abs(sol[n]) * mpf("1.001"):
            break
        # Exchange: the largest error of each run of one sign; drop the weaker end while there are too many.
        ext = []
        for k, e in enumerate(err):
            if ext and mp.sign(err[ext[-1]]) == mp.sign(e):
                if abs(e) > abs(err[ext[-1]]):
                    ext[-1] = k
            else:
                ext.append(k)
        while len(ext) > n + 1:
            ext.pop(0 if abs(err[ext[0]]) < abs(err[ext[-1]]) else -1)
        if len(ext) < n + 1:
            break
        idx = ext
    return best


def fit(f, weight, lo, hi, powers, bits):
    """Minimax, then rounds low powers first; the last coefficients are rounded together."""
    lo, hi = mpf(lo), mpf(hi)
    done, rest, target = [], list(powers), f
    while rest:
        c, _ = remez(target, weight, lo, hi, rest)
        v, p = round_to(c[0], bits), rest.pop(0)
        done.append((p, v))
        target = lambda x: f(x) - sum(v * x**p for p, v in done)
    worst = max(abs(weight(x) * target(x)) for x in [lo + (hi - lo) * k / 1000 for k in range(1001)])
    return [v for _, v in done], worst


HALF_LN2 = mp.log(2) / 2 * mpf("1.01")
FITS = {}


def case(name, f, weight, lo, hi, degree, bits):
    FITS[name] = (f, weight, lo, hi, list(range(degree + 1)), bits)


def nz(x):
    return x if abs(x) > mpf(2) ** -40 else mpf(2) ** -40


def exp_tail(x):
    x = nz(x)
    return (mp.expm1(x) - x) / x**2


def exp_tail3(x):
    x = nz(x)
    return (mp.expm1(x) - x - x * x / 2) / x**3


case("exp_f32", exp_tail, lambda x: x**2 / abs(mp.expm1(nz(x))), -HALF_LN2, HALF_LN2, 4, 24)
case("exp_f32_5", exp_tail, lambda x: x**2 / abs(mp.expm1(nz(x))), -HALF_LN2, HALF_LN2, 5, 24)
case("exp_f64", exp_tail, lambda x: x**2 / abs(mp.expm1(nz(x))), -HALF_LN2, HALF_LN2, 10, 53)
case("exp_f64_11", exp_tail, lambda x: x**2 / abs(mp.expm1(nz(x))), -HALF_LN2, HALF_LN2, 11, 53)


def log_tail(x):
    x = nz(x)
    return (mp.log1p(x) - x + x * x / 2) / x**3


SQ = mp.sqrt(2)
for d in (6, 7, 8):
    case(f"log_f32_{d}", log_tail, lambda x: abs(x**3 / mp.log1p(nz(x))), 1 / SQ - 1 - mpf("1e-6"), SQ - 1 + mpf("1e-6"), d, 24)


# log(1+f) = 2 atanh(s), s = f/(2+f): R(z) with 2 atanh(s) = 2s + s*z*R(z), z = s^2.
def atanh_tail(z):
    s = mp.sqrt(nz(z))
    return (2 * mp.atanh(s) - 2 * s) / s**3


ZMAX = ((SQ - 1) / (SQ + 1)) ** 2 * mpf("1.0001")
for d in (5, 6):
    case(f"log_f64_{d}", atanh_tail, lambda z: z / 2, 0, ZMAX, d, 53)


def sin_tail(z):
    r = mp.sqrt(nz(z))
    return (mp.sin(r) - r) / r**3


def cos_tail(z):
    z = nz(z)
    r = mp.sqrt(z)
    return (mp.cos(r) - 1 + z / 2) / z**2


P4 = (mp.pi / 4 * mpf("1.0002")) ** 2
case("sin_f32", sin_tail, lambda z: z, 0, P4, 2, 24)
case("sin_f32_3", sin_tail, lambda z: z, 0, P4, 3, 24)
case("cos_f32", cos_tail, lambda z: z * z, 0, P4, 2, 24)
case("sin_f64", sin_tail, lambda z: z, 0, P4, 5, 53)
case("sin_f64_6", sin_tail, lambda z: z, 0, P4, 6, 53)
case("cos_f64", cos_tail, lambda z: z * z, 0, P4, 5, 53)
case("cos_f64_6", cos_tail, lambda z: z * z, 0, P4, 6, 53)


def atan_tail(z):
    t = mp.sqrt(nz(z))
    return (mp.atan(t) - t) / t**3


for d in (6, 7, 8, 9):
    case(f"atan_f32_{d}", atan_tail, lambda z: z, 0, 1, d, 24)
for d in (12, 13, 14):
    case(f"atan_f64_{d}", atan_tail, lambda z: z, 0, mpf("0.2505"), d, 53)


def asin_tail(z):
    t = mp.sqrt(nz(z))
    return (mp.asin(t) - t) / t**3


for d in (3, 4, 5):
    case(f"asin_f32_{d}", asin_tail, lambda z: z, 0, mpf("0.2501"), d, 24)
for d in (10, 11, 12):
    case(f"asin_f64_{d}", asin_tail, lambda z: z, 0, mpf("0.2501"), d, 53)


# erf(x) = x + x*P(z) for small x.
def erf_small(z):
    x = mp.sqrt(z + mpf(2) ** -150)
    return mp.erf(x) / x - 1


for t in ("0.9", "1.0", "1.1", "1.15", "1.25"):
    for d in (5, 6, 7, 8):
        case(f"erf_small_f32_{t}_{d}", erf_small, lambda z: 1 / (1 + erf_small(z)), 0, mpf(t) ** 2, d, 24)
for t in ("0.9", "1.0"):
    for d in (9, 10, 11, 12):
        case(f"erf_small_f64_{t}_{d}", erf_small, lambda z: 1 / (1 + erf_small(z)), 0, mpf(t) ** 2, d, 53)
# erf(x) = 1 - exp2(Q(x)) beyond: absolute error of erf, d erf = erfc ln2 dQ.
for t in ("0.9", "1.0", "1.25"):
    for d in (5, 6, 7, 8):
        case(f"erf_large_f32_{t}_{d}", lambda x: mp.log(mp.erfc(x), 2), lambda x: mp.erfc(x) * mp.log(2), mpf(t), mpf("3.95"), d, 24)

for d in (14, 16, 18, 20):
    case(f"erf_large_f64_{d}", lambda x: mp.log(mp.erfc(x), 2), lambda x: mp.erfc(x) * mp.log(2), mpf("0.9"), mpf("5.95"), d, 53)


# pow: log(m) = 2s + s*z*(2/3 + z*T(z)).
def pow_tail(z):
    s = mp.sqrt(nz(z))
    return (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


for d in (1, 2, 3):
    case(f"pow_f32_{d}", pow_tail, lambda z: z * z / 2, 0, ZMAX, d, 24)
for d in (8, 9, 10):
    case(f"pow_f64_{d}", pow_tail, lambda z: z * z / 2, 0, ZMAX, d, 53)


# 2^f - 1 = f*P(f)
def exp2_tail(x):
    x = nz(x)
    return mp.expm1(x * mp.log(2)) / x


for d in (3, 4, 5):
    case(f"exp2_f32_{d}", exp2_tail, lambda x: abs(nz(x)), mpf("-0.5"), mpf("0.5"), d, 24)

# erf(x) = 1 - Q(x)^8 beyond the small range: absolute error again.
for t in ("0.9", "1.0", "1.1", "1.15", "1.25"):
    for n in (4, 8, 16):
        for d in (4, 5, 6, 7, 8):
            case(f"erf_power{n}_f32_{t}_{d}", lambda x, n=n: mp.root(mp.erfc(x), n),
                 lambda x, n=n: n * mp.root(mp.erfc(x), n) ** (n - 1), mpf(t), mpf("3.95"), d, 24)


# tanh(x) = x + x^3 P(x^2) for small x.
def tanh_tail(z):
    t = mp.sqrt(nz(z))
    return (mp.tanh(t) - t) / t**3


for t in ("1.0", "1.1", "1.2", "1.3"):
    for n in (4, 8, 16):
        for d in (4, 5, 6, 7):
            case(f"tanh_power{n}_f32_{t}_{d}", lambda x, n=n: mp.root(2 / (mp.exp(2 * x) + 1), n),
                 lambda x, n=n: n * mp.root(2 / (mp.exp(2 * x) + 1), n) ** (n - 1), mpf(t), mpf("9.1"), d, 24)
for t in ("1.0", "1.1", "1.2", "1.3"):
    for d in (5, 6, 7, 8):
        case(f"tanh_f32_{t}_{d}", tanh_tail, lambda z: z * mp.sqrt(nz(z)) / mp.tanh(mp.sqrt(nz(z))), 0, mpf(t) ** 2, d, 24)

# sinh(x) = x + x^3 P(x^2) up to 1.
def sinh_tail(z):
    t = mp.sqrt(nz(z))
    return (mp.sinh(t) - t) / t**3


for d in (2, 3):
    case(f"sinh_f32_{d}", sinh_tail, lambda z: z, 0, 1, d, 24)
for d in (5, 6, 7):
    case(f"sinh_f64_{d}", sinh_tail, lambda z: z, 0, 1, d, 53)

if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        for key in [k for k in FITS if k == name or (name.endswith("*") and k.startswith(name[:-1]))]:
            c, err = fit(*FITS[key])
            print(f"// {key}: {float(-mp.log(err, 2)):.2f} bits")
            print("{" + ", ".join(float(v).hex() for v in c) + "};", flush=True)
