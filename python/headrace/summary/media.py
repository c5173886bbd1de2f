"""tf.summary.image and tf.summary.audio: pictures and sounds, encoded."""

from headrace._load import _headrace, raw
from headrace.control_flow import mapping
from headrace.framework import conversion, dtypes, execution
from headrace.imaging import adjusting
from headrace.ops import array_ops, check_ops
from headrace.summary import metadata, writing

_WAV = 11  # of AudioPluginData.Encoding


def _first(data, rank, max_outputs):
    """At most `max_outputs` of what `data`, of that rank, holds."""
    data = conversion.convert_to_tensor(data)
    if data.shape.rank not in (None, rank):
        name = "" if _headrace.is_eager() else data.name
        raise ValueError(
            f"Tensor {name} must have rank {rank}.  Received rank {data.shape.rank}, "
            f"shape {data.shape}"
        )
    checked = check_ops.assert_non_negative(max_outputs)
    with execution.control_dependencies([] if checked is None else [checked]):
        max_outputs = array_ops.identity(max_outputs)
    return data[:max_outputs]


def image(name, data, step=None, max_outputs=3, description=None):
    """Writes pictures: [k, height, width, channels] of uint8, or of floating numbers
    between 0 and 1; 1, 2, 3 or 4 channels. At most `max_outputs` of them. Returns
    whether they were written; ValueError for another rank."""
    with writing.summary_scope(name, "image_summary") as (tag, _):

        def encoded():
            few = _first(data, 4, max_outputs)
            pixels = adjusting.convert_image_dtype(few, dtypes.uint8, saturate=True)
            files = mapping.map_fn(
                raw.EncodePng,
                pixels,
                fn_output_signature=dtypes.string,
                name="encode_each_image",
            )
            height, width = array_ops.unstack(array_ops.shape(pixels)[1:3])
            sizes = array_ops.stack([raw.AsString(width), raw.AsString(height)])
            return array_ops.concat([sizes, files], axis=0)

        info = metadata.encode("images", description=description)
        return writing.write(tag, encoded, step, info)


def audio(
    name, data, sample_rate, step=None, max_outputs=3, encoding=None, description=None
):
    """Writes sounds: [k, frames, channels] of float32 between -1 and 1, so many frames
    a second. At most `max_outputs` of them. `encoding`: "wav". Returns whether they
    were written; ValueError for another rank or encoding."""
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    with writing.summary_scope(name, "audio_summary") as (tag, _):

        def encoded():
            few = _first(data, 3, max_outputs)
            rate = conversion.convert_to_tensor(sample_rate, dtypes.int32)
            files = mapping.map_fn(
                lambda sound: raw.EncodeWav(sound, rate),
                few,
                fn_output_signature=dtypes.string,
                name="encode_each_audio",
            )
            # Each with a label, which is empty.
            return array_ops.stack(
                [files, array_ops.fill([array_ops.size(files)], "")], 1
            )

        content = bytes([2 << 3, _WAV])
        info = metadata.encode("audio", content, description)
        return writing.write(tag, encoded, step, info)
