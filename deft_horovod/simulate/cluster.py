"""Cluster: what a message would cost with other ranks, or on a link of another rate.

An all-reduce on a ring of n ranks takes 2(n-1) rounds, in each of which every rank sends 1/n of the
message to its neighbour (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
of workstations", JPDC 2009). So

    alpha + beta * bytes,  beta = 2(n-1)/n / rate,  alpha = start-up + 2(n-1) * latency.

The rule for what was measured on m ranks is ours:

- *rate*: a measured beta is that of the ring on m ranks, so on n it is
  ``(n-1)/n / ((m-1)/m)`` times as large, which is never more than twice.
- *latency*: a measured alpha holds the negotiation, the host's part and 2(m-1) rounds. One
  measurement cannot tell these apart, so each round more or less counts as the given latency, at
  most as the whole of alpha over the rounds that were measured: ``alpha + 2(n-m) * latency``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deft_horovod.base.rate import rate_text
from deft_horovod.base.wire_format import EXACT, encoded_bytes
from deft_horovod.errors import ConfigError, NotSupportedError, explain
from deft_horovod.profile import HOROVOD_LINK, FormatCost, LinkCost, LinkProfile, Profile
from deft_horovod.solver.messages.blocks import ASSUMED_COST

FEWEST_RANKS: Final = 2
MOST_RANKS: Final = 1_000_000
# Of one round: a message of a few bytes through a switch between two hosts, over TCP.
LATENCY_US: Final = 20.0
MEASURED: Final = "measured"
_MANY: Final = 1 << 20  # values


@dataclass(frozen=True)
class Cluster:
    """Ranks on a ring, each with a link of its own."""

    ranks: int
    rate_bits_per_s: float | None = None  # None: the links are those that were measured
    latency_us: float = LATENCY_US  # of each round

    def __post_init__(self) -> None:
        if not FEWEST_RANKS <= self.ranks <= MOST_RANKS:
            raise ConfigError(
                explain(
                    "a cluster of so many ranks cannot be simulated",
                    observed=f"{self.ranks}",
                    expected=f"{FEWEST_RANKS} to {MOST_RANKS}; one rank alone sends nothing",
                )
            )

    @property
    def link(self) -> str:
        """For a person."""
        return MEASURED if self.rate_bits_per_s is None else rate_text(self.rate_bits_per_s)


def on_cluster(profile: Profile, cluster: Cluster) -> Profile:
    """The same step there: every rank computes what it computed, messages take what they would.

    With a rate all traffic takes one link; without, the links are those of the profile.
    """
    if cluster.rate_bits_per_s is None:
        links = tuple(_with_ranks(link, profile, cluster) for link in _measured(profile))
    else:
        beta_us = ring_volume(cluster.ranks) * 8e6 / cluster.rate_bits_per_s
        alpha_us = _alpha_us(profile.link, profile.size, cluster)
        cost = LinkCost(alpha_us=alpha_us, beta_us_per_byte=beta_us)
        formats = _at_rate(profile, cost, cluster) if profile.links else ()
        links = (LinkProfile(name=HOROVOD_LINK, cost=cost, formats=formats),)
    return profile.model_copy(update={"links": links, "size": cluster.ranks, "step_us": 0.0})


def ring_volume(ranks: int) -> float:
    """Bytes that each rank sends for each byte that is all-reduced."""
    return 2.0 * (ranks - 1) / ranks


def _measured(profile: Profile) -> tuple[LinkProfile, ...]:
    if profile.links and profile.size >= FEWEST_RANKS:
        return profile.links
    raise NotSupportedError(
        explain(
            "what the links of this profile cost on other ranks is not known",
            observed=f"{len(profile.links)} measured links, {profile.size} rank(s)",
            expected="a link that was measured between two ranks or more",
            action="say how fast the links are (--link 10gbit), or take the profile on more ranks",
        )
    )


def _with_ranks(link: LinkProfile, profile: Profile, cluster: Cluster) -> LinkProfile:
    ratio = ring_volume(cluster.ranks) / ring_volume(profile.size)

    def there(cost: LinkCost) -> LinkCost:
        alpha_us = _alpha_us(cost, profile.size, cluster)
        beta_us = cost.beta_us_per_byte * ratio
        return cost.model_copy(update={"alpha_us": alpha_us, "beta_us_per_byte": beta_us})

    def known(cost: LinkCost | None) -> LinkCost | None:
        return None if cost is None else there(cost)

    return LinkProfile(
        name=link.name,
        cost=there(link.cost),
        busy_cost=known(link.busy_cost),
        scatter_cost=known(link.scatter_cost),
        gather_cost=known(link.gather_cost),
        formats=tuple(one.model_copy(update={"cost": there(one.cost)}) for one in link.formats),
    )


def _at_rate(profile: Profile, cost: LinkCost, cluster: Cluster) -> tuple[FormatCost, ...]:
    """In formats, on a link with this cost: fewer bytes, and what encoding was measured to take
    beyond what the bytes do, which no link changes."""
    link = profile.links[0]
    found = []
    for one in link.formats:
        share = encoded_bytes(one.format, _MANY) / encoded_bytes(EXACT, _MANY)
        codec_us = max(0.0, one.cost.beta_us_per_byte - share * link.cost.beta_us_per_byte)
        there = LinkCost(
            alpha_us=_alpha_us(one.cost, profile.size, cluster),
            beta_us_per_byte=share * cost.beta_us_per_byte + codec_us,
        )
        found.append(one.model_copy(update={"cost": there}))
    return tuple(found)


def _alpha_us(measured: LinkCost | None, measured_ranks: int, cluster: Cluster) -> float:
    """Of a message. What was never measured is taken for granted as on two ranks."""
    alpha_us = (measured or ASSUMED_COST).alpha_us
    before = max(measured_ranks, FEWEST_RANKS)
    latency_us = min(cluster.latency_us, alpha_us / (2 * (before - 1)))
    return alpha_us + 2 * (cluster.ranks - before) * latency_us
