"""Compile the stand-in driver library, once per content and set of left-out symbols.

    folder = build(tmp_path / "driver", without=scenario.without)
    subprocess.run([...], env=environment(folder, scenario.write(tmp_path / "scenario")))

``folder`` then holds ``libnvidia-ml.so.1``; a child process with ``LD_LIBRARY_PATH=folder`` loads it through the
real pynvml. Symbols named in ``without`` are local to the library, so a lookup fails as on a driver that lacks them.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).parent
LIBRARY = "libnvidia-ml.so.1"
FLAGS = (
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    f"-Wl,-soname,{LIBRARY}",
)


class CannotBuildError(RuntimeError):
    """There is no compiler, or it refused the sources."""


def build(folder: Path, *, without: Sequence[str] = ()) -> Path:
    """Put the library into ``folder`` and return it (for LD_LIBRARY_PATH); raises :class:`CannotBuildError`."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise CannotBuildError(
            "the stand-in driver library needs a C compiler: install `cc`, or name one in CC"
        )
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(_compiled(compiler, sorted(without)), folder / LIBRARY)
    return folder


def build_or_skip(folder: Path, *, without: Sequence[str] = ()) -> Path:
    """Skip the test where there is no compiler; in CI (``CI=true``) that is a failure instead."""
    if shutil.which(os.environ.get("CC", "cc")) is None:
        import pytest

        reason = "no C compiler (`cc`): the stand-in driver library cannot be built"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return build(folder, without=without)


def environment(folder: Path, scenario: Path, calls: Path | None = None) -> dict[str, str]:
    """Return the environment of a process that shall meet the stand-in; ``calls`` takes the counts at shutdown."""
    found = {**os.environ, "LD_LIBRARY_PATH": str(folder), "GPUWISE_STANDIN": str(scenario)}
    if calls is not None:
        found["GPUWISE_STANDIN_CALLS"] = str(calls)
    return found


def _compiled(compiler: str, without: Sequence[str]) -> Path:
    sources = sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])
    exports = _version_script(without)
    digest = hashlib.sha256("\0".join([compiler, *FLAGS, exports]).encode())
    for source in sources:
        digest.update(source.read_bytes())
    cache = Path(tempfile.gettempdir()) / f"gpuwise-standin-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    if cache.stat().st_uid != os.getuid():
        raise CannotBuildError(f"{cache} belongs to another user: remove it, or set TMPDIR")
    library = cache / f"{digest.hexdigest()[:20]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _compile(
                compiler,
                [source for source in sources if source.suffix == ".c"],
                exports,
                Path(scratch),
                library,
            )
    return library


def _compile(compiler: str, sources: Sequence[Path], exports: str, scratch: Path, library: Path) -> None:
    script, made = scratch / "exports.map", scratch / LIBRARY
    script.write_text(exports)
    command = [compiler, *FLAGS, f"-Wl,--version-script={script}", *map(str, sources), "-lm", "-lpthread"]
    done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuildError(f"{compiler} refused the stand-in driver library:\n{done.stderr}")
    made.replace(library)


def _version_script(without: Sequence[str]) -> str:
    """Exact names win over the pattern above them, so a left-out symbol is local."""
    return "{ global: nvml*; standin_*; local: " + "".join(f"{name}; " for name in without) + "*; };\n"
