"""What is changed in Horovod's source before it is built: the published one does not compile with
today's torch. Fits version 0.28.1 and the main branch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TORCH_WITH_CPP20: Final = (2, 14)  # whose headers do not compile as C++17


class EditError(RuntimeError):
    """The source is not one that the edits fit."""


@dataclass(frozen=True)
class Edit:
    """The place of a file that this regular expression (without groups) matches becomes this
    text."""

    file: str
    pattern: str
    text: str
    everywhere: bool = False  # there may be more than one


# Run-time images carry libcuda.so.1 only; distutils left Python 3.12; debug information makes the
# library 30 times larger.
_ALWAYS: Final = (
    Edit(
        "CMakeLists.txt",
        r"project\(horovod CXX\)\n",
        'project(horovod CXX)\nstring(REPLACE "-g" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO '
        '"${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")\n',
    ),
    Edit(
        "horovod/torch/CMakeLists.txt",
        r"from distutils\.sysconfig import get_python_inc; print\(get_python_inc\(\)\)",
        "import sysconfig; print(sysconfig.get_paths()['include'])",
    ),
    Edit("horovod/torch/cuda_util.cc", r'dlopen\("libcuda\.so",', 'dlopen("libcuda.so.1",'),
)
# With a CUDA torch Horovod turns CUDA on by itself, and links CUDA's libraries, which a machine
# without the toolkit does not have; this is how to say no.
_WITHOUT_GPU: Final = (
    Edit(
        "horovod/torch/CMakeLists.txt",
        r"elseif \(Pytorch_CUDA AND NOT HAVE_CUDA\)",
        "elseif (FALSE)",
    ),
    Edit(
        "cmake/Modules/FindPytorch.cmake",
        r"if \(Pytorch_CUDA OR Pytorch_ROCM\)",
        "if (FALSE)",
    ),
)
# Several files in one go: headers take most of the time. With CUDA nobody has tried it.
_TOGETHER: Final = Edit(
    "horovod/torch/CMakeLists.txt",
    r'set\(CMAKE_CXX_FLAGS "\$\{Pytorch_COMPILE_FLAGS\} \$\{CMAKE_CXX_FLAGS\}"\)\n',
    'set(CMAKE_CXX_FLAGS "${Pytorch_COMPILE_FLAGS} ${CMAKE_CXX_FLAGS}")\n'
    "set(CMAKE_UNITY_BUILD ON)\n",
)


def edits_for(torch_version: str, gpu: bool) -> tuple[Edit, ...]:
    numbers = tuple(int(part) for part in torch_version.split(".")[:2])
    standard = 20 if numbers >= _TORCH_WITH_CPP20 else 17
    of_standard = (
        Edit(
            file,
            r"set\(CMAKE_CXX_STANDARD \d+\)",
            f"set(CMAKE_CXX_STANDARD {standard})",
            everywhere=True,
        )
        for file in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt")
    )
    return (*_ALWAYS, *of_standard, *(() if gpu else (*_WITHOUT_GPU, _TOGETHER)))


def edit(tree: Path, edits: Sequence[Edit]) -> None:
    """Each in a tree of sources; raises if one finds no place, or more than it should."""
    for one in edits:
        path = tree / one.file
        content = path.read_text(encoding="utf-8")
        parts = re.split(one.pattern, content)
        places = len(parts) - 1
        if places == 0 or (places > 1 and not one.everywhere):
            expected = "at least one place" if one.everywhere else "one place"
            raise EditError(
                f"{path}: expected {expected} of {one.pattern!r}, found {places}; this is not the "
                "source of Horovod 0.28.1 or of its main branch."
            )
        path.write_text(one.text.join(parts), encoding="utf-8")
