"""hlojit as a backend of JAX; JAX finds this module as an entry point and calls initialize().

JAX_PLATFORMS=hlojit
    a platform of its own. It takes the cpu's lowerings, so that linear algebra and callbacks work; what JAX
    ties to the name "cpu" (DLPack, its compilation cache) stays off.
HLOJIT_AS_CPU=1 with JAX_PLATFORMS=cpu
    takes the place of JAX's cpu backend, with everything that comes with it. The client's
    platform_version names hlojit.

JAX hands programs over as MLIR; jaxlib itself turns them into HLO (decode below), which is why the
versions of jax and hlojit belong together: TESTED names those that are tested, others are tried.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os

_log = logging.getLogger(__name__)

#: Versions of jax that hlojit's tests run with.
TESTED = ("0.10.2",)

_DECODER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t))


@_DECODER
def _decode(program, size, sink, emit):
    """Turns MLIR, text or bytecode, into a serialised HloModuleProto. Called on any thread."""
    try:
        from hlojit import _entry
        from jaxlib._jax import mlir

        code = ctypes.string_at(program, size)
        proto = mlir.mlir_module_to_xla_computation(code, False, False).as_serialized_hlo_module_proto()
        proto += _entry.attributes(code)
        emit(sink, proto, len(proto))
        return 0
    except BaseException as e:  # nothing may pass through the C frames below us
        text = f"{type(e).__name__}: {e}".encode()
        emit(sink, text, len(text))
        return 1


def _device_count() -> int:
    """Devices to make of this machine: as many as JAX would make of the cpu."""
    from jax._src import xla_bridge

    asked = xla_bridge.num_cpu_devices.value
    if asked > 0:
        return asked
    for flag in os.environ.get("XLA_FLAGS", "").split():
        if flag.startswith("--xla_force_host_platform_device_count="):
            return int(flag.partition("=")[2])
    return 1


def _options(platform: str) -> dict[str, int | str]:
    options: dict[str, int | str] = {
        "platform_name": platform,
        "device_count": _device_count(),
        "decoder": ctypes.cast(_decode, ctypes.c_void_p).value or 0,
    }
    if cache := os.environ.get("HLOJIT_CACHE_DIR"):
        options["cache_dir"] = cache
    if dump := os.environ.get("HLOJIT_DUMP_DIR"):
        options["dump_dir"] = dump
    if threads := os.environ.get("HLOJIT_THREADS"):
        options["threads"] = int(threads)
    if keep := os.environ.get("HLOJIT_KEEP_SUBNORMALS"):
        options["keep_subnormals"] = int(keep)
    return options


@functools.cache
def _load():
    """Loads the plugin; done when the first client is made, not when JAX starts."""
    from jax._src.lib import xla_client
    from hlojit import _libraries

    return xla_client.load_pjrt_plugin_dynamically("hlojit", _libraries.path("hlojit_pjrt.so"))


def _address(capsule) -> int:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def _register_handler(name, handler, platform, api_version=1, traits=0) -> None:
    """Serves a custom call by a handler as jaxlib has it: a capsule, or a dict of them by stage."""
    from hlojit import _libraries

    if str(name).startswith("lapack_"):
        return  # hlojit has its own
    if api_version != 1:
        _log.warning("hlojit does not serve custom calls of API version %s: %s", api_version, name)
        return
    register = ctypes.CDLL(_libraries.path("libhlojit.so.0")).hlojit_register_ffi
    register.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 4
    register.restype = ctypes.c_void_p  # null: an execute handler is there
    stages = handler if isinstance(handler, dict) else {"execute": handler}
    text = name if isinstance(name, bytes) else name.encode()
    register(text, *(_address(stages[s]) if s in stages else None for s in ("instantiate", "prepare", "initialize", "execute")))


@functools.cache
def _register_handlers() -> None:
    """jaxlib's own handlers for the host, and those that users register."""
    from jax._src.lib import xla_client
    from jaxlib import _jax

    for name, handler in _jax.custom_call_targets("Host").items():
        if "ffi" not in name:  # those want a state that nothing here makes; see _callbacks
            _register_handler(name, handler, "Host")
    xla_client.register_custom_call_handler("cpu", _register_handler)


def _refuse_to_compile() -> None:
    """In a forked child: jaxlib hands compiling to threads that are the parent's alone, and would wait for ever."""
    from jax._src import compiler

    def refuse(*_, **__):
        raise RuntimeError("hlojit: this process was forked off one that uses JAX, and does not have its threads; start "
                           'it by other means (multiprocessing: the start method "spawn"), or before JAX is used')

    compiler.backend_compile_and_load = refuse


def _client(platform: str):
    from jax._src import xla_bridge

    _load()
    _register_handlers()
    os.register_at_fork(after_in_child=_refuse_to_compile)
    return xla_bridge.make_pjrt_c_api_client("hlojit", functools.partial(_options, platform))


def _check_version() -> None:
    import jax

    if jax.__version__ not in TESTED:
        _log.warning("hlojit is tested with jax %s, this is %s", ", ".join(TESTED), jax.__version__)


def _install_lowerings() -> None:
    from hlojit import _callbacks, _costs, _partitioning

    _callbacks.install()
    _costs.install()
    _partitioning.install()


def _register() -> None:
    from jax._src import xla_bridge

    as_cpu = os.environ.get("HLOJIT_AS_CPU", "0") not in ("", "0")
    wanted = "hlojit" in (xla_bridge.config.jax_platforms.value or "")
    if as_cpu or wanted:
        _check_version()
    if as_cpu:
        from hlojit import _dlpack

        _install_lowerings()
        _dlpack.install()
        xla_bridge.register_backend_factory(
            "cpu", functools.partial(_client, "cpu"), priority=0, fail_quietly=False)
        return
    # Below the cpu: installing hlojit changes nothing until it is asked for.
    xla_bridge.register_backend_factory(
        "hlojit", functools.partial(_client, "hlojit"), priority=-1, fail_quietly=not wanted)
    if wanted:
        from jax._src.interpreters import mlir

        _install_lowerings()
        mlir._platform_specific_lowerings["hlojit"] = mlir._platform_specific_lowerings["cpu"]
        if "hlojit" not in mlir._platforms_with_donation:
            mlir._platforms_with_donation.append("hlojit")


def initialize() -> None:
    """Called by JAX when it looks for backends. Cheap: loads nothing. Never raises."""
    try:
        _register()
    except Exception as e:  # another JAX than the tested: say so, and let JAX go on without us
        _log.warning("hlojit cannot register with this version of JAX (tested: %s): %s: %s",
                     ", ".join(TESTED), type(e).__name__, e)
