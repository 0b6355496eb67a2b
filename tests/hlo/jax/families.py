"""JAX programs by family of ops, for generate.py."""

import dataclasses
import re
import zlib
from functools import partial

import jax
import jax.numpy as jnp
import ml_dtypes  # noqa: F401: NumPy's names of the narrow floats
import numpy as np
from jax import lax

FAMILIES = {}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NARROW = ["float8_e5m2", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
          "float8_e5m2fnuz", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn"]


@dataclasses.dataclass
class Case:
    """One section; `ulp`, `tol` and `rows` are claims of the runner. Without a tolerance: bit for bit.
    The text is the one for `platform`, the results are always those of XLA:CPU."""
    name: str
    function: object
    arguments: tuple
    ulp: float = 0
    tol: float = 0
    rows: str = ""
    platform: str = "cpu"


def family(function):
    FAMILIES[function.__name__] = function
    return function


class Draw:
    """Arrays drawn from a name, of values that are short in text and exact in narrow floats."""

    def __init__(self, name):
        self.generator = np.random.default_rng(zlib.crc32(name.encode()))

    def ints(self, shape, low, high, dtype="int32"):
        return self.generator.integers(low, high, shape).astype(dtype)

    def floats(self, shape, dtype="float32", scale=4):
        """Multiples of 1/16 in [-scale, scale): sums and products of few are exact."""
        return (self.generator.integers(-16 * scale, 16 * scale, shape) / 16).astype(dtype)

    def complexes(self, shape, dtype="complex64"):
        return (self.floats(shape) + 1j * self.floats(shape)).astype(dtype)

    def distinct(self, shape, dtype="float32"):
        n = int(np.prod(shape))
        return (self.generator.permutation(n).reshape(shape) - n // 2).astype(dtype)


def pairs(values, dtype):
    return tuple(m.reshape(-1).astype(dtype) for m in np.meshgrid(values, values))


def bits_of(dtype):
    return int(re.sub(r"\D", "", dtype))


def is_signed(dtype):
    return not dtype.startswith("u")


# ---- elementwise ----

FUNCTIONS = {
    "abs": lax.abs, "cbrt": lax.cbrt, "ceil": lax.ceil, "cos": lax.cos, "erf": lax.erf, "exp": lax.exp,
    "expm1": lax.expm1, "floor": lax.floor, "log": lax.log, "log1p": lax.log1p, "logistic": lax.logistic,
    "neg": lax.neg, "round": lax.round, "even": partial(lax.round, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN),
    "rsqrt": lax.rsqrt, "sign": lax.sign, "sin": lax.sin, "sqrt": lax.sqrt, "tan": lax.tan, "tanh": lax.tanh,
}
COMPOSED = {
    "asin": lax.asin, "acos": lax.acos, "atan": lax.atan, "sinh": lax.sinh, "cosh": lax.cosh, "asinh": lax.asinh,
    "acosh": lambda x: lax.acosh(x + 1), "atanh": lax.atanh, "erfc": lax.erfc, "erf_inv": lax.erf_inv,
    "exp2": lax.exp2, "i0e": lax.bessel_i0e,
}


@family
def functions():
    """Every function of one float, at special values and some ordinary ones."""
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2.5, -2.5, 3.5, 0.3125, -8, 27, 10.75]
    for dtype in FLOATS:
        ulp = {"float16": 1, "bfloat16": 1, "float32": 6, "float64": 8}[dtype]
        yield Case(f"unary_{dtype}", lambda x: [f(x) for f in FUNCTIONS.values()] + [lax.is_finite(x)],
                   (np.array(values, dtype),), ulp=ulp, rows="68-70, 72-74, 75, 76, 78-82, 86-93")


@family
def composed():
    """Functions that JAX writes in others."""
    values = np.array([0.125, -0.375, 0.5, 0.75, -0.8125, 0.9375, 0.03125, 0.25])
    for dtype in ("float32", "float64"):
        yield Case(f"of_one_{dtype}", lambda x: [f(x) for f in COMPOSED.values()] + [lax.nextafter(x, -x)],
                   (values.astype(dtype),), tol=2e-5 if dtype == "float32" else 1e-11)


@family
def binary():
    """Float arithmetic over all pairs of special values."""
    values = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2.5, -3.25]
    for dtype in FLOATS:
        yield Case(f"pairs_{dtype}",
                   lambda x, y: [x + y, x - y, x * y, x / y, lax.rem(x, y), lax.max(x, y), lax.min(x, y)],
                   pairs(values, dtype), rows="47-51, 53, 54")
        yield Case(f"powers_{dtype}", lambda x, y: [lax.pow(x, y), lax.atan2(x, y)], pairs(values, dtype),
                   ulp=1 if dtype in ("float16", "bfloat16") else 4, rows="52, 60")


