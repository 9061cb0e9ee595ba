"""Precompiled headers for the extension: reading torch's takes most of the time of each file.

GCC takes DIRECTORY/header.h.gch in the place of header.h if the file includes it first and all
flags are the same. Otherwise it reads the header, so nothing depends on this but the time.
"""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Each is the first include of every file that uses it.
HEADERS = ("torch/libtorch.h", "bindings/bindings.h")
_COMPILE = "_write_ninja_file_and_compile_objects"


def precompile(compiler: str, flags: Sequence[str], sources: Path, folder: Path) -> None:
    """Those that are not up to date, side by side. `folder` has to come before `sources` among the
    folders of includes."""
    version = _version(compiler)
    if "clang" in version:  # takes them only with an option for each file
        return
    running = []
    for header in HEADERS:
        wrapper = folder / header
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # #pragma once does not work in the file that is compiled itself.
        wrapper.write_text(f'#include "{sources / header}"\n', encoding="utf-8")
        target, stamp = folder / f"{header}.gch", folder / f"{header}.command"
        command = [*shlex.split(compiler), *flags, "-x", "c++-header", str(wrapper)]
        command += ["-o", str(target)]
        texts = "".join((sources / name).read_text(encoding="utf-8") for name in HEADERS)
        state = hashlib.sha256(f"{version}{shlex.join(command)}{texts}".encode()).hexdigest()
        if target.is_file() and stamp.is_file() and stamp.read_text(encoding="ascii") == state:
            continue
        target.unlink(missing_ok=True)
        print(shlex.join(command), flush=True)
        running.append((subprocess.Popen(command), stamp, state))
    for process, stamp, state in running:
        if process.wait() == 0:
            stamp.write_text(state, encoding="ascii")


@contextlib.contextmanager
def before_ninja(cpp_extension: Any, sources: Path, folder: Path) -> Iterator[None]:
    """Precompiles once torch's build knows its flags, which it tells nobody else."""
    compile_objects = getattr(cpp_extension, _COMPILE, None)
    if compile_objects is None:  # a torch that does it in another way
        yield
        return

    def compile_all(*arguments: Any, **named: Any) -> None:
        texts = [*named.get("cflags", ()), *named.get("post_cflags", ())]
        flags = [word for text in texts for word in shlex.split(text)]
        precompile(cpp_extension.get_cxx_compiler(), flags, sources, folder)
        compile_objects(*arguments, **named)

    setattr(cpp_extension, _COMPILE, compile_all)
    try:
        yield
    finally:
        setattr(cpp_extension, _COMPILE, compile_objects)


def _version(compiler: str) -> str:
    command = [*shlex.split(compiler), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
