"""Tasks that train in a moment."""

from dataclasses import replace

import pytest
import torch

from scripts.studies.convergence.tasks import Transformer
from scripts.studies.formats.tasks import TASKS
from scripts.studies.judge.tasks import JUDGED


@pytest.fixture(scope="module")
def short():
    """Few steps, little to validate; the large model is a small one, of the small one's text."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of such small models more of them make each other wait
    text = TASKS["text"]
    with pytest.MonkeyPatch.context() as patch:
        for name, judged in JUDGED.items():
            task = judged.task
            if name == "large gpt":
                task = replace(text, name=name, model=Transformer, schedule=task.schedule)
            few = tuple(part[:16] for part in task.held_out())
            fewer = replace(task, steps=80, batch=1, held_out=lambda few=few: few)
            patch.setitem(JUDGED, name, replace(judged, task=fewer))
        yield
    torch.set_num_threads(threads)
