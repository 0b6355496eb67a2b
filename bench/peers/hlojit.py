"""hlojit itself, behind the interface of the peers: the program under test in a process of its own."""

import npyio
from peers.base import Ready

import hlo_signature
import worker


class Failed(Exception):
    """hlojit does not run the program; the text says why."""


class Program:
    name = "hlojit"

    def __init__(self, path, threads, isa, timeout_s):
        self.path, self.isa = path, isa
        self.worker = worker.Worker(path, threads, timeout_s)

    def version(self):
        return worker.version(self.path)

    def prepare(self, case, tiled=False):
        """The program as it is or, with `tiled`, in its tiled form. Throws Failed."""
        return Timed(self, case, tiled)

    def ask(self, **request):
        answer = self.worker.ask(device_isa=self.isa, **request)
        if answer["rc"] != 0:
            raise Failed(f"{request['cmd']}: {answer.get('msg', answer['rc'])}")
        return answer

    def close(self):
        self.worker.close()


class Timed(Ready):
    """Each round compiles anew: the compile time has as many samples."""

    def __init__(self, program, case, tiled):
        super().__init__(None, self._results)
        self.program, self.case = program, case
        self.module = case.folder / ("tiled.hlo" if tiled else "module.hlo")
        self.module.write_text(case.tiled if tiled else case.text)
        self.files = [str(case.folder / f"in_{k}.npy") for k in range(len(case.arrays))]

    def _results(self):
        folder = self.case.folder / self.module.stem
        self.program.ask(cmd="run", module=str(self.module), inputs=self.files, output_dir=str(folder))
        _, leaves = hlo_signature.signature(self.case.text)
        return [npyio.load(folder / f"out_{k}.npy", dtype) for k, (dtype, _) in enumerate(leaves)]

    def time(self, seconds):
        answer = self.program.ask(cmd="bench", module=str(self.module), inputs=self.files, min_ms=seconds * 1e3)
        self.compile_ms.append(answer["compile_ms"])
        self.memory_bytes = answer["peak_bytes"]
        return [answer["us"][1]]
