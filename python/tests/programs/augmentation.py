"""Images made larger, padded, cut, turned and coloured."""

import numpy as np
import tensorflow as tf

ramp = np.linspace(0, 1, 31 * 47 * 3).reshape(31, 47, 3).astype("float32")
image = tf.constant(ramp)


def show(name, x):
    print(name, x.shape, x.dtype.name, "%.3f" % tf.reduce_mean(tf.cast(x, tf.float32)))


show("pad", tf.image.resize_with_pad(image, 20, 50))
show("pad2", tf.image.resize_with_pad(image, 50, 20, antialias=True))
show("crop", tf.image.resize_with_crop_or_pad(image, 40, 30))
show("keep", tf.image.resize(image, (20, 20), preserve_aspect_ratio=True))
show("central", tf.image.central_crop(image, 0.4))
for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3", "gaussian"):
    show(method, tf.image.resize(image, (13, 17), method))
show("grey", tf.image.rgb_to_grayscale(image))
show("hue", tf.image.adjust_hue(image, 0.2))
show("sat", tf.image.adjust_saturation(image, 2.0))
show("gamma", tf.image.adjust_gamma(image, 2.0))
show("std", tf.image.per_image_standardization(image) + 1.0)
show("rot", tf.image.rot90(image, 3))
show("u8", tf.image.convert_image_dtype(image, tf.uint8))
seed = (1, 2)
show("scrop", tf.image.stateless_random_crop(image, (8, 9, 3), seed))
show("sflip", tf.image.stateless_random_flip_left_right(image, seed))
show("sbright", tf.image.stateless_random_brightness(image, 0.3, seed))
show("scontrast", tf.image.stateless_random_contrast(image, 0.2, 0.5, seed))
show("yuv", tf.image.rgb_to_yuv(image))
print(
    "%.3f" % tf.image.ssim(image, image * 0.9, 1.0),
    "%.3f" % tf.image.psnr(image, image * 0.9, 1.0),
)
print(tf.image.total_variation(image).numpy().round(2))
png = tf.io.encode_png(tf.cast(image * 255, tf.uint8))
show("png", tf.io.decode_image(png, channels=3))
boxes = tf.constant([[0, 0, 0.5, 0.5], [0.25, 0.25, 1, 1]])
show("boxes", tf.image.crop_and_resize(image[None], boxes, [0, 0], [6, 6]))
keep = tf.image.non_max_suppression(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [2, 2, 3, 3]], [0.9, 0.8, 0.7], 3, 0.5
)
print(keep.numpy())
data = (
    tf.data.Dataset.from_tensors(image)
    .repeat(2)
    .map(lambda x: tf.image.resize_with_pad(x, 16, 16))
    .batch(2)
)
print(data.element_spec.shape)
