"""Rows of layers, their slopes, and images."""

import numpy as np
from rows import formula, of_old_graph, row, wave

_PLAIN = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_PLAIN_3D = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}


@row("AvgPoolGrad AvgPool3DGrad MaxPoolV2 MaxPool3DGrad MaxPool3DGradGrad")
def pool_slopes(tf, raw):
    how = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}
    deep = {"ksize": [1, 1, 2, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "SAME"}
    x = wave(tf, 1, 2, 4, 3, 1)
    y = raw.MaxPool3D(input=x, **deep)
    more = {"orig_input": x, "orig_output": y}
    return [
        raw.AvgPoolGrad(
            orig_input_shape=[1, 4, 3, 2], grad=wave(tf, 1, 2, 3, 2), **how
        ),
        raw.AvgPool3DGrad(
            orig_input_shape=[1, 2, 4, 3, 1], grad=wave(tf, 1, 2, 2, 3, 1), **deep
        ),
        raw.MaxPoolV2(
            input=wave(tf, 1, 4, 3, 2),
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 1, 1],
            padding="SAME",
        ),
        raw.MaxPool3DGrad(grad=wave(tf, *y.shape, phase=2.0), **more, **deep),
        raw.MaxPool3DGradGrad(grad=wave(tf, *x.shape, phase=2.0), **more, **deep),
    ]


@row(
    "MaxPoolGrad MaxPoolGradV2 MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradWithArgmax"
)
def max_pool_slopes(tf, raw):
    how = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
    x = wave(tf, 1, 4, 3, 2)
    y, places = raw.MaxPoolWithArgmax(input=x, **how)
    more = {"orig_input": x, "orig_output": y}
    down, up = wave(tf, *y.shape, phase=2.0), wave(tf, *x.shape, phase=2.0)
    return [
        raw.MaxPoolGrad(grad=down, **more, **how),
        raw.MaxPoolGradV2(grad=down, **more, **how),
        raw.MaxPoolGradGrad(grad=up, **more, **how),
        raw.MaxPoolGradGradV2(grad=up, **more, **how),
        raw.MaxPoolGradWithArgmax(input=x, grad=down, argmax=places, **how),
    ]


@formula("MaxPoolGradGradWithArgmax")
def max_pool_slopes_by_place(tf, raw):
    how = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
    x = wave(tf, 1, 4, 3, 2)
    _, places = tf.raw_ops.MaxPoolWithArgmax(input=x, **how)
    up = wave(tf, *x.shape, phase=2.0)
    found = raw.MaxPoolGradGradWithArgmax(input=x, grad=up, argmax=places, **how)
    return [(found, up.numpy().reshape(-1)[places.numpy()])]


@row("FractionalAvgPool FractionalAvgPoolGrad FractionalMaxPool FractionalMaxPoolGrad")
def fractional_pools(tf, raw):
    x = wave(tf, 1, 6, 5, 1)
    how = {"pooling_ratio": [1.0, 1.5, 1.4, 1.0], "seed": 3, "seed2": 4}
    how["deterministic"] = True
    mean, *parts = raw.FractionalAvgPool(value=x, **how)
    most, *places = raw.FractionalMaxPool(value=x, **how)
    down = wave(tf, *mean.shape, phase=2.0)
    return [
        mean,
        *parts,
        most,
        *places,
        raw.FractionalAvgPoolGrad(
            orig_input_tensor_shape=tf.constant([1, 6, 5, 1], tf.int64),
            out_backprop=down,
            row_pooling_sequence=parts[0],
            col_pooling_sequence=parts[1],
        ),
        raw.FractionalMaxPoolGrad(
            orig_input=x,
            orig_output=most,
            out_backprop=down,
            row_pooling_sequence=places[0],
            col_pooling_sequence=places[1],
        ),
    ]


