import pytest

from deft_horovod import policies
from deft_horovod.policies import registry
from deft_horovod.simulate.cluster import Cluster
from deft_horovod.simulate.outlook import Outlook, Scenario
from deft_horovod.solver.predict.timeline import simulate
from tests.timing import timed
from tests.unit.support import large
from tests.unit.support.models import request as model

NAMES = [name for name in registry() if name != "auto"]
LEFT_TO_HOROVOD = {"stock", "bucket", "wfbp"}  # which orders and fuses their messages
SECONDS = 10.0  # of one core, for a thousand tensors under all policies


def test_shares_of_an_outlook():
    one = Outlook("x", 4, "1gbit", compute_us=80.0, step_us=100.0, floor_us=90.0, stock_us=150.0)
    assert (one.exposed_us, one.speedup, one.efficiency) == (20.0, 1.5, 0.8)
    assert one.highest_efficiency == pytest.approx(8 / 9)
    data = one.to_data()
    assert (data["policy"], data["exposed_us"], data["speedup"]) == ("x", 20.0, 1.5)


def test_nothing_to_compute_is_no_division_by_zero():
    one = Outlook("x", 2, "1gbit", compute_us=0.0, step_us=0.0, floor_us=0.0, stock_us=0.0)
    assert (one.speedup, one.efficiency, one.highest_efficiency) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("name", ["vgg19", "resnet101", "gpt2"])
@pytest.mark.parametrize("options", [{}, {"max_delay": 1, "max_merge": 4}])
def test_no_policy_beats_its_floor(name, options):
    request = model(name, 1.0, **options)
    scenario = Scenario(request, Cluster(64, 2e8))
    found = [scenario.outlook(policies.get(policy)) for policy in NAMES]
    for outlook in found:
        assert outlook.step_us >= outlook.floor_us * (1 - 1e-9)
        assert outlook.floor_us >= outlook.compute_us
        assert 0.0 < outlook.efficiency <= outlook.highest_efficiency * (1 + 1e-9) <= 1 + 1e-8
    late = {outlook.policy for outlook in found if outlook.staleness_steps > 0.0}
    by_nature = {"covap", "deft", "sapipe"}
    assert late <= (by_nature | {"least_stale"} if options else by_nature)


def test_stock_is_the_base():
    scenario = Scenario(model("vgg19", 1.0), Cluster(16, 1e9))
    stock = scenario.outlook(policies.get("stock"))
    assert stock.speedup == 1.0
    assert all(scenario.outlook(policies.get(n)).stock_us == stock.step_us for n in NAMES)


def test_plans_take_what_the_timeline_says():
    request = model("gpt2", 1.0)
    request = type(request)(
        request.parameters, request.profile.model_copy(update={"size": 4}), request.config
    )
    scenario = Scenario(request, Cluster(4))
    for name in (name for name in NAMES if name not in LEFT_TO_HOROVOD):
        plan = policies.get(name).plan(request)
        outlook = scenario.outlook(policies.get(name))
        assert outlook.step_us == simulate(plan, request.profile).step_us, name


@pytest.mark.parametrize("efficiency", ["ranks", "rate"])
def test_stock_horovod_scales_worse_with_more_ranks_and_better_with_faster_links(efficiency):
    request = model("vgg19", 1.0)
    clusters = {
        "ranks": [Cluster(ranks, 1e9) for ranks in (1024, 256, 16, 2)],
        "rate": [Cluster(16, rate) for rate in (1e8, 1e9, 1e10, 1e11)],
    }[efficiency]
    stock = policies.get("stock")
    found = [Scenario(request, cluster).outlook(stock).efficiency for cluster in clusters]
    assert found == sorted(found)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"max_delay": 1, "max_merge": 4}])
def test_a_thousand_tensors_on_a_thousand_ranks_take_seconds(options):
    request = large.request(1_000, **options)
    scenario = Scenario(request, Cluster(1024))
    took_s, found = timed(lambda: [scenario.outlook(policies.get(n)) for n in NAMES], SECONDS)
    assert took_s < SECONDS
    assert all(outlook.step_us >= outlook.compute_us for outlook in found)
