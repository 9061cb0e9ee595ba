"""Profiles of real models on this device, by deft-profile run, for the simulator."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scripts.gpu import results as gpu_results

SCRIPT = Path(__file__).resolve().with_name("train.py")
WARM_UP, STEPS = 5, 15
LIMIT_S = 90


def command(model: str, device: str, precision: str, profile: Path) -> list[str]:
    words = [sys.executable, "-m", "deft_horovod.cli.main", "run", "--force"]
    words += ["--warmup", str(WARM_UP), "--steps", str(STEPS), "-o", str(profile), "--"]
    words += [sys.executable, str(SCRIPT), "--model", model, "--device", device]
    return [*words, "--precision", precision]


def profile_of(model: str, device: str, precision: str, folder: Path) -> dict[str, Any]:
    """As deft-profile wrote it, or why it did not."""
    path = folder / f"{model}.json"
    try:
        done = subprocess.run(
            command(model, device, precision, path),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no end within {LIMIT_S} s"}
    print(done.stdout, done.stderr, flush=True)
    if done.returncode != 0 or not path.is_file():
        return {"error": f"status {done.returncode}: {(done.stderr or done.stdout)[-1000:]}"}
    profile: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return profile


def in_words(model: str, profile: dict[str, Any]) -> str:
    if "error" in profile:
        return f"{model}: FAILED"
    compute_us = sum(profile[f"{stage}_us"] for stage in ("forward", "backward", "optimizer"))
    return f"{model} {compute_us / 1e3:.1f} ms"


def extract(results: Path, folder: Path) -> list[Path]:
    """Writes the profiles of a finished check as files that deft-profile and the simulator read."""
    data = json.loads(results.read_text(encoding="utf-8"))
    written = []
    for name, stage in data["stages"].items():
        if not name.startswith("profiles-"):
            continue
        precision = name.removeprefix("profiles-")
        for model, profile in stage["numbers"].get("profiles", {}).items():
            if "error" not in profile:
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{model}-{precision}.json"
                path.write_text(json.dumps(profile, indent=1) + "\n", encoding="utf-8")
                written.append(path)
    return written


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=lambda text: text.split(","), required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--precision", default="tf32")
    options = parser.parse_args(arguments)
    found = {}
    with tempfile.TemporaryDirectory(prefix="gpu-profiles-") as folder:
        for model in options.models:
            found[model] = profile_of(model, options.device, options.precision, Path(folder))
    words = ", ".join(in_words(model, profile) for model, profile in found.items())
    gpu_results.report(
        f"computing on {options.device} in {options.precision}: {words}", profiles=found
    )
    return 1 if any("error" in profile for profile in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
