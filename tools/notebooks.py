"""Runs notebooks without Jupyter: the code cells in order, in one namespace.

Usage: PYTHONPATH=python python tools/notebooks.py --write NOTEBOOK...

stores what the cells print, and the last expression of each, in the notebooks, as
nbformat 4 has outputs. python/tests/test_notebooks.py compares with what is stored.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def outputs_of(notebook, folder):
    """The outputs of each code cell. Sources are files of `folder` while they run, so
    that AutoGraph and tracebacks find them."""
    names, made = {"__name__": "__main__"}, []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            file = os.path.join(folder, f"cell_{number}.py")
            made.append(_run("".join(cell["source"]), names, file))
    return made


def _run(source, names, file):
    with open(file, "w", encoding="utf-8") as f:
        f.write(source)
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)  # noqa: S102
        if last is not None:
            value = eval(compile(last, file, "eval"), names)  # noqa: S307
    outputs = []
    if printed.getvalue():
        text = _lines(printed.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        outputs.append({"output_type": "execute_result", "data": _shown(value)})
    return outputs


def _shown(value):
    """What a notebook shows of a value, as a front end chooses."""
    data = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = _lines(value._repr_html_())
    return data


def _lines(text):
    return text.splitlines(keepends=True)


def write(path):
    """Stores the outputs in a notebook."""
    notebook = read(path)
    with tempfile.TemporaryDirectory() as folder:
        made = outputs_of(notebook, folder)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(code, made, strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = [
            {**output, "execution_count": number, "metadata": {}}
            if "data" in output
            else output
            for output in outputs
        ]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(notebook, file, indent=1, ensure_ascii=False)
        file.write("\n")


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "--write":
        sys.exit(__doc__.split("\n\n")[1])
    for path in sys.argv[2:]:
        write(path)


if __name__ == "__main__":
    main()
