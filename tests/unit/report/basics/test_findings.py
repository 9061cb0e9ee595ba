"""What a report says."""

import pytest

from deft_horovod.errors import PlanError
from deft_horovod.plan import Plan
from deft_horovod.report.basics.findings import Figures, ReportInputs, findings
from deft_horovod.simulate.outlook import step_us
from deft_horovod.simulate.stock import StockStep
from deft_horovod.solver.predict.timeline import Timeline
from tests.unit.support.example import profile
from tests.unit.support.reports import alone, compared, comparison, empty, idle, predicted


def test_of_a_comparison_it_is_what_was_measured():
    of, found = comparison(2), compared(2)
    assert found.measured
    assert found.policy == "deft (late)"
    assert found.figures.before_us == of.baseline.step_us
    assert found.figures.after_us == of.ours.step_us
    assert found.figures.speedup == pytest.approx(of.speedup(of.ours))
    assert found.figures.speedups == of.speedups(of.ours)
    assert found.figures.exposed_after_us == of.exposed_us(of.ours)


def test_where_stock_is_kept_there_is_no_after():
    found = compared(0)
    assert found.policy == "stock"
    assert found.figures.after_us is found.figures.exposed_after_us is found.after is None
    assert found.figures.speedup == 1.0


@pytest.mark.parametrize(
    ("policy", "kind"),
    [("bucket", StockStep), ("wfbp", StockStep), ("priority", Timeline), ("deft", Timeline)],
)
def test_of_a_profile_it_is_what_is_predicted(policy, kind):
    found = predicted(policy)
    assert not found.measured
    assert isinstance(found.after, kind)
    assert found.figures.before_us == found.before.step_us
    assert found.figures.after_us == step_us(found.inputs.plan, found.inputs.profile)
    assert found.floor_us == found.inputs.plan.prediction.bound_us


def test_without_a_plan_there_is_only_stock():
    found = predicted(None)
    assert (found.policy, found.after, found.floor_us) == ("stock", None, None)


@pytest.mark.parametrize("one", [alone(), empty(), idle()])
def test_degenerate_profiles(one):
    found = predicted(None, one)
    assert found.figures.speedup == 1.0
    assert found.figures.exposed_before_us == 0.0


def test_a_plan_of_a_part_of_the_parameters_has_no_timeline():
    found, one = predicted("bucket"), profile()
    plan = found.inputs.plan
    less = one.select(range(len(one.tensors) - 1))
    other = findings(ReportInputs("x", less, found.inputs.parameters[:-1], plan))
    assert other.after is other.figures.after_us is None


def test_a_link_that_was_not_measured_is_told():
    found = predicted("deft", profile(links=("second",)))
    with pytest.raises(PlanError, match="second"):
        findings(ReportInputs("x", profile(), found.inputs.parameters, found.inputs.plan))


def test_nothing_is_divided_by_nothing():
    assert Figures(0.0, 0.0, 0.0).speedup == 1.0
    assert Figures(5.0, 3.0).exposed_before_us == 0.0
    assert Plan(policy="stock").prediction is None
