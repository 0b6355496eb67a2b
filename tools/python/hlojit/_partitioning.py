"""custom_partitioning of JAX programs on hlojit.

A function that brings its own rule for parts also is a function of whole arrays, and the rule may only give the same
values by other means. Outside of manual regions hlojit runs programs on whole arrays, so there the function itself
is lowered in the place of the call that asks XLA's partitioner to call the rule.
"""

from __future__ import annotations


def install() -> None:
    """Replaces JAX's lowering for programs that hlojit will run, and only for them."""
    from jax._src import core, custom_partitioning
    from jax._src.interpreters import mlir

    from hlojit._callbacks import is_hlojit

    original = custom_partitioning._custom_partitioning_lowering_rule

    def lower(ctx, *values, call, **parameters):
        if not is_hlojit(ctx.module_context):
            return original(ctx, *values, call=call, **parameters)
        return mlir.lower_fun(core.jaxpr_as_fun(call), multiple_results=True)(ctx, *values)

    mlir.register_lowering(custom_partitioning.custom_partitioning_p, lower)
