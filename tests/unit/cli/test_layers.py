import json
import re

import pytest

from deft_horovod.plan import Plan
from deft_horovod.profile import FormatCost, LinkCost
from tests.unit.support.example import BLOCKS, fails, profile, saved, succeeds

INT8 = LinkCost(alpha_us=1_500.0, beta_us_per_byte=0.0012)
FORMATS = (
    FormatCost(format="f16", cost=LinkCost(alpha_us=1_500.0, beta_us_per_byte=0.0022)),
    FormatCost(format="int8", cost=INT8, encode_us_per_byte=8e-5, decode_us_per_byte=5e-5),
)


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


@pytest.mark.parametrize("links", [("horovod",), ("horovod", "second")])
def test_with_an_accuracy_each_layer_says_how_it_travels(tmp_path, links):
    path = saved(tmp_path, links=links, formats=FORMATS)
    result = succeeds("layers", path, "--accuracy", "equal")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in result.stdout
    embedding = next(line for line in lines if line.startswith("embedding"))
    assert re.search(r"16\.0 MB +int8 +4\.1 MB", embedding)
    (scale,) = [line for line in lines if line.startswith("scale")]
    assert re.search(r"4 B +exact +4 B", scale)
    text = " ".join(result.stdout.split())
    assert "plan of least_stale: " in text
    assert "% of the bytes as int8" in text
    assert "40.0 MB of gradients travel as " in text
    assert "link 'horovod' in int8: 1500 us a message + 833.3 MB/s of values" in text
    assert "one core encodes 12.5 GB/s and decodes 20 GB/s" in text


def test_json_has_the_formats_too(tmp_path):
    path = saved(tmp_path, formats=FORMATS)
    found = json.loads(succeeds("layers", path, "--accuracy", "equal", "--json").stdout)
    plan = json.loads(succeeds("plan", path, "--accuracy", "equal", "--json").stdout)
    assert found["plan"] == Plan(**plan).hash()
    embedding = found["layers"][0]
    sent = embedding["formats"]["int8"]
    assert sent["bytes"] == 16_000_000
    assert 4_000_000 < sent["message_bytes"] < 4_100_000
    totals = found["totals"]["formats"]
    assert sum(part["bytes"] for part in totals.values()) == found["totals"]["bytes"]
    plain = json.loads(succeeds("layers", path, "--json").stdout)
    assert "plan" not in plain
    assert plain["layers"][0]["formats"] == plain["totals"]["formats"] == {}


def test_the_plan_may_come_from_a_file(tmp_path):
    path = saved(tmp_path, formats=FORMATS)
    file = tmp_path / "plan.json"
    succeeds("plan", path, "--accuracy", "equal", "--save", file)
    wanted = succeeds("layers", path, "--accuracy", "equal").stdout
    assert succeeds("layers", path, "--plan", file).stdout == wanted
    message = fails(2, "layers", path, "--plan", file, "--accuracy", "equal")
    assert "--accuracy would make another" in message
    other = saved(tmp_path, links=("second",), formats=FORMATS)
    assert "link 'horovod'" in fails(1, "layers", other, "--plan", file)
    empty = tmp_path / "stock.json"
    Plan(policy="stock").save(empty)
    assert succeeds("layers", path, "--plan", empty).stdout == succeeds("layers", path).stdout


def test_exact_layers_are_called_so(tmp_path):
    text = succeeds("layers", saved(tmp_path, formats=FORMATS), "--accuracy", "exact").stdout
    assert "int8" not in text  # neither a layer nor what it would cost
    assert "take it anew" not in text
    assert re.search(r"16\.0 MB +exact +16\.0 MB", text)


def test_a_profile_without_formats_says_so(tmp_path):
    path = saved(tmp_path)
    for word in ("equal", "fast"):
        text = " ".join(succeeds("layers", path, "--accuracy", word).stdout.split())
        assert "formats are not in this profile: take it anew with `deft-profile run`" in text
    alone = saved(tmp_path, links=(), size=1)
    assert "nothing to plan for" in fails(1, "layers", alone, "--accuracy", "equal")


def test_mistakes_are_told(tmp_path):
    path = saved(tmp_path)
    assert "no layer has 'conv'" in fails(2, "layers", path, "--filter", "conv")
    assert "--sort" in fails(2, "layers", path, "--sort", "size")
    assert "--top" in fails(2, "layers", path, "--top", "0")
    assert "--force" in fails(2, "layers", path, "-o", path)
    assert profile().load(path) == profile()
