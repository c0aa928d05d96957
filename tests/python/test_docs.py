"""The Python of the pages. docs/howto/pytorch.md: each ```python fence, in one namespace, prints the ```text fence below
it; that of README.md and of the tutorial runs, beside the programs which the page says to save."""
import contextlib
import io
import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/howto/pytorch.md"


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


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_programs_of_a_page_run(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text()
    for path, program in re.findall(r"^<!-- file: (\S+) -->\n```fuse\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(program)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    fences = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert fences
    for code in fences:
        exec(compile(code, page, "exec"), names)
    for module in [value for value in names.values() if isinstance(value, type) and issubclass(value, torch.nn.Module)]:
        x = torch.randn(4, 64, requires_grad=True)
        module(64)(x).square().sum().backward()
        assert x.grad is not None and x.grad.shape == x.shape and torch.isfinite(x.grad).all()
