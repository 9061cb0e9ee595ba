"""Jobs of `run` and `compare` that are not started, and answers as these would leave them."""

import os

from click.testing import CliRunner

from deft_horovod.base.parameter import Parameter
from deft_horovod.cli.launch import script_request as question
from deft_horovod.cli.main import main
from deft_horovod.comparison import Arm, Comparison
from deft_horovod.config import Config
from deft_horovod.job.exit_report import ExitReport
from deft_horovod.policies import get
from deft_horovod.policies.base import Request
from deft_horovod.profile import LinkCost, Profile, Tensor

PROFILE = Profile.assumed(1).model_copy(
    update={
        "tensors": (Tensor(name="w", shape=(3,), dtype="float32"),),
        "steps": 10,
        "size": 2,
        "backward_us": 200_000.0,
        "forward_us": 0.0,
        "links": Profile.link_of(LinkCost(alpha_us=1_000.0, beta_us_per_byte=0.004)),
    }
)
PLAN = get("bucket").plan(
    Request((Parameter("w", 3, "float32", "float32", "cpu"),), PROFILE, Config())
)


def comparison(*steps_us: float, chosen: int = 1, policy: str = "auto") -> Comparison:
    """Of stock Horovod and one policy after the other; the second round is 2 % slower."""
    names = ("stock", "bucket", "priority", "least_stale")
    arms = tuple(
        Arm(
            policy=name,
            rounds_us=((us, us, us), (us * 1.02,) * 3),
            plan=None if name == "stock" else PLAN,
        )
        for name, us in zip(names, steps_us, strict=False)
    )
    return Comparison(policy=policy, chosen=chosen, profile=PROFILE, arms=arms)


class Jobs:
    """In the place of real ones."""

    def __init__(self):
        self.commands = []
        self.status = 0
        self.outcome = ExitReport(0, "this is the answer")
        self.answer = PROFILE

    def __call__(self, command, folder, *, quiet_stdout=False):
        self.commands.append(list(command))
        if self.outcome is not None:
            self.outcome.leave(folder, 0)
            if not self.outcome.status:
                self.answer.save(command[command.index("--output") + 1])
        return self.status


def make_jobs(folder, monkeypatch):
    for variable in list(os.environ):
        if variable.startswith(("DEFT_", "HOROVOD_", "OMPI_", "PMI_")):
            monkeypatch.delenv(variable)
    (folder / "train.py").touch()
    monkeypatch.chdir(folder)
    jobs = Jobs()
    monkeypatch.setattr(question, "run_job", jobs)
    return jobs


def invoke(*words):
    return CliRunner().invoke(main, words)