@row("Conv2DBackpropFilter DepthwiseConv2dNativeBackpropFilter BiasAddV1")
def convolutions_back(tf, raw):
    x, down = wave(tf, 1, 4, 3, 2), wave(tf, 1, 4, 3, 4, phase=2.0)
    return [
        raw.Conv2DBackpropFilter(
            input=x, filter_sizes=[2, 2, 2, 4], out_backprop=down, **_PLAIN
        ),
        raw.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=[2, 2, 2, 2], out_backprop=down, **_PLAIN
        ),
        raw.DepthwiseConv2dNativeBackpropInput(
            input_sizes=[1, 4, 3, 2],
            filter=wave(tf, 2, 2, 2, 2),
            out_backprop=down,
            **_PLAIN,
        ),
        raw.BiasAddV1(value=x, bias=[1.0, -2.0]),
    ]


@formula("Conv2DBackpropFilterV2 Conv2DBackpropInputV2")
def convolutions_back_by_tensors(tf, raw):
    x, down = wave(tf, 1, 4, 3, 2), wave(tf, 1, 4, 3, 4, phase=2.0)
    w, old = wave(tf, 2, 2, 2, 4), tf.raw_ops
    more = {"input": x, "filter": w, "out_backprop": down, **_PLAIN}
    by_sizes = {"out_backprop": down, **_PLAIN}
    return [
        (
            raw.Conv2DBackpropFilterV2(**more),
            old.Conv2DBackpropFilter(input=x, filter_sizes=w.shape, **by_sizes),
        ),
        (
            raw.Conv2DBackpropInputV2(**more),
            old.Conv2DBackpropInput(input_sizes=x.shape, filter=w, **by_sizes),
        ),
    ]


@row("DepthwiseConv2dNativeBackpropInput Conv3DBackpropFilterV2 Conv3DBackpropInputV2")
def volume_convolutions_back(tf, raw):
    w, down = wave(tf, 2, 1, 2, 1, 2), wave(tf, 1, 2, 3, 2, 2, phase=2.0)
    return [
        raw.DepthwiseConv2dNativeBackpropInput(
            input_sizes=[1, 4, 3, 2],
            filter=wave(tf, 2, 2, 2, 2),
            out_backprop=wave(tf, 1, 4, 3, 4, phase=2.0),
            **_PLAIN,
        ),
        raw.Conv3DBackpropFilterV2(
            input=wave(tf, 1, 2, 3, 2, 1),
            filter_sizes=[2, 1, 2, 1, 2],
            out_backprop=down,
            **_PLAIN_3D,
        ),
        raw.Conv3DBackpropInputV2(
            input_sizes=[1, 2, 3, 2, 1], filter=w, out_backprop=down, **_PLAIN_3D
        ),
    ]


@row("Conv3DBackpropFilter Conv3DBackpropInput BatchNormWithGlobalNormalization")
def in_old_graphs(tf, raw):
    x = wave(tf, 1, 2, 3, 2, 1).numpy()
    inputs = {"input": x, "filter": wave(tf, 2, 1, 2, 1, 2).numpy()}
    inputs["out_backprop"] = wave(tf, 1, 2, 3, 2, 2, phase=2.0).numpy()
    how = {"T": tf.float32, "strides": [1, 1, 1, 1, 1], "padding": b"SAME"}
    four = wave(tf, 1, 2, 2, 2).numpy()
    norm = {
        "t": four,
        "m": np.float32([0.5, -0.5]),
        "v": np.float32([1.0, 2.0]),
        "beta": np.float32([0.1, 0.2]),
        "gamma": np.float32([2.0, 3.0]),
    }
    return [
        of_old_graph(tf, raw, "Conv3DBackpropFilter", inputs, 9, **how),
        of_old_graph(tf, raw, "Conv3DBackpropInput", inputs, 9, **how),
        of_old_graph(
            tf,
            raw,
            "BatchNormWithGlobalNormalization",
            norm,
            8,
            T=tf.float32,
            variance_epsilon=1e-3,
            scale_after_normalization=True,
        ),
    ]


@row("Conv Dilation2DBackpropFilter Dilation2DBackpropInput LRNGrad")
def other_convolutions(tf, raw):
    x, w = wave(tf, 1, 4, 3, 2), wave(tf, 2, 2, 2)
    how = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    down = wave(tf, 1, 3, 2, 2, phase=2.0)
    return [
        raw.Conv(
            input=x, filter=wave(tf, 2, 2, 2, 3), strides=[1, 1, 1, 1], padding="SAME"
        ),
        raw.Dilation2DBackpropFilter(input=x, filter=w, out_backprop=down, **how),
        raw.Dilation2DBackpropInput(input=x, filter=w, out_backprop=down, **how),
        raw.LRNGrad(
            input_grads=wave(tf, 1, 4, 3, 2, phase=2.0),
            input_image=x,
            output_image=raw.LRN(input=x, depth_radius=1),
            depth_radius=1,
        ),
    ]


