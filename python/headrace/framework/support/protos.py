"""The public proto messages (headrace._protos)."""

from headrace._protos import __getattr__, message  # noqa: F401
