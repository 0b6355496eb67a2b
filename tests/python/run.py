"""Runs the Python package's tests in an environment of their own.

    run.py install VENV     makes the environment, with the pinned jax, and installs tools/python into it
    run.py VENV AREA.py     runs an area's program there

Exit status 77, with the reason, where this cannot be done at all: a Python that is too old or makes no
environments, or no package index that answers. CTest shows that as skipped. An index that answers but does not
give what is pinned is a failure, and so is everything of our own that goes wrong.
"""

import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(c) for c in command], text=True, **options)


def skip(reason: str) -> int:
    print("skipped:", reason)
    return SKIPPED


def pip(python: pathlib.Path, *arguments) -> subprocess.CompletedProcess:
    return run(python, "-m", "pip", "--disable-pip-version-check", "--retries", "5", "--timeout", "60", *arguments,
               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def index_answers(python: pathlib.Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        return pip(python, "download", "--quiet", "--no-deps", "--no-cache-dir", "--dest", folder, "pip").returncode == 0


def make_environment(venv: pathlib.Path) -> str:
    """Makes it, anew if it is not whole; the reason if that cannot be done."""
    python = venv / "bin" / "python"
    if python.exists() and pip(python, "--version").returncode == 0:
        return ""
    made = run(sys.executable, "-m", "venv", "--clear", venv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if made.returncode == 0 else "this Python makes no virtual environments: " + made.stdout.strip()


def install(venv: pathlib.Path) -> int:
    import tomllib  # not in a Python that main() refuses

    ready, skipped = venv / "ready", venv / "skipped"
    ready.unlink(missing_ok=True)
    skipped.unlink(missing_ok=True)

    def skip_all(reason: str) -> int:  # and tell the areas
        venv.mkdir(parents=True, exist_ok=True)
        skipped.write_text(reason)
        return skip(reason)

    if reason := make_environment(venv):
        return skip_all(reason)
    python = venv / "bin" / "python"
    project = tomllib.loads((ROOT / "tools/python/pyproject.toml").read_text())
    wanted = project["project"]["optional-dependencies"]["jax"] + project["project"]["dependencies"]
    wanted += project["build-system"]["requires"]
    got = pip(python, "install", "--quiet", "ninja", *wanted)
    if got.returncode != 0:
        print(got.stdout)
        if index_answers(python):
            print("the package index answers, but does not give what tools/python asks for")
            return 1
        return skip_all("no package index answers, and the packages are not here")
    built = pip(python, "install", "--quiet", "--no-deps", "--no-build-isolation", "--force-reinstall",
                ROOT / "tools/python")
    print(built.stdout)
    if built.returncode == 0:
        ready.touch()
    return built.returncode


def main() -> int:
    if sys.version_info < (3, 11):
        return skip(f"hlojit for Python needs 3.11, this is {sys.version.split()[0]}")
    if sys.argv[1] == "install":
        return install(pathlib.Path(sys.argv[2]))
    venv, area = pathlib.Path(sys.argv[1]), sys.argv[2]
    if (venv / "skipped").exists():
        return skip((venv / "skipped").read_text())
    if not (venv / "bin").exists():
        print("there is no environment: python.install has not run")
        return 1
    if not (venv / "ready").exists():
        print("the package is not installed: python.install failed, or has not run")
        return 1
    return run(venv / "bin" / "python", "-P", area).returncode


if __name__ == "__main__":
    sys.exit(main())
