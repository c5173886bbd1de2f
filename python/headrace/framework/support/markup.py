"""What notebooks show of objects: small tables as HTML."""

import html

_LEFT = ' style="text-align: left"'


def table(title, heads, rows, note=""):
    """An HTML table under a title, with a note below; all texts are escaped."""

    def row(cells, tag):
        inner = "".join(f"<{tag}{_LEFT}>{html.escape(str(c))}</{tag}>" for c in cells)
        return f"<tr>{inner}</tr>"

    out = [f"<div><b>{html.escape(title)}</b>"]
    if rows:
        out += ["<table><thead>", row(heads, "th"), "</thead><tbody>"]
        out += [row(cells, "td") for cells in rows]
        out.append("</tbody></table>")
    if note:
        out.append(f"<div>{html.escape(note)}</div>")
    return "\n".join([*out, "</div>"])