@family
def integers():
    """Integer arithmetic, with division by 0 and shifts by too much among the pairs. XLA:CPU counts the bits of
    an s4 in a byte: left out."""
    for dtype in INTEGERS + ["int4", "uint4"]:
        signed, bits = is_signed(dtype), bits_of(dtype)
        high = 2**(bits - 1) - 1 if signed else 2**bits - 1
        values = np.array([0, 1, 3, high, high // 2] + ([-1, -3, -high - 1] if signed else [high - 1, 5]),
                          "int64" if signed else "uint64")
        def both(x, y):
            return [x + y, x - y, x * y, lax.div(x, y), lax.rem(x, y), lax.max(x, y), lax.min(x, y), x & y, x | y,
                    x ^ y, lax.shift_left(x, y), lax.shift_right_arithmetic(x, y), lax.shift_right_logical(x, y)]
        def alone(x):
            counts = [lax.population_count(x), lax.clz(x)] if bits_of(str(x.dtype)) > 4 else []
            signs = [lax.neg(x), lax.sign(x)] if is_signed(str(x.dtype)) else []
            return [~x, lax.integer_pow(x, 3), *counts, *signs]
        yield Case(f"pairs_{dtype}", both, pairs(values, dtype), rows="47-51, 53, 54, 56-59")
        yield Case(f"unary_{dtype}", alone, (values.astype(dtype),), rows="68, 71, 82-84, 89")


@family
def predicates():
    """Comparison, selection, clamping, logic."""
    def compare(x, y):
        return [lax.eq(x, y), lax.ne(x, y), lax.ge(x, y), lax.gt(x, y), lax.le(x, y), lax.lt(x, y)]
    def total(x, y):
        return [lax.eq_to_p.bind(x, y), lax.le_to_p.bind(x, y), lax.lt_to_p.bind(x, y)]
    floats = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan]
    for dtype in FLOATS:
        yield Case(f"compare_{dtype}", compare, pairs(floats, dtype), rows="65")
    yield Case("total_order", total, pairs(floats, "float32"), rows="66")
    for dtype in INTEGERS:
        yield Case(f"compare_{dtype}", compare, pairs([-2, 0, 1] if is_signed(dtype) else [0, 1, 200], dtype), rows="65")
    yield Case("logic", lambda p, q: [p & q, p | q, p ^ q, ~p, lax.eq(p, q), lax.lt(p, q)], pairs([0, 1], "bool"),
               rows="55, 65, 83")
    draw = Draw("predicates")
    x, y, c = draw.floats((3, 5)), draw.floats((3, 5)), draw.ints((3, 5), 0, 2, "bool")
    yield Case("select", lambda c, x, y: [jnp.where(c, x, y), lax.clamp(np.float32(-1), x, np.float32(2)),
                                          lax.clamp(jnp.minimum(x, y), x, jnp.maximum(x, y)),
                                          lax.select(c[0, 0], x, y)],
               (c, x, y), rows="95-98")
    yield Case("select_n", lambda w, x, y, z: lax.select_n(w, x, y, z),
               (draw.ints((3, 5), 0, 3), x, y, draw.floats((3, 5))), rows="97")


@family
def conversions():
    """Every type to every type: zeros, ones, limits, ties; what one rounding of an f64 and two agree on."""
    types = ["bool", *INTEGERS, "int4", "uint4", *FLOATS, *NARROW, "complex64"]
    reals = [0, 1, -1, -8, 0.5, -0.5, 1.5, 2.5, 5.5, 15, 240, -300, 448, 57344, 70000, 3e9, -3e9]
    for source in types[:-1]:
        if source == "bool":
            x = np.array([0, 1], bool)
        elif "int" in source:
            high = 2**(bits_of(source) - is_signed(source)) - 1
            values = [0, 1, 7, high, high - 1] + ([-1, -high - 1] if is_signed(source) else [])
            x = np.array(values, "int64" if is_signed(source) else "uint64").astype(source)
        elif source == "float4_e2m1fn":  # without 6, which XLA:CPU takes for infinity
            x = np.array([0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14], "uint8").view(source)
        elif source in NARROW:
            x = np.arange(0, 256, 15, "uint8").view(source)
        else:
            x = np.array(reals + [np.inf, -np.inf, np.nan, -0.0]).astype(source)
        yield Case(f"from_{source}", lambda x, source=source: [x.astype(t) for t in types if t != source], (x,), rows="100")
    draw = Draw("conversions")
    yield Case("bits", lambda x: [lax.bitcast_convert_type(x, t) for t in ("uint32", "int16", "uint8", "bfloat16")],
               (draw.floats((3, 4)),), rows="101, 102")
    yield Case("joined", lambda x: [lax.bitcast_convert_type(x, "uint32"), lax.bitcast_convert_type(x, "int8")],
               (draw.ints((3, 4), 0, 255, "uint8"),), rows="101, 103")
    v = np.array([1.0, 1.0009765625, 65519, 65520, 6e-8, 3.4e38, -0.3333333, np.inf, np.nan, 1e-3], "float32")
    yield Case("reduce_precision",
               lambda x: [lax.reduce_precision(x, e, m) for e, m in ((5, 10), (8, 7), (4, 3), (8, 23), (2, 0))], (v,),
               rows="104")


