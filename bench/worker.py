"""The program under test, as the scoreboard drives it: one `hlojit batch` process, restarted when it
dies or hangs."""

import json
import select
import subprocess


class Worker:
    def __init__(self, path, threads, timeout_s):
        self.path, self.threads, self.timeout_s = path, threads, timeout_s
        self.process = None

    def ask(self, **request):
        """The answer to one request; {"rc": -1, "msg": ...} if the process died or took too long."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([self.path, "batch"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = json.dumps({"threads": self.threads, **request}) + "\n"
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], self.timeout_s)
            answer = self.process.stdout.readline() if ready else None
        except BrokenPipeError:
            answer = b""
        if answer:
            return json.loads(answer)
        if answer is None:
            self.process.kill()
        code = self.process.wait()
        self.process = None
        return {"rc": -1, "msg": f"no answer in {self.timeout_s} s" if answer is None else f"died, code {code}"}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def version(path):
    return subprocess.run([path, "--version"], capture_output=True, text=True).stdout.strip()