@row("FusedPadConv2D FusedResizeAndPadConv2D ExtractVolumePatches")
def fused_convolutions(tf, raw):
    x, w = wave(tf, 1, 4, 3, 2), wave(tf, 2, 2, 2, 3)
    how = {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "VALID"}
    paddings = [[0, 0], [1, 1], [0, 1], [0, 0]]
    return [
        raw.FusedPadConv2D(input=x, paddings=paddings, filter=w, **how),
        raw.FusedResizeAndPadConv2D(
            input=x, size=[5, 4], paddings=paddings, filter=w, **how
        ),
        raw.ExtractVolumePatches(
            input=wave(tf, 1, 2, 3, 2, 1),
            ksizes=[1, 1, 2, 2, 1],
            strides=[1, 1, 1, 1, 1],
            padding="VALID",
        ),
    ]


@row("FusedBatchNorm FusedBatchNormV2 FusedBatchNormGrad FusedBatchNormGradV2")
def batch_norms(tf, raw):
    x = wave(tf, 2, 2, 2, 2)
    two = {"scale": [2.0, 3.0], "offset": [0.5, -0.5]}
    none = tf.constant([], tf.float32)
    old = raw.FusedBatchNorm(x=x, **two, mean=none, variance=none)
    new = raw.FusedBatchNormV2(
        x=x, **two, mean=[0.1, 0.2], variance=[1.0, 2.0], is_training=False
    )
    down = wave(tf, 2, 2, 2, 2, phase=2.0)
    back = {"y_backprop": down, "x": x, "scale": [2.0, 3.0]}
    kept = {"reserve_space_1": old[3], "reserve_space_2": old[4]}
    return [
        *old[:3],
        new[0],
        *raw.FusedBatchNormGrad(**back, **kept)[:3],
        *raw.FusedBatchNormGradV2(
            **back,
            reserve_space_1=[0.1, 0.2],
            reserve_space_2=[1.0, 2.0],
            is_training=False,
        )[:3],
    ]


@row("FusedBatchNormV3 FusedBatchNormGradV3")
def batch_norms_of_now(tf, raw):
    x = wave(tf, 2, 2, 2, 2)
    none = tf.constant([], tf.float32)
    y = raw.FusedBatchNormV3(
        x=x, scale=[2.0, 3.0], offset=[0.5, -0.5], mean=none, variance=none
    )
    back = raw.FusedBatchNormGradV3(
        y_backprop=wave(tf, 2, 2, 2, 2, phase=2.0),
        x=x,
        scale=[2.0, 3.0],
        reserve_space_1=y[3],
        reserve_space_2=y[4],
        reserve_space_3=y[5],
    )
    return [*y[:3], *back[:3]]


def _cell(tf):
    """Three steps of a batch of two: three numbers in, two cells."""
    return {
        "cs_prev": wave(tf, 2, 2, phase=0.5),
        "h_prev": wave(tf, 2, 2, phase=0.7),
        "w": wave(tf, 5, 8),
        "wci": wave(tf, 2, phase=0.1),
        "wcf": wave(tf, 2, phase=0.2),
        "wco": wave(tf, 2, phase=0.4),
        "b": wave(tf, 8, phase=0.9),
    }


