import pytest

from deft_horovod.base.option_text import allowed_text, value_text
from deft_horovod.config import Config


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tune", "true or false (1 or 0)"),
        ("plan_file", "any text"),
        ("merge", "auto, sum, mean"),
        ("accuracy", "exact, equal, fast"),
        ("bucket_bytes", "1KiB to 2GiB"),
        ("max_delay", "0 to 16"),
    ],
)
def test_what_an_option_allows(name, text):
    assert allowed_text(name, Config.model_fields[name]) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("accuracy", None, "unset"),
        ("plan_file", "", "unset"),
        ("tune", True, "true"),
        ("credit_bytes", 4096, "4KiB"),
        ("min_gain", 0.02, "0.02"),
        ("trial_steps", 5, "5"),
    ],
)
def test_values_as_a_user_writes_them(name, value, text):
    assert value_text(name, value) == text
