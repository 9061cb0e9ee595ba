import json

import click
import pytest
from click.testing import CliRunner
from rich.table import Table

from deft_horovod.cli.output import (
    PLAIN_WIDTH,
    Output,
    json_text,
    output_options,
    plain_text,
    plot_option,
    require_free,
)
from deft_horovod.picture.figure import FORMATS


@click.command
@plot_option("Draw it")
@output_options
def command(output, plot):
    output.require_free(plot)
    output.show({"answer": 42}, "forty-two")


def run(*arguments):
    return CliRunner().invoke(command, [str(word) for word in arguments])


def test_text_and_json_go_to_the_terminal():
    assert run().stdout == "forty-two\n"
    assert json.loads(run("--json").stdout) == {"answer": 42}


def test_files_get_the_same_and_the_terminal_is_told(tmp_path):
    path = tmp_path / "out"
    result = run("-o", path)
    assert (result.stdout, result.stderr) == ("", f"wrote {path}\n")
    assert path.read_text(encoding="utf-8") == "forty-two\n"
    assert run("--json", "--output", path, "--force").exit_code == 0
    assert json.loads(path.read_text(encoding="utf-8")) == {"answer": 42}


@pytest.mark.parametrize("option", ["--output", "--plot"])
def test_nothing_is_overwritten_without_force(tmp_path, option):
    path = tmp_path / "out.png"
    path.write_text("mine", encoding="utf-8")
    result = run(option, path)
    assert result.exit_code == 2
    assert "--force" in result.stderr
    assert path.read_text(encoding="utf-8") == "mine"
    assert run(option, path, "--force").exit_code == 0


def test_a_folder_that_is_not_there_is_told(tmp_path):
    result = run("-o", tmp_path / "none" / "out")
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr
    with pytest.raises(click.UsageError, match="there is no folder"):
        require_free(tmp_path / "none" / "out", force=True)


def test_json_has_no_numbers_that_json_does_not_know():
    with pytest.raises(ValueError, match="JSON"):
        json_text({"x": float("nan")})


def test_plain_tables_are_wide_and_have_no_blanks_at_the_end():
    table = Table(box=None)
    table.add_column("a", no_wrap=True)
    table.add_column("b", min_width=50)
    table.add_row("x" * 100, "y")
    text = plain_text(table, "last line")
    assert "x" * 100 in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert max(map(len, text.splitlines())) <= PLAIN_WIDTH
    assert text.endswith("last line\n")


def test_pictures_are_of_a_kind_that_can_be_drawn(tmp_path):
    for kind in FORMATS:
        assert run("--plot", tmp_path / f"x.{kind}").exit_code == 0
    for name in ("x", "x.gif", ".png"):
        result = run("--plot", tmp_path / name)
        assert result.exit_code == 2
        assert ".png, .svg, .pdf" in result.stderr


def test_the_default_goes_nowhere_but_the_terminal(capsys):
    Output().require_free(None)
    Output().show({"a": 1}, "text")
    assert capsys.readouterr().out == "text\n"
