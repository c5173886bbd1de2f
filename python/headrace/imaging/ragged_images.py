"""tf.image.resize of images of different sizes, which a ragged tensor holds."""

from headrace.control_flow import branches, mapping
from headrace.framework import conversion, dtypes
from headrace.framework.support import signatures
from headrace.imaging import resizing
from headrace.ops import array_ops
from headrace.ragged.ragged_tensor import is_ragged


@signatures.taking(signatures.parameters_of(resizing.resize))
def resize(images, size, method="bilinear", **how):
    """Images of different sizes, each brought to the same one."""

    def one(image):
        return resizing.resize(image, size, method, **how)

    return each_image(one, images, size, method in ("nearest",))


def each_image(one, images, size, keeps_dtype):
    if images.shape.rank != 4:
        raise ValueError(
            "tf.image.resize: images.shape.rank must be 4 if images is ragged."
        )
    dtype = images.dtype if keeps_dtype else dtypes.float32

    def dense(image):
        image = image.to_tensor() if is_ragged(image) else image
        image.set_shape([None, None, images.shape[3]])
        return one(image)

    def no_image():
        channels = array_ops.shape(images.flat_values)[-1:]
        sizes = conversion.convert_to_tensor(size)
        return array_ops.zeros(array_ops.concat([[0], sizes, channels], 0), dtype)

    made = branches.cond(
        images.nrows() > 0,
        lambda: mapping.map_fn(dense, images, fn_output_signature=dtype),
        no_image,
    )
    fixed = isinstance(size, (list, tuple)) and all(isinstance(n, int) for n in size)
    made.set_shape([images.shape[0], *(size if fixed else [None] * 2), images.shape[3]])
    return made
