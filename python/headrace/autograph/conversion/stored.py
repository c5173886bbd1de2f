"""Converted code on disk: one file a source, where Python keeps that of modules.

It is found by all that conversion depends on: the text of the source and its name, this
converter, Python and its flags; of the function what tells it in its file; the options
and what names meant that speak to the converter. Only files that this user sealed are
read, so that Python's own format serves. What has no file (notebooks, what was typed,
zip archives) is not kept; nor is anything where nothing can be written.
"""

import functools
import importlib.util
import marshal
import os
import pathlib
import sys
from hashlib import blake2b

from headrace.autograph.conversion import source
from headrace.context.call_stacks import PART
from headrace.context.locks import ForkLock
from headrace.framework.settings.versions import VERSION
from headrace.framework.support import sealed_files

_MOST = 1 << 24  # bytes of one file
_STATE = 32  # bytes of the code of what all converted code of a file depends on

_lock = ForkLock()
_sources = {}  # {file name: _Source, or None for what is not kept}
_changed = set()  # those with converted code that is not on disk


@functools.cache
def _maker():
    """A code of what converts: this converter, and Python, which compiles."""
    flags = sys.flags.optimize, importlib.util.MAGIC_NUMBER, sys.version
    made = blake2b(repr((VERSION, PART, flags)).encode(), digest_size=_STATE)
    files = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    if not files:
        raise FileNotFoundError("the converter's modules have no source")
    for file in files:
        made.update(file.read_bytes())
    return made.digest()


class _Source:
    """The converted code of one source.

    Attributes:
      lines: the text of the source.
    """

    def __init__(self, filename, lines):
        self.lines = lines
        cached = importlib.util.cache_from_source(filename)
        self._path = cached.removesuffix("pyc") + "autograph"
        text = "\0".join((filename, *lines)).encode(errors="surrogatepass")
        self._state = blake2b(text, key=_maker(), digest_size=_STATE).digest()
        self._codes = self._read()  # {key: the code as marshal writes it}

    def _read(self):
        data = sealed_files.read(self._path, _MOST) or b""
        if data[:_STATE] != self._state:  # of another text or converter
            return {}
        return marshal.loads(data[_STATE:])

    def find(self, key):
        """What is kept for `key`; None where nothing is."""
        found = self._codes.get(key)
        return found and marshal.loads(found)

    def keep(self, key, value):
        self._codes[key] = marshal.dumps(value)
        _changed.add(self)

    def write(self):
        """Adds what is not on disk to what is there by now."""
        self._codes = self._read() | self._codes
        data = self._state + marshal.dumps(self._codes)
        if len(data) <= _MOST:
            sealed_files.write(self._path, data)


def _source_of(function):
    """The _Source of the file that a function is from; None for what is not kept."""
    filename, lines = source.lines_of(function)
    known = _sources.get(filename)
    if known is None and filename in _sources or known and known.lines is lines:
        return known
    made = None
    if os.path.isabs(filename) and os.path.isfile(filename):
        try:
            made = _Source(filename, lines)
        except (OSError, NotImplementedError):
            pass  # no source of this converter; a Python that keeps no code
    _sources[filename] = made
    return made


def code_of(function, options, make, still):
    """The code that `make` gives, (code, what names in it meant), kept or made.

    What is kept counts while `still` says of those meanings that they hold.
    """
    with _lock:
        known = _source_of(function)
        if known is None:
            return make()[0]
        code = function.__code__
        key = repr(
            (source.identity(code), code.co_freevars, code.co_flags, options.source())
        )
        found = known.find(key)
        if found is None or not still(found[1]):
            found = make()
            known.keep(key, found)
        return found[0]


def write():
    """Puts what was converted since the last time on disk."""
    if not _changed:
        return
    with _lock:
        changed = list(_changed)
        _changed.clear()
        if not sys.dont_write_bytecode:
            for known in changed:
                known.write()
