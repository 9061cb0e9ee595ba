"""scripts/horovod/edits.py: what Horovod's source becomes, and what is no source of it."""

import pytest

from scripts.horovod.edits import Edit, EditError, edit, edits_for

STANDARD = "set(CMAKE_CXX_STANDARD {})\n"


@pytest.fixture
def tree(tmp_path):
    """With every place that is edited, as the release and the main branch have them."""
    files = {
        "CMakeLists.txt": "project(horovod CXX)\n" + STANDARD.format(14),
        "horovod/torch/CMakeLists.txt": (
            "elseif (Pytorch_CUDA AND NOT HAVE_CUDA)\n"
            'set(CMAKE_CXX_FLAGS "${Pytorch_COMPILE_FLAGS} ${CMAKE_CXX_FLAGS}")\n'
            "from distutils.sysconfig import get_python_inc; print(get_python_inc())\n"
            + STANDARD.format(17)  # of main
            + STANDARD.format(14)
        ),
        "horovod/torch/cuda_util.cc": 'dlopen("libcuda.so", RTLD_LAZY)',
        "cmake/Modules/FindPytorch.cmake": "if (Pytorch_CUDA OR Pytorch_ROCM)",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("torch", "standard"), [("2.11.0", 17), ("2.13.0+cpu", 17), ("2.14.0a0+git", 20), ("3.0.1", 20)]
)
def test_the_standard_is_that_of_torch(tree, torch, standard):
    edit(tree, edits_for(torch, gpu=False))
    assert (tree / "CMakeLists.txt").read_text().count(STANDARD.format(standard)) == 1
    assert (tree / "horovod/torch/CMakeLists.txt").read_text().count(STANDARD.format(standard)) == 2


def test_backslashes_of_a_text_stay(tmp_path):
    (tmp_path / "a").write_text("one")
    edit(tmp_path, [Edit("a", "o.e", r"\1 \n")])
    assert (tmp_path / "a").read_text() == r"\1 \n"


@pytest.mark.parametrize("gpu", [False, True])
def test_cuda_is_looked_for_where_it_is_wanted(tree, gpu):
    edit(tree, edits_for("2.13.0", gpu))
    found = (tree / "cmake/Modules/FindPytorch.cmake").read_text()
    assert found == ("if (Pytorch_CUDA OR Pytorch_ROCM)" if gpu else "if (FALSE)")


def test_files_are_compiled_together_where_that_was_tried(tree):
    lists = tree / "horovod/torch/CMakeLists.txt"
    edit(tree, edits_for("2.13.0", gpu=True))
    assert "CMAKE_UNITY_BUILD" not in lists.read_text()
    edit(tree, [one for one in edits_for("2.13.0", gpu=False) if "UNITY" in one.text])
    assert "CMAKE_UNITY_BUILD ON" in lists.read_text()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("CMakeLists.txt", "project(horovod CXX)\n", "expected at least one place of .*, found 0"),
        ("horovod/torch/cuda_util.cc", "", "expected one place of .*, found 0"),
        ("horovod/torch/cuda_util.cc", 'dlopen("libcuda.so", 1)' * 2, "one place of .*, found 2"),
    ],
)
def test_other_places_than_expected_are_an_error(tree, name, text, message):
    (tree / name).write_text(text)
    with pytest.raises(EditError, match=f"{name}: .*{message}"):
        edit(tree, edits_for("2.13.0", gpu=True))
