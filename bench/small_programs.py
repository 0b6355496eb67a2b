"""The programs of small.py, a line each: a name, a JAX function, its arguments as HLO shapes.

An argument is `f32[31,77]`, with `<9` behind it integers below 9 (indices), with `+` positive floats.
"""

import dataclasses
import re
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn
from jax import random as jr

TYPES = {
    "pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": jnp.bfloat16,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}


@dataclasses.dataclass(frozen=True)
class Argument:
    shape: tuple
    dtype: object
    high: int | None
    positive: bool


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    function: Callable
    arguments: list
    x64: bool
    loose: float


CASES: dict[str, Case] = {}


def argument(text):
    dtype, dims, high, sign = re.fullmatch(r"(\w+)\[([\d,]*)\](?:<(\d+))?(\+?)", text).groups()
    return Argument(tuple(int(d) for d in dims.split(",") if d), TYPES[dtype], int(high) if high else None, bool(sign))


def case(name, function, *arguments, loose=1.0):
    """`loose`: how often the tolerances, where XLA:CPU's own error is as large."""
    assert name not in CASES, name
    x64 = any(re.match(r"(s64|u64|f64|c128)", a) for a in arguments)
    CASES[name] = Case(name, function, [argument(a) for a in arguments], x64, loose)


# ---- elementwise ---------------------------------------------------------------------------------------------
A = "f32[171,203]"
for name, f in {
    "exp": jnp.exp, "tanh": jnp.tanh, "sin": jnp.sin, "erf": lax.erf, "logistic": nn.sigmoid, "gelu": nn.gelu,
    "expm1": jnp.expm1, "atan": jnp.arctan, "cbrt": jnp.cbrt, "round": jnp.round, "sign": jnp.sign, "sinh": jnp.sinh,
    "softplus": nn.softplus, "asinh": jnp.arcsinh, "tan": jnp.tan, "erfc": lax.erfc, "relu": nn.relu, "exp2": jnp.exp2,
    "floor": jnp.floor, "isfinite": jnp.isfinite, "polynomial": lambda x: ((x * 3 + 1) * x - 2) * x + 0.5,
    "elu": nn.elu, "silu": nn.silu,
}.items():
    case(f"f32_{name}", f, A, loose=4)
for name, f in {"log": jnp.log, "log1p": jnp.log1p, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "lgamma": lax.lgamma,
                "digamma": lax.digamma}.items():
    case(f"f32_{name}", f, "f32[171,203]+", loose=8)
case("f32_erf_inv", lambda x: lax.erf_inv(x * 0.45), A, loose=4)
case("f32_pow", jnp.power, "f32[171,203]+", A, loose=8)
case("f32_atan2", jnp.arctan2, A, A)
case("f32_remainder", jnp.remainder, A, "f32[171,203]+", loose=8)
case("f32_divide", jnp.divide, A, "f32[171,203]+")
case("f32_clamp", lambda x: jnp.clip(x, -1, 1), A)
case("f32_hypot", jnp.hypot, A, A)
case("f32_logaddexp", jnp.logaddexp, A, A, loose=4)
case("f32_nextafter", jnp.nextafter, A, A)
case("select_chain", lambda x: jnp.where(x > 1, x * 2, jnp.where(x > 0, x + 1, -x)), A)
case("bias_relu", lambda x, b: nn.relu(x + b), A, "f32[203]")
case("row_scale", lambda x, b: x * b[:, None], A, "f32[171]")
case("outer_sum", lambda a, b: a[:, None] + b[None, :], "f32[171]", "f32[203]")
case("adam", lambda p, g, m, v: (p - 1e-3 * (0.9 * m + 0.1 * g) / (jnp.sqrt(0.99 * v + 0.01 * g * g) + 1e-8),
                                 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g), A, A, A, "f32[171,203]+")
for t in ("bf16", "f16"):
    case(f"{t}_gelu", nn.gelu, f"{t}[171,203]", loose=2)
    case(f"{t}_fma", lambda a, b, c: a * b + c, *[f"{t}[171,203]"] * 3)
    case(f"{t}_maximum", jnp.maximum, f"{t}[171,203]", f"{t}[171,203]")
    case(f"{t}_tanh", jnp.tanh, f"{t}[171,203]", loose=2)
case("f64_exp", jnp.exp, "f64[91,203]")
case("f64_tanh", jnp.tanh, "f64[91,203]", loose=4)
case("f64_sin", jnp.sin, "f64[91,203]", loose=4)
case("f64_fma", lambda a, b, c: a * b + c, *["f64[91,203]"] * 3)
case("c64_multiply", lambda a, b: a * b, "c64[91,203]", "c64[91,203]")
case("c64_exp", jnp.exp, "c64[91,203]", loose=4)
case("c64_abs", jnp.abs, "c64[91,203]")
case("c64_divide", lambda a, b: a / b, "c64[91,203]", "c64[91,203]", loose=64)
case("c64_sqrt", jnp.sqrt, "c64[91,203]", loose=4)
case("c64_real_imag", lambda z: z.real * 2 + z.imag, "c64[91,203]")
case("c64_make", lambda a, b: lax.complex(a, b), "f32[91,203]", "f32[91,203]")
for name, f in {"add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "divide": lambda a, b: lax.div(a, jnp.where(b == 0, 1, b)),
                "remainder": lambda a, b: lax.rem(a, jnp.where(b == 0, 1, b)), "maximum": jnp.maximum,
                "shift": lambda a, b: jnp.left_shift(a, jnp.abs(b) % 5), "xor": jnp.bitwise_xor, "compare": lambda a, b: a < b}.items():
    case(f"s32_{name}", f, "s32[171,203]", "s32[171,203]")
