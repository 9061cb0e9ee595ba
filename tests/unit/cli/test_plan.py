import json

import pytest

from deft_horovod.plan import Plan
from deft_horovod.profile import FormatCost, LinkCost
from tests.unit.support.example import fails, saved, succeeds


def test_the_plan_is_told_in_words(tmp_path):
    text = succeeds("plan", saved(tmp_path), "--policy", "bucket").stdout
    assert "plan 'bucket'" in text
    assert "predicted: compute 195" in text.replace("\n", " ")


@pytest.mark.parametrize("policy", ["auto", "bucket", "deft", "least_stale", "priority", "wfbp"])
def test_saved_plans_are_read_back_with_their_prediction(tmp_path, policy):
    path = tmp_path / "plan.json"
    shown = succeeds("plan", saved(tmp_path), "--policy", policy, "--save", path, "--json").stdout
    plan = Plan.load(path)
    assert plan.prediction is not None
    assert Plan.model_validate_json(shown) == plan
    assert len(plan.slots) == 10


def test_limits_reach_the_policy(tmp_path):
    path = saved(tmp_path)

    def delays(*options):
        plan = json.loads(succeeds("plan", path, "--json", *options).stdout)
        return {g["apply_step"] - g["last_step"] for g in plan["generations"]}

    assert delays() == {0}
    assert 1 in delays("--max-delay", 1)


def test_of_late_plans_it_is_said_until_when_accuracy_holds(tmp_path):
    path = saved(tmp_path)
    told = {}
    for policy in ("deft", "covap", "bucket"):
        text = " ".join(succeeds("plan", path, "--policy", policy).stdout.split())
        told[policy] = text[text.index("accuracy:") :] if "accuracy:" in text else ""
    assert "of the loss while the gradient turns by less than" in told["deft"]
    assert told["bucket"] == ""
    assert told["covap"] in ("", "accuracy: within a budget of 2 % of the loss in no case")


def test_a_share_of_the_bytes_may_be_late(tmp_path):
    path = saved(tmp_path)

    def late_bytes(*options):
        shown = succeeds("plan", path, "--max-delay", 1, "--json", *options).stdout
        return sum(s["bytes"] for s in json.loads(shown)["prediction"]["staleness"] if s["delay"])

    assert late_bytes() > 0
    assert late_bytes("--late-share", 0) == 0
    assert "late_share = 0.5" in fails(1, "plan", path, "--policy", "deft", "--late-share", 0.5)


def test_links_are_chosen_by_name(tmp_path):
    path = saved(tmp_path, links=("horovod", "second"))
    text = succeeds("plan", path, "--links", "second", "--policy", "deft", "--json").stdout
    assert [link["name"] for link in json.loads(text)["links"]] == ["second"]
    assert "no link third; it has horovod, second" in fails(2, "plan", path, "--links", "third")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_timeline_is_drawn(tmp_path, kind):
    path = tmp_path / f"plan.{kind}"
    succeeds("plan", saved(tmp_path), "--policy", "bucket", "--plot", path)
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


def test_files_that_are_there_stay(tmp_path):
    path, kept = saved(tmp_path), tmp_path / "kept.png"
    kept.write_text("mine", encoding="utf-8")
    for option in ("--save", "--plot", "--output"):
        assert "--force" in fails(2, "plan", path, option, kept)
        assert kept.read_text(encoding="utf-8") == "mine"
    succeeds("plan", path, "--policy", "bucket", "--plot", kept, "--force")
    assert kept.read_bytes().startswith(b"\x89PNG")


def test_mistakes_are_told(tmp_path):
    path = saved(tmp_path)
    assert "stock" in fails(2, "plan", path, "--policy", "stock")
    assert "--max-delay" in fails(2, "plan", path, "--max-delay", "-1")
    assert "max_delay forbids it" in fails(1, "plan", path, "--policy", "deft", "--max-delay", 0)
    assert "two ranks or more" in fails(1, "plan", saved(tmp_path, links=()))


def test_fewer_bits_are_planned_where_the_profile_knows_what_they_cost(tmp_path):
    slow = LinkCost(alpha_us=1_500.0, beta_us_per_byte=0.0012)
    name = saved(tmp_path, formats=(FormatCost(format="int8", cost=slow),))
    exact = succeeds("plan", name)
    equal = succeeds("plan", name, "--accuracy", "equal")
    assert "wire formats" not in exact.stdout
    assert "as int8" in equal.stdout
    refused = fails(1, "plan", name, "--accuracy", "exact", "--max-delay", "1")
    assert "contradict each other" in refused
