"""Python callbacks of JAX programs (pure_callback, io_callback, debug.print, ...) on hlojit.

jaxlib's handler of such calls wants a state that only XLA's own CPU client can make. Its handler of
buffer callbacks does not: it calls a Python function with the operands' and results' memory. So programs
for hlojit are lowered to that one, with a function that reads the operands, calls, and writes the results.
"""

from __future__ import annotations

import dataclasses

import numpy as np

_TARGET = "xla_buffer_python_cpu_callback"


def _checked(values, result_avals):
    """The values that a callback returned, as arrays of the promised shapes and types."""
    from jax._src import dtypes

    if len(values) != len(result_avals):
        raise RuntimeError(
            f"Mismatched number of outputs from callback. Expected: {len(result_avals)}, Actual: {len(values)}")
    out = [dtypes.canonicalize_value(np.asarray(v)) for v in values]
    for i, (value, aval) in enumerate(zip(out, result_avals)):
        if value.shape != aval.shape:
            raise RuntimeError(
                f"Incorrect output shape for return value #{i}: Expected: {aval.shape}, Actual: {value.shape}")
        if value.dtype != aval.dtype:
            raise RuntimeError(
                f"Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, Actual: {value.dtype}")
    return out


def _is_hlojit(module_context) -> bool:
    try:
        return "hlojit" in module_context.get_backend().platform_version
    except Exception:  # lowering for devices that are not here
        return False


def install() -> None:
    """Replaces JAX's lowering of Python callbacks for programs that hlojit will run, and only for them."""
    from jax._src import callback as jax_callback
    from jax._src import core, ffi
    from jax._src.interpreters import mlir

    original = jax_callback.emit_python_callback
    if getattr(original, "is_hlojit", False):
        return

    def emit_python_callback(ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect,
                             returns_token=True, partitioned=False, sharding=None):
        platforms = ctx.module_context.platforms
        if len(platforms) != 1 or platforms[0] not in ("cpu", "hlojit") or not _is_hlojit(ctx.module_context):
            return original(ctx, callback, token, operands, operand_avals, result_avals, has_side_effect=has_side_effect,
                            returns_token=returns_token, partitioned=partitioned, sharding=sharding)
        if partitioned and result_avals:
            raise ValueError("Partitioned callback not supported with return values.")
        count = len(operand_avals)

        def on_buffers(_, *buffers):
            # Copies: a callback may keep its arguments, whose memory is the program's.
            values = _checked(callback(*[np.asarray(b).copy() for b in buffers[:count]]), result_avals)
            for buffer, value in zip(buffers[count:], values):
                np.asarray(buffer)[...] = value
            return ()

        if token:
            operands = [token, *operands]
            if ctx.avals_out and isinstance(sharding, jax_callback.SdyArrayList):  # the token's, before the results'
                of_token = jax_callback.SdyArray(
                    mesh_shape=(), dim_shardings=(), logical_device_ids=sharding.shardings[0].logical_device_ids)
                sharding = jax_callback.SdyArrayList((of_token, *sharding.shardings))
            ctx = dataclasses.replace(
                ctx, avals_in=[core.abstract_token, *ctx.avals_in], avals_out=[core.abstract_token, *ctx.avals_out])
        ctx.module_context.add_host_callback(on_buffers)
        index = np.uint64(len(ctx.module_context.host_callbacks) - 1)
        lower = ffi.build_ffi_lowering_function(_TARGET, has_side_effect=has_side_effect)
        result = lower(ctx, *operands, index=index)
        if sharding is not None:
            mlir.set_sharding(ctx.module_context, result, sharding)
        results = list(result.results)
        if token:
            token, *results = results
        return results, token, on_buffers

    emit_python_callback.is_hlojit = True
    jax_callback.emit_python_callback = emit_python_callback
    mlir.emit_python_callback = emit_python_callback
