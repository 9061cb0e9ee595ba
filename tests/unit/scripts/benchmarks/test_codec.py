import pytest

from scripts.benchmarks import codec as bench

SMALL = ["--rounds", "1", "--sizes", "4096", "--formats", "int8", "f32", "--kinds", "portable"]


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(bench, "_SAMPLE_S", 1e-4)


def test_it_writes_a_page_with_a_row_for_each_format_and_kind(tmp_path, capsys):
    target = tmp_path / "codec.md"
    assert bench.main([*SMALL, "--page", str(target)]) == 0
    text = target.read_text()
    assert text in capsys.readouterr().out
    assert "## 4 KiB" in text
    assert "| int8 | portable |" in text
    assert "| f32 | portable |" in text
    assert "- portable: at least" in text


def test_strict_fails_when_the_limit_is_missed(monkeypatch):
    monkeypatch.setattr(bench, "LIMIT_GBPS", 1e9)
    assert bench.main([*SMALL, "--strict"]) == 1
    assert bench.main(SMALL) == 0


def test_the_slowest_is_a_median_of_a_format_that_encodes():
    def arm(name, kind):
        return bench.Arm(name, kind, "encode")

    rates = {
        bench.COPY: [0.1],
        arm("f32", "avx2"): [0.2],
        arm("int8", "avx2"): [1.0, 5.0, 6.0],
        arm("int4", "avx2"): [4.0, 4.0, 4.0],
        arm("int4", "portable"): [1.0],
    }
    assert bench.slowest(rates, ["avx2"]) == (4.0, arm("int4", "avx2"))


def test_sizes_have_units():
    assert bench.size_text(64 << 10) == "64 KiB"
    assert bench.size_text(25 << 20) == "25 MiB"
