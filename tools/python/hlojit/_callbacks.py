"""Python callbacks of JAX programs (pure_callback, io_callback, debug.print, ...) on hlojit.

jaxlib's handler of such calls wants a state that only XLA's own CPU client can make. Its handler of
buffer callbacks does not: it calls a Python function with the operands' and results' memory. So programs
for hlojit in the cpu's place are lowered to that one, with a function that reads the operands, calls, and
writes the results. JAX hands its callbacks to runs on platforms by the names it knows only; so on the
platform "hlojit" each callback is a custom call of its own, which lives as long as its program and its runs.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import threading

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


_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p))
_numbers = itertools.count(1)  # 0 would be a null pointer
# A thread's last failure, which the caller reads; a threading.local would go before, with the thread's state.
_failures: dict[int, ctypes.Array] = {}


def _array(pointer: int, aval) -> np.ndarray:
    """The memory of an operand or result, row-major."""
    dtype = np.dtype(aval.dtype)
    size = int(np.prod(aval.shape)) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(pointer) if size else b""
    return np.frombuffer(memory, dtype).reshape(aval.shape)


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_served: dict[int, ctypes._CFuncPtr] = {}  # by number: what the name, a program or a run of one may call
_release = _RELEASE(lambda number: _served.pop(number, None) and None)


class _CustomCall:
    """A custom call's target that calls a Python function. The name goes with the object, the function when the
    last program that has found it is gone: a run may outlive what JAX holds of its program."""

    def __init__(self, callback, operand_avals, result_avals):
        def run(_, operands, results):
            try:
                values = [_array(operands[k], a).copy() for k, a in enumerate(operand_avals)]
                for k, value in enumerate(_checked(callback(*values), result_avals)):
                    _array(results[k], result_avals[k])[...] = value
                return None
            except BaseException as e:  # nothing may pass through the C frames below us
                text = ctypes.create_string_buffer(f"{type(e).__name__}: {e}".encode())
                _failures[threading.get_ident()] = text
                return ctypes.addressof(text)

        from hlojit import _libraries

        number = next(_numbers)
        self.target = f"hlojit_python_callback_{number}"
        _served[number] = _FUNCTION(run)
        self._register = ctypes.CDLL(_libraries.path("libhlojit.so.0")).hlojit_register_custom_call
        self._register.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self._register(self.target.encode(), ctypes.cast(_served[number], ctypes.c_void_p), number,
                       ctypes.cast(_release, ctypes.c_void_p))

    def __del__(self):
        self._register(self.target.encode(), None, None, None)


def _emit_custom_call(ctx, callback, token, operands, operand_avals, result_avals, has_side_effect):
    """The lowering for the platform "hlojit": (results, token, what must live as long as the program)."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir.dialects import hlo

    call = _CustomCall(callback, operand_avals, result_avals)
    ctx.module_context.add_keepalive(call)
    orders = lambda avals: [list(range(len(a.shape) - 1, -1, -1)) for a in avals]
    tokens = [token] if token else []
    result = mlir.custom_call(
        call.target,
        result_types=[t.type for t in tokens] + [mlir.aval_to_ir_type(ctx.module_context, a) for a in result_avals],
        operands=[*tokens, *operands], has_side_effect=has_side_effect, api_version=1,
        operand_layouts=[[] for _ in tokens] + orders(operand_avals),
        result_layouts=[[] for _ in tokens] + orders(result_avals))
    _annotate(result, "calls_python")
    results = list(result.results)
    return (results[1:], results[0], call) if token else (results, token, call)


def _annotate(operation, *names: str) -> None:
    """Tells the runtime about a callback's call, in attributes named hlojit.NAME."""
    from jax._src.lib.mlir import ir

    operation.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(
        {f"hlojit.{name}": ir.StringAttr.get("true") for name in names})


def is_hlojit(module_context) -> bool:
    try:
        return "hlojit" in module_context.get_backend().platform_version
    except Exception:  # lowering for devices that are not here
        return False


class _Backends:
    """xla_bridge as JAX's callbacks see it: they put their arguments on a device of the platform "cpu", in
    whose place hlojit's own serve if JAX was told of no cpu."""

    def __init__(self, original):
        self._original = original

    def __getattr__(self, name):
        return getattr(self._original, name)

    def local_devices(self, *args, backend=None, **kwargs):
        try:
            return self._original.local_devices(*args, backend=backend, **kwargs)
        except RuntimeError:
            if backend != "cpu":
                raise
            return self._original.local_devices(*args, backend="hlojit", **kwargs)


def install() -> None:
    """Replaces JAX's lowering of Python callbacks for programs that hlojit will run, and only for them."""
    from jax._src import callback as jax_callback
    from jax._src import core, debugging, ffi
    from jax._src.interpreters import mlir
    from jax.interpreters import mlir as public_mlir

    original = jax_callback.emit_python_callback
    if getattr(original, "is_hlojit", False):
        return

    def emit_python_callback(ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect,
                             returns_token=True, partitioned=False, sharding=None):
        platforms = ctx.module_context.platforms
        if len(platforms) != 1 or platforms[0] not in ("cpu", "hlojit") or not is_hlojit(ctx.module_context):
            return original(ctx, callback, token, operands, operand_avals, result_avals, has_side_effect=has_side_effect,
                            returns_token=returns_token, partitioned=partitioned, sharding=sharding)
        if partitioned and result_avals:
            raise ValueError("Partitioned callback not supported with return values.")
        if platforms[0] == "hlojit":
            return _emit_custom_call(ctx, callback, token, operands, operand_avals, result_avals, has_side_effect)
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
        # "each_part": with each device's part of the operands, also where the program runs on whole arrays.
        _annotate(result.operation, "calls_python", *(["each_part"] if partitioned else []))
        results = list(result.results)
        if token:
            token, *results = results
        return results, token, on_buffers

    emit_python_callback.is_hlojit = True
    jax_callback.emit_python_callback = emit_python_callback
    jax_callback.xb = _Backends(jax_callback.xb)
    debugging.xla_bridge = _Backends(debugging.xla_bridge)
    mlir.emit_python_callback = emit_python_callback
    public_mlir.emit_python_callback = emit_python_callback  # where libraries with lowerings of their own find it