# ---- data movement ----

@family
def moves():
    draw = Draw("moves")
    x, y, v = draw.floats((2, 3, 4)), draw.floats((2, 5, 4)), draw.floats((3,))
    yield Case("shapes", lambda x, v: [jnp.broadcast_to(v, (2, 3)), lax.broadcast_in_dim(v, (3, 2), (0,)),
                                       x.reshape(4, 6), x.reshape(-1), x.transpose(2, 0, 1), x[::-1, :, ::-1],
                                       jnp.ravel(x, order="F")], (x, v), rows="106-109, 111-113")
    yield Case("joined", lambda x, y: [jnp.concatenate([x, y], 1), jnp.stack([x, x + 1], -1), jnp.tile(x[0], (2, 2)),
                                       jnp.roll(y, 2, 1), jnp.repeat(x, 2, 2)], (x, y), rows="114")
    zero = np.float32(0)
    yield Case("padded", lambda x: [lax.pad(x, zero, ((1, 2, 0), (0, 0, 0), (0, 1, 0))),
                                    lax.pad(x, zero, ((0, 0, 0), (-1, 2, 1), (3, -2, 2))),
                                    jnp.pad(x[0], 1, mode="edge"), jnp.pad(x[0], 2, mode="reflect")], (x,), rows="118-120")
    yield Case("sliced", lambda x: [x[:, 1:, ::2], x[1, 2, 1:4], lax.slice(x, (0, 1, 0), (2, 3, 4), (1, 2, 3)),
                                    jnp.diff(x, axis=2), jnp.split(x, 2, 2)[1], jnp.flip(x, 1)], (x,), rows="113, 115")
    yield Case("counted", lambda: [lax.iota("int32", 5), lax.broadcasted_iota("float32", (2, 3), 1), jnp.arange(3, 12, 2),
                                   jnp.eye(3, 4), jnp.tri(3), lax.broadcasted_iota("bfloat16", (2, 3), 0),
                                   lax.broadcasted_iota("uint8", (2, 3), 1), jnp.linspace(0., 1., 5)], (), tol=1e-6,
               rows="105")
    for dtype in ("int8", "uint16", "bfloat16", "float64", "complex64", "bool"):
        yield Case(f"of_{dtype}",
                   lambda z: [z.T, z[::-1], jnp.concatenate([z, z[:1]], 0), z[1:, ::2], jnp.broadcast_to(z[0], (2, 5)),
                              jnp.pad(z, ((1, 0), (0, 2)))], (draw.ints((3, 5), 0, 2 if dtype == "bool" else 100, dtype),),
                   rows="106, 112-115, 118")


@family
def dynamic():
    """Slices and updates at places known at run time; starts are clamped."""
    draw = Draw("dynamic")
    x, u = draw.floats((5, 7)), draw.floats((2, 3))
    for index in ("int32", "int64", "uint8"):
        yield Case(f"starts_{index}",
                   lambda x, u, i, j: [lax.dynamic_slice(x, (i, j), (2, 3)), lax.dynamic_update_slice(x, u, (i, j)),
                                       lax.dynamic_index_in_dim(x, i, 0),
                                       lax.dynamic_update_index_in_dim(x, x[:, 0], j, 1)],
                   (x, u, np.array(2, index), np.array(6, index)), rows="116, 117")
    def cache(x, rows):
        return lax.fori_loop(0, 3, lambda k, x: lax.dynamic_update_slice(x, rows[k][None], (k * 2, 1)), x)
    yield Case("cache", cache, (x, draw.floats((3, 4))), rows="117, 179")


