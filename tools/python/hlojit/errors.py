"""Errors of hlojit as Python exceptions that show the place in the program and the rule it breaks."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from hlojit import _core


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One finding. line and column count from 1, 0 where unknown; rule is a short stable name or empty."""

    line: int
    column: int
    instruction: str
    rule: str
    message: str
    details: str

    def show(self, source: str = "") -> str:
        """The message, and the line of the source with a caret below the place."""
        place = f"{self.line}:{self.column}: " if self.line else f"{self.instruction}: " if self.instruction else ""
        out = [place + self.message + (f" [{self.rule}]" if self.rule else "")]
        lines = source.splitlines()
        if 0 < self.line <= len(lines):
            out.append("  " + lines[self.line - 1])
            out.append("  " + " " * (max(self.column, 1) - 1) + "^")
        if self.details:
            out.extend("  " + line for line in self.details.splitlines())
        return "\n".join(out)


class Error(Exception):
    """What hlojit refuses. kind is "invalid", "unsupported", "input" or "failed"."""

    def __init__(self, kind: str, diagnostics: list[Diagnostic], source: str = ""):
        self.kind = kind
        self.diagnostics = diagnostics
        super().__init__(f"{kind}: " + "\n".join(d.show(source) for d in diagnostics))


def of_raw(raw: _core.RawError, source: str = "") -> Error:
    """An error of the C++ side, with `source` as the text it points into."""
    kind, found = raw.args
    return Error(kind, [Diagnostic(*d) for d in found], source)


@contextlib.contextmanager
def translated(source: str = "") -> Iterator[None]:
    """Turns errors of the C++ side into Error."""
    try:
        yield
    except _core.RawError as e:
        raise of_raw(e, source) from None
