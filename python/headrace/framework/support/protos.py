"""The public proto messages (headrace._protos)."""

from headrace._protos import __getattr__, message, of_json, to_json  # noqa: F401