@family
def gather():
    draw = Draw("gather")
    x = draw.floats((5, 4, 3))
    yield Case("rows", lambda x, i: [x[i], x[:, i % 4], jnp.take(x, i, axis=2, mode="clip"),
                                     jnp.take(x, i, axis=0, mode="fill"), x[i, 0, i % 3]],
               (x, draw.ints((6,), -5, 5)), rows="121-123")
    yield Case("pairs", lambda x, i: [x[i[..., 0], i[..., 1]], x[i[..., 0], :, i[..., 1] % 3]],
               (x, draw.ints((3, 2, 2), 0, 4)), rows="121, 125")
    yield Case("along", lambda x, i: [jnp.take_along_axis(x, i, 2), jnp.take_along_axis(x, i, 0)],
               (x, draw.ints((5, 4, 3), 0, 3)), rows="121")
    boxes = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(1,), start_index_map=(0, 2))
    for mode, low, high in (("clip", -1, 4), ("fill", -1, 4), ("promise_in_bounds", 0, 2)):
        # The slice is 1 along the dimension that is left out, 2 along the others.
        yield Case(f"boxes_{mode}", lambda x, i, mode=mode: lax.gather(x, i, boxes, (2, 1, 2), mode=mode),
                   (x, draw.ints((4, 2), low, high)), rows="121-124")
    batched = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(1,), start_index_map=(1,),
                                         operand_batching_dims=(0,), start_indices_batching_dims=(0,))
    yield Case("batching", lambda x, i: lax.gather(x, i, batched, (1, 1, 3), mode="clip"),
               (x, draw.ints((5, 1), 0, 4)), rows="121")
    yield Case("sorted", lambda x, i: x.at[i].get(indices_are_sorted=True, mode="promise_in_bounds"),
               (x, np.array([0, 1, 1, 4], "int32")), rows="126")
    for dtype in ("int8", "bfloat16", "bool", "complex128", "uint16"):
        yield Case(f"of_{dtype}", lambda x, i: x[i], (draw.ints((4, 3), 0, 2, dtype), draw.ints((5,), 0, 4)), rows="121")


@family
def scatter():
    """Where indices repeat, what is combined is exact in every order."""
    draw = Draw("scatter")
    x, i, u = draw.floats((5, 4)), draw.ints((6,), -1, 6), draw.floats((6, 4))
    yield Case("rows", lambda x, i, u: [x.at[i].add(u), x.at[i].max(u), x.at[i].min(u), x.at[i].multiply(2.0),
                                        x.at[i].add(u, mode="clip")], (x, i, u), rows="127, 129, 131")
    yield Case("set", lambda x, i, u: [x.at[i].set(u, mode="drop"),
                                       x.at[i, 1].set(u[:, 0], mode="drop", unique_indices=True)],
               (x, np.array([3, 0, 4, 9], "int32"), draw.floats((4, 4))), rows="127, 129, 131")
    yield Case("histogram", lambda i: jnp.zeros(7, jnp.int32).at[i].add(1), (draw.ints((40,), 0, 9),), rows="129, 131")
    yield Case("points", lambda x, i, u: x.at[i[:, 0], i[:, 1]].add(u),
               (x, draw.ints((7, 2), 0, 4), draw.floats((7,))), rows="127")
    yield Case("segments", lambda i, w: [jnp.bincount(i, w, length=5), jax.ops.segment_sum(w, i, 5),
                                         jax.ops.segment_max(w, i, 5)],
               (draw.ints((12,), 0, 5), draw.floats((12,))), rows="127")
    windows = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    yield Case("windows", lambda x, i, u: lax.scatter_add(x, i, u, windows),
               (x, np.array([[0, 1], [2, 0], [3, 2]], "int32"), draw.floats((3, 2, 2))), rows="127")
    yield Case("take_gradient", jax.grad(lambda x, i: (x[i] ** 2).sum()), (x, np.array([1, 1, 4, 0], "int32")), tol=1e-6)
    for dtype in ("int8", "uint8", "int64", "bfloat16", "float16", "float64", "complex64"):
        yield Case(f"of_{dtype}", lambda z, i, w: z.at[i].add(w),
                   (draw.ints((6, 3), 0, 9, dtype), draw.ints((8,), 0, 6), draw.ints((8, 3), 0, 9, dtype)), rows="127")


# ---- reductions and windows ----

LARGEST = np.float32(-100), np.int32(0)


def larger(a, b):
    """The larger value with what came beside it, of distinct ones."""
    return jnp.maximum(a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])


@family
def reduce():
    draw = Draw("reduce")
    for dtype in (*FLOATS, "int8", "int32", "uint8", "uint64"):
        yield Case(f"of_{dtype}",
                   lambda x: [lax.reduce(x, x.dtype.type(init), f, axes)
                              for f, init in ((lax.add, 0), (lax.mul, 1), (lax.max, 0), (lax.min, 9))
                              for axes in ((0,), (2,), (0, 2), (0, 1, 2))],
                   (draw.ints((2, 3, 4), 0, 3, dtype),), rows="135, 136")
    x = draw.floats((4, 6))
    yield Case("arguments", lambda x: [jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.argmax(x), jnp.max(x, 1),
                                       jnp.any(x > 3, 1), jnp.all(x > -3, 0), jnp.count_nonzero(x > 0)], (x,),
               rows="135, 138")
    yield Case("moments", lambda x: [x.mean(0), x.var(1), x.std(), jax.nn.softmax(x, 1), jax.nn.logsumexp(x, 0),
                                     jnp.linalg.norm(x, axis=1), jnp.prod(x / 2, 1), jnp.median(x, axis=1)], (x,), tol=1e-5)
    yield Case("logic", lambda p: [p.any(0), p.all(1), p.sum(1), lax.reduce_xor(p.astype("int32"), (1,))],
               (draw.ints((3, 5), 0, 2, "bool"),), rows="135")
    yield Case("empty", lambda x: [x.sum(0), x.max(0, initial=-5.0), x.prod(), jnp.any(x > 0, 0)],
               (np.zeros((0, 3), "float32"),), rows="137")
    yield Case("pairs", lambda x, y: lax.reduce((x, y), LARGEST, larger, (1,)),
               (draw.distinct((3, 7)), draw.ints((3, 7), 0, 50)), rows="138")


