"""Products of matrices and vectors, in every type and in awkward shapes."""

import jax
import jax.numpy as jnp

from programs.program import Arg, F16, F32, F64, S32, S8, bf16, f32, ints, program, section

section("contractions")


@program(golden=dict(m=97, k=130, n=161),
         timing={**{f"_{s}": dict(m=s, k=s, n=s) for s in (256, 512, 1024, 2048)}, "_odd": dict(m=1021, k=1019, n=1013)},
         tiled=True, loose=2)
def gemm(m, k, n):
    return (lambda a, b: a @ b), [f32(m, k), f32(k, n)]


@program(golden=dict(m=50, k=66, n=81), timing=dict(m=1024, k=1024, n=1024))
def gemm_transposed(m, k, n):
    return (lambda a, b, c: (a.T @ b, b.T @ c.T)), [f32(k, m), f32(k, n), f32(m, k)]


@program(golden=dict(m=50, k=130, n=100), timing=dict(m=512, k=512, n=2048))
def dense_gelu(m, k, n):
    return (lambda x, w, b: jax.nn.gelu(x @ w + b)), [f32(m, k), f32(k, n, scale=0.1), f32(n)]


@program(golden=dict(m=97, k=130), timing={"": dict(m=4096, k=4096), "_odd": dict(m=1021, k=1019)})
def gemv(m, k):
    return (lambda a, x: a @ x), [f32(m, k), f32(k)]


@program(golden=dict(m=97, k=130), timing={"": dict(m=4096, k=4096), "_odd": dict(m=1021, k=1019)}, loose=2)
def gemv_transposed(m, k):
    return (lambda a, x: x @ a), [f32(m, k), f32(m)]


@program(golden=dict(batch=5, m=33, k=40, n=50), timing=dict(batch=32, m=256, k=64, n=256))
def batched_matmul(batch, m, k, n):
    return (lambda a, b: jnp.einsum("bmk,bkn->bmn", a, b)), [f32(batch, m, k), f32(batch, k, n)]


@program(golden=dict(m=65, k=96, n=130),
         timing={"": dict(m=1024, k=1024, n=1024), "_odd": dict(m=1021, k=1019, n=1013)}, tiled=True)
def gemm_bf16(m, k, n):
    return (lambda a, b: a @ b), [bf16(m, k), bf16(k, n)]


@program(golden=dict(m=65, k=96, n=130), timing=dict(m=512, k=512, n=512))
def gemm_f16(m, k, n):
    return (lambda a, b: jnp.dot(a, b, preferred_element_type=F32)), [Arg((m, k), F16), Arg((k, n), F16)]


@program(golden=dict(m=65, k=96, n=70), timing=dict(m=512, k=512, n=512), x64=True)
def gemm_f64(m, k, n):
    return (lambda a, b: a @ b), [Arg((m, k), F64), Arg((k, n), F64)]


@program(golden=dict(m=65, k=96, n=130), timing=dict(m=1024, k=1024, n=1024))
def gemm_s8(m, k, n):
    return (lambda a, b: jnp.dot(a, b, preferred_element_type=S32)), [
        ints(m, k, dtype=S8, lo=-128, hi=128), ints(k, n, dtype=S8, lo=-128, hi=128)]


@program(golden=dict(m=5, k=130, n=99), timing=dict(m=8, k=4096, n=4096), loose=2)
def gemm_skinny(m, k, n):
    # A batch of a few tokens through a layer: bound by reading the weights.
    return (lambda a, b: a @ b), [f32(m, k), f32(k, n)]


@program(golden=dict(m=5, k=130, n=99), timing=dict(m=8, k=4096, n=4096), loose=2)
def gemm_skinny_transposed(m, k, n):
    # The same with a row of weights for each result, as PyTorch keeps them.
    return (lambda a, b: a @ b.T), [f32(m, k), f32(n, k)]


@program(golden=dict(m=3, groups=3, group=32, n=50), timing=dict(m=4, groups=32, group=64, n=4096), loose=2)
def gemm_skinny_s8(m, groups, group, n):
    # The same with quantised weights: bytes, and a scale for each group of them.
    def f(a, b, scale):
        return a @ (b.astype(F32) * scale).reshape(groups * group, n)
    return f, [f32(m, groups * group), ints(groups, group, n, dtype=S8, lo=-128, hi=128),
               f32(groups, 1, n, kind="uniform", lo=0.005, hi=0.02)]


@program(golden=dict(m=300, k=37, n=11), timing=dict(m=100_003, k=64, n=17))
def gemm_tall(m, k, n):
    return (lambda a, b: a @ b), [f32(m, k), f32(k, n)]


@program(golden=dict(batch=23, n=7), timing={"": dict(batch=4096, n=16), "_odd": dict(batch=4099, n=13)})
def batched_small(batch, n):
    return (lambda a, b: a @ b), [f32(batch, n, n), f32(batch, n, n)]


@program(golden=dict(m=33, k=70, n=41), timing=dict(m=1021, k=1019, n=1013))
def gemm_s8_scaled(m, k, n):
    # A quantised layer: integers inside, scales of rows and columns and a bias behind.
    def f(a, b, rows, columns, bias):
        return jnp.dot(a, b, preferred_element_type=S32).astype(F32) * rows * columns + bias
    positive = dict(kind="uniform", lo=0.005, hi=0.02)
    return f, [ints(m, k, dtype=S8, lo=-128, hi=128), ints(k, n, dtype=S8, lo=-128, hi=128),
               f32(m, 1, **positive), f32(n, **positive), f32(n)]
