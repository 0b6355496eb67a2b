"""Convolutional networks: a small one forward and trained, a residual block."""

import math

import jax

from programs.convolutions import convolve, image, kernel, max_pool
from programs.program import f32, ints, program, section
from programs.reductions import nll

section("models")


def network(x, k1, k2, w, b):
    x = max_pool(jax.nn.relu(convolve()(x, k1)))
    x = max_pool(jax.nn.relu(convolve()(x, k2)))
    return x.reshape(x.shape[0], -1) @ w + b


def network_arguments(batch, size, features, classes):
    left = -(-size // 4)
    wide = left * left * 2 * features
    return [image(batch, size, 3), kernel(3, 3, features), kernel(3, features, 2 * features),
            f32(wide, classes, scale=1 / math.sqrt(wide)), f32(classes, scale=0.1)]


CNN = dict(golden=dict(batch=2, size=9, features=5, classes=10),
           timing=dict(batch=32, size=32, features=32, classes=10),
           loose=4)  # thousands of terms that cancel, behind two convolutions


@program(**CNN)
def cnn_forward(batch, size, features, classes):
    return network, network_arguments(batch, size, features, classes)


# A maximum of two values that differ by an ulp in f64 is the other one in XLA:CPU's f32: gradients move by 1.5e-5 and
# 4e-5 (hlojit's are within 3e-8 of those in f64).
@program(**CNN | dict(loose=40))
def cnn_train_step(batch, size, features, classes):
    def f(x, labels, *params):
        loss, grads = jax.value_and_grad(lambda params: nll(network(x, *params), labels))(params)
        return (loss, *[p - 0.1 * g for p, g in zip(params, grads)])
    x, *params = network_arguments(batch, size, features, classes)
    return f, [x, ints(batch, lo=0, hi=classes), *params]


@program(golden=dict(batch=1, size=9, features=13),
         timing={"": dict(batch=8, size=28, features=128), "_odd": dict(batch=3, size=27, features=61)})
def resnet_block(batch, size, features):
    def f(x, k1, g1, b1, k2, g2, b2):
        h = jax.nn.relu(convolve()(x, k1) * g1 + b1)
        return jax.nn.relu(x + convolve()(h, k2) * g2 + b2)
    near = dict(kind="uniform", lo=0.8, hi=1.2)
    weights = [kernel(3, features, features), f32(features, **near), f32(features, scale=0.1)]
    return f, [image(batch, size, features), *weights, *weights]