@row("BlockLSTMGrad BlockLSTMGradV2 LSTMBlockCellGrad")
def lstm_slopes(tf, raw):
    cell, x = _cell(tf), wave(tf, 3, 2, 3)
    steps = tf.constant(3, tf.int64)
    names = ["i", "cs", "f", "o", "ci", "co", "h"]

    def back(forward, grad):
        made = forward(seq_len_max=steps, x=x, **cell, use_peephole=True)
        return grad(
            seq_len_max=steps,
            x=x,
            **cell,
            **dict(zip(names, made, strict=True)),
            cs_grad=wave(tf, 3, 2, 2, phase=1.1),
            h_grad=wave(tf, 3, 2, 2, phase=1.2),
            use_peephole=True,
        )

    made = raw.LSTMBlockCell(x=x[0], **cell, use_peephole=True)
    one = raw.LSTMBlockCellGrad(
        x=x[0],
        **cell,
        **dict(zip(names[:-1], made[:-1], strict=True)),
        cs_grad=wave(tf, 2, 2, phase=1.1),
        h_grad=wave(tf, 2, 2, phase=1.2),
        use_peephole=True,
    )
    return [
        *back(raw.BlockLSTM, raw.BlockLSTMGrad),
        *back(raw.BlockLSTMV2, raw.BlockLSTMGradV2),
        *one,
    ]


@row("GRUBlockCell GRUBlockCellGrad")
def gru_slopes(tf, raw):
    cell = {
        "x": wave(tf, 2, 3),
        "h_prev": wave(tf, 2, 2, phase=0.5),
        "w_ru": wave(tf, 5, 4),
        "w_c": wave(tf, 5, 2, phase=0.8),
        "b_ru": wave(tf, 4, phase=0.1),
        "b_c": wave(tf, 2, phase=0.2),
    }
    r, u, c, h = raw.GRUBlockCell(**cell)
    back = raw.GRUBlockCellGrad(**cell, r=r, u=u, c=c, d_h=wave(tf, 2, 2))
    return [r, u, c, h, *back]


# --- Images.


@row("AdjustContrast")
def contrast_of_old_graphs(tf, raw):
    inputs = {
        "images": wave(tf, 1, 2, 2, 3).numpy(),
        "contrast_factor": np.float32(2.0),
        "min_value": np.float32(-1.0),
        "max_value": np.float32(1.0),
    }
    return of_old_graph(tf, raw, "AdjustContrast", inputs, 1, T=tf.float32)


@row("CropAndResizeGradBoxes CropAndResizeGradImage ScaleAndTranslateGrad")
def crop_slopes(tf, raw):
    grads = wave(tf, 2, 2, 2, 1)
    boxes = {"boxes": [[0.1, 0.0, 0.8, 0.9], [0.3, 0.2, 1.0, 0.7]], "box_ind": [0, 0]}
    return [
        raw.CropAndResizeGradBoxes(grads=grads, image=wave(tf, 1, 4, 3, 1), **boxes),
        raw.CropAndResizeGradImage(
            grads=grads, image_size=[1, 4, 3, 1], T=tf.float32, **boxes
        ),
        raw.ScaleAndTranslateGrad(
            grads=grads,
            original_image=wave(tf, 2, 4, 3, 1),
            scale=[0.5, 0.75],
            translation=[0.1, -0.2],
            kernel_type="triangle",
        ),
    ]


@row("ResizeBicubicGrad ResizeBilinearGrad ResizeNearestNeighborGrad")
def resize_slopes(tf, raw):
    grads, image = wave(tf, 1, 5, 4, 1), wave(tf, 1, 3, 3, 1)
    return [
        raw.ResizeBicubicGrad(grads=grads, original_image=image),
        raw.ResizeBilinearGrad(
            grads=grads, original_image=image, half_pixel_centers=True
        ),
        raw.ResizeNearestNeighborGrad(grads=grads, size=[3, 3]),
    ]


@row("NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionWithOverlaps")
def boxes_that_stay(tf, raw):
    boxes = [[0.0, 0, 1, 1], [0.0, 0.1, 1, 1.1], [0.0, 2, 1, 3], [0.5, 2, 1.5, 3]]
    scores = [0.6, 0.9, 0.3, 0.8]
    return [
        raw.NonMaxSuppression(boxes=boxes, scores=scores, max_output_size=3),
        raw.NonMaxSuppressionV2(
            boxes=boxes, scores=scores, max_output_size=4, iou_threshold=0.2
        ),
        raw.NonMaxSuppressionWithOverlaps(
            overlaps=[[1.0, 0.8, 0, 0], [0.8, 1, 0, 0], [0, 0, 1, 0.4], [0, 0, 0.4, 1]],
            scores=scores,
            max_output_size=4,
            overlap_threshold=0.5,
            score_threshold=0.35,
        ),
    ]


