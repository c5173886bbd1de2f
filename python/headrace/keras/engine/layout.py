"""Where the boxes and lines of a picture lie: layers of boxes, few crossings, as SVG."""

import html

_LINE, _CHARACTER, _PAD = (
    16,
    7.3,
    8,
)  # of a text: its height, a letter's width, a margin
_GAP, _RANK_GAP = 24, 38  # between boxes of one rank, and between ranks
_PASSES = 4


class Box:
    """A box of lines of text, or, without lines, a point that a line goes through.

    Attributes:
      key: what lines name it by.
      group: the names of the frames that it lies in, outermost first.
    """

    def __init__(self, key, lines=(), group=()):
        self.key, self.lines, self.group = key, list(lines), tuple(group)
        longest = max(map(len, self.lines), default=0)
        self.width = longest * _CHARACTER + 2 * _PAD if self.lines else 2
        self.height = len(self.lines) * _LINE + _PAD if self.lines else 2
        self.x = self.y = 0.0  # of its middle


def _ranks(boxes, lines):
    """{key: rank}: each below all that it comes from; circles are cut."""
    into = {box.key: [] for box in boxes}
    for start, end in lines:
        into[end].append(start)
    ranks = {}
    for first in into:  # depth first, without recursion: graphs may be deep
        stack = [first]
        open_ = set()
        while stack:
            key = stack[-1]
            if key in ranks:
                stack.pop()
                continue
            open_.add(key)
            wanting = [k for k in into[key] if k not in ranks and k not in open_]
            if wanting:
                stack.extend(wanting)
                continue
            ranks[key] = 1 + max((ranks.get(k, -1) for k in into[key]), default=-1)
            stack.pop()
    return ranks


class Picture:
    """Boxes and lines, laid out.

    `boxes` are Boxes, `lines` pairs of their keys; `across` draws from left to right
    instead of from top to bottom, `backward` the other way round.
    """

    def __init__(self, boxes, lines, across=False, backward=False):
        self._across, self._backward = across, backward
        if backward:
            lines = [(end, start) for start, end in lines]
        self._boxes = {box.key: box for box in boxes}
        self._lines = list(dict.fromkeys(lines))
        ranks = _ranks(boxes, self._lines)
        self._rows = [[] for _ in range(1 + max(ranks.values(), default=-1))]
        for box in boxes:
            self._rows[ranks[box.key]].append(box)
        self._paths = [self._path(ranks, *line) for line in self._lines]
        self._order()
        self._place()

    def _path(self, ranks, start, end):
        """The boxes and points, one a rank, that a line goes through."""
        step = 1 if ranks[end] >= ranks[start] else -1
        path = [self._boxes[start]]
        for rank in range(ranks[start] + step, ranks[end], step):
            path.append(Box(None))
            self._rows[rank].append(path[-1])
        return [*path, self._boxes[end]]

    def _neighbours(self):
        found = {}
        for path in self._paths:
            for a, b in zip(path, path[1:]):
                found.setdefault(id(a), []).append(b)
                found.setdefault(id(b), []).append(a)
        return found

    def _order(self):
        """Sorts each rank by the mean place of what its boxes are connected to."""
        near = self._neighbours()
        for number in range(_PASSES):
            rows = self._rows if number % 2 == 0 else self._rows[::-1]
            place = {id(b): i / len(r) for r in self._rows for i, b in enumerate(r)}
            for row in rows:
                means = {
                    id(b): sum(place[id(n)] for n in near[id(b)]) / len(near[id(b)])
                    for b in row
                    if id(b) in near
                }
                row.sort(key=lambda b: means.get(id(b), place[id(b)]))
                place.update((id(b), i / len(row)) for i, b in enumerate(row))

    def _size(self, box):
        """(along the rank, across ranks) of a box."""
        size = (box.width, box.height)
        return size[::-1] if self._across else size

    def _place(self):
        lengths = [
            sum(self._size(b)[0] + _GAP for b in row) - _GAP for row in self._rows
        ]
        self._length = max(lengths, default=0) + 2 * _GAP
        at = _GAP
        for row, length in zip(self._rows, lengths):
            deep = max(self._size(b)[1] for b in row)
            along = (self._length - length) / 2
            for box in row:
                size = self._size(box)[0]
                middle = along + size / 2, at + deep / 2
                box.x, box.y = middle[::-1] if self._across else middle
                if box.key is None:  # lines are straight here
                    box.width, box.height = (deep, 2) if self._across else (2, deep)
                along += size + _GAP
            at += deep + _RANK_GAP
        self._depth = at - _RANK_GAP + _GAP

    def svg(self, dpi=96):
        """The picture as an SVG document."""
        width, height = self._length, max(self._depth, 2 * _GAP)
        if self._across:
            width, height = height, width
        scale = dpi / 96
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale:.0f}" '
            f'height="{height * scale:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            'font-family="monospace" font-size="12">',
            '<defs><marker id="end" markerWidth="8" markerHeight="8" refX="7" refY="4" '
            'orient="auto-start-reverse"><path d="M0,0L8,4L0,8z"/></marker></defs>',
            *self._frames(),
            *map(self._curve, self._paths),
        ]
        for box in self._boxes.values():
            out += self._drawn(box)
        return "\n".join([*out, "</svg>"])

    def _frames(self):
        """Rectangles around the boxes of each group."""
        groups = {}
        for box in self._boxes.values():
            for depth in range(len(box.group)):
                groups.setdefault(box.group[: depth + 1], []).append(box)
        for name, boxes in sorted(groups.items(), key=lambda g: len(g[0])):
            margin = _GAP / 2 / len(name)
            left = min(b.x - b.width / 2 for b in boxes) - margin
            right = max(b.x + b.width / 2 for b in boxes) + margin
            top = min(b.y - b.height / 2 for b in boxes) - margin - _LINE / 2
            end = max(b.y + b.height / 2 for b in boxes) + margin
            yield (
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
                f'height="{end - top:.1f}" fill="none" stroke="gray" '
                f'stroke-dasharray="4"/><text x="{left + 3:.1f}" y="{top + 11:.1f}" '
                f'fill="gray">{html.escape(name[-1])}</text>'
            )

    def _curve(self, path):
        """A line that bends between ranks and is straight within them."""
        text = "M{:.1f},{:.1f}".format(*self._side(path[0], 1))
        for a, b in zip(path, path[1:]):
            (x, y), (u, v) = self._side(a, 1), self._side(b, -1)
            bends = (x, (y + v) / 2, u, (y + v) / 2)
            if self._across:
                bends = ((x + u) / 2, y, (x + u) / 2, v)
            text += "C{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}".format(*bends, u, v)
            if b.key is None:
                text += "L{:.1f},{:.1f}".format(*self._side(b, 1))
        end = "start" if self._backward else "end"
        return f'<path d="{text}" fill="none" stroke="black" marker-{end}="url(#end)"/>'

    def _side(self, box, sign):
        """The middle of the side that the next rank, or the one before, is at."""
        if self._across:
            return box.x + sign * box.width / 2, box.y
        return box.x, box.y + sign * box.height / 2

    @staticmethod
    def _drawn(box):
        left, top = box.x - box.width / 2, box.y - box.height / 2
        yield (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
            f'height="{box.height:.1f}" fill="white" stroke="black"/>'
        )
        for number, line in enumerate(box.lines):
            y = top + _PAD / 2 + (number + 0.75) * _LINE
            weight = ' font-weight="bold"' if number == 0 else ""
            yield (
                f'<text x="{box.x:.1f}" y="{y:.1f}" text-anchor="middle"{weight}>'
                f"{html.escape(line)}</text>"
            )
