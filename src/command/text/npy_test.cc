#include "command/text/npy.h"

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "op/attr.h"

namespace headrace::command {
namespace {

TEST(Npy, TensorsComeBack) {
  const Tensor tensors[] = {Tensor::Scalar<float>(1.5f),
                            Tensor::Vector<int64_t>({1, -2, 3}),
                            Tensor::Vector<std::string>({"a", "", "long"}),
                            *Tensor::Allocate(DType::kBool, Shape{2, 0, 3}),
                            Tensor::Vector<complex64>({{1, 2}})};
  for (const Tensor& t : tensors) {
    const auto bytes = NpyFromTensor(t);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const auto back = TensorFromNpy(*bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(AttrEquals(*back, t)) << t.Describe();
    EXPECT_EQ(bytes->find('\n') % 64, 63u);
  }
}

TEST(Npy, EveryByteIsABool) {
  Tensor t = *Tensor::Allocate(DType::kBool, Shape{2});
  t.data<bool>()[0] = t.data<bool>()[1] = true;
  std::string bytes = *NpyFromTensor(t);
  bytes.back() = ' ';
  const auto back = TensorFromNpy(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(static_cast<const char*>(back->raw())[1], 1);
}

TEST(Npy, EveryTruncationIsAnError) {
  const std::string bytes =
      *NpyFromTensor(Tensor::Vector<std::string>({"a", "b"}));
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(TensorFromNpy(bytes.substr(0, n)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(Npy, WhatItsHeaderCannotSay) {
  const std::string good = *NpyFromTensor(Tensor::Vector<float>({1, 2}));
  const auto with = [&](StringView from, StringView to) {
    return TensorFromNpy(absl::StrReplaceAll(good, {{from, to}})).status();
  };
  EXPECT_EQ(with("(2,)", "(9,)").message(),
            "not a .npy file: it ends before its elements do");
  EXPECT_FALSE(with("(2,)", "(-2)").ok());
  EXPECT_FALSE(with("<f4", "<q4").ok());
  EXPECT_EQ(with("<f4", ">f4").code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(with("False", "Maybe").ok());
  EXPECT_FALSE(with("'shape'", "'shope'").ok());
  EXPECT_FALSE(NpyFromTensor(Tensor::Scalar(std::string("a\0", 2))).ok());
}

}  // namespace
}  // namespace headrace::command
