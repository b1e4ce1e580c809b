"""What a text file looks like: encoding, delimiter, quote, lines before the table, header.

Each function decides one thing from the file itself and returns it with the reason in words. The delimiter
is the one that cuts the first records into the same number of fields, with quoted fields respected; a blank
is considered last, since a blank often follows another delimiter.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ._words import TableError, shown

__all__ = [
    "DELIMITERS",
    "decode",
    "find_delimiter",
    "find_header",
    "find_quote",
    "is_number",
    "leading",
]

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank"}
SAMPLE = 2**18  # characters looked at
SAMPLE_RECORDS = 400
LEADING = 20  # at most so many lines before the table
BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
SEPARATOR = re.compile(r'"?sep=.?"?', re.IGNORECASE)  # a hint that spreadsheets write
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?")


def is_number(text: str) -> bool:
    """Whether a field is a plain number, with a point or a comma for the decimals."""
    text = text.strip()
    return bool(NUMBER.fullmatch(text) or DECIMAL_COMMA.fullmatch(text))


def decode(data: bytes, label: str, encoding: str | None) -> tuple[bytes, str, str]:
    """UTF-8 bytes with ``\\n`` line ends and no mark at the front, the encoding, and how it was found."""
    mark = next(((bom, name) for bom, name in BOMS if data.startswith(bom)), None)
    if encoding is not None:
        try:
            name = codecs.lookup(encoding).name
            how = "as given"
            if mark is not None and mark[1].startswith(name.removesuffix("-sig")):
                data, name = data[len(mark[0]) :], mark[1]
            text = data if name == "utf-8" and data.isascii() else data.decode(name)
        except (LookupError, UnicodeDecodeError) as error:
            raise TableError(
                f"{label} cannot be read as {shown(encoding)} ({shown(error, 100)}); leave the encoding out "
                "to have it found, or name another."
            ) from error
    elif mark is not None:
        name, how = mark[1], "from the mark at the front of the file"
        text = _decoded(data[len(mark[0]) :], name, label)
    elif (guess := _wide(data)) is not None:
        name, how = guess, "every other byte is zero; there is no mark"
        text = _decoded(data, name, label)
    else:
        text, name, how = _narrow(data)
    plain = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if b"\x00" in plain:
        line = plain[: plain.index(b"\x00")].count(b"\n") + 1
        raise TableError(
            f"{label} holds a NUL byte in line {line:,}, so it is damaged or not a text table; "
            "export it again as CSV."
        )
    if b"\r" in plain:
        plain = plain.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return plain, name, how


def _decoded(data: bytes, name: str, label: str) -> str:
    try:
        return data.decode(name)
    except UnicodeDecodeError as error:
        raise TableError(
            f"{label} begins as {name} but is damaged at byte {error.start:,}; export it again."
        ) from error


def _wide(data: bytes) -> str | None:
    """UTF-16 without a mark: Latin text has a zero in every other byte."""
    sample = data[:4096]
    half = len(sample) // 2
    if half < 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.7 * half and even < 0.1 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.7 * half and odd < 0.1 * half else None


def _narrow(data: bytes) -> tuple[bytes | str, str, str]:
    if data.isascii():
        return data, "utf-8", "all characters are ASCII"
    try:
        data.decode("utf-8")
        return data, "utf-8", "all bytes are sound UTF-8"
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        how = f"line {line:,} is not UTF-8; Western European text is assumed"
    try:
        if re.search(rb"[\x80-\x9f]", data):
            return data.decode("cp1252"), "cp1252", how
    except UnicodeDecodeError:
        pass
    return data.decode("latin-1"), "latin-1", how


def sample_lines(text: str) -> list[str]:
    """The first lines, whole ones unless there is only one."""
    lines = text.split("\n")
    if len(lines) > 1 and len(text) >= SAMPLE:
        lines.pop()
    return [line for line in lines[: SAMPLE_RECORDS + LEADING] if line.strip()]


def records(lines: Sequence[str], delimiter: str, quote: str) -> list[list[str]]:
    """The records of some lines, as the csv module reads them; what it cannot read ends the list."""
    found: list[list[str]] = []
    try:
        for record in _reader(lines, delimiter, quote):
            found.append(record)
    except csv.Error:
        pass
    return found


def _reader(lines: Sequence[str], delimiter: str, quote: str) -> Iterator[list[str]]:
    return csv.reader(
        [line + "\n" for line in lines],
        delimiter=delimiter,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        skipinitialspace=True,
    )


def find_quote(lines: Sequence[str]) -> str:
    """The quote: ``'`` only where fields are wrapped in it and ``"`` does not occur."""
    if any('"' in line for line in lines):
        return '"'
    wrapped = re.compile(r"(?:^|[,;\t|])\s*'[^']*'\s*(?=[,;\t|]|$)")
    share = sum(bool(wrapped.search(line)) for line in lines)
    return "'" if lines and share >= 0.5 * len(lines) else '"'


