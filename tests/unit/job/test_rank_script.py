"""What both rank programs share; how they end is tested on real scripts."""

from pathlib import Path

import pytest
import torch

from deft_horovod.job.profile_request import ProfileRequest
from deft_horovod.job.rank_script import options_and_words, subject_text


def test_the_words_of_the_script_stay_its_own():
    ours = ["--steps", "5", "--warmup", "3", "--output", "p.json"]
    script = ["train.py", "--steps", "9", "--", "x"]
    options, words = options_and_words(
        "doc", [*ours, "--max-delay", "2", "--", *script], max_delay=int
    )
    assert words == script
    assert (options.steps, options.output, options.folder) == (5, Path("p.json"), None)
    assert options.max_delay == 2


def test_what_a_rank_was_not_told_of_is_refused():
    with pytest.raises(SystemExit):
        options_and_words("doc", ["--steps", "5", "--", "train.py"])


def test_an_optimizer_in_words():
    request = ProfileRequest(3, 1, lambda *_: "")
    asked_optimizer = request.asked_optimizer("SGD", [torch.zeros(250), torch.zeros(250)])
    assert subject_text(asked_optimizer) == "SGD (2 tensors, 2.0 kB of gradients)"
