"""XLA:CPU as a peer of the scoreboard; xla_peer.py says what makes it fair."""

import importlib.metadata

import xla_peer
from peers.base import Ready


class Timed(Ready):
    """Buffers stay on the device between rounds; memory settles first. Compiled anew each round, for the compile
    time, unless that takes a second."""

    def __init__(self, peer, case):
        self.peer, self.case = peer, case
        self.program = peer.compile(case.text)
        super().__init__(None, lambda: self.program.run(case.arrays), self.program.compile_ms, self.program.memory_bytes)

    def time(self, seconds):
        if self.compile_ms[0] < 1000:
            self.compile_ms.append(self.peer.compile(self.case.text).compile_ms)
        return self.program.time(self.case.arrays, seconds * 1e3, least=3)


class Peer:
    name = "XLA:CPU"

    def __init__(self, threads, isa):
        # The number of threads and the instruction set are those of the process: see environment() of the package.
        self.peer = xla_peer.Peer()

    def version(self):
        return f"jaxlib {importlib.metadata.version('jaxlib')}"

    def prepare(self, case):
        return Timed(self.peer, case)
