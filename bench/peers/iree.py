"""IREE: the same program as StableHLO, compiled for this CPU, run by its task system.

Its compiler takes seconds and may crash; it is a process of its own, and what it makes is kept in build/peers by the
text's hash, so that only the first run pays. The runtime is called below its friendly interface, whose Python costs
tens of microseconds a call.
"""

import hashlib
import importlib.metadata
import pathlib
import re
import subprocess
import time

import numpy as np

import hlo_signature
import npyio
from peers.base import Missing, Ready

KEPT = pathlib.Path(__file__).resolve().parents[2] / "build" / "peers"
CPU = {"native": "host", "avx2": "haswell"}
COMPILE_LIMIT_S = 60
# It sorts by exchanging neighbours: a million values would take it days.
LONGEST_SORT = 5_000


def longest_sort(text):
    """The longest dimension that a sort of this HLO text goes along; 0 if there is none."""
    sorts = re.findall(r"= \(?\w+\[([\d,]*)\].* sort\(.*dimensions=\{(\d+)\}", text)
    return max((int(dims.split(",")[int(d)]) for dims, d in sorts), default=0)


class Peer:
    name = "IREE"

    def __init__(self, threads, isa):
        try:
            import iree.compiler
            import iree.runtime as runtime
        except ImportError as error:
            raise Missing(f"not installed ({error.name})") from None
        import xla_peer
        self.runtime, self.isa, self.xla = runtime, isa, xla_peer.Peer()
        self.compiler = pathlib.Path(iree.compiler.__path__[0]) / "_mlir_libs" / "iree-compile"
        runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        self.device = runtime.get_device("local-task")
        self.instance = runtime.VmInstance()
        self.hal = runtime.create_hal_module(self.instance, self.device)

    def version(self):
        return f"IREE {importlib.metadata.version('iree-base-compiler')}"

    def _compiled(self, text):
        """(module's bytes, empty if the compiler fails; its ms or None)."""
        key = hashlib.sha256(f"{self.version()} {self.isa} {text}".encode()).hexdigest()[:24]
        path = KEPT / f"{key}.vmfb"
        if path.exists():
            return path.read_bytes(), None
        KEPT.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        command = [self.compiler, "-", "--iree-input-type=stablehlo", "--iree-hal-target-backends=llvm-cpu",
                   f"--iree-llvmcpu-target-cpu={CPU[self.isa]}", "--iree-opt-level=O2"]
        try:
            done = subprocess.run(command, input=self.xla.stablehlo(text), capture_output=True, timeout=COMPILE_LIMIT_S)
            module = done.stdout if done.returncode == 0 else b""
        except subprocess.TimeoutExpired:
            module = b""
        path.write_bytes(module)
        return module, (time.perf_counter() - start) * 1e3

    def prepare(self, case):
        if longest_sort(case.text) > LONGEST_SORT:
            return None
        module, compile_ms = self._compiled(case.text)
        if not module:
            return None
        rt = self.runtime
        vm = rt.VmModule.copy_buffer(self.instance, module)
        context, function = rt.VmContext(self.instance, [self.hal, vm]), vm.lookup_function("main")
        arguments = rt.VmVariantList(len(case.arrays))
        for array in case.arrays:
            if str(array.dtype) == "bfloat16":
                array = array.view(np.uint16)
                buffer = self.device.allocator.allocate_buffer_copy(
                    memory_type=rt.MemoryType.DEVICE_LOCAL, allowed_usage=rt.BufferUsage.DEFAULT, device=self.device,
                    buffer=array, element_type=rt.HalElementType.BFLOAT_16)
                arguments.push_ref(buffer)
            else:
                arguments.push_ref(rt.asdevicearray(self.device, array)._buffer_view)
        _, leaves = hlo_signature.signature(case.text)

        def call():
            results = rt.VmVariantList(len(leaves))
            context.invoke(function, arguments, results)
            return results

        def results():
            answers, returned = [], call()
            for k, (dtype, dims) in enumerate(leaves):
                view = returned.get_as_ref(k).deref(rt.HalBufferView)
                mapped = np.frombuffer(bytes(view.map()), npyio.DTYPES[dtype], int(np.prod(dims, dtype=np.int64)))
                answers.append(mapped.reshape(dims))
            return answers

        return Ready(call, results, compile_ms)
