import re

import pytest

from deft_horovod.config import Config
from deft_horovod.errors import ConfigError
from tests.places import ROOT


def write(folder, text):
    path = folder / "options.yaml"
    path.write_text(text, encoding="utf-8")
    return {"DEFT_CONFIG": str(path)}


def refusal(*args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        Config.load(*args, **kwargs)
    return str(caught.value)


def test_defaults():
    config = Config.load(environ={})
    assert config == Config()
    assert config.model_dump() == {
        "policy": "auto",
        "bucket_bytes": 25 * 2**20,
        "first_bucket_bytes": 2**20,
        "partition_bytes": 4_000_000,
        "credit_bytes": 16_000_000,
        "credit_messages": 0,
        "tune": True,
        "accuracy": None,
        "exact": "",
        "max_delay": None,
        "max_merge": None,
        "late_share": 1.0,
        "accuracy_budget": None,
        "merge": "auto",
        "correction": "auto",
        "profile_warmup_steps": 3,
        "profile_steps": 10,
        "probe_s": 2.0,
        "warmup_steps": 100,
        "trial_steps": 5,
        "trial_rounds": 2,
        "min_gain": 0.02,
        "drift": 0.25,
        "drift_steps": 100,
        "second_interface": "",
        "plan_file": "",
        "deadline_s": 300.0,
        "disable": False,
        "trace": "",
        "trace_steps": 200,
        "metrics": "",
        "metrics_steps": 50,
        "verbose": False,
    }


def test_the_environment_is_read_by_default(monkeypatch):
    monkeypatch.setenv("DEFT_POLICY", "wfbp")
    assert Config.load().policy == "wfbp"


def test_arguments_win_over_environment_and_this_over_the_file(tmp_path):
    environ = write(tmp_path, "policy: wfbp\nbucket_bytes: 1MiB\ncredit_bytes: 5\nverbose: true\n")
    environ |= {"DEFT_POLICY": "priority", "DEFT_BUCKET_BYTES": "2MiB", "DEFT_DISABLE": "1"}
    config = Config.load({"bucket_bytes": "3MiB"}, environ=environ)
    assert config.bucket_bytes == 3 * 2**20
    assert config.policy == "priority"
    assert config.credit_bytes == 5
    assert (config.disable, config.verbose) == (True, True)
    assert Config.load(policy="bucket", environ=environ).policy == "bucket"


def test_of_a_config_only_what_was_set_overrides():
    given = Config(deadline_s=5)
    config = Config.load(given, environ={"DEFT_POLICY": "wfbp", "DEFT_DEADLINE_S": "7"})
    assert (config.deadline_s, config.policy) == (5.0, "wfbp")


def test_an_empty_variable_or_file_means_nothing(tmp_path):
    environ = write(tmp_path, "# nothing yet\n")
    assert Config.load(environ={**environ, "DEFT_POLICY": "", "PATH": "/bin"}) == Config()
    assert Config.load(environ={"DEFT_CONFIG": ""}) == Config()


def test_build_variables_are_let_pass():
    assert Config.load(environ={"DEFT_FORCE_CPU": "1", "DEFT_FORCE_CUDA": "0"}) == Config()


def test_everything_wrong_is_in_one_error(tmp_path):
    environ = write(tmp_path, "deadline_s: 0\nbukcet_bytes: 3\n")
    environ |= {"DEFT_POLICY": "buckett", "DEFT_DISABEL": "1", "DEFT_CREDIT_MESSAGES": "many"}
    text = refusal({"bucket_bytes": 12, "verbose": "loud", "nonsense": 1}, environ=environ)
    path = environ["DEFT_CONFIG"]
    for expected in (
        "8 problems",
        r"argument bucket_bytes = 12: .*\(allowed: 1KiB to 2GiB\)",
        r"argument verbose = 'loud': .*\(allowed: true or false \(1 or 0\)\)",
        r"argument nonsense: no such option \(known: policy, ",
        r"DEFT_POLICY = 'buckett': no such policy; did you mean 'bucket'\? .*priority",
        r"environment variable DEFT_DISABEL: no such option; did you mean DEFT_DISABLE\?",
        r"environment variable DEFT_CREDIT_MESSAGES = 'many': .*\(allowed: 0 to 1000000\)",
        rf"file {re.escape(path)}: deadline_s = 0: .*\(allowed: 0\.1 to 86400\)",
        rf"file {re.escape(path)}: bukcet_bytes: no such option; did you mean bucket_bytes\?",
    ):
        assert re.search(expected, text), f"{expected} not in:\n{text}"


def test_a_bad_value_is_refused_even_where_it_is_overridden():
    text = refusal({"policy": "wfbp"}, environ={"DEFT_POLICY": "none"})
    assert "DEFT_POLICY = 'none'" in text


def test_two_different_policies_in_the_arguments():
    assert "two values, 'wfbp' and 'bucket'" in refusal(
        {"policy": "bucket"}, policy="wfbp", environ={}
    )
    assert Config.load({"policy": "wfbp"}, policy="wfbp", environ={}).policy == "wfbp"


@pytest.mark.parametrize("content", ["- a\n- b\n", "just text\n", "a: [1\n"])
def test_a_file_of_another_form(tmp_path, content):
    environ = write(tmp_path, content)
    assert f"file {environ['DEFT_CONFIG']}" in refusal(environ=environ)


def test_a_missing_file(tmp_path):
    path = str(tmp_path / "absent.yaml")
    text = refusal(environ={"DEFT_CONFIG": path})
    assert f"file {path} (named by DEFT_CONFIG): cannot be read" in text


def test_config_of_another_kind():
    assert "argument config: a list" in refusal(["policy"], environ={})


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0", "1e9", ""])
def test_deadlines_end(value):
    assert "deadline_s" in refusal({"deadline_s": value}, environ={})


def test_the_constructor_refuses_in_the_same_way():
    with pytest.raises(ConfigError, match="2 problems"):
        Config(bucket_bytes=True, nonsense=1)


def test_it_does_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Config().policy = "wfbp"


def test_elastic_is_what_the_launcher_says(monkeypatch):
    assert Config.elastic({"HOROVOD_ELASTIC": "1"})
    assert not Config.elastic({"HOROVOD_ELASTIC": "0"})
    monkeypatch.delenv("HOROVOD_ELASTIC", raising=False)
    assert not Config.elastic()
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    assert Config.elastic()


def test_the_rank_is_what_the_launcher_says(monkeypatch):
    assert Config.launched_rank({"HOROVOD_RANK": "3"}) == 3
    assert Config.launched_rank({"OMPI_COMM_WORLD_RANK": "0"}) == 0
    assert Config.launched_rank({"RANK": "2", "TORCHELASTIC_RUN_ID": "x"}) == 2
    assert Config.launched_rank({"RANK": "2"}) is None
    assert Config.launched_rank({"PATH": "/bin"}) is None
    monkeypatch.setenv("HOROVOD_RANK", "5")
    assert Config.launched_rank() == 5


def test_the_documentation_names_every_option():
    text = Config.documentation()
    for name, field in Config.model_fields.items():
        assert re.search(rf"^{name} +DEFT_{name.upper()} +\S+ +\S", text, re.MULTILINE)
        assert field.description in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def test_the_docs_page_shows_a_real_refusal():
    text = refusal({"bucket_bytes": 12}, environ={"DEFT_POLICY": "buckett", "DEFT_DISABEL": "1"})
    assert text in (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")


def test_the_docs_page_holds_the_documentation_verbatim():
    page = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")
    assert Config.documentation() in page
