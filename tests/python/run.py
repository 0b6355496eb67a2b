"""Runs the Python package's tests in an environment of their own.

    run.py install VENV     makes the environment, with the pinned jax, and installs tools/python into it
    run.py VENV AREA.py     runs an area's program there

Exit status 77, with the reason, if jax cannot be installed here; CTest shows that as skipped.
"""

import pathlib
import subprocess
import sys
import tomllib

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(c) for c in command], text=True, **options)


def skip(reason: str) -> int:
    print("skipped:", reason)
    return SKIPPED


def install(venv: pathlib.Path) -> int:
    ready = venv / "ready"
    ready.unlink(missing_ok=True)
    python = venv / "bin" / "python"
    if not python.exists() and run(sys.executable, "-m", "venv", venv).returncode != 0:
        return skip("this Python makes no virtual environments")
    project = tomllib.loads((ROOT / "tools/python/pyproject.toml").read_text())
    wanted = project["project"]["optional-dependencies"]["jax"] + project["project"]["dependencies"]
    wanted += project["build-system"]["requires"]
    got = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "ninja", *wanted,
              stderr=subprocess.PIPE)
    if got.returncode != 0:
        return skip("jax cannot be installed: " + got.stderr.strip().splitlines()[-1])
    built = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                "--no-build-isolation", "--force-reinstall", ROOT / "tools/python")
    if built.returncode == 0:
        ready.touch()
    return built.returncode


def main() -> int:
    if sys.version_info < (3, 11):
        return skip(f"hlojit for Python needs 3.11, this is {sys.version.split()[0]}")
    if sys.argv[1] == "install":
        return install(pathlib.Path(sys.argv[2]))
    venv, area = pathlib.Path(sys.argv[1]), sys.argv[2]
    if not (venv / "ready").exists():
        return skip("the package is not installed; see the test python.install")
    return run(venv / "bin" / "python", "-P", area).returncode


if __name__ == "__main__":
    sys.exit(main())