case("s64_multiply", lambda a, b: a * b, "s64[91,203]", "s64[91,203]")
case("s64_divide", lambda a, b: lax.div(a, jnp.where(b == 0, 1, b)), "s64[91,203]", "s64[91,203]")
case("s64_maximum", jnp.maximum, "s64[91,203]", "s64[91,203]")
case("s8_add", lambda a, b: a + b, "s8[171,203]", "s8[171,203]")
case("s8_multiply", lambda a, b: a * b, "s8[171,203]", "s8[171,203]")
case("u8_maximum", jnp.maximum, "u8[171,203]", "u8[171,203]")
case("u32_popcount", lax.population_count, "u32[171,203]")
case("u32_clz", lax.clz, "u32[171,203]")
case("u32_mod7", lambda a: a % 7, "u32[171,203]")
case("pred_and_not", lambda a, b: a & ~b, "pred[171,203]", "pred[171,203]")
for a, b in [("f32", "s32"), ("f32", "s8"), ("s32", "f32"), ("f32", "bf16"), ("bf16", "f32"), ("f32", "f16"), ("f16", "f32"),
             ("u8", "f32"), ("pred", "f32"), ("s8", "s32"), ("s32", "s8"), ("f32", "pred"), ("s64", "f32"), ("f64", "f32"),
             ("f32", "f64"), ("f32", "u32")]:
    t = TYPES[b]
    source = f"{a}[171,203]" + ("+" if b == "u32" else "")
    if b == "f64":
        case(f"convert_{a}_{b}", lambda x, y, t=t: (x.astype(t), y), source, "f64[1]")
    else:
        case(f"convert_{a}_{b}", lambda x, t=t: x.astype(t), source)
case("bitcast_f32_s32", lambda x: lax.bitcast_convert_type(x, jnp.int32) & 0x7fffff, A)
case("quantise", lambda x: jnp.clip(jnp.round(x * 50), -127, 127).astype(jnp.int8), A)
case("iota_mask", lambda x: jnp.where(jnp.arange(203) < jnp.arange(171)[:, None], x, -1e9), A)

# ---- reductions ----------------------------------------------------------------------------------------------
R3 = "f32[23,57,67]"
for name, f in {"sum": jnp.sum, "max": jnp.max, "prod": jnp.prod}.items():
    for where, axis in {"all": None, "first": 0, "middle": 1, "last": 2, "first_two": (0, 1), "last_two": (1, 2)}.items():
        if name == "prod" and where != "middle":
            continue
        case(f"{name}_{where}", lambda x, f=f, axis=axis: f(x, axis=axis), R3, loose=4)
for where, axis in {"first": 0, "last": 1}.items():
    case(f"argmax_{where}", lambda x, axis=axis: jnp.argmax(x, axis=axis), A)
    case(f"softmax_{where}", lambda x, axis=axis: nn.softmax(x, axis=axis), A)
    case(f"logsumexp_{where}", lambda x, axis=axis: nn.logsumexp(x, axis=axis), A)
    case(f"var_{where}", lambda x, axis=axis: jnp.var(x, axis=axis), A)
    case(f"cumsum_{where}", lambda x, axis=axis: jnp.cumsum(x, axis=axis), A, loose=16)
    case(f"norm_{where}", lambda x, axis=axis: jnp.sqrt(jnp.sum(x * x, axis=axis)), A)
