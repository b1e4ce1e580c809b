"""Small plots as SVG, drawn by hand: axes, ticks, lines, bands, dots.

A figure is a tree of elements from the standard library's XML module, so all text in it is escaped when it is
written. There are no ``style`` attributes and no fixed colours: a strict content-security policy blocks the
former, and a page in a dark scheme needs other colours. Classes carry both; the style sheet knows them.

Each figure has a title and a description with its main numbers: what a person who cannot see it gets.

References
----------
Heckbert (1990), *Nice numbers for graph labels*, Graphics Gems (the choice of ticks).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from .words import number, percent, plain, power

__all__ = ["Axis", "Drawing", "Figure"]

WIDTH, HEIGHT = 400.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 18.0, 46.0, 44.0
Point = tuple[float, ...]


def _step(span: float, most: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that cuts the span into at most ``most`` parts."""
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next((k * power for k in (1, 2, 5) if k * power >= rough * (1 - 1e-9)), 10 * power)


@dataclass(frozen=True)
class Axis:
    """A range of numbers, its name, and how its numbers are written.

    Examples
    --------
    >>> [text for _, text in Axis(0.0, 1.0, "share", share=True).ticks(4)]
    ['0 %', '50 %', '100 %']
    >>> [text for _, text in Axis(1e-6, 1.0, "gap", log=True).ticks(4)]
    ['10⁻⁶', '10⁻⁴', '0.01', '1']
    """

    low: float
    high: float
    label: str
    log: bool = False
    share: bool = False

    @classmethod
    def over(
        cls, values: Iterable[float], label: str, *, log: bool = False, share: bool = False
    ) -> Axis:
        """The axis that holds the values, with a little room on either side."""
        finite = [v for v in values if math.isfinite(v) and (v > 0 or not log) and abs(v) < 1e300]
        low, high = (min(finite), max(finite)) if finite else (1.0, 2.0) if log else (0.0, 1.0)
        if log:
            low, high = low / 1.3, min(high * 1.3, 1e300)
            return cls(low, max(high, low * 10), label, True, share)
        # a span below what floating point resolves here would leave no room for ticks
        room = max(0.04 * (high - low), 1e-9 * max(abs(low), abs(high)), 1e-12)
        start, end = low - room, high + room
        if share and low >= 0 and high <= 1:
            start, end = max(start, 0.0), min(end, 1.0)
        return cls(start, end, label, False, share)

    def at(self, value: float) -> float:
        """Where a value lies, from 0 to 1; what lies outside is put on the edge."""
        if self.log:
            if value <= 0:
                return 0.0
            place = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            place = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, place))

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round numbers inside the range, with their text."""
        if self.log:
            first, last = (
                math.ceil(math.log10(self.low) - 1e-9),
                math.floor(math.log10(self.high) + 1e-9),
            )
            every = max(1, math.ceil((last - first) / most))
            places = [10.0**k for k in range(first, last + 1, every)]
            if len(places) < 2:
                places = [self.low, self.high]
        else:
            step = _step(self.high - self.low, most)
            start = math.ceil(self.low / step - 1e-6)
            stop = math.floor(self.high / step + 1e-6)
            places = [k * step for k in range(start, min(stop, start + 2 * most) + 1)]
        gap = places[1] - places[0] if len(places) > 1 else 1.0
        digits = 0 if gap > 0.0099 else 1 if gap > 0.00099 else 2
        return [(v, self.text(v, digits)) for v in places]

    def text(self, value: float, digits: int = 0) -> str:
        """A number of this axis as it is written beside a tick; a share with so many digits."""
        if self.share:
            return percent(value, digits)
        if self.log:
            exponent = round(math.log10(value))
            whole = math.isclose(value, 10.0**exponent) and not -3 < exponent < 5
            return power(exponent) if whole else number(value, 2)
        return number(value, 3)


class Drawing:
    """An SVG image with a title, a description, and elements placed in pixels."""

    def __init__(self, name: str, title: str, about: str, width: float, height: float) -> None:
        self.title, self.about, self.width, self.height = title, about, width, height
        self.root = ET.Element(
            "svg",
            {
                "viewBox": f"0 0 {width:g} {height:g}",
                "role": "img",
                "class": "plot",
                "aria-labelledby": f"{name}-t {name}-d",
                "preserveAspectRatio": "xMidYMid meet",
            },
        )
        self.add("title", id=f"{name}-t").text = plain(title, 200)
        self.add("desc", id=f"{name}-d").text = plain(about, 600)

    def add(self, tag: str, /, **attributes: str | float) -> ET.Element:
        """An element; ``class_`` is written ``class``, an underscore as a hyphen, numbers to a tenth."""
        written = {
            key.rstrip("_").replace("_", "-"): f"{round(value, 1):g}"
            if isinstance(value, float)
            else str(value)
            for key, value in attributes.items()
        }
        return ET.SubElement(self.root, tag, written)

    def text(self, x: float, y: float, text: str, kind: str = "", *, limit: int = 60) -> None:
        """Words at a place. The kind is a class: start, middle or end, muted, strong."""
        self.add("text", x=x, y=y, class_=kind or "start").text = plain(text, limit)

    def __html__(self) -> str:
        """The image as text; templates put it into the page as it is."""
        return ET.tostring(self.root, encoding="unicode")


class Figure(Drawing):
    """A plot of points on two axes."""

    def __init__(
        self, name: str, title: str, about: str, x: Axis, y: Axis, *, height: float = HEIGHT
    ) -> None:
        super().__init__(name, title, about, WIDTH, height)
        self.x, self.y, self.keys = x, y, LEFT
        right, bottom = WIDTH - RIGHT, height - BOTTOM
        for value, text in y.ticks():
            at = self.place(x.low, value)[1]
            self.add("line", x1=LEFT, x2=right, y1=at, y2=at, class_="grid")
            self.text(LEFT - 7, at + 4, text, "end muted")
        for value, text in x.ticks(5):
            at = self.place(value, y.low)[0]
            self.add("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis")
            self.text(at, bottom + 17, text, "middle muted")
        self.add("line", x1=LEFT, x2=right, y1=bottom, y2=bottom, class_="axis")
        self.text(LEFT + (right - LEFT) / 2, height - 6, x.label, "middle")
        self.text(2.0, 13.0, y.label, "start")

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point."""
        across = LEFT + self.x.at(x) * (WIDTH - LEFT - RIGHT)
        return across, TOP + (1 - self.y.at(y)) * (self.height - TOP - BOTTOM)

    def line(self, points: Sequence[Point], kind: str = "a") -> None:
        """A line through the points; a single point is a dot."""
        if len(points) == 1:
            self.dots(points, kind)
            return
        path = " ".join(f"{u:.1f},{v:.1f}" for u, v in (self.place(p[0], p[1]) for p in points))
        self.add("polyline", points=path, class_=f"line {kind}")

    def band(self, points: Sequence[Point], kind: str = "a") -> None:
        """The area between the second and third number of each point."""
        upper = [self.place(p[0], p[2]) for p in points]
        lower = [self.place(p[0], p[1]) for p in reversed(points)]
        path = " ".join(f"{u:.1f},{v:.1f}" for u, v in upper + lower)
        self.add("polygon", points=path, class_=f"band {kind}")

    def dots(self, points: Sequence[Point], kind: str = "a", radius: float = 3.0) -> None:
        """A dot at each point."""
        for p in points:
            u, v = self.place(p[0], p[1])
            self.add("circle", cx=u, cy=v, r=radius, class_=f"dot {kind}")

    def whiskers(self, points: Sequence[Point], kind: str = "a") -> None:
        """A vertical line from the second to the third number of each point."""
        for p in points:
            (u, low), (_, high) = self.place(p[0], p[1]), self.place(p[0], p[2])
            self.add("line", x1=u, x2=u, y1=low, y2=high, class_=f"whisker {kind}")

    def bars(self, edges: Sequence[float], heights: Sequence[float], kind: str = "a") -> None:
        """A bar from each edge to the next."""
        for left, right, height in zip(edges, edges[1:], heights):
            (u, top), (end, base) = self.place(left, height), self.place(right, self.y.low)
            width = max(0.5, end - u - 1)
            self.add("rect", x=u, y=top, width=width, height=base - top, class_=f"bar {kind}")

    def key(self, text: str, kind: str) -> None:
        """The next entry of the legend: a piece of the line and its name."""
        self.add("line", x1=self.keys, x2=self.keys + 22, y1=29.0, y2=29.0, class_=f"line {kind}")
        self.text(self.keys + 28, 33.0, text)
        self.keys += 28 + 6.7 * len(text) + 18
