"""A request for a profile: what it changes of a script's options."""

from deft_horovod.config import Config
from deft_horovod.job.profile_request import ProfileRequest


def test_the_options_of_the_script_give_way():
    request = ProfileRequest(5, 7, lambda *_: "")
    config = request.over_config(Config(profile_steps=99, plan_file="plan.json", probe_s=0.5))
    assert (config.profile_warmup_steps, config.profile_steps) == (5, 7)
    assert (config.plan_file, config.probe_s) == ("", 0.5)
    assert request.needs == "5 to warm up, 7 to measure"
    assert request.needed_steps == 12