def find_delimiter(lines: Sequence[str], quote: str) -> tuple[str, str]:
    """The delimiter and the reason."""
    scores: dict[str, tuple[float, int]] = {}
    for delimiter in DELIMITERS:
        if not any(delimiter in line for line in lines):
            continue
        shown_lines = (
            [re.sub(" +", " ", line.strip()) for line in lines] if delimiter == " " else lines
        )
        widths = Counter(len(record) for record in records(shown_lines, delimiter, quote) if record)
        if widths:
            width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
            if width >= 2:
                scores[delimiter] = (count / sum(widths.values()), width)
    another = any(share >= 0.8 for key, (share, _) in scores.items() if key != " ")
    if " " in scores and (another or scores[" "][0] < 1.0):
        del scores[" "]
    if not scores:
        return ",", "no delimiter repeats from line to line, so there is one column"
    best = max(scores, key=lambda key: (scores[key][0], scores[key][1]))
    if best == "," and scores.get(";", (0.0, 0))[0] == scores[","][0]:
        cells = [cell for record in records(lines, ";", quote) for cell in record if "," in cell]
        if cells and all(DECIMAL_COMMA.fullmatch(cell.strip()) for cell in cells):
            best = ";"
    share, width = scores[best]
    words = "every one" if share == 1.0 else f"{min(share, 0.99):.0%}"
    return best, f"it cuts {words} of the first {len(lines):,} lines into {width:,} fields"


def leading(lines: Sequence[str], delimiter: str, quote: str) -> int:
    """How many lines stand before the table: titles, comments, ``sep=;``."""
    widths = [len(record) for record in records(lines[:SAMPLE_RECORDS], delimiter, quote)]
    if not widths:
        return 0
    usual = Counter(widths).most_common(1)[0][0]
    count = 0
    for line in lines[:LEADING]:
        [record] = records([line], delimiter, quote)[:1] or [[]]
        alone = usual > 1 and len(record) == 1 and not line.lstrip().startswith(quote or "\n")
        if SEPARATOR.fullmatch(line.strip()):
            count += 1
            continue
        if not alone and not line.startswith("#"):
            break
        if line.startswith("#") and len(record) == usual > 1:  # the header of some tools
            break
        count += 1
    return count if count < min(len(lines), LEADING) else 0


def find_header(rows: Sequence[Sequence[str]], missing: Sequence[str]) -> tuple[bool, str]:
    """Whether the first record names the columns, and the reason."""
    first, rest = rows[0], rows[1:]
    if not rest:
        named = not any(is_number(cell) for cell in first)
        return named, "the only record has " + ("no number" if named else "numbers") + " in it"
    absent = set(missing)
    numeric = again = text = 0
    for j, cell in enumerate(first):
        below = [r[j].strip() for r in rest if j < len(r) and r[j].strip() not in absent]
        if below and all(map(is_number, below)):
            numeric += 1
            if is_number(cell):
                return (
                    False,
                    f"the first record has the number {shown(cell.strip(), 20)} above numbers",
                )
            if cell.strip() not in absent or not cell.strip():
                text += 1
        elif below and cell.strip() in below:
            again += 1
    if text:
        return True, f"the first record has words above {numeric:,} columns of numbers"
    if again * 2 >= len(first):
        return False, "the first record's values occur again below it"
    if len(first) > 1 and any(is_number(cell) for cell in first) and again:
        return False, "the first record holds a number and values that occur again below it"
    return True, "the first record's values do not occur again below it"
