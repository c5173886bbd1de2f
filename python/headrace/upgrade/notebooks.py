"""Programs in notebooks: their code cells are one program."""

import json

_MARK = "#headrace-cell-ends"


def _source(cell):
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(s, str) for s in source):
        return "".join(source)
    if not isinstance(source, str):
        raise ValueError("a cell's source is no text")
    return source


def _indent(line):
    return line[: len(line) - len(line.lstrip())]


def rewrite(text, rewrite_program):
    """The notebook with its program rewritten by `rewrite_program(text)`: a Rewritten,
    whose text is the notebook's. Lines for the shell and magics stay as they are.
    ValueError for what is no notebook."""
    notebook = json.loads(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(c, dict) for c in cells):
        raise ValueError("expected a notebook, with a list of cells")
    cells = [c for c in cells if c.get("cell_type") == "code" and _source(c)]
    lines = []
    kept = {}  # what stands for a line: the line
    for cell in cells:
        source = _source(cell).split("\n")
        for i, line in enumerate(source):
            if line.lstrip().startswith(("%", "!", "?")):
                source[i] = f"{_indent(line)}pass  #headrace-line-{len(kept)}"
                kept[source[i]] = line
        source[-1] += _MARK
        lines += source
    done = rewrite_program("\n".join(lines) + "\n")
    if done.failure:
        return done
    parts = done.text.split(_MARK + "\n")[:-1]
    for cell, part in zip(cells, parts, strict=True):
        cell["source"] = "\n".join(kept.get(line, line) for line in part.split("\n"))
    done.text = json.dumps(notebook)
    return done
