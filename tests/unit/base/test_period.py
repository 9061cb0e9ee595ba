"""Options end where plans do: what could not be planned is refused."""

import pytest

from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.config import Config
from deft_horovod.errors import ConfigError
from deft_horovod.solver.problem import Limits


@pytest.mark.parametrize("option", ["max_delay", "max_merge"])
def test_what_no_plan_can_have_is_refused(option):
    assert getattr(Config.load({option: LONGEST_PERIOD}), option) == LONGEST_PERIOD
    with pytest.raises(ConfigError, match=option):
        Config.load({option: LONGEST_PERIOD + 1})
    within = {"max_delay": 1, "max_merge": 1, option: LONGEST_PERIOD}
    assert getattr(Limits(**within), option) == LONGEST_PERIOD
    with pytest.raises(ValueError, match=option):
        Limits(**{**within, option: LONGEST_PERIOD + 1})
