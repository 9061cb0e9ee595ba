"""Training over Horovod's link and the second one, on a GPU."""

from tests.gpu.ranks import program_test

test_cases = program_test(
    "runtime/second_link.py",
    nps=(2, 4),
    cases=("training_on_both_links", "training_on_both_links_in_three_precisions"),
)
