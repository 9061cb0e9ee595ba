"""What the demo draws."""

from pathlib import Path

from scripts.demo import pictures
from tests.unit.scripts.demo.outcomes import outcome
from tests.unit.support.reports import comparison


def test_a_picture_is_written(tmp_path: Path) -> None:
    path = tmp_path / "demo.png"
    pictures.draw(outcome(), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_the_report_is_that_of_the_comparison(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    pictures.write_report(comparison(), path)
    text = path.read_text(encoding="utf-8")
    assert "of the demo" in text or "on the demo" in text
    assert text.rstrip().endswith("</html>")
