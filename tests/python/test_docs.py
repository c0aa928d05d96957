"""docs/howto/pytorch.md: each ```python fence, in one namespace, prints the ```text fence below it."""
import contextlib
import io
import re
from pathlib import Path

import torch

PAGE = Path(__file__).resolve().parent.parent.parent / "docs/howto/pytorch.md"


def test_the_page_tells_the_truth():
    torch.manual_seed(0)
    names = {"__name__": "page"}
    fences = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(fences) == len(re.findall(r"^```python$", PAGE.read_text(), re.MULTILINE)) > 8
    for code, expected in fences:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, str(PAGE), "exec"), names)
        assert said.getvalue().strip() == expected.strip(), code
