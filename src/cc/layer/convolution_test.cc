// Convolutions and pooling of one to three dimensions.
#include "gtest/gtest.h"
#include "headrace/headrace.h"

namespace tf = headrace::tf;
namespace layers = tf::layers;

namespace {

using Floats = std::vector<float>;

tf::Tensor Counted(const tf::TensorShape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape.dims) n *= d;
  Floats values;
  for (int64_t i = 1; i <= n; ++i) values.push_back(static_cast<float>(i));
  return tf::Tensor::From(values, shape);
}

TEST(Convolution, OfOneDimension) {
  const tf::Tensor x = Counted({1, 4, 1});
  layers::Conv1D valid(1, 2, {.kernel_initializer = "ones"});
  EXPECT_EQ(valid(x).vector<float>(), (Floats{3, 5, 7}));
  layers::Conv1D causal(
      1, 2,
      {.padding = "causal", .dilation_rate = 2, .kernel_initializer = "ones"});
  EXPECT_EQ(causal(x).vector<float>(), (Floats{1, 2, 4, 6}));
  layers::Conv1D first(
      1, 2, {.data_format = "channels_first", .kernel_initializer = "ones"});
  EXPECT_EQ(first(Counted({1, 1, 3})).shape(), (tf::TensorShape{1, 1, 2}));
  EXPECT_EQ(layers::MaxPool1D()(x).vector<float>(), (Floats{2, 4}));
  EXPECT_EQ(layers::AveragePool1D(3, {.strides = 1})(x).vector<float>(),
            (Floats{2, 3}));
  EXPECT_EQ(layers::GlobalMaxPool1D(false, "channels_first")(Counted({1, 2, 3}))
                .vector<float>(),
            (Floats{3, 6}));
}

TEST(Convolution, OfThreeDimensions) {
  const tf::Tensor x = Counted({1, 2, 2, 2, 1});
  layers::Conv3D conv(
      2, 2, {.kernel_initializer = "ones", .bias_initializer = "ones"});
  EXPECT_EQ(conv(x).vector<float>(), (Floats{37, 37}));
  EXPECT_EQ(layers::MaxPool3D({1, 2, 2})(x).vector<float>(), (Floats{4, 8}));
  EXPECT_EQ(layers::AveragePool3D(2)(x).vector<float>(), (Floats{4.5}));
  EXPECT_EQ(layers::GlobalMaxPool3D()(x).vector<float>(), (Floats{8}));
  EXPECT_EQ(layers::GlobalAveragePool3D(true)(x).shape(),
            (tf::TensorShape{1, 1, 1, 1, 1}));
}

TEST(Convolution, Transposed) {
  layers::Conv2DTranspose up(1, 2,
                             {.strides = 2, .kernel_initializer = "ones"});
  EXPECT_EQ(up(Counted({1, 1, 2, 1})).vector<float>(),
            (Floats{1, 1, 2, 2, 1, 1, 2, 2}));
  layers::Conv2DTranspose same(4, 3, {.strides = 2, .padding = "same"});
  EXPECT_EQ(same.Build({-1, 5, 6, 2}), (tf::TensorShape{-1, 10, 12, 4}));
  layers::Conv2DTranspose more(4, 3, {.strides = 2}, layers::Size2(1));
  EXPECT_EQ(more.Build({-1, 5, 6, 2}), (tf::TensorShape{-1, 12, 14, 4}));
  EXPECT_THROW(layers::Conv2DTranspose(4, 3, {.strides = 2}, 2), tf::Error);
  EXPECT_THROW(layers::Conv2DTranspose(4, 3, {.groups = 2}), tf::Error);
}

TEST(Convolution, InTwoSteps) {
  layers::SeparableConv2D conv(3, 2,
                               {.depth_multiplier = 2,
                                .depthwise_initializer = "ones",
                                .pointwise_initializer = "ones"});
  const tf::Tensor out = conv(Counted({1, 2, 2, 1}));
  EXPECT_EQ(out.vector<float>(), (Floats{20, 20, 20}));
  EXPECT_EQ(conv.children()[1].name, "pointwise_kernel");
  EXPECT_EQ(conv.variables()[1].shape(), (tf::TensorShape{1, 1, 2, 3}));
}

TEST(Convolution, PadsAndRepeats) {
  EXPECT_EQ(
      layers::ZeroPadding2D(1, 0, 0, 1)(Counted({1, 1, 2, 1})).vector<float>(),
      (Floats{0, 0, 0, 1, 2, 0}));
  EXPECT_EQ(layers::UpSampling2D({1, 2})(Counted({1, 2, 1, 1})).vector<float>(),
            (Floats{1, 1, 2, 2}));
  EXPECT_EQ(layers::UpSampling2D(3, "channels_first").Build({-1, 2, 4, 5}),
            (tf::TensorShape{-1, 2, 12, 15}));
}

TEST(Convolution, RefusesWhatCannotBe) {
  EXPECT_THROW(layers::Conv1D(0, 3), tf::Error);
  EXPECT_THROW(layers::Conv3D(4, {3, 0, 3}), tf::Error);
  EXPECT_THROW(layers::Conv2D(4, 3, {.padding = "causal"}), tf::Error);
  EXPECT_THROW(layers::Conv2D(4, int64_t{1} << 40), tf::Error);
  EXPECT_THROW(layers::MaxPool1D(0), tf::Error);
  EXPECT_THROW(layers::ZeroPadding2D(-1), tf::Error);
  EXPECT_THROW(layers::DepthwiseConv2D(3, {.depth_multiplier = 0}), tf::Error);
  EXPECT_THROW(layers::SeparableConv2D(0, 3), tf::Error);
  EXPECT_THROW(layers::MaxPool3D()(Counted({1, 2, 2, 1})), tf::Error);
  EXPECT_THROW(layers::GlobalMaxPool1D(false, "first"), tf::Error);
}

}  // namespace
