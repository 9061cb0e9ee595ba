import pytest

from deft_horovod import errors


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.NotSupportedError, ValueError),
        (errors.AgreementError, RuntimeError),
        (errors.PlanError, ValueError),
        (errors.WaitTimeoutError, TimeoutError),
        (errors.BuildMismatchError, ImportError),
    ],
)
def test_each_error_is_ours_and_the_builtin_one(kind, builtin):
    assert issubclass(kind, errors.DeftError)
    assert issubclass(kind, builtin)


def test_no_more_kinds_than_a_user_can_remember():
    assert len(errors.DeftError.__subclasses__()) <= 6


def test_explain_has_all_parts_in_order():
    text = errors.explain(
        "the gradient has another size",
        rank=3,
        step=0,
        tensor="fc.weight",
        observed="10\n20",
        expected=0,
        action="build the same model on all ranks",
    )
    assert text.splitlines() == [
        "the gradient has another size",
        "  where:    rank 3, step 0, tensor 'fc.weight'",
        "  observed: 10",
        "            20",
        "  expected: 0",
        "  action:   build the same model on all ranks",
    ]


def test_explain_leaves_out_what_is_unknown_but_keeps_rank_0():
    assert errors.explain("text") == "text"
    assert errors.explain("text", rank=0) == "text\n  where:    rank 0"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (2, "a0, a1"), (5, "a0, a1, a2, a3, a4"), (7, "a0, a1, a2, a3, a4 and 2 more")],
)
def test_lists_of_names_are_limited(count, text):
    assert errors.limited([f"a{i}" for i in range(count)]) == text
