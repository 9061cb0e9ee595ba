"""A profile that looks like those of `deft-profile run`, and ways to call the command on it."""

from pathlib import Path

from click.testing import CliRunner, Result

from deft_horovod.cli.main import main
from deft_horovod.profile import (
    LinkCost,
    LinkProfile,
    ModuleProfile,
    Profile,
    Tensor,
)

COST = LinkCost(alpha_us=1_000.0, beta_us_per_byte=0.004)
SLOW = LinkCost(alpha_us=2_000.0, beta_us_per_byte=0.008)
BLOCKS = 4


def profile(*, links=("horovod",), size=4, formats=()) -> Profile:
    """An embedding, blocks of two tensors each, and a parameter that no module owns."""
    names = ["embedding.weight"]
    shapes: list[tuple[int, ...]] = [(4_000, 1_000)]
    modules = [ModuleProfile(name="embedding", type="Embedding", forward_us=500.0, parameters=(0,))]
    for block in range(BLOCKS):
        first = len(names)
        names += [f"blocks.{block}.weight", f"blocks.{block}.bias"]
        shapes += [(1_500, 1_000), (1_000,)]
        modules.append(
            ModuleProfile(
                name=f"blocks.{block}",
                type="Linear",
                forward_us=16_000.0,
                parameters=(first, first + 1),
            )
        )
    names.append("scale")
    shapes.append(())
    count = len(names)
    costs = {"horovod": COST, "second": SLOW}
    return Profile(
        ready_order=tuple(reversed(range(count))),
        ready_us=tuple(120_000.0 * (count - index) / count for index in range(count)),
        first_use_us=(*(70_000.0 * index / count for index in range(count - 1)), None),
        forward_us=70_000.0,
        backward_us=120_000.0,
        optimizer_us=5_000.0,
        step_us=250_000.0,
        steps=10,
        size=size,
        links=tuple(
            LinkProfile(name=name, cost=costs[name], busy_cost=costs[name], formats=formats)
            for name in links
        ),
        tensors=tuple(
            Tensor(name=name, shape=shape, dtype="float32")
            for name, shape in zip(names, shapes, strict=True)
        ),
        modules=tuple(modules),
    )


def saved(folder: Path, **options: object) -> str:
    path = folder / "profile.json"
    profile(**options).save(path)
    return str(path)


def call(*arguments: object, columns: int = 80) -> Result:
    """In a terminal of so many columns."""
    runner = CliRunner(env={"COLUMNS": str(columns)})
    return runner.invoke(main, [str(word) for word in arguments], prog_name="deft-profile")


def succeeds(*arguments: object) -> Result:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def fails(status: int, *arguments: object) -> str:
    """What it says, without a traceback."""
    result = call(*arguments)
    assert result.exit_code == status, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())
