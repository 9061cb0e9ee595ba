"""The link of a job over torch.distributed when a rank has gone."""

import pytest

from tests.parallel.launch import run_ranks
from tests.places import ROOT

pytestmark = pytest.mark.timeout(120)
TORCHRUN = {"TEST_LAUNCHER": "torchrun"}


@pytest.mark.parametrize("policy", ["stock", "bucket"])
def test_the_others_learn_of_it_at_once(policy):
    # Else torchrun would end the others first.
    patient = ("--monitor-interval", "15")
    env = {**TORCHRUN, "DEFT_DEADLINE_S": "60"}
    job = run_ranks(
        "distributed/lost_peer.py", 3, env=env, launcher=patient, options={"policy": policy}
    )
    assert job.returncode != 0
    for rank in (0, 2):
        said = job.results[rank]
        assert "the link over torch.distributed (Gloo) failed: " in said["said"]
        assert said["took_s"] < 10


def test_the_example_of_the_guide_trains():
    example = ROOT / "docs" / "examples" / "distributed" / "train.py"
    job = run_ranks(example, 2, env=TORCHRUN)
    assert job.returncode == 0, job.output
    assert "after 64 steps" in job.output
