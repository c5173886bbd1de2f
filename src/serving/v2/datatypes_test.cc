#include "serving/v2/datatypes.h"

#include <gtest/gtest.h>

namespace headrace::serving {
namespace {

TEST(V2Datatypes, NamesGoBothWays) {
  const struct {
    const char* name;
    DType dtype;
    bool raw_only;
  } rows[] = {
      {"BOOL", DType::kBool, false},     {"UINT8", DType::kUint8, false},
      {"UINT16", DType::kUint16, false}, {"UINT32", DType::kUint32, false},
      {"UINT64", DType::kUint64, false}, {"INT8", DType::kInt8, false},
      {"INT16", DType::kInt16, false},   {"INT32", DType::kInt32, false},
      {"INT64", DType::kInt64, false},   {"FP16", DType::kHalf, true},
      {"FP32", DType::kFloat, false},    {"FP64", DType::kDouble, false},
      {"BYTES", DType::kString, false},  {"BF16", DType::kBfloat16, true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(DatatypeOf(row.dtype), row.name);
    EXPECT_EQ(*DTypeOfDatatype(row.name, "x"), row.dtype);
    EXPECT_EQ(IsRawOnly(row.dtype), row.raw_only) << row.name;
  }
  EXPECT_EQ(DatatypeOf(DType::kComplex64), "");
  EXPECT_EQ(DTypeOfDatatype("fp32", "input 'x'").status().message(),
            "input 'x': there is no datatype 'fp32'");
}

TEST(V2Datatypes, ShapesAreChecked) {
  EXPECT_EQ(ShapeOfSizes({2, 0, 3}, "x")->ToString(), "[2,0,3]");
  EXPECT_EQ(ShapeOfSizes({}, "x")->rank(), 0);
  EXPECT_FALSE(ShapeOfSizes({-1}, "x").ok());
  EXPECT_FALSE(ShapeOfSizes({int64_t{1} << 62, 8}, "x").ok());
  EXPECT_FALSE(ShapeOfSizes(std::vector<int64_t>(255, 1), "x").ok());
}

TEST(V2Datatypes, RawBytesGoBothWays) {
  const std::string floats("\0\0\x80\x3f\0\0\0\xc0", 8);
  StringView view(floats);
  const auto t = TensorFromRaw(DType::kFloat, Shape{2, 1}, view, "x");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->data<float>()[0], 1.0f);
  EXPECT_EQ(t->data<float>()[1], -2.0f);
  std::string back;
  AppendRaw(*t, &back);
  EXPECT_EQ(back, floats);
  EXPECT_EQ(*RawSize(*t, "x"), 8u);

  const std::string strings("\2\0\0\0ab\0\0\0\0", 10);
  view = strings;
  const auto s = TensorFromRaw(DType::kString, Shape{2}, view, "x");
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->data<std::string>()[0], "ab");
  EXPECT_EQ(s->data<std::string>()[1], "");
  back.clear();
  AppendRaw(*s, &back);
  EXPECT_EQ(back, strings);

  const auto bools =
      TensorFromRaw(DType::kBool, Shape{3}, StringView("\0\1\7", 3), "x");
  ASSERT_TRUE(bools.ok());
  EXPECT_EQ(bools->data<uint8_t>()[2], 1);
}

TEST(V2Datatypes, LargeRawBytesAreKeptAndNotCopied) {
  std::string bytes(8192, '\1');
  const void* data = bytes.data();
  const auto t =
      TensorFromRaw(DType::kInt32, Shape{2048}, std::move(bytes), "x");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->raw(), data);
  EXPECT_FALSE(t->exclusive());
}

TEST(V2Datatypes, RawBytesOfAnotherLengthAreRefused) {
  const auto error = [](DType dtype, const Shape& shape, StringView bytes) {
    return std::string(
        TensorFromRaw(dtype, shape, bytes, "x").status().message());
  };
  EXPECT_EQ(error(DType::kFloat, Shape{2}, "1234567"),
            "x has 7 bytes, where FP32 of shape [2] has 8");
  EXPECT_NE(error(DType::kFloat, Shape{int64_t{1} << 62}, ""), "");
  EXPECT_EQ(error(DType::kString, Shape{int64_t{1} << 60}, "12345678"),
            "x has 8 bytes, too few for BYTES of shape [1152921504606846976]");
  const std::string whole("\2\0\0\0ab\1\0\0\0c", 11);
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_NE(error(DType::kString, Shape{2}, StringView(whole).substr(0, n)),
              "")
        << n;
  }
  EXPECT_EQ(error(DType::kString, Shape{2}, whole), "");
  EXPECT_EQ(error(DType::kString, Shape{1}, whole),
            "x has 5 bytes after its last element");
  EXPECT_EQ(
      RawSize(Tensor::Scalar(complex64(1, 2)), "output 'y'").status().message(),
      "output 'y' is of type complex64, which the protocol has no "
      "datatype for");
}

}  // namespace
}  // namespace headrace::serving
