"""Errors of conversion."""


class AutoGraphError(Exception):
    """Base of AutoGraph's errors."""


class ConversionError(AutoGraphError):
    """A function cannot be converted: its source is not there, or says what graphs
    cannot do."""


class UnsupportedLanguageElementError(ConversionError, NotImplementedError):
    """The function uses a construct of Python that is not converted."""