@family
def windows():
    draw = Draw("windows")
    x = draw.floats((1, 7, 6, 2))
    pools = [((1, 2, 2, 1), (1, 2, 2, 1), "VALID"), ((1, 3, 3, 1), (1, 2, 1, 1), "SAME"),
             ((1, 3, 2, 1), (1, 1, 1, 1), "VALID")]
    yield Case("pools", lambda x: [lax.reduce_window(x, init, f, *pool) for f, init in (
        (lax.max, -np.inf), (lax.add, 0.0)) for pool in pools], (x,), tol=1e-6, rows="139, 140, 143")
    yield Case("dilated", lambda x: [
        lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 2, 1), ((0, 0), (1, 2), (0, 1), (0, 0)),
                          base_dilation=(1, 2, 1, 1), window_dilation=(1, 2, 3, 1)),
        lax.reduce_window(x, np.inf, lax.min, (1, 3, 2, 2), (1, 1, 1, 1), ((0, 0), (0, 2), (1, 0), (0, 0)))],
               (x,), tol=1e-6, rows="139-141")
    for dtype in ("int32", "uint8", "bfloat16", "float16", "float64"):
        yield Case(f"of_{dtype}", lambda z: [
            lax.reduce_window(z, z.dtype.type(0), f, (2, 3), (1, 2), "SAME") for f in (lax.add, lax.max)],
                   (draw.ints((5, 9), 0, 20, dtype),), rows="139, 140")
    yield Case("pairs", lambda x, y: lax.reduce_window((x, y), LARGEST, larger, (1, 3), (1, 2), "VALID"),
               (draw.distinct((3, 9)), draw.ints((3, 9), 0, 50)), rows="142")
    def average(x):
        return (lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()
    yield Case("average_gradient", jax.grad(average), (x,), tol=1e-5)


@family
def select_and_scatter():
    draw = Draw("select_and_scatter")
    def gradient(window, strides, padding):
        def loss(x, w):
            pooled = lax.reduce_window(x, x.dtype.type(-np.inf), lax.max, window, strides, padding)
            return (pooled * w[tuple(slice(n) for n in pooled.shape)]).sum()
        return jax.grad(loss)
    yield Case("pools", lambda x, w: [gradient((1, 2, 2, 1), (1, 2, 2, 1), "VALID")(x, w),
                                      gradient((1, 3, 3, 1), (1, 1, 2, 1), "SAME")(x, w),
                                      gradient((1, 3, 2, 1), (1, 2, 3, 1), "VALID")(x, w)],
               (draw.distinct((1, 6, 7, 2)), draw.floats((1, 6, 7, 2))), tol=1e-6, rows="144-146")
    yield Case("ties", gradient((2, 3), (1, 2), "VALID"), (draw.ints((5, 8), 0, 3, "float32"), draw.floats((5, 8))),
               tol=1e-6, rows="144, 145")
    yield Case("doubles", gradient((2, 3), (2, 2), "SAME"), (draw.distinct((5, 8), "float64"), draw.floats((5, 8), "float64")),
               tol=1e-12, rows="146")


@family
def cumulative():
    draw = Draw("cumulative")
    for dtype in ("float32", "float64", "int32", "bfloat16", "uint8"):
        yield Case(f"of_{dtype}", lambda x: [lax.cumsum(x, 1), lax.cumsum(x, 0, reverse=True), lax.cummax(x, 1),
                                             lax.cummin(x, 0, reverse=True), lax.cumprod(x, 1)],
                   (draw.ints((3, 7), 0, 4, dtype),), rows="139")
    x = draw.floats((2, 37))
    yield Case("long", lambda x: [jnp.cumsum(x, 1), lax.cumlogsumexp(x, 1), jnp.cumsum(x, 0),
                                  lax.associative_scan(lax.mul, x / 8 + 1, axis=1)], (x,), tol=1e-5)
    yield Case("recurrence",
               lambda a, b: lax.associative_scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (a, b)),
               (draw.floats((11,), scale=1), draw.floats((11,))), tol=1e-5)
    yield Case("gradient", jax.grad(lambda x: (lax.cumsum(x, 1) ** 2).sum()), (x,), tol=1e-5)


