"""The rules of this project that no off-the-shelf linter knows. Prints file:line, what, limit."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.places import ROOT

FILE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 8
FOLDER_FILES = 15
MADE = (".pyc", ".so")  # not by people
# Where a study or an example is one file more, not one concept more.
COLLECTIONS = ("docs/studies", "docs/images", "docs/examples")
STOCK_SIGNATURE = "# rule: stock signature"

PYTHON_FOLDERS = ("deft_horovod", "tests", "scripts", "docs/examples")
CPP_FOLDERS = ("csrc", "tests/cpp")
CPP_SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
UNFINISHED = re.compile(r"\b([T]ODO|[F]IXME|[X]XX)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
HORO_HEADER = re.compile(r"^horovod/(common|torch|tensorflow|mxnet)/")
PYBIND_HEADER = re.compile(
    r"^(pybind11/|Python\.h$|torch/extension\.h$|torch/csrc/.*(python|pybind))"
)
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2)/")
WITHOUT_TORCH = ("csrc/core/", "csrc/cuda/", "csrc/wire/")
CPP_NOISE = re.compile(
    r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
    re.MULTILINE,
)
CPP_FUNCTION = re.compile(r"\)[^()]*(?:\([^()]*\)[^()]*)*$", re.DOTALL)
CPP_NOT_FUNCTION = re.compile(r"^\s*(if|for|while|switch|catch|else|do|namespace|class|struct)\b")


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    what: str
    limit: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}; limit: {self.limit}"


def python_files(root: Path) -> list[Path]:
    files = [path for folder in PYTHON_FOLDERS for path in (root / folder).rglob("*.py")]
    return sorted([*files, *root.glob("*.py")])


def cpp_files(root: Path) -> list[Path]:
    found = (path for folder in CPP_FOLDERS for path in (root / folder).rglob("*"))
    return sorted(path for path in found if path.suffix in CPP_SUFFIXES)


def shell_files(root: Path) -> list[Path]:
    ci = [root / ".ci" / "run"] if (root / ".ci" / "run").is_file() else []
    return sorted([*(root / "scripts").glob("*.sh"), *ci])


def check_text(name: str, text: str) -> Iterator[Finding]:
    lines = text.splitlines()
    if len(lines) > FILE_LINES:
        yield Finding(name, FILE_LINES + 1, f"file of {len(lines)} lines", f"{FILE_LINES} lines")
    for number, line in enumerate(lines, 1):
        found = UNFINISHED.search(line)
        if found:
            yield Finding(name, number, f"unfinished: {found.group()}", "none; finish it")


def check_function(
    name: str, lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Finding]:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if length > FUNCTION_LINES:
        what = f"function {node.name} of {length} lines"
        yield Finding(name, node.lineno, what, f"{FUNCTION_LINES} lines")
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    count = sum(argument.arg not in ("self", "cls") for argument in arguments)
    signature = lines[node.lineno - 1 : node.body[0].lineno]
    exempt = any(STOCK_SIGNATURE in line for line in signature)
    if count > PARAMETERS and not exempt:
        what = f"function {node.name} with {count} parameters"
        yield Finding(name, node.lineno, what, f"{PARAMETERS} (or '{STOCK_SIGNATURE}')")


def reads_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == "os" and node.attr in ("environ", "getenv", "putenv", "environb")
    if isinstance(node, ast.ImportFrom) and node.module == "os":
        return any(alias.name in ("environ", "getenv", "putenv") for alias in node.names)
    return False


def check_python(name: str, text: str) -> Iterator[Finding]:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield Finding(name, error.lineno or 1, f"does not parse: {error.msg}", "valid Python")
        return
    lines = text.splitlines()
    package = name.startswith("deft_horovod/")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from check_function(name, lines, node)
        if package and name != "deft_horovod/config.py" and reads_environment(node):
            line = getattr(node, "lineno", 1)
            yield Finding(name, line, "reads the environment", "only deft_horovod/config.py may")


def blank_noise(text: str) -> str:
    """Comments, strings and preprocessor lines become spaces; every line stays where it is."""
    return CPP_NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def cpp_functions(text: str) -> Iterator[tuple[int, int, str]]:
    """(first line, number of lines, header) of every outermost function body; approximate."""
    clean = blank_noise(text)
    header_start, depth = 0, 0
    function: tuple[int, int, str] | None = None  # depth inside it, first line, header
    for match in re.finditer(r"[{};]", clean):
        position, symbol = match.start(), match.group()
        header = clean[header_start:position]
        if symbol == "{":
            depth += 1
            named = CPP_FUNCTION.search(header) and not CPP_NOT_FUNCTION.match(header)
            if function is None and named:
                start = header_start + len(header) - len(header.lstrip())
                words = " ".join(header.split())
                function = (depth, clean.count("\n", 0, start) + 1, words)
        elif symbol == "}":
            if function is not None and function[0] == depth:
                last = clean.count("\n", 0, position) + 1
                yield function[1], last - function[1] + 1, function[2]
                function = None
            depth -= 1
        header_start = match.end()


def check_cpp(name: str, text: str) -> Iterator[Finding]:
    for line, length, header in cpp_functions(text):
        if length > FUNCTION_LINES:
            what = f"function of {length} lines: {header[:60]}"
            yield Finding(name, line, what, f"{FUNCTION_LINES} lines")
    for match in INCLUDE.finditer(text):
        include, line = match.group(1), text.count("\n", 0, match.start(1)) + 1
        pybind, horovod = PYBIND_HEADER.match(include), HORO_HEADER.match(include)
        if pybind and not name.startswith("csrc/bindings/"):
            yield Finding(name, line, f"includes {include}", "pybind only in csrc/bindings")
        if horovod and not name.startswith("csrc/horovod/"):
            yield Finding(name, line, f"includes {include}", "Horovod only in csrc/horovod")
        if TORCH_HEADER.match(include) and name.startswith(WITHOUT_TORCH):
            limit = f"no torch in {' and '.join(folder[:-1] for folder in WITHOUT_TORCH)}"
            yield Finding(name, line, f"includes {include}", limit)


def check_tests_exist(root: Path) -> Iterator[Finding]:
    """Every module has a test of its name: in the same room of tests/unit, or, where it takes ranks
    to test it, anywhere in tests/parallel."""
    ranks = {path.name for path in (root / "tests" / "parallel").rglob("test_*.py")}
    package = root / "deft_horovod"
    for module in sorted(package.rglob("*.py")):
        if module.name == "__init__.py":
            continue
        name = f"test_{module.stem.strip('_')}.py"
        test = root / "tests" / "unit" / module.relative_to(package).with_name(name)
        if name not in ranks and not test.is_file():
            limit = f"{test.relative_to(root)}, or {name} in tests/parallel"
            yield Finding(str(module.relative_to(root)), 1, "module without a test", limit)


def check_class_names(root: Path) -> Iterator[Finding]:
    """One name, one class: a reader of the package never has to ask which one is meant."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path in sorted((root / "deft_horovod").rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except SyntaxError:  # check_python says so
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                place = (path.relative_to(root).as_posix(), node.lineno)
                places[node.name.strip("_")].append(place)
    for name, (first, *others) in places.items():
        for path_name, line in others:
            what = f"class {name}, as in {first[0]}:{first[1]}"
            yield Finding(path_name, line, what, "one class of a name in deft_horovod")


def check_rooms(root: Path) -> Iterator[Finding]:
    """A folder that one can take in at a glance."""
    tops = ("deft_horovod", "csrc", "scripts", "tests", "docs")
    files = (path for top in tops for path in (root / top).rglob("*") if path.is_file())
    rooms = Counter(path.parent for path in files if path.suffix not in MADE)
    for folder, count in sorted(rooms.items()):
        name = folder.relative_to(root).as_posix()
        if count > FOLDER_FILES and not name.startswith(COLLECTIONS):
            yield Finding(name, 1, f"folder of {count} files", f"{FOLDER_FILES} files")


def check_tree(root: Path) -> list[Finding]:
    findings = [*check_tests_exist(root), *check_rooms(root), *check_class_names(root)]
    for path in python_files(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        findings += [*check_text(name, text), *check_python(name, text)]
    for path in cpp_files(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        findings += [*check_text(name, text), *check_cpp(name, text)]
    for path in shell_files(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        findings += check_text(name, text)
    return sorted(findings)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else ROOT
    findings = check_tree(root)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
