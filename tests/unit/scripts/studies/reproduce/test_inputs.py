"""Inputs of the published comparisons, checked by hand."""

from types import SimpleNamespace

import pytest


def test_rings_and_nccl(reproduction: SimpleNamespace) -> None:
    facts, inputs = reproduction.facts.load(), reproduction.reproduction_inputs
    found = inputs.ring(facts, "n", "n", 16, 100.0, 12.0)
    # 1 GB: 2 * 15 / 16 GB over each hop, of 12 GB/s.
    assert found.cost.time_us(10**9) == pytest.approx(100.0 + 1.875 / 12 * 1e6)
    # Two nodes of 8: 28 hops inside and 2 between; 8.4 + 28 * 3.4 + 2 * 14, times 1.4.
    latency_us = inputs.nccl_latency_us(facts, 16, 2, "nvlink", "ampere")
    assert latency_us == pytest.approx((8.4 + 95.2 + 28.0) * 1.4, abs=0.06)
    assert {"network.n.beta", "nccl.latency.16"} <= {fact.name for fact in facts.used}


def test_fits(reproduction: SimpleNamespace) -> None:
    facts, inputs = reproduction.facts.load(), reproduction.reproduction_inputs
    found = inputs.fitted(facts, "10gbps", "n", 64)
    assert (found.ranks, found.cost.alpha_us) == (64, 7043.0)
    assert found.cost.beta_us_per_byte == pytest.approx(9.643e-4)
    found = inputs.extrapolated(facts, "usbyte", "n", (4, 8), 32)
    assert (found.ranks, found.measured_ranks) == (32, 8)
    assert found.round_us == pytest.approx((1318.6 - 948.98) / 8)
    quarter = inputs.extrapolated(facts, "usbyte", "n", (4, 8), 8, per_element=True)
    assert quarter.cost.beta_us_per_byte == pytest.approx(found.cost.beta_us_per_byte / 4)
    assert quarter.name != inputs.extrapolated(facts, "usbyte", "n", (4, 8), 8).name


def test_jobs_from_published_rates(reproduction: SimpleNamespace) -> None:
    facts, inputs = reproduction.facts.load(), reproduction.reproduction_inputs
    ratio = inputs.backward_ratio(facts, "resnet50")
    assert ratio == pytest.approx(260.9 / 182.5)
    found = inputs.published_rate_job(facts, "resnet50", "n", 64, ratio)
    assert found.compute_us == pytest.approx(64 / 253.1 * 1e6)
    assert found.backward_us / found.forward_us == pytest.approx(ratio)
    assert "batch.resnet50" not in {fact.name for fact in facts.used}
    found = inputs.published_rate_job(facts, "bert_large", "n", 32, 2.0, "bert_large_pretraining")
    assert found.compute_us == pytest.approx(32 / 49 * 1e6)
    assumed = {fact.name for fact in facts.used if fact.mark == "assumed"}
    assert "batch.bert_large" in assumed
    assert inputs.pipedream_ms(facts, "vgg16") == pytest.approx((233.9 + 438.6) / 128)


@pytest.mark.parametrize("name", ["deft", "dear", "usbyte", "dcredit"])
def test_every_comparison_has_jobs_and_networks(reproduction: SimpleNamespace, name: str) -> None:
    facts = reproduction.facts.load()
    comparison = getattr(reproduction, f"reproduce_{name}").COMPARISON
    assert comparison.name == name
    for found in (comparison.jobs(facts), comparison.networks(facts)):
        assert len({one.name for one in found}) == len(found) >= 3
    for job in comparison.jobs(facts):
        assert 50_000 < job.compute_us < 1_500_000, job.name
        assert 0.5 < job.backward_us / job.forward_us < 2.5
    for network in comparison.networks(facts):
        assert network.ranks >= 8
        assert 50 < network.cost.alpha_us < 10_000
        assert 1e-5 < network.cost.beta_us_per_byte < 1e-2