# ---- contractions ----

@family
def dot():
    draw = Draw("dot")
    kinds = [("float32", None), ("float64", None), ("bfloat16", None), ("bfloat16", "float32"), ("float16", "float32"),
             ("int8", "int32"), ("int32", None), ("uint8", "uint32"), ("complex64", None),
             ("float8_e4m3fn", "float32"), ("float8_e5m2", "float32")]
    for dtype, wide in kinds:
        if dtype.startswith("complex"):
            a, b = draw.complexes((3, 5)), draw.complexes((5, 4))
        else:
            low = 0 if dtype.startswith("u") else -4
            a, b = draw.ints((3, 5), low, 5, dtype), draw.ints((5, 4), low, 5, dtype)
        yield Case(f"of_{dtype}_{wide or dtype}", lambda a, b, wide=wide: [
            lax.dot(a, b, preferred_element_type=wide), lax.dot(a[0], b, preferred_element_type=wide),
            lax.dot(a[0], b[:, 0], preferred_element_type=wide)], (a, b), tol=1e-6 if wide is None else 0, rows="152")
    x, y = draw.floats((2, 3, 4), scale=2), draw.floats((2, 4, 5), scale=2)
    specs = ["bij,bjk->bik", "bij,bjk->kbi", "bij,cjk->bcik", "bij,bjk->b", "bij,ajk->iak"]
    yield Case("einsums", lambda x, y: [jnp.einsum(s, x, y) for s in specs], (x, y), tol=1e-6, rows="153, 154")
    yield Case("two_batch_dims", lambda x, z: [lax.dot_general(x, z, (((2,), (2,)), ((0, 1), (1, 0)))),
                                               lax.dot_general(x, z, (((1, 2), (0, 2)), ((0,), (1,)))),
                                               jnp.tensordot(x[0], z[0], 0)],
               (x, draw.floats((3, 2, 4, 5), scale=2)), tol=1e-6, rows="153, 154")
    yield Case("gradients", jax.grad(lambda x, y: (jnp.tanh(x @ y / 8) ** 2).sum(), (0, 1)), (x, y), tol=1e-5)


@family
def convolution():
    draw = Draw("convolution")
    x, w = draw.floats((2, 4, 5, 4), scale=2), draw.floats((3, 2, 4, 3), scale=2)
    nhwc = ("NHWC", "HWIO", "NHWC")
    conv = partial(lax.conv_general_dilated, dimension_numbers=nhwc)
    yield Case("images", lambda x, w: [conv(x, w, (1, 1), "SAME"), conv(x, w, (2, 1), "VALID"),
                                       conv(x, w, (1, 2), ((1, 2), (-1, 3)))], (x, w), tol=1e-6, rows="155-157, 162")
    yield Case("dilated", lambda x, w: [conv(x, w, (1, 1), ((2, 1), (0, 3)), lhs_dilation=(2, 3)),
                                        conv(x, w, (1, 1), "SAME", rhs_dilation=(2, 2)),
                                        lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=nhwc)], (x, w),
               tol=1e-6, rows="158, 159")
    yield Case("groups", lambda x, w, d: [conv(x, w, (1, 1), "SAME", feature_group_count=2),
                                          conv(x, d, (1, 1), "VALID", feature_group_count=4),
                                          conv(x, jnp.repeat(w, 2, 2), (1, 1), "SAME", batch_group_count=2)],
               (x, draw.floats((3, 2, 2, 4)), draw.floats((3, 3, 1, 8))), tol=1e-6, rows="160, 161")
    yield Case("nchw", lambda x, w: lax.conv(x, w, (1, 2), "SAME"), (draw.floats((2, 3, 4, 5)), draw.floats((4, 3, 2, 3))),
               tol=1e-6, rows="155, 156")
    yield Case("gradients", jax.grad(lambda x, w: (conv(x, w, (2, 1), "SAME") ** 2).sum(), (0, 1)), (x, w), tol=1e-5,
               rows="155-158")
    yield Case("lines", lambda x, w: lax.conv_general_dilated(x, w, (1,), ((2, 0),)),
               (draw.floats((1, 2, 9)), draw.floats((3, 2, 3))), tol=1e-6, rows="155")
    yield Case("volumes", lambda x, w: lax.conv_general_dilated(x, w, (1, 2, 1), "SAME"),
               (draw.floats((1, 2, 3, 4, 3)), draw.floats((2, 2, 2, 3, 2))), tol=1e-6, rows="155, 156")
    for dtype, wide in (("bfloat16", "float32"), ("float16", None), ("int8", "int32"), ("float64", None)):
        yield Case(f"of_{dtype}", lambda a, b, wide=wide: conv(a, b, (1, 1), "SAME", preferred_element_type=wide),
                   (draw.ints((1, 4, 5, 2), -4, 5, dtype), draw.ints((2, 3, 2, 3), -4, 5, dtype)), rows="155")
    yield Case("complex", lambda a, b: conv(a, b, (1, 1), "VALID"),
               (draw.complexes((1, 4, 4, 2)), draw.complexes((2, 2, 2, 2))), tol=1e-6)


