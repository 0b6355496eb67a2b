"""XLA:CPU as a peer: compiles and runs HLO text in-process, timed as fairly as it can be.

What makes the comparison fair (bench/README.md has the figures):
- the synchronous client: the default one hands each call to another thread, 5-50 us on small work;
- freed memory is kept, in huge pages. XLA allocates its outputs afresh at each call, and malloc returns
  big blocks to the kernel at once, so that every call would pay for fresh pages (gelu of 16M: 23 ms
  instead of 6). KEPT_MEMORY is what makes glibc keep them; it must be in the environment before the
  process starts. Calls are not measured until one has caused no page fault;
- parameters that the program donates are fed back from the results, as a training or decoding loop
  does, so that neither side copies them.

jaxlib compiles StableHLO, so the text is parsed by XLA, converted, and compiled. `compile_ms` counts
from StableHLO bytes to executable: the conversion is not XLA's usual path, and is left out in its
favour.

    build/venv/bin/python bench/xla_peer.py FILE.hlo [--input F.npy]... [--threads N] [--min-ms MS]
"""

import argparse
import importlib.metadata
import json
import os
import resource
import statistics
import sys
import time

import hlo_signature


KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 40), "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(1 << 28), "MALLOC_ARENA_MAX": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
# At most so many calls go unmeasured while the allocator settles.
WARM_UP_CALLS = 12


def restart_with_kept_memory(threads, more={}):
    """Replaces this process by itself with that environment and only `threads` cores, once. `more` variables are set
    as well."""
    if os.environ.get("HLOJIT_PEER_READY"):
        return
    environment = {**os.environ, **KEPT_MEMORY, **more, "HLOJIT_PEER_READY": "1"}
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def version():
    """The version of jaxlib, which is the version of XLA:CPU that is compared."""
    return importlib.metadata.version("jaxlib")


class Peer:
    """One synchronous XLA:CPU client. Threads: the cores this process may use when it is made."""

    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import jax
        import numpy
        from jaxlib import _hlo, _jax, xla_client
        from jaxlib.cpu import _lapack
        _lapack.initialize()  # what a factorisation calls is null until then, and jax itself asks only when it lowers one
        self.jax, self.np, self.hlo, self.mlir, self.xla = jax, numpy, _hlo, _jax.mlir, xla_client
        self.client = xla_client.make_cpu_client(asynchronous=False)
        self.device = self.client.local_devices()[0]

    def stablehlo(self, text):
        """HLO text, whose layouts must be untiled, as the bytes of a StableHLO module."""
        module = self.hlo.hlo_module_from_text(text)
        return self.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())

    def compile(self, text):
        """Compiles HLO text, whose layouts must be untiled, into a Program."""
        stable = self.stablehlo(text)
        devices, options = self.xla.DeviceList((self.device,)), self.xla.CompileOptions()
        start = time.perf_counter()
        executable = self.client.compile_and_load(stable, devices, options)
        elapsed = time.perf_counter() - start
        return Program(self, executable, hlo_signature.donations(text), elapsed * 1e3)

    def put(self, array):
        """A device buffer with a copy of `array`."""
        with self.jax.enable_x64(True):
            aval = self.jax.core.ShapedArray(array.shape, array.dtype)
        sharding = self.jax.sharding.SingleDeviceSharding(self.device)
        return self.xla.batched_device_put(
            aval, sharding, [array], [self.device],
            host_buffer_semantics=self.xla.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL,
            enable_x64=True)


class Program:
    """An executable and how long it took to compile."""

    def __init__(self, peer, executable, donations, compile_ms):
        self.peer, self.executable = peer, executable
        self.donations, self.compile_ms = donations, compile_ms
        memory = executable.get_compiled_memory_stats()
        # Of a call: arguments, results that do not take an argument's memory, and everything between.
        self.memory_bytes = (memory.argument_size_in_bytes + memory.output_size_in_bytes -
                             memory.alias_size_in_bytes + memory.temp_size_in_bytes)

    def run(self, arrays):
        """NumPy arrays in, NumPy arrays out."""
        results = self.executable.execute([self.peer.put(a) for a in arrays])
        return [self.peer.np.asarray(r) for r in results]

    def time(self, arrays, min_ms, least=5):
        """Times in us of single calls for `min_ms`, at least `least` unless one takes ten times as long, once memory
        has settled."""
        buffers = [self.peer.put(a) for a in arrays]
        for _ in range(WARM_UP_CALLS):
            faults = page_faults()
            buffers, elapsed = self._timed_call(buffers)
            if page_faults() == faults or elapsed > 1e4 * min_ms:
                break
        times, spent = [], 0.0
        while spent < min_ms * 1e3 or (len(times) < least and spent < 1e4 * min_ms):
            buffers, elapsed = self._timed_call(buffers)
            times.append(elapsed)
            spent += elapsed
        return times

    def _timed_call(self, buffers):
        """(buffers for the next call, us of this one). The results die here, as a caller's would."""
        start = time.perf_counter()
        results = self.executable.execute(buffers)
        for k in range(len(results)):
            results[k].block_until_ready()
        elapsed = (time.perf_counter() - start) * 1e6
        return self._fed_back(buffers, results), elapsed

    def _fed_back(self, buffers, results):
        for leaf, parameter in self.donations.items():
            buffers[parameter] = results[leaf]
        return buffers


def main():
    parser = argparse.ArgumentParser(description="Runs HLO text on XLA:CPU.")
    parser.add_argument("module")
    parser.add_argument("--input", action="append", default=[], metavar="F.npy",
                        help="one file a parameter, in order; random where not given")
    parser.add_argument("--output-dir", metavar="DIR", help="write out_K.npy there instead of timing")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--min-ms", type=float, default=200)
    options = parser.parse_args()
    restart_with_kept_memory(options.threads)

    import npyio
    with open(options.module) as file:
        text = file.read()
    parameters, _ = hlo_signature.signature(text)
    arrays = [npyio.load(path, dtype) for path, (dtype, _) in zip(options.input, parameters)]
    arrays += [npyio.random(dtype, dims, seed)
               for seed, (dtype, dims) in list(enumerate(parameters))[len(arrays):]]
    program = Peer().compile(text)
    if options.output_dir:
        os.makedirs(options.output_dir, exist_ok=True)
        for leaf, result in enumerate(program.run(arrays)):
            npyio.save(os.path.join(options.output_dir, f"out_{leaf}.npy"), result)
        return
    times = program.time(arrays, options.min_ms)
    print(json.dumps({"compile_ms": round(program.compile_ms, 2),
                      "us": [round(min(times), 2), round(statistics.median(times), 2), len(times)],
                      "threads": options.threads}))


if __name__ == "__main__":
    main()
