import json

import pytest

from tests.unit.support.example import BLOCKS, fails, profile, saved, succeeds


def layers(text):
    return [layer["name"] for layer in json.loads(text)["layers"]]


@pytest.mark.parametrize("links", [(), ("horovod",), ("horovod", "second")])
def test_the_table_fits_into_80_columns(tmp_path, links):
    lines = succeeds("layers", saved(tmp_path, links=links)).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "\u2026" not in text
    for name in ("embedding", "blocks.3", "scale", *links):
        assert name in text


def test_the_summary_says_what_is_exposed(tmp_path):
    text = " ".join(succeeds("layers", saved(tmp_path)).stdout.split())
    assert "4 ranks, 10 steps measured: computing 195.0 ms" in text
    assert "55.0 ms (22%) were exposed communication" in text
    assert "coverage rate" in text


def test_one_rank_has_no_communication(tmp_path):
    text = succeeds("layers", saved(tmp_path, links=(), size=1)).stdout
    assert "1 rank, 10 steps" in text
    assert "no link was measured" in text


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("model", "embedding"),
        ("bytes", "embedding"),
        ("forward", "blocks.0"),
        ("ready", "scale"),
        ("communication", "embedding"),
    ],
)
def test_rows_are_sorted(tmp_path, sort, first):
    path = saved(tmp_path)
    found = layers(succeeds("layers", path, "--sort", sort, "--json").stdout)
    assert found[0] == first
    assert len(found) == BLOCKS + 2
    shown = succeeds("layers", path, "--sort", sort).stdout
    assert sorted(found, key=shown.index) == found


def test_filter_and_top_leave_the_totals(tmp_path):
    path = saved(tmp_path)
    result = json.loads(succeeds("layers", path, "--filter", "linear", "--top", 2, "--json").stdout)
    assert [layer["name"] for layer in result["layers"]] == ["blocks.0", "blocks.1"]
    every = json.loads(succeeds("layers", path, "--json").stdout)
    assert result["totals"] == every["totals"]


def test_mistakes_are_told(tmp_path):
    path = saved(tmp_path)
    assert "no layer has 'conv'" in fails(2, "layers", path, "--filter", "conv")
    assert "--sort" in fails(2, "layers", path, "--sort", "size")
    assert "--top" in fails(2, "layers", path, "--top", "0")
    assert "--force" in fails(2, "layers", path, "-o", path)
    assert profile().load(path) == profile()