# ---- sorting, transforms, factorisations, random numbers ----

@family
def sort():
    draw = Draw("sort")
    specials = np.array([1.5, np.nan, -0.0, 0.0, np.inf, -np.inf, -1.5, np.nan, 0.0, 2.0], "float32")
    x = draw.floats((3, 9))
    yield Case("floats", lambda x, s: [jnp.sort(x, 0), jnp.sort(x, 1), jnp.argsort(s), jnp.sort(s), -jnp.sort(-x, 1)],
               (x, specials), rows="148, 149")
    for dtype in (*INTEGERS, "bfloat16", "float16", "float64", "bool"):
        yield Case(f"of_{dtype}", lambda z: [jnp.sort(z, 1), jnp.argsort(z, 0), jnp.argsort(z, 1, descending=True)],
                   (draw.ints((2, 8), 0, 2 if dtype == "bool" else 6, dtype),), rows="149, 151")
    k, v = draw.ints((2, 7), 0, 3), draw.ints((2, 7), 0, 3)
    yield Case("keys", lambda k, v, x: lax.sort((k, v, x), dimension=1, num_keys=2), (k, v, draw.floats((2, 7))),
               rows="150, 151")
    yield Case("top", lambda x, k: [*lax.top_k(x, 4), *lax.top_k(k, 3), jnp.quantile(x, 0.25, 1),
                                    jnp.searchsorted(jnp.sort(x[0]), x[1])], (x, k), tol=1e-6)
    yield Case("unique", lambda k: jnp.unique(k, size=4, return_counts=True), (k,))
    yield Case("complexes", lambda z: jnp.sort(z), (draw.complexes((6,)),), rows="148")


@family
def fft():
    draw = Draw("fft")
    c, r = draw.complexes((2, 6)), draw.floats((3, 7))
    yield Case("lines", lambda c, r: [jnp.fft.fft(c), jnp.fft.ifft(c), jnp.fft.rfft(r), jnp.fft.irfft(c, 10),
                                      jnp.fft.irfft(c, 11)], (c, r), tol=2e-6, rows="171-174")
    yield Case("several_axes", lambda z: [jnp.fft.fftn(z), jnp.fft.ifft2(z), jnp.fft.rfftn(z.real), jnp.fft.irfftn(z)],
               (draw.complexes((2, 3, 4), "complex128"),), tol=1e-13, rows="171-174")
    yield Case("shifted", lambda c: [jnp.fft.fftshift(jnp.fft.fft(c)), jnp.abs(jnp.fft.fft(c, axis=0)) ** 2], (c,), tol=2e-6)


@family
def linalg():
    """As JAX lowers it for machines without LAPACK: ops instead of custom calls."""
    draw = Draw("linalg")
    for dtype in ("float32", "float64", "complex64", "complex128"):
        drawn = draw.complexes if dtype.startswith("c") else draw.floats
        a, b = drawn((2, 3, 3), dtype), drawn((2, 3, 2), dtype)
        positive = (a @ a.conj().transpose(0, 2, 1) + 4 * np.eye(3)).astype(dtype)
        well = (a + 8 * np.eye(3)).astype(dtype)
        tol = 2e-5 if dtype in ("float32", "complex64") else 1e-13
        yield Case(f"cholesky_{dtype}", lambda a: lax.linalg.cholesky(a, symmetrize_input=False), (positive,), tol=tol,
                   rows="166, 167" if dtype.startswith("c") else "166", platform="tpu")
        def solve(a, b):
            of = partial(lax.linalg.triangular_solve, a)
            t = b.transpose(0, 2, 1)
            return [of(b, left_side=True, lower=True), of(b, left_side=True, lower=False, transpose_a=True),
                    of(t, lower=True, transpose_a=True, conjugate_a=True), of(t, lower=False),
                    of(b / 16, left_side=True, lower=True, unit_diagonal=True)]
        yield Case(f"triangular_{dtype}", solve, (well, b), tol=tol, rows="168-170", platform="tpu")