case("argmin_all", lambda x: jnp.argmin(x), A)
case("any_last", lambda x: jnp.any(x > 1.9999, axis=1), A)
case("all_first", lambda x: jnp.all(x < 2, axis=0), A)
case("count_nonzero", lambda x: jnp.sum(x > 0, axis=1), A)
case("sum_short_rows", lambda x: jnp.sum(x, axis=1), "f32[9001,5]")
case("max_short_rows", lambda x: jnp.max(x, axis=1), "f32[5003,11]")
case("sum_3_columns", lambda x: jnp.sum(x, axis=0), "f32[9001,3]", loose=8)
case("s32_sum_last", lambda x: jnp.sum(x, axis=1), "s32[171,203]")
case("s8_sum_s32", lambda x: jnp.sum(x.astype(jnp.int32), axis=1), "s8[171,203]")
case("bf16_sum_last", lambda x: jnp.sum(x.astype(jnp.float32), axis=1), "bf16[171,203]", loose=4)
case("bf16_softmax", lambda x: nn.softmax(x, axis=1), "bf16[171,203]", loose=2)
case("f64_sum_first", lambda x: jnp.sum(x, axis=0), "f64[91,203]")
case("f64_max_last", lambda x: jnp.max(x, axis=1), "f64[91,203]")
case("c64_sum", lambda x: jnp.sum(x, axis=1), "c64[91,203]", loose=4)
case("pred_any", lambda x: jnp.any(x, axis=0), "pred[171,203]")
case("layernorm", lambda x, g, b: (x - x.mean(1, keepdims=True)) * lax.rsqrt(x.var(1, keepdims=True) + 1e-5) * g + b, A, "f32[203]", "f32[203]", loose=4)
case("batchnorm", lambda x, g, b: (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-5) * g + b, A, "f32[203]", "f32[203]", loose=4)
case("rmsnorm", lambda x, g: x * lax.rsqrt(jnp.mean(x * x, 1, keepdims=True) + 1e-5) * g, A, "f32[203]")
case("cross_entropy", lambda x, y: -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), y[:, None], 1)), A, "s32[171]<203")
case("cross_entropy_grad", jax.grad(lambda x, y: -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), y[:, None], 1))), A, "s32[171]<203")
case("softmax_grad", lambda x, t: jax.vjp(lambda v: nn.softmax(v, axis=1), x)[1](t)[0], A, A)
case("layernorm_grad", jax.grad(lambda x, g: jnp.sum(jnp.sin((x - x.mean(1, keepdims=True)) * lax.rsqrt(x.var(1, keepdims=True) + 1e-5) * g)), argnums=(0, 1)), A, "f32[203]", loose=16)
case("cummax", lambda x: lax.cummax(x, axis=1), A)
case("cumprod", lambda x: jnp.cumprod(1 + 0.01 * x, axis=1), A, loose=16)
case("cumlogsumexp", lambda x: lax.cumlogsumexp(x, axis=1), A, loose=16)
case("associative_scan", lambda a, b: lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b), axis=0), "f32[127,51]", "f32[127,51]", loose=64)

