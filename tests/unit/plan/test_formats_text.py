from deft_horovod.plan.formats_text import bytes_by_format, formats_lines, formats_text
from tests.unit.plan.test_formats import plan_of


def test_exact_plans_say_nothing():
    plan = plan_of([300], [False], [], "f32")
    assert formats_lines(plan) == []
    assert formats_text(plan) == ""
    assert "wire formats" not in plan.describe()


def test_formats_in_words():
    plan = plan_of([1 << 20, 1 << 18], [False, False], [], "int8")
    assert bytes_by_format(plan) == {"int8": (5242912, 1331232)}
    assert formats_text(plan) == "100 % of the bytes as int8"
    told = plan.describe()
    assert "wire formats: 5.2 MB as int8 (1.3 MB, rounded by 0.66 %)" in told
    assert "what rounding leaves is sent with the next gradients: 5.2 MB of memory," in told
    assert "of memory, beyond 2 ranks at most 5.2 MB more in all\n" in told
    assert "bucket 0: 5.2 MB as int8 (1.3 MB), layers 1-2" in told
