"""Entry: a mapping of a YAML file whose mistakes are named by line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeVar

import yaml

from deft_horovod.errors import ConfigError, explain

_Value = TypeVar("_Value")


class Entry:
    """One mapping: a whole file, a job, a machine."""

    def __init__(self, path: Path, node: yaml.Node, what: str) -> None:
        self.path, self.what, self._node = path, what, node
        if not isinstance(node, yaml.MappingNode):
            raise mistake(path, node, f"{what} is not a list of names with values")
        self._fields: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value in self._fields:
                raise mistake(path, key, f"'{key.value}' is there twice", action="remove one")
            self._fields[str(key.value)] = value
        self._keys = {str(key.value): key for key, _ in node.value}

    def require_known(self, names: Sequence[str]) -> None:
        for name, key in self._keys.items():
            if name not in names:
                close = get_close_matches(name, names, n=1)
                action = f"did you mean '{close[0]}'?" if close else "remove it"
                what = f"{self.what} has no '{name}'"
                raise mistake(self.path, key, what, expected=", ".join(names), action=action)

    def has(self, name: str) -> bool:
        return name in self._fields

    def text(self, name: str) -> str:
        """What is written there."""
        node = self._fields.get(name)
        if node is None:
            self.fail(f"{self.what} needs '{name}'", action=f"add {name}: ...")
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise mistake(self.path, node, f"'{name}' of {self.what} is not a single value")
        return str(node.value)

    def read(
        self, name: str, parse: Callable[[str], _Value], default: _Value | None = None
    ) -> _Value:
        """By a function that raises ValueError for what is wrong; a default makes it optional."""
        if default is not None and name not in self._fields:
            return default
        text = self.text(name)
        try:
            return parse(text)
        except ValueError as error:
            self.fail(f"'{name}' of {self.what}: {error}", name, observed=text)

    def entries(self, name: str, what: str) -> list[Entry]:
        """Of a list of mappings; none where it is missing."""
        node = self._fields.get(name)
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            raise mistake(self.path, node, f"'{name}' is not a list", action="begin lines with -")
        return [Entry(self.path, one, what) for one in node.value]

    def fail(
        self,
        what: str,
        name: str | None = None,
        *,
        observed: object = None,
        expected: object = None,
        action: str | None = None,
    ) -> NoReturn:
        """At the line of a field, or of the whole."""
        node = self._keys.get(name or "", self._node)
        raise mistake(
            self.path, node, what, observed=observed, expected=expected, action=action
        ) from None


def load(path: Path) -> Entry:
    """The whole file.

    Raises:
        ConfigError: it cannot be read, or is no mapping.
    """
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(explain(f"the file {path} cannot be read", observed=error)) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        what = f"{path}, line {line}: this is not YAML"
        raise ConfigError(explain(what, observed=error.problem)) from None
    except yaml.YAMLError as error:
        raise ConfigError(explain(f"{path}: this is not YAML", observed=error)) from None
    if node is None:
        raise ConfigError(explain(f"the file {path} is empty", action="list jobs and machines"))
    return Entry(path, node, "the file")


def mistake(
    path: Path,
    node: yaml.Node,
    what: str,
    *,
    observed: object = None,
    expected: object = None,
    action: str | None = None,
) -> ConfigError:
    """An error that names the line."""
    place = f"{path}, line {node.start_mark.line + 1}: {what}"
    return ConfigError(explain(place, observed=observed, expected=expected, action=action))
