"""Training in wire formats on a GPU: the codec's bits, nothing lost, replicas equal."""

from tests.gpu.ranks import program_test

test_cases = program_test(
    "runtime/formats.py",
    nps=(2, 4),
    cases=(
        "the_trajectory_is_that_of_the_codec",
        "nothing_is_lost",
        "after_a_flush_of_rests_nothing_is_left",
        "replicas_stay_equal",
        "resumed_training_goes_on_bit_for_bit",
        "f16_beside_the_fp16_compression_of_horovod",
        "accuracy_in_one_word",
        "auto_tries_the_fewest_bytes_where_it_may_round",
    ),
)
