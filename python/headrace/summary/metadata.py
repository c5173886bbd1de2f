"""SummaryMetadata messages, encoded by hand so that no protobuf is needed.

SummaryMetadata: plugin_data = 1 {plugin_name = 1, content = 2}, display_name = 2,
summary_description = 3. The data class (4) is left open, as TensorFlow leaves it:
TensorBoard knows it by the plugin's name.
"""


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, data):
    """A field of bytes, nothing where they are empty."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data if data else b""


def encode(plugin, content=b"", description=None):
    """A serialised SummaryMetadata."""
    plugin_data = field(1, plugin.encode()) + field(2, content)
    return field(1, plugin_data) + field(3, (description or "").encode())
