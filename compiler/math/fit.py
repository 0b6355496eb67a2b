#!/usr/bin/env python3
"""Fits the polynomials of compiler/math and prints them as C++ arrays.

The kernels need few, low-degree polynomials whose coefficients are exact in the working type. Each is a
minimax fit (Remez exchange in mpmath) of a function to given powers under a weight that turns the error
into relative error of the kernel's result. Then coefficients are rounded to the type one by one, lowest
power first, and the rest is fitted anew, so the rounding of the big ones is absorbed by the small ones.

    python3 -m venv /tmp/fit && /tmp/fit/bin/pip install mpmath
    /tmp/fit/bin/python compiler/math/fit.py [NAME...]

Prints the maximum weighted error in bits above each array, named as in the headers: a kernel wants 26 or
more for f32, 55 or more for f64.
"""

import struct
import sys

from mpmath import mp, mpf

mp.prec = 200


def round_to(value, bits):
    """Nearest f32 (bits 24) or f64 (bits 53)."""
    value = float(value)
    return mpf(struct.unpack("f", struct.pack("f", value))[0]) if bits == 24 else mpf(value)


def shortest(value):
    """A C++ hexadecimal literal without trailing zeros."""
    mantissa, exponent = float(value).hex().split("p")
    return (
        mantissa.rstrip("0").rstrip(".") + "p" + exponent
        if "." in mantissa
        else f"{mantissa}p{exponent}"
    )


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
    worst = max(
        abs(weight(x) * target(x)) for x in [lo + (hi - lo) * k / 1000 for k in range(1001)]
    )
    return [v for _, v in done], worst


FITS = {}


def case(name, f, weight, lo, hi, degree):
    FITS[name] = (
        f,
        weight,
        mpf(lo),
        mpf(hi),
        list(range(degree + 1)),
        24 if name.endswith("32") else 53,
    )


def nz(x):
    """Away from the removable singularities at zero."""
    return x if abs(x) > mpf(2) ** -40 else mpf(2) ** -40


def odd(f):
    """P of f(x) = x + x^3 P(x^2), as a function of z = x^2."""

    def p(z):
        x = mp.sqrt(nz(z))
        return (f(x) - x) / x**3

    return p


# exp: e^r = 1 + r + r^2 Q(r), weighted for expm1.
reach = mp.log(2) / 2 * mpf("1.01")
exp_tail = lambda x: (mp.expm1(nz(x)) - nz(x)) / nz(x) ** 2
exp_weight = lambda x: x**2 / abs(mp.expm1(nz(x)))
case("kExpF32", exp_tail, exp_weight, -reach, reach, 4)
case("kExpF64", exp_tail, exp_weight, -reach, reach, 10)
# The same of eighths of ln 2, relative to e^r.
eighth = mp.log(2) / 16 * mpf("1.01")
case("kExpEighthF32", exp_tail, lambda x: x**2 / mp.exp(x), -eighth, eighth, 1)
case("kExpEighthFineF32", exp_tail, lambda x: x**2 / mp.exp(x), -eighth, eighth, 2)
# tanh h = h + h^3 P(h^2), where |h| <= (0.5 + n) / 2.73 - n ln2 / 2, and an error counts 2^-n.
def tanh_weight(z):
    h = mp.sqrt(nz(z))
    n = max(0, (h - 0.5 / mpf("2.73")) / (1 / mpf("2.73") - mp.log(2) / 2))
    return h**3 / mp.tanh(h) * mpf(2) ** -n


case("kTanhF32", odd(mp.tanh), tanh_weight, 0, mpf("0.1835") ** 2, 2)
case("kTanhF64", odd(mp.tanh), tanh_weight, 0, mpf("1.2") ** 2, 9)
case("kSinhF32", odd(mp.sinh), lambda z: z, 0, 1, 3)
case("kSinhF64", odd(mp.sinh), lambda z: z, 0, 1, 6)

# log(1 + f) = f - f^2/2 + f^3 Q(f)
case(
    "kLogF32",
    lambda x: (mp.log1p(nz(x)) - nz(x) + nz(x) ** 2 / 2) / nz(x) ** 3,
    lambda x: abs(x**3 / mp.log1p(nz(x))),
    mpf("-0.250001"),
    mpf("0.500001"),
    7,
)
# 2 atanh(s) = 2s + s z R(z), z = s^2; for pow the next term apart.
zmax = mpf("0.04001")
twice_atanh = lambda s: 2 * mp.atanh(s)
case(
    "kLogF64",
    lambda z: (twice_atanh(mp.sqrt(nz(z))) - 2 * mp.sqrt(nz(z))) / mp.sqrt(nz(z)) ** 3,
    lambda z: z / 2,
    0,
    zmax,
    7,
)


def pow_tail(z):
    s = mp.sqrt(nz(z))
    return (twice_atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


case("kPowF32", pow_tail, lambda z: z * z / 2, 0, zmax, 3)
case("kPowF64", pow_tail, lambda z: z * z / 2, 0, zmax, 8)

# sin r = r + r^3 P(z), cos r = 1 - z/2 + z^2 Q(z)
quarter = (mp.pi / 4 * mpf("1.0002")) ** 2
cos_tail = lambda z: (mp.cos(mp.sqrt(nz(z))) - 1 + nz(z) / 2) / nz(z) ** 2
case("kSinF32", odd(mp.sin), lambda z: z, 0, quarter, 2)
case("kCosF32", cos_tail, lambda z: z * z, 0, quarter, 2)
case("kSinF64", odd(mp.sin), lambda z: z, 0, quarter, 5)
case("kCosF64", cos_tail, lambda z: z * z, 0, quarter, 5)

case("kAtanF32", odd(mp.atan), lambda z: z, 0, 1, 8)
case("kAtanF64", odd(mp.atan), lambda z: z, 0, mpf("0.2505"), 12)
case("kAsinF32", odd(mp.asin), lambda z: z, 0, mpf("0.2501"), 5)
case("kAsinF64", odd(mp.asin), lambda z: z, 0, mpf("0.2501"), 12)


# erf(x) = x + x P(z); beyond, 1 - Q(x)^8 (f32) and 1 - 2^Q(x) (f64) with absolute accuracy of erf.
def erf_small(z):
    x = mp.sqrt(z + mpf(2) ** -150)
    return mp.erf(x) / x - 1


def root8(x):
    return mp.root(mp.erfc(x), 8)


case("kErfSmallF32", erf_small, lambda z: 1 / (1 + erf_small(z)), 0, mpf("1.1") ** 2, 6)
case("kErfSmallF64", erf_small, lambda z: 1 / (1 + erf_small(z)), 0, mpf("0.9") ** 2, 11)
case("kErfLargeF32", root8, lambda x: 8 * root8(x) ** 7, mpf("1.1"), mpf("3.95"), 6)
case(
    "kErfLargeF64",
    lambda x: mp.log(mp.erfc(x), 2),
    lambda x: mp.erfc(x) * mp.log(2),
    mpf("0.9"),
    mpf("5.95"),
    18,
)

if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        c, err = fit(*FITS[name])
        print(f"// {float(-mp.log(err, 2)):.2f} bits")
        print(
            f"inline constexpr double {name}[] = {{" + ", ".join(shortest(v) for v in c) + "};",
            flush=True,
        )
