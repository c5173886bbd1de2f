"""A program's text, where the parts of its calls lie in it, and edits of it."""

import ast
import bisect
import io
import tokenize
from dataclasses import dataclass

_BLANK = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass
class Argument:
    """One of a call; places are offsets of characters in the text."""

    start: int
    end: int
    value_start: int
    value_end: int
    keyword: str | None  # None: by position
    starred: bool  # *args or **kwargs
    node: ast.expr
    position: tuple[int, int]  # line and column, for reports
    new_keyword: str | None = None
    removed: bool = False

    def name(self):
        """What it is called in the new call; None where it has no keyword."""
        return self.new_keyword or self.keyword


class Source:
    """Text that edits are collected for; text() applies them all.

    An edit replaces a range by pieces: strings, and ranges of the old text, which are
    taken with their own edits.
    """

    def __init__(self, text):
        self.old = text
        lines = text.splitlines(keepends=True)
        self._lines = lines
        self._line_starts = [0]
        for line in lines:
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._edits = []
        self._tokens = []
        for t in tokenize.generate_tokens(io.StringIO(text).readline):
            if t.type not in _BLANK:
                start, end = (self._line_starts[r - 1] + c for r, c in (t.start, t.end))
                self._tokens.append((start, end, t.string))
        self._token_starts = [t[0] for t in self._tokens]

    def offset(self, line, column):
        """Of a place as ast gives it: the column in bytes of UTF-8."""
        before = self._lines[line - 1].encode()[:column].decode(errors="ignore")
        return self._line_starts[line - 1] + len(before)

    def span(self, node):
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno, node.end_col_offset),
        )

    def _token_at(self, offset):
        return bisect.bisect_left(self._token_starts, offset)

    def call_parts(self, call):
        """(arguments in their order, end of the last that is there or None, place of the
        closing parenthesis); None where the text is not seen (within f-strings)."""
        close = self._token_at(self.span(call)[1] - 1)
        first = self._token_at(self.span(call.func)[1])
        while first < len(self._tokens) and self._tokens[first][2] == ")":
            first += 1  # a function in parentheses
        if close >= len(self._tokens) or self._tokens[close][2] != ")":
            return None
        if first >= close or self._tokens[first][2] != "(":
            return None
        values = [(a, None) for a in call.args]
        values += [(k.value, k) for k in call.keywords]
        arguments = [self._argument(v, k, first, close) for v, k in values]
        arguments.sort(key=lambda a: a.start)
        return arguments, self._tokens[close][0]

    def _argument(self, value, keyword, first, close):
        starred = isinstance(value, ast.Starred) or (keyword and keyword.arg is None)
        value_start, value_end = self.span(value)
        left = self._token_at(value_start)
        while left - 1 > first and self._tokens[left - 1][2] not in (",", "=", "**"):
            left -= 1
        right = self._token_at(value_end) - 1
        while right + 1 < close and self._tokens[right + 1][2] == ")":
            right += 1
        start = whole_start = self._tokens[left][0]
        if keyword is not None:
            whole_start = self.offset(keyword.lineno, keyword.col_offset)
        end = self._tokens[right][1]
        at = keyword or value
        return Argument(
            *(whole_start, end, start, end),
            keyword.arg if keyword else None,
            bool(starred),
            value,
            (at.lineno, at.col_offset),
        )

    def has_comma(self, offset):
        """Whether the next token from there on is a comma."""
        at = self._token_at(offset)
        return at < len(self._tokens) and self._tokens[at][2] == ","

    def replace(self, start, end, *pieces):
        self._edits.append((start, end, pieces))

    def insert(self, at, text):
        self.replace(at, at, text)

    def text(self):
        ordered = sorted(
            range(len(self._edits)), key=lambda i: (*self._edits[i][:2], i)
        )
        return self._render(0, len(self.old), [self._edits[i] for i in ordered])

    def _render(self, start, end, edits):
        out = []
        at = start
        for edit in edits:
            first, last, pieces = edit
            if first < at or last > end:
                continue  # within what another one replaces
            out.append(self.old[at:first])
            for piece in pieces:
                if isinstance(piece, str):
                    out.append(piece)
                else:
                    inner = [
                        e
                        for e in edits
                        if e is not edit and piece[0] <= e[0] and e[1] <= piece[1]
                    ]
                    out.append(self._render(*piece, inner))
            at = last
        out.append(self.old[at:end])
        return "".join(out)
