"""Convolutions of every form, and pooling with its gradient."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from programs.program import Arg, F32, bf16, f32, program, section

section("convolutions")

NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def image(batch, size, features, labels=NHWC):
    return f32(batch, size, size, features) if labels is NHWC else f32(batch, features, size, size)


def kernel(side, inputs, outputs, labels=NHWC):
    scale = 1 / math.sqrt(side * side * inputs)
    sizes = (side, side, inputs, outputs) if labels is NHWC else (outputs, inputs, side, side)
    return Arg(sizes, F32, scale=scale)


def convolve(labels=NHWC, strides=(1, 1), padding="SAME", **options):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=labels, **options)


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=8, size=28, inputs=256, outputs=256))
def conv_1x1(batch, size, inputs, outputs):
    return convolve(), [image(batch, size, inputs), kernel(1, inputs, outputs)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing={"": dict(batch=8, size=28, inputs=128, outputs=128),
                 "_56": dict(batch=4, size=56, inputs=64, outputs=64),
                 "_odd": dict(batch=3, size=29, inputs=61, outputs=67)})
def conv_3x3(batch, size, inputs, outputs):
    return convolve(), [image(batch, size, inputs), kernel(3, inputs, outputs)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=8, size=28, inputs=128, outputs=128))
def conv_3x3_nchw(batch, size, inputs, outputs):
    return convolve(NCHW), [image(batch, size, inputs, NCHW), kernel(3, inputs, outputs, NCHW)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=4, size=56, inputs=64, outputs=64))
def conv_bias_relu(batch, size, inputs, outputs):
    def f(x, w, b):
        return jax.nn.relu(convolve()(x, w) + b)
    return f, [image(batch, size, inputs), kernel(3, inputs, outputs), f32(outputs)]


@program(golden=dict(batch=2, size=11, inputs=24, outputs=40),
         timing=dict(batch=8, size=56, inputs=64, outputs=128))
def conv_strided(batch, size, inputs, outputs):
    return convolve(strides=(2, 2)), [image(batch, size, inputs), kernel(3, inputs, outputs)]


@program(golden=dict(batch=1, size=29, outputs=24), timing=dict(batch=4, size=224, outputs=64))
def conv_stem(batch, size, outputs):
    return convolve(strides=(2, 2), padding=((3, 3), (3, 3))), [image(batch, size, 3), kernel(7, 3, outputs)]


@program(golden=dict(batch=2, size=11, features=24), timing=dict(batch=8, size=56, features=128))
def conv_depthwise(batch, size, features):
    return convolve(feature_group_count=features), [image(batch, size, features), kernel(3, 1, features)]


@program(golden=dict(batch=2, size=7, inputs=24, outputs=20), timing=dict(batch=8, size=28, inputs=128, outputs=64))
def conv_transposed(batch, size, inputs, outputs):
    def f(x, w):
        return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)
    return f, [image(batch, size, inputs), kernel(4, inputs, outputs)]


@program(golden=dict(batch=2, size=13, features=24), timing=dict(batch=8, size=28, features=128),
         loose=2)  # of a million sums of over a thousand terms some cancel
def conv_dilated(batch, size, features):
    return convolve(rhs_dilation=(2, 2)), [image(batch, size, features), kernel(3, features, features)]


@program(golden=dict(batch=2, size=11, features=32, groups=4), timing=dict(batch=8, size=28, features=256, groups=8))
def conv_grouped(batch, size, features, groups):
    features -= features % groups
    return convolve(feature_group_count=groups), [
        image(batch, size, features), kernel(3, features // groups, features)]


@program(golden=dict(batch=2, length=50, features=24), timing=dict(batch=8, length=2048, features=128))
def conv_1d(batch, length, features):
    labels = ("NWC", "WIO", "NWC")
    return convolve(labels, strides=(1,)), [f32(batch, length, features), f32(5, features, features, scale=0.1)]


@program(golden=dict(batch=1, size=6, features=12), timing=dict(batch=2, size=24, features=32))
def conv_3d(batch, size, features):
    labels = ("NDHWC", "DHWIO", "NDHWC")
    return convolve(labels, strides=(1, 1, 1)), [
        f32(batch, size, size, size, features), f32(3, 3, 3, features, features, scale=0.1)]


@program(golden=dict(batch=2, size=9, inputs=24, outputs=40),
         timing=dict(batch=4, size=28, inputs=128, outputs=128))
def conv_bf16(batch, size, inputs, outputs):
    return convolve(), [bf16(batch, size, size, inputs), bf16(3, 3, inputs, outputs, scale=0.05)]


@program(golden=dict(batch=2, size=9, inputs=12, outputs=16),
         timing=dict(batch=4, size=28, inputs=64, outputs=64), loose=4)  # sums over all places of all images cancel
def conv_grad(batch, size, inputs, outputs):
    def f(x, w, out):
        return jax.vjp(convolve(), x, w)[1](out)
    return f, [image(batch, size, inputs), kernel(3, inputs, outputs), image(batch, size, outputs)]


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


POOL = dict(golden=dict(batch=2, size=13, features=24), timing=dict(batch=8, size=112, features=64))


@program(**POOL)
def pool_max(batch, size, features):
    return max_pool, [image(batch, size, features)]


@program(**POOL)
def pool_average(batch, size, features):
    return (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9), [
        image(batch, size, features)]


@program(golden=POOL["golden"], timing=dict(batch=8, size=56, features=64))
def pool_max_grad(batch, size, features):
    def f(x, out):
        return jax.vjp(max_pool, x)[1](out)[0]
    return f, [image(batch, size, features), image(batch, (size + 1) // 2, features)]
