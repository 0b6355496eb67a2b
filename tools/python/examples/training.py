"""The loop that the examples share: one jitted step a batch, a progress bar, the losses.

An example gives Task(parameters, loss, batches, optimizer). Run as a program this trains one example on
whatever backend JAX has (JAX_PLATFORMS, HLOJIT_AS_CPU) and prints the result as one line of JSON:

    HLOJIT_AS_CPU=1 JAX_PLATFORMS=cpu python training.py mlp --steps 100
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import optax
from tqdm import tqdm


@dataclasses.dataclass
class Task:
    """What is trained. loss(parameters, state, batch) gives (loss, new state); the state is what a model
    carries beside its parameters (statistics of batch norm), or {}."""

    parameters: Any
    state: Any
    loss: Callable[[Any, Any, Any], tuple[jax.Array, Any]]
    batches: Iterator[Any]
    optimizer: optax.GradientTransformation
    steps: int


def train(task: Task, steps: int, title: str) -> dict:
    """Trains; the losses, the seconds until the first step was over (compiling it), and those of the rest."""

    @jax.jit
    def step(parameters, state, optimizer_state, batch):
        (loss, state), gradients = jax.value_and_grad(task.loss, has_aux=True)(parameters, state, batch)
        updates, optimizer_state = task.optimizer.update(gradients, optimizer_state, parameters)
        return optax.apply_updates(parameters, updates), state, optimizer_state, loss

    parameters, state = task.parameters, task.state
    optimizer_state = jax.jit(task.optimizer.init)(parameters)
    losses = []
    batches = [next(task.batches) for _ in range(steps)]
    start = time.perf_counter()
    first = start
    with tqdm(total=steps, desc=title, unit="step", mininterval=0.5) as bar:
        for k, batch in enumerate(batches):
            parameters, state, optimizer_state, loss = step(parameters, state, optimizer_state, batch)
            losses.append(loss)
            if k == 0:
                loss.block_until_ready()
                first = time.perf_counter()
            if k % 20 == 19 or k == steps - 1:
                bar.set_postfix(loss=f"{float(loss):.4f}")
                bar.update(k + 1 - bar.n)
    return {"losses": [float(x) for x in losses], "first": first - start, "rest": time.perf_counter() - first,
            "backend": jax.devices()[0].client.platform_version.splitlines()[-1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("example", choices=["mlp", "cnn", "transformer"])
    parser.add_argument("--steps", type=int, default=0, help="0: as many as the example says")
    options = parser.parse_args()
    task = importlib.import_module(options.example).task()
    backend = "hlojit" if "hlojit" in jax.devices()[0].client.platform_version else "XLA"
    print(json.dumps(train(task, options.steps or task.steps, f"{options.example} on {backend}")))


if __name__ == "__main__":
    main()