# ---- windows -------------------------------------------------------------------------------------------------
P = "f32[3,29,31,17]"
case("max_pool_2", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), P)
case("max_pool_3", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), P)
case("avg_pool_3", lambda x: lax.reduce_window(x, 0., lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9, P)
case("max_pool_nchw", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), "f32[3,17,29,31]")
case("max_pool_grad", jax.grad(lambda x: jnp.sum(jnp.sin(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")))), P)
case("avg_pool_grad", jax.grad(lambda x: jnp.sum(jnp.sin(lax.reduce_window(x, 0., lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")))), P)
case("moving_sum", lambda x: lax.reduce_window(x, 0., lax.add, (1, 7), (1, 1), "SAME"), A)
case("stencil_5", lambda x: x[1:-1, 1:-1] * 4 - x[2:, 1:-1] - x[:-2, 1:-1] - x[1:-1, 2:] - x[1:-1, :-2], A)
case("roll_diff", lambda x: jnp.roll(x, 1, 1) - jnp.roll(x, -1, 1), A)

# ---- data movement -------------------------------------------------------------------------------------------
case("transpose", lambda x: x.T, A)
case("transpose_add", lambda x, y: x.T + y, A, "f32[203,171]")
case("transpose_021", lambda x: x.transpose(0, 2, 1), R3)
case("transpose_102", lambda x: x.transpose(1, 0, 2), R3)
case("transpose_210", lambda x: x.transpose(2, 1, 0), R3)
case("transpose_s8", lambda x: x.T, "s8[171,203]")
case("transpose_bf16", lambda x: x.T, "bf16[171,203]")
case("transpose_f64", lambda x: x.T, "f64[91,203]")
case("nhwc_nchw", lambda x: x.transpose(0, 3, 1, 2), P)
case("reshape_odd", lambda x: x.reshape(203, 171) * 2, A)
case("split_heads", lambda x: x.reshape(41, 7, 29).transpose(1, 0, 2), "f32[41,203]")
case("reverse", lambda x: x[:, ::-1], A)
case("reverse_rows", lambda x: x[::-1], A)
case("slice_strided", lambda x: x[::2, ::3], A)
case("slice_odd", lambda x: x[3:150, 5:190], A)
case("pad", lambda x: jnp.pad(x, ((3, 2), (1, 4))), A)
case("pad_interior", lambda x: lax.pad(x, 0., ((1, 0, 1), (0, 2, 2))), "f32[91,103]")
case("concat_last", lambda a, b, c: jnp.concatenate([a, b, c], 1), "f32[171,33]", "f32[171,77]", "f32[171,93]")
case("concat_first", lambda a, b, c: jnp.concatenate([a, b, c], 0), "f32[33,203]", "f32[77,203]", "f32[93,203]")
case("stack_last_2", lambda a, b: jnp.stack([a, b], -1), "f32[91,103]", "f32[91,103]")
case("stack_last_3", lambda a, b, c: jnp.stack([a, b, c], -1), *["f32[91,103]"] * 3)
case("stack_last_5", lambda *a: jnp.stack(a, -1), *["f32[91,53]"] * 5)
case("stack_first_3", lambda a, b, c: jnp.stack([a, b, c]), *["f32[91,103]"] * 3)
case("stack_middle_3", lambda a, b, c: jnp.stack([a, b, c], 1), *["f32[91,103]"] * 3)
case("unstack_3", lambda x: (x[:, 0], x[:, 1], x[:, 2]), "f32[9001,3]")
case("rotary", lambda x, c, s: jnp.concatenate([x[..., :33] * c - x[..., 33:] * s, x[..., 33:] * c + x[..., :33] * s], -1), "f32[91,5,66]", "f32[91,1,33]", "f32[91,1,33]")
case("tile", lambda x: jnp.tile(x, (3, 5)), "f32[57,41]")
case("repeat", lambda x: jnp.repeat(x, 3, axis=1), "f32[57,141]")
case("broadcast_row", lambda x: jnp.broadcast_to(x, (171, 203)), "f32[203]")
case("broadcast_col", lambda x: jnp.broadcast_to(x[:, None], (171, 203)), "f32[171]")
case("one_hot", lambda i: nn.one_hot(i, 203), "s32[171]<203")
case("tril", lambda x: jnp.tril(x), "f32[171,171]")
case("diag_add", lambda x: x + jnp.eye(171), "f32[171,171]")
case("gather_rows", lambda x, i: x[i], "f32[1003,61]", "s32[391]<1003")
case("gather_elements", lambda x, i: x[i], "f32[30011]", "s32[9001]<30011")
case("take_along_last", lambda x, i: jnp.take_along_axis(x, i, 1), A, "s32[171,51]<203")
case("take_along_first", lambda x, i: jnp.take_along_axis(x, i, 0), A, "s32[51,203]<171")
case("gather_2d", lambda x, i, j: x[i, j], A, "s32[5003]<171", "s32[5003]<203")
case("gather_columns", lambda x, i: x[:, i], A, "s32[91]<203")
case("scatter_add_rows", lambda x, i, u: x.at[i].add(u), "f32[503,61]", "s32[191]<503", "f32[191,61]", loose=4)
case("scatter_add_elements", lambda x, i, u: x.at[i].add(u), "f32[3011]", "s32[9001]<3011", "f32[9001]", loose=8)
case("scatter_set", lambda x, i, u: x.at[i].set(u), "f32[3011]", "s32[1]<3011", "f32[1]")
case("segment_sum", lambda u, i: jax.ops.segment_sum(u, i, 91), "f32[1503,33]", "s32[1503]<91", loose=8)
case("bincount", lambda i: jnp.bincount(i, length=91), "s32[9001]<91")
case("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (91, 103)), A, "s32[2]<70")
case("dynamic_update", lambda x, u, i: lax.dynamic_update_slice(x, u, (i[0], i[1])), A, "f32[91,103]", "s32[2]<70")
case("embedding_grad", jax.grad(lambda w, i: jnp.sum(jnp.sin(w[i]))), "f32[503,61]", "s32[191]<503", loose=4)
case("nonzero_mask", lambda x: jnp.where(x > 0, jnp.arange(203), 0).sum(1), A)
case("searchsorted", lambda a, v: jnp.searchsorted(jnp.sort(a), v), "f32[1001]", "f32[777]")

# ---- sorting -------------------------------------------------------------------------------------------------
case("sort_vector", lambda x: jnp.sort(x), "f32[9001]")
case("sort_rows", lambda x: jnp.sort(x, axis=1), "f32[91,103]")
case("sort_columns", lambda x: jnp.sort(x, axis=0), "f32[91,103]")
case("argsort", lambda x: jnp.argsort(x), "f32[9001]")
case("argsort_rows", lambda x: jnp.argsort(x, axis=1), "f32[91,103]")
case("sort_s32", lambda x: jnp.sort(x), "s32[9001]")
case("sort_pairs", lambda k, v: lax.sort((k, v), num_keys=1), "f32[9001]", "f32[9001]")
case("top_k", lambda x: lax.top_k(x, 5), "f32[57,333]")
case("top_k_vector", lambda x: lax.top_k(x, 17), "f32[9001]")
case("top_k_half", lambda x: lax.top_k(x, 50), "f32[91,103]")
case("median", lambda x: jnp.median(x, axis=1), "f32[91,103]")
case("unique_mask", lambda x: jnp.diff(jnp.sort(x)) != 0, "s32[9001]<500")

# ---- products ------------------------------------------------------------------------------------------------
def dot(name, m, k, n, t="f32", f=lambda a, b: a @ b, **options):
    case(name, f, f"{t}[{m},{k}]", f"{t}[{k},{n}]", loose=8, **options)
for name, sizes in {"square_31": (31, 31, 31), "square_67": (67, 67, 67), "square_131": (131, 131, 131), "k_3": (301, 3, 203),
                    "n_7": (301, 203, 7), "n_3": (501, 77, 3), "n_17": (203, 131, 17), "m_3": (3, 203, 301), "m_7": (7, 203, 301), "m_1": (1, 301, 403),
                    "n_1": (403, 301, 1), "outer": (171, 1, 203), "long_k": (13, 3001, 17), "k_7": (131, 7, 171)}.items():
    dot(f"dot_{name}", *sizes)
    dot(f"dot_{name}_rhs_t", sizes[0], sizes[1], sizes[2], f=lambda a, b: a @ b.reshape(b.shape[1], b.shape[0]).T)
case("dot_lhs_t", lambda a, b: a.T @ b, "f32[131,67]", "f32[131,91]", loose=8)
dot("dot_bf16", 131, 131, 131, "bf16")
dot("dot_f16", 67, 131, 67, "f16")
dot("dot_f64", 67, 131, 67, "f64")
dot("dot_s32", 67, 131, 67, "s32")
dot("dot_c64", 67, 67, 67, "c64")
case("dot_s8", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), "s8[67,131]", "s8[131,67]")
case("dot_bf16_f32", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32), "bf16[67,131]", "bf16[131,67]", loose=8)
case("dot_bias_relu", lambda a, b, c: nn.relu(a @ b + c), "f32[67,131]", "f32[131,91]", "f32[91]", loose=8)
case("dot_gelu", lambda a, b, c: nn.gelu(a @ b + c), "f32[67,131]", "f32[131,91]", "f32[91]", loose=8)
case("batched_small", lambda a, b: a @ b, "f32[131,7,9]", "f32[131,9,11]", loose=8)
case("batched_3x3", lambda a, b: a @ b, "f32[1501,3,3]", "f32[1501,3,3]", loose=8)
case("batched_4x4_vector", lambda a, b: jnp.einsum("bij,bj->bi", a, b), "f32[1501,4,4]", "f32[1501,4]", loose=8)
case("batched_31", lambda a, b: a @ b, "f32[13,31,29]", "f32[13,29,37]", loose=8)
case("inner_rows", lambda a, b: jnp.einsum("bi,bi->b", a, b), A, A, loose=8)
case("vector_dot", lambda a, b: a @ b, "f32[30011]", "f32[30011]", loose=64)
case("trace_product", lambda a, b: jnp.einsum("ij,ji->", a, b), "f32[171,171]", "f32[171,171]", loose=64)
case("einsum_bhqk", lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), "f32[2,31,3,17]", "f32[2,29,3,17]", loose=8)
case("attention", lambda q, k, v: nn.softmax(q @ k.transpose(0, 2, 1) * 0.2, -1) @ v, *["f32[3,67,19]"] * 3, loose=8)
case("attention_causal", lambda q, k, v: nn.softmax(jnp.where(jnp.tril(jnp.ones((67, 67), bool)), q @ k.transpose(0, 2, 1) * 0.2, -1e9), -1) @ v, *["f32[3,67,19]"] * 3, loose=8)
case("attention_grouped", lambda q, k, v: jnp.einsum("ghqk,gkd->ghqd", nn.softmax(jnp.einsum("ghqd,gkd->ghqk", q, k), -1), v), "f32[2,3,31,19]", "f32[2,37,19]", "f32[2,37,19]", loose=8)
case("mlp", lambda x, a, b: nn.gelu(x @ a) @ b, "f32[31,67]", "f32[67,131]", "f32[131,67]", loose=16)
case("mlp_grad", jax.grad(lambda a, b, x: jnp.sum(jnp.sin(nn.relu(x @ a) @ b)), argnums=(0, 1)), "f32[67,91]", "f32[91,33]", "f32[31,67]", loose=64)
case("dot_norm", lambda a, b: (lambda y: y / jnp.linalg.norm(y, axis=1, keepdims=True))(a @ b), "f32[67,131]", "f32[131,91]", loose=8)
case("pairwise_distance", lambda a, b: jnp.sqrt(jnp.sum((a[:, None] - b[None]) ** 2, -1)), "f32[131,3]", "f32[127,3]", loose=8)
case("nbody", lambda p: jnp.sum((p[None] - p[:, None]) * (jnp.sum((p[None] - p[:, None]) ** 2, -1) + 0.01)[..., None] ** -1.5, 1), "f32[91,3]", loose=64)
case("kronecker", lambda a, b: jnp.kron(a, b), "f32[13,17]", "f32[11,7]")

# ---- convolutions --------------------------------------------------------------------------------------------
def conv(name, x, w, form="NHWC,HWIO,NHWC", loose=16, **options):
    labels = tuple(form.split(","))
    case(name, lambda x, w: lax.conv_general_dilated(x, w, options.get("strides", (1,) * (len(labels[0]) - 2)), options.get("padding", "SAME"),
         lhs_dilation=options.get("lhs_dilation"), rhs_dilation=options.get("rhs_dilation"), feature_group_count=options.get("groups", 1),
         dimension_numbers=labels), x, w, loose=loose)
conv("conv_3x3", "f32[1,23,25,17]", "f32[3,3,17,19]")
conv("conv_1x1", "f32[1,23,25,33]", "f32[1,1,33,37]")
conv("conv_stem", "f32[1,57,59,3]", "f32[7,7,3,19]", strides=(2, 2))
conv("conv_strided", "f32[1,29,31,13]", "f32[3,3,13,21]", strides=(2, 2))
conv("conv_dilated", "f32[1,29,31,13]", "f32[3,3,13,21]", rhs_dilation=(2, 2))
conv("conv_transposed", "f32[1,17,19,13]", "f32[4,4,13,11]", padding=((2, 2), (2, 2)), lhs_dilation=(2, 2))
conv("conv_depthwise", "f32[1,29,31,35]", "f32[3,3,1,35]", groups=35)
conv("conv_groups_2", "f32[1,23,25,14]", "f32[3,3,2,21]", groups=7)
conv("conv_groups_3", "f32[1,23,25,15]", "f32[3,3,3,15]", groups=5)
conv("conv_nchw", "f32[1,17,23,25]", "f32[19,17,3,3]", "NCHW,OIHW,NCHW")
conv("conv_1d", "f32[3,131,17]", "f32[5,17,19]", "NWC,WIO,NWC")
conv("conv_1d_one_feature", "f32[3,1,1501]", "f32[1,1,33]", "NCW,OIW,NCW")
conv("conv_3d", "f32[1,9,11,13,7]", "f32[3,3,3,7,11]", "NDHWC,DHWIO,NDHWC")
conv("conv_one_channel", "f32[1,91,103,1]", "f32[5,5,1,1]")
conv("conv_bf16", "bf16[1,23,25,17]", "bf16[3,3,17,19]", loose=4)
case("conv_grad_filter", jax.grad(lambda w, x: jnp.sum(jnp.sin(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))))), "f32[3,3,7,11]", "f32[2,17,19,7]", loose=256)
case("conv_grad_input", jax.grad(lambda x, w: jnp.sum(jnp.sin(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))))), "f32[2,17,19,7]", "f32[3,3,7,11]", loose=256)
case("convolve_full", lambda x, k: jnp.convolve(x, k), "f32[3001]", "f32[31]", loose=16)

def lstm_cell(state, x, w):
    h, c = state
    i, f, g, o = jnp.split(jnp.concatenate([h, x], -1) @ w, 4, axis=-1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
    return nn.sigmoid(o) * jnp.tanh(c), c


# ---- loops ---------------------------------------------------------------------------------------------------
case("while_scalars", lambda x: lax.while_loop(lambda s: s[0] < 1001, lambda s: (s[0] + 1, s[1] * 0.5 + 1.0), (0, x))[1], "f32[]", loose=16)
case("while_scalars_5", lambda x: lax.fori_loop(0, 1001, lambda i, s: (s[1], s[2] + s[0] * 1e-3, jnp.sin(s[0]), s[4] * 0.9 + s[1], s[3] + 1e-3 * i), (x, x + 1, x, x, x)), "f32[]", loose=64)
case("newton_scalar", lambda x: lax.while_loop(lambda s: s[1] < 301, lambda s: (s[0] - (s[0] * s[0] - x) / (2 * s[0]), s[1] + 1), (x + 1, 0))[0], "f32[]+", loose=16)
case("collatz", lambda n: lax.while_loop(lambda s: (s[0] != 1) & (s[1] < 1000), lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n + 837799 - n, 0))[1], "s32[]<5")
case("rnn_tiny", lambda h, w, x: lax.scan(lambda h, v: (jnp.tanh(h @ w * 0.1 + v), h[0]), h, x), "f32[13]", "f32[13,13]", "f32[301,13]", loose=64)
case("rnn_33", lambda h, w, x: lax.scan(lambda h, v: (jnp.tanh(h @ w * 0.1 + v), None), h, x)[0], "f32[5,33]", "f32[33,33]", "f32[101,5,33]", loose=64)
case("lstm", lambda h, w, x: lax.scan(lambda s, v: (lstm_cell(s, v, w), None), (h, h), x)[0], "f32[3,17]", "f32[34,68]", "f32[67,3,17]", loose=64)
case("scan_cumsum", lambda x: lax.scan(lambda c, v: (c + v, c), x[0], x)[1], "f32[301,33]", loose=64)
case("scan_scalar", lambda x: lax.scan(lambda c, v: (c * 0.9 + v, c), 0., x)[1], "f32[3001]", loose=64)
case("scan_many_carries", lambda x: lax.scan(lambda c, v: ((c[1] + v, c[2] * 0.5, c[3] - v, c[0]), c[0] + c[1]), (x[0], x[1], x[2], x[3]), x)[1], "f32[1001]", loose=64)
case("jacobi_20", lambda x: lax.fori_loop(0, 20, lambda i, u: u.at[1:-1, 1:-1].set(0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])), x), "f32[67,71]", loose=16)
case("power_iteration", lambda a, v: lax.fori_loop(0, 30, lambda i, v: (lambda w: w / jnp.sqrt(jnp.sum(w * w)))(a @ v), v), "f32[67,67]", "f32[67]", loose=1e5)
case("euler_vector", lambda x: lax.fori_loop(0, 101, lambda i, s: (s[0] + 0.01 * s[1], s[1] - 0.01 * s[0]), (x, x * 0)), "f32[333]", loose=64)
case("mandelbrot", lambda c: lax.fori_loop(0, 30, lambda i, s: (lambda z: (z, s[1] + (jnp.abs(z) < 2)))(jnp.where(jnp.abs(s[0]) < 4, s[0] * s[0] + c, s[0])), (c * 0, jnp.zeros(c.shape, jnp.int32)))[1] > -1, "c64[41,53]")
case("kv_cache", lambda cache, k: lax.fori_loop(0, 51, lambda i, c: lax.dynamic_update_slice(c, k[None] * i, (i, 0)), cache), "f32[67,33]", "f32[33]")
case("binary_search", lambda a, v: lax.fori_loop(0, 10, lambda i, s: (lambda m: (jnp.where(a[m] < v, m, s[0]), jnp.where(a[m] < v, s[1], m)))((s[0] + s[1]) // 2), (jnp.zeros(v.shape, jnp.int32), jnp.full(v.shape, 1001)))[1], "f32[1001]", "f32[777]")
case("cond", lambda p, x: lax.cond(p[0] > 0, lambda x: jnp.sin(x), lambda x: x * 2, x), "s32[1]", A)
case("switch", lambda p, x: lax.switch(p[0], [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x), "s32[1]<3", A)
case("scalar_chain", lambda x: [x := jnp.sin(x) * 1.1 + x for _ in range(50)][-1], "f32[]", loose=256)
case("gradient_steps", lambda w, x, y: lax.fori_loop(0, 10, lambda i, w: w - 0.01 * (x.T @ (x @ w - y)) / 91, w), "f32[17]", "f32[91,17]", "f32[91]", loose=256)
case("kalman", lambda x, p, z: lax.scan(lambda s, z: (lambda k: ((s[0] + k * (z - s[0]), (1 - k) * s[1] + 0.01), s[0]))(s[1] / (s[1] + 1)), (x, p), z)[1], "f32[3]", "f32[3]+", "f32[501,3]", loose=64)

# ---- linear algebra, transforms, random numbers ----------------------------------------------------------------
case("cholesky", lambda a: jnp.linalg.cholesky(a @ a.T + 67 * jnp.eye(67)), "f32[67,67]", loose=64)
case("triangular_solve", lambda a, b: jax.scipy.linalg.solve_triangular(jnp.tril(a) + 9 * jnp.eye(67), b, lower=True), "f32[67,67]", "f32[67,33]", loose=64)
case("fft_251", lambda x: jnp.fft.fft(x), "c64[31,251]", loose=64)
case("fft_256", lambda x: jnp.fft.fft(x), "c64[31,256]", loose=64)
case("fft_60", lambda x: jnp.fft.fft(x), "c64[91,60]", loose=64)
case("rfft_100", lambda x: jnp.fft.rfft(x), "f32[91,100]", loose=64)
case("irfft", lambda x: jnp.fft.irfft(x), "c64[91,51]", loose=64)
case("fft2", lambda x: jnp.fft.fft2(x), "c64[5,24,27]", loose=64)
case("random_bits", lambda k: jr.bits(k, (171, 203)), "u32[2]")
case("random_uniform", lambda k: jr.uniform(k, (171, 203)), "u32[2]")
case("random_normal", lambda k: jr.normal(k, (171, 203)), "u32[2]", loose=16)
case("dropout", lambda k, x: jnp.where(jr.bernoulli(k, 0.9, x.shape), x / 0.9, 0), "u32[2]", A)
case("random_permutation", lambda k: jr.permutation(k, 1001), "u32[2]")
case("random_split", lambda k: jr.split(k, 301), "u32[2]")
case("random_categorical", lambda k, x: jr.categorical(k, x), "u32[2]", "f32[57,33]")
case("rng_bit_generator", lambda k: lax.rng_bit_generator(k, (171, 203))[1], "u32[4]")
case("interp", lambda x, p, f: jnp.interp(x, jnp.sort(p), f), "f32[1501]", "f32[51]", "f32[51]", loose=4096)
case("histogram", lambda x: jnp.histogram(x, bins=17, range=(-2, 2))[0], "f32[3001]")
case("polyval", lambda p, x: jnp.polyval(p, x), "f32[7]", A, loose=64)
case("black_scholes", lambda s, k: s * jax.scipy.stats.norm.cdf((jnp.log(s / k) + 0.1) / 0.3) - k * jax.scipy.stats.norm.cdf((jnp.log(s / k) - 0.1) / 0.3), "f32[171,203]+", "f32[171,203]+", loose=16)

# ---- idioms that were slow once: what a step of an application holds -------------------------------------------
case("heat_steps", lambda u: lax.fori_loop(0, 20, lambda i, u: u.at[1:-1, 1:-1].add(0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])), u), "f32[103,151]", loose=64)
case("heat_steps_odd", lambda u: lax.fori_loop(0, 21, lambda i, u: u.at[1:-1].set(u[2:] + 0.5 * u[:-2] - u[1:-1] * 0.5), u * 0.1), "f32[5003]", loose=4096)
case("pagerank", lambda a, x: lax.fori_loop(0, 20, lambda i, x: 0.15 / 201 + 0.85 * (a / a.sum(0)) @ x, x), "f32[201,201]+", "f32[201]+", loose=64)
case("logistic_gradient", lambda w, x, y: x.T @ ((2 * y - 1) * jax.nn.sigmoid((1 - 2 * y) * (x @ w))), "f32[17]", "f32[501,17]", "f32[501]", loose=64)
case("masked_softmax", lambda s: jax.nn.softmax(jnp.where(abs(jnp.arange(97)[:, None] - jnp.arange(97)) < 16, s, -1e9)), "f32[6,97,97]", loose=16)
case("histogram_add", lambda x: jnp.zeros(101, jnp.int32).at[jnp.clip(((x + 2) * 25).astype(jnp.int32), 0, 100)].add(1), "f32[3001]")
case("search_sorted", lambda a, x: jnp.searchsorted(jnp.sort(a), x), "f32[1001]", "f32[3001]")
case("gumbel_argmax", lambda k, x: (x - jnp.log(-jnp.log(jr.uniform(k, x.shape, minval=1e-6)))).argmax(-1), "u32[2]", "f32[65,257]")
case("lanczos", lambda a, v: lax.scan(lambda s, _: (lambda w: (lambda w: ((s[1], w / (jnp.linalg.norm(w) + 1e-6)), w @ s[1]))(w - (w @ s[1]) * s[1]))((a + a.T) @ s[1]), (v * 0, v / jnp.linalg.norm(v)), None, length=10)[1], "f32[129,129]", "f32[129]", loose=1e5)
case("lennard_jones", lambda x: (lambda r: (4 * (r ** 6 - r ** 3)).sum())(1 / (((x[:, None] - x) ** 2).sum(-1) + jnp.eye(101))), "f32[101,3]", loose=1e5)
case("gaussian_mixture", lambda x, m: jax.scipy.special.logsumexp(-0.5 * ((x[:, None] - m) ** 2).sum(-1), axis=1).sum(), "f32[701,7]", "f32[11,7]", loose=64)
case("lattice_stream", lambda f: jnp.stack([jnp.roll(f[k], (k % 3 - 1, k // 3 - 1), (0, 1)) for k in range(9)]).sum(0), "f32[9,67,71]", loose=16)

# ---- stacks, merged dims, rows of few elements, indices known from their place: slow once, some still ----------
case("nibbles_to_float", lambda x, s: (jnp.stack([x & 15, x >> 4], -1).reshape(257, 512).astype(jnp.float32) - 8) * s, "u8[257,256]", "f32[257,1]", loose=4)
case("normalize_channels", lambda x: ((x / 255 - jnp.array([0.485, 0.456, 0.406])) / jnp.array([0.229, 0.224, 0.225])).transpose(0, 3, 1, 2), "u8[3,101,103,3]", loose=4)
case("windows_stacked", lambda x: jnp.stack([x[:, i:i + 26, j:j + 26] for i in range(3) for j in range(3)], -2).reshape(-1, 144), "f32[4,28,28,16]")
case("windows_by_index", lambda x: x[jnp.arange(2000)[:, None] + jnp.arange(16)], "f32[2015]")
case("frames", lambda x: x[jnp.arange(0, 15000, 160)[:, None] + jnp.arange(400)] * jnp.hanning(400), "f32[16000]", loose=4)
case("roll_by_value", lambda x, p: jnp.roll(x, -(p % 64), 0), "f32[64,129]", "s32[]<64")
case("determinants_2x2", lambda m: m[:, 0, 0] * m[:, 1, 1] - m[:, 0, 1] * m[:, 1, 0], "f32[20001,2,2]", loose=64)
case("box_areas", lambda b: (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]), "f32[20001,4]", loose=4)
case("cross_products", jnp.cross, "f32[20001,3]", "f32[20001,3]", loose=64)
case("inverses_3x3", lambda m: (lambda c: c.swapaxes(-1, -2) / (m[:, 0] * c[:, 0]).sum(-1)[:, None, None])(jnp.stack([jnp.cross(m[:, 1], m[:, 2]), jnp.cross(m[:, 2], m[:, 0]), jnp.cross(m[:, 0], m[:, 1])], 1)), "f32[1001,3,3]", loose=1e6)
case("matrices_3x3_vector", lambda m, v: jnp.einsum("nij,nj->ni", m, v), "f32[5001,3,3]", "f32[5001,3]", loose=8)
case("length_mask", lambda n: jnp.arange(513) < n[:, None], "s32[65]<513")
case("one_hot_rows", lambda i: jax.nn.one_hot(i, 1000, dtype=jnp.bfloat16), "s32[129]<1000")
case("softmax_of_10", lambda x: jax.nn.softmax(x, -1), "f32[5001,10]", loose=16)
case("swap_channels_u8", lambda x: x[..., ::-1], "u8[480,640,3]")
case("flip_image_u8", lambda x: x[:, :, ::-1], "u8[4,112,112,3]")
case("weights_gradient_update", lambda w, x, g: w - 0.01 * lax.dot_general(g, x, (((0,), (0,)), ((), ()))).T, "f32[129,65]", "f32[257,129]", "f32[257,65]", loose=64)

# ---- found at random sizes, or among idioms of the kind: slow once ------------------------------------------------
case("best_two_experts", lambda x: lax.top_k(nn.softmax(x), 2), "f32[501,8]", loose=4)
case("best_four_rows", lambda x: lax.top_k(x, 4), "f32[501,64]")
case("sandpile", lambda x: lax.fori_loop(0, 20, lambda i, x: (lambda t: (lambda p: x - 4 * t + p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])(jnp.pad(t, 1)))(x // 4), x), "s32[65,67]<40")
case("relative_shift", lambda x: jnp.pad(x, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(2, 4, 66, 65)[:, :, 1:].reshape(2, 4, 65, 65), "f32[2,4,65,65]")
case("transposed_as_another", lambda x: x.T.reshape(171, 203) * 2, "f32[171,203]")
case("batchnorm_inference", lambda x, m, v, g, b: (x - m) * g * lax.rsqrt(v + 1e-5) + b, "f32[3,33,33,56]", "f32[56]", "f32[56]+", "f32[56]", "f32[56]", loose=16)
conv("conv_transposed_to_rgb", "f32[2,33,33,34]", "f32[5,5,34,3]", padding=((3, 2), (3, 2)), lhs_dilation=(2, 2))
conv("conv_transposed_1x1", "f32[2,15,15,131]", "f32[1,1,131,67]", padding=((0, 1), (0, 1)), lhs_dilation=(2, 2))