@row("ImageProjectiveTransformV2 ExtractGlimpseV2 DrawBoundingBoxes Mfcc")
def image_parts(tf, raw):
    image = wave(tf, 1, 5, 4, 3)
    return [
        raw.ImageProjectiveTransformV2(
            images=image,
            transforms=[[0.9, 0.1, 0.3, -0.1, 1.1, 0.2, 0.0, 0.0]],
            output_shape=[4, 3],
            interpolation="BILINEAR",
        ),
        raw.ExtractGlimpseV2(
            input=image,
            size=[3, 2],
            offsets=[[0.9, -0.4]],
            uniform_noise=False,
            noise="zero",
        ),
        raw.DrawBoundingBoxes(images=image, boxes=[[[0.1, 0.2, 0.8, 0.9]]]),
        raw.Mfcc(
            spectrogram=tf.abs(wave(tf, 1, 2, 65)),
            sample_rate=8000,
            filterbank_channel_count=10,
            dct_coefficient_count=4,
        ),
    ]


@row(
    "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"
    " StatelessSampleDistortedBoundingBox"
)
def distorted_boxes(tf, raw):
    more = {"image_size": [20, 30, 3], "bounding_boxes": [[[0.1, 0.2, 0.7, 0.8]]]}
    covered = tf.constant(0.3)
    return [
        *raw.SampleDistortedBoundingBox(**more, seed=3, seed2=4),
        *raw.SampleDistortedBoundingBoxV2(
            **more, min_object_covered=covered, seed=3, seed2=4
        ),
        *raw.StatelessSampleDistortedBoundingBox(
            **more, min_object_covered=covered, seed=tf.constant([3, 4])
        ),
    ]


def _picture(tf, *shape):
    return tf.cast(wave(tf, *shape) * 120.0 + 128.0, tf.uint8)


@row(
    "EncodeJpeg EncodeJpegVariableQuality DecodeJpeg DecodeAndCropJpeg ExtractJpegShape"
)
def jpegs(tf, raw):
    image = tf.repeat(tf.repeat(_picture(tf, 2, 3, 3), 8, 0), 8, 1)
    coded = raw.EncodeJpeg(image=image, quality=90)
    other = raw.EncodeJpegVariableQuality(images=image, quality=70)
    return [
        *(raw.ExtractJpegShape(contents=c) for c in (coded, other)),
        raw.DecodeJpeg(contents=coded, channels=1)[::4, ::4],
        raw.DecodeAndCropJpeg(contents=coded, crop_window=[2, 3, 4, 5], channels=1),
    ]


def _bmp():
    """2 x 2 pixels of 24 bits, from below, rows of 8 bytes."""
    rows = bytes(range(10, 16)) + b"\0\0" + bytes(range(20, 26)) + b"\0\0"
    head = b"BM" + (54 + len(rows)).to_bytes(4, "little") + bytes(4)
    head += (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    head += (2).to_bytes(4, "little") * 2 + b"\1\0\x18\0" + bytes(24)
    return head + rows


def _gif():
    """One picture of 2 x 2 places of 4 colours, coded by LZW."""
    colours = bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7])
    head = b"GIF89a" + b"\2\0\2\0\x91\0\0" + colours
    picture = b",\0\0\0\0\2\0\2\0\0" + b"\2\3\x44\x34\5\0"
    return head + picture + b";"


@row("DecodeBmp DecodeGif DecodePng DecodeImage")
def pictures(tf, raw):
    coded = raw.EncodePng(image=_picture(tf, 2, 3, 3))
    return [
        raw.DecodeBmp(contents=_bmp()),
        raw.DecodeGif(contents=_gif()),
        raw.DecodePng(contents=coded, channels=1, dtype=tf.uint16),
        raw.DecodeImage(contents=coded, dtype=tf.float32),
        raw.DecodeImage(contents=_gif(), expand_animations=False),
    ]


@row("DecodeWav")
def sounds(tf, raw):
    coded = raw.EncodeWav(audio=wave(tf, 5, 2), sample_rate=8000)
    return raw.DecodeWav(contents=coded, desired_channels=1, desired_samples=7)