@family
def random():
    key = np.array([1, 77, 12345, 5], "uint32")
    rows = {"default": "188", "three_fry": "186", "philox": "187"}
    for algorithm in rows:
        kind = getattr(lax.RandomAlgorithm, f"RNG_{algorithm.upper()}")
        for dtype in ("uint32", "uint64") if algorithm != "three_fry" else ("uint8", "uint32", "uint64"):
            yield Case(f"bits_{algorithm}_{dtype}",
                       lambda k, kind=kind, dtype=dtype: lax.rng_bit_generator(k, (3, 5), dtype=dtype, algorithm=kind),
                       (key,), rows=rows[algorithm])
    def draws(k):
        k = jax.random.wrap_key_data(k, impl="threefry2x32")
        a, b = jax.random.split(k)
        return [jax.random.bits(a, (5,), "uint32"), jax.random.uniform(a, (2, 3), "float32"),
                jax.random.normal(b, (5,), "float32"), jax.random.randint(a, (4,), -5, 5, "int32"),
                jax.random.bernoulli(a, 0.3, (5,))]
    yield Case("draws", draws, (np.array([7, 11], "uint32"),), tol=1e-5)


# ---- control flow, complex numbers ----

@family
def control():
    draw = Draw("control")
    x = draw.floats((3, 4), scale=2)
    def loop(x, n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1), (jnp.int32(0), x))
    for n in (5, 0):
        yield Case(f"while_{n}", loop, (x, np.int32(n)), tol=1e-6, rows="179")
    branches = [jnp.sin, lambda x: x * 2, lambda x: x - x.sum()]
    for i in (0, 2, 7, -1):
        yield Case(f"switch_{i}".replace("-", "minus_"), lambda i, x: lax.switch(i, branches, x), (np.int32(i), x),
                   tol=1e-5, rows="178")
    for p in (False, True):
        yield Case(f"cond_{p}".lower(), lambda p, x: lax.cond(p, lambda x: (x.T, 1), lambda x: (x.T + 1, 2), x),
                   (np.bool_(p), x), rows="178")
    def cell(h, x):
        h = jnp.tanh(h @ jnp.eye(4, dtype="float32") * 0.5 + x)
        return h, (h.sum(), h * 2)
    yield Case("scan", lambda x: lax.scan(cell, jnp.zeros(4, "float32"), x), (x,), tol=1e-5, rows="179")
    def unrolled_loss(x):
        return (lax.scan(cell, jnp.zeros(4, "float32"), x, reverse=True)[1][0] ** 2).sum()
    yield Case("scan_gradient", jax.grad(unrolled_loss), (x,), tol=1e-5)
    def inner(i, x):
        return lax.fori_loop(0, i, lambda j, y: jnp.where(y > 0, y - j, y + i), x)
    yield Case("nested", lambda x: lax.fori_loop(0, 3, inner, x), (x,), tol=1e-6, rows="179")
    yield Case("map", lambda x: lax.map(lambda r: jnp.sort(r)[::-1] + r.sum(), x), (x,), tol=1e-6)
    yield Case("vmapped_while", jax.vmap(lambda a: lax.while_loop(lambda a: a < 10, lambda a: a * 2 + 1, a)),
               (np.array([1, 3, 20], "float32"),))
    yield Case("checkpoint", jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()), (x,), tol=1e-5,
               rows="182")
    yield Case("activations", lambda x: [jax.nn.gelu(x), jax.nn.relu(x), jax.nn.silu(x), jax.nn.softplus(x),
                                         jax.nn.one_hot(jnp.argmax(x, 1), 4)], (x,), tol=1e-5, rows="5, 175")


@family
def complex():
    names = ("exp", "expm1", "log", "log1p", "logistic", "neg", "sign", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt")
    used = [FUNCTIONS[n] for n in names] + [lax.abs, lax.real, lax.imag, lax.conj]
    for dtype in ("complex64", "complex128"):
        tol = 2e-6 if dtype == "complex64" else 1e-14
        z = np.array([0.5 + 0.25j, 2.5 - 1.5j, -0.75 + 0.5j, 3 + 4j, -2 - 0.5j, 0.125 - 3j], dtype)
        yield Case(f"functions_{dtype}", lambda z: [f(z) for f in used], (z,), tol=tol * 2,
                   rows="68, 72, 74, 75, 77, 79-82, 85, 88-93")
        a, b = pairs([0j, 1, -1j, 2.5 - 1.5j, -0.75 + 0.25j, 3 + 4j], dtype)
        yield Case(f"pairs_{dtype}", lambda a, b: [a + b, a - b, a * b, lax.eq(a, b), lax.ne(a, b)], (a, b), tol=tol,
                   rows="47-49, 65")
        yield Case(f"quotients_{dtype}", lambda a, b: [a / b, lax.pow(a, b), lax.complex(a.real, b.imag)],
                   (z, z[::-1].copy()), tol=tol * 8, rows="50, 52, 61")
